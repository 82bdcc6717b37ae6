/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads launch while modules come and go and handles are used again at once. */
#include "test_decide_support.h"

#include <pthread.h>

#include "decide/pass.h"

enum {
    THREADS = 64,
    ROUNDS = 60,
    HANDLES = 4, /* of a thread */
    LAUNCHES = 8,
    CHURN = 100000,
};

static struct fake_function shared_matched, shared_other;

struct worker {
    pthread_t thread;
    unsigned seed;
    unsigned long wrong, launches;
    struct fake_function functions[HANDLES];
    struct trial trial;
};

static bool in_pass_table(const void *function)
{
    uint64_t handle = (uintptr_t)function;
    return __atomic_load_n(
               &decide_pass_table[handle * DECIDE_PASS_MULTIPLIER >> (64 - DECIDE_PASS_BITS)]
                    .handle,
               __ATOMIC_ACQUIRE) == handle;
}

static void launch(struct worker *worker, struct fake_function *function, bool matched)
{
    struct trial *trial = &worker->trial;
    trial->launch.function = (CUfunction)function;
    trial->config.gridDimX = 63 + worker->seed % 2; /* some are divisible by the cluster */
    decide_launch(&trial->launch, &trial->verdict);
    bool changed = trial->verdict.change;
    if (changed)
        decide_launch_accepted(&trial->launch, &trial->verdict);
    report_count_launch(trial->verdict.cell, trial->verdict.kind, 1);
    worker->wrong += changed != matched || (matched && in_pass_table(function)) ||
                     (!matched && decide_prepared_for((CUfunction)function));
    worker->launches++;
}

/* One module is loaded, its functions are launched, and it goes. */
static void use_a_module(struct worker *worker)
{
    static _Thread_local int module;
    bool matched[HANDLES];
    for (int i = 0; i < HANDLES; i++) {
        worker->seed = worker->seed * 1103515245 + 12345;
        matched[i] = worker->seed >> 16 & 1;
        worker->functions[i].name = matched[i] ? "matched" : "other";
        decide_function_named(&worker->functions[i], worker->functions[i].name, &module);
    }
    for (int i = 0; i < LAUNCHES; i++) {
        launch(worker, &worker->functions[i % HANDLES], matched[i % HANDLES]);
        launch(worker, i % 2 ? &shared_matched : &shared_other, i % 2);
    }
    decide_container_gone(&module);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    report_thread_shard();
    for (int round = 0; round < ROUNDS; round++) {
        use_a_module(worker);
        if ((worker->seed >> 8) % 7 == 0)
            decide_function_changed(round % 2 ? &shared_matched : NULL);
        if ((worker->seed >> 8) % 11 == 0)
            decide_context_gone(NULL);
    }
    return NULL;
}

static void launch_under(const char *policy)
{
    static struct worker workers[THREADS];
    fake.many_threads = true;
    shared_matched = fake_function_of("matched");
    shared_other = fake_function_of("other");
    start_policy(policy);
    memset(workers, 0, sizeof workers);
    for (unsigned i = 0; i < THREADS; i++) {
        struct worker *worker = &workers[i];
        worker->seed = i * 7919 + 1;
        for (int j = 0; j < HANDLES; j++)
            worker->functions[j] = fake_function_of("other");
        trial_of(&worker->trial, NULL);
        assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
    }
    unsigned long wrong = 0, launches = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        wrong += workers[i].wrong;
        launches += workers[i].launches;
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(launches, THREADS * ROUNDS * LAUNCHES * 2);
}

static void every_launch_meets_the_rule_of_its_own_function(void **state)
{
    (void)state;
    launch_under("[kernel a]\nname = matched\nmem_sync_domain = remote\n");
    launch_under("[kernel a]\nname = matched\nmem_sync_domain = remote\ncluster_dim = 2\n");
}

static void modules_may_come_and_go_a_hundred_thousand_times(void **state)
{
    (void)state;
    static struct trial trial;
    struct fake_function functions[2] = {fake_function_of("x"), fake_function_of("x")};
    int module;
    start_policy("[kernel a]\nname = matched\nmem_sync_domain = remote\n");
    for (int i = 0; i < CHURN; i++) {
        struct fake_function *function = &functions[i / 3 % 2];
        bool matched = i % 5 < 2;
        function->name = matched ? "matched" : "other";
        decide_function_named(function, function->name, &module);
        assert_int_equal(decide_trial(trial_of(&trial, function))->change, matched);
        decide_container_gone(&module);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_launch_meets_the_rule_of_its_own_function),
        TEST(modules_may_come_and_go_a_hundred_thousand_times),
    };
    return cmocka_run_group_tests_name("decide_threads", tests, start_group, NULL);
}
