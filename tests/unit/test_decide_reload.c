/* SPDX-License-Identifier: Apache-2.0 */
/* Another policy while the process runs: what changes, what stays, and no launch by half of each.
 */
#include "test_decide_support.h"

#include <pthread.h>

#include "decide/pass.h"
#include "decide/rule_set.h"
#include "decide/stream.h"
#include "report/layout.h"

static struct policy *in_force;

static void begin(const char *text)
{
    in_force = parse_policy(text);
    start_parsed(in_force);
}

static bool try_reload(const char *text, char *error, size_t size)
{
    struct policy *policy = parse_policy(text);
    if (!decide_reload(policy, in_force, &this_process, error, size))
        return false;
    in_force = policy;
    return true;
}

static void reload(const char *text)
{
    char error[256] = "";
    if (!try_reload(text, error, sizeof error))
        fail_msg("%s", error);
}

static uint32_t domain_of(const struct decide_verdict *verdict)
{
    const struct cuda_launch_attribute *attribute =
        verdict->change ? given(verdict, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN) : NULL;
    return attribute ? attribute->value.number : 99;
}

static const char remote[] = "[kernel a]\nname = k\nmem_sync_domain = remote\n";
static const char local[] = "[kernel a]\nname = k\nmem_sync_domain = default\n";
static const char other[] = "[kernel a]\nname = other\nmem_sync_domain = default\n";

/* ---- Kernel rules ------------------------------------------------------------------------------
 */

static void launches_after_a_reload_get_the_new_settings(void **state)
{
    (void)state;
    struct trial trial;
    struct fake_function function = fake_function_of("k");
    begin(remote);
    for (int i = 0; i < 4; i++)
        assert_int_equal(domain_of(run_trial(trial_of(&trial, &function))), 1);
    reload(local);
    for (int i = 0; i < 4; i++)
        assert_int_equal(domain_of(run_trial(trial_of(&trial, &function))), 0);
    reload(other);
    for (int i = 0; i < 4; i++)
        assert_false(run_trial(trial_of(&trial, &function))->change);
}

static struct decide_pass_entry *pass_of(const void *function)
{
    return &decide_pass_table[(uint64_t)(uintptr_t)function * DECIDE_PASS_MULTIPLIER >>
                              (64 - DECIDE_PASS_BITS)];
}

static void no_cache_serves_what_was_decided_before(void **state)
{
    (void)state;
    struct trial trial;
    struct fake_function function = fake_function_of("k");
    begin(other);
    for (int i = 0; i < 4; i++)
        run_trial(trial_of(&trial, &function));
    uint64_t handle = (uintptr_t)&function;
    const struct decide_pass_entry *pass = pass_of(&function);
    assert_int_equal(pass->handle, handle);
    reload(remote);
    assert_int_equal(pass->handle, 0);
    for (int i = 0; i < 4; i++)
        run_trial(trial_of(&trial, &function));
    assert_non_null(decide_prepared_for((CUfunction)&function));
    reload(other);
    assert_null(decide_prepared_for((CUfunction)&function));
    run_trial(trial_of(&trial, &function));
    assert_int_equal(pass->handle, handle);
}

/* Two functions with one place. */
static void find_rivals(struct fake_function *rivals[2])
{
    static struct fake_function functions[DECIDE_PASS_SIZE + 1], *at[DECIDE_PASS_SIZE];
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        size_t place = (size_t)(pass_of(&functions[i]) - decide_pass_table);
        functions[i] = fake_function_of("k");
        rivals[0] = at[place];
        rivals[1] = at[place] = &functions[i];
        if (rivals[0])
            return;
    }
}

static void a_place_of_the_short_way_stays_its_functions_over_a_reload(void **state)
{
    (void)state;
    struct fake_function *rivals[2] = {NULL, NULL};
    struct trial trial;
    find_rivals(rivals);
    begin(other);
    run_trial(trial_of(&trial, rivals[0]));
    reload("[kernel b]\nname = something\nmem_sync_domain = remote\n");
    run_trial(trial_of(&trial, rivals[1]));
    assert_int_equal(pass_of(rivals[0])->handle, 0);
    run_trial(trial_of(&trial, rivals[0]));
    assert_int_equal(pass_of(rivals[0])->handle, (uintptr_t)rivals[0]);
}

static void a_kernel_keeps_its_row_in_the_report(void **state)
{
    (void)state;
    struct trial trial;
    struct fake_function function = fake_function_of("the_kernel_with_one_row");
    const struct report_cell_row *cells;
    begin("[kernel a]\nname = the_kernel*\nmem_sync_domain = remote\n");
    uint32_t before = run_trial(trial_of(&trial, &function))->cell;
    reload("[kernel a]\nname = the_kernel*\nmem_sync_domain = default\n");
    uint32_t after = run_trial(trial_of(&trial, &function))->cell;
    cells = report_image_region(REPORT_REGION_CELLS);
    assert_int_not_equal(before, after);
    assert_int_equal(cells[before].kernel, cells[after].kernel);
}

static void what_a_kernel_was_refused_is_tried_again_under_other_rules(void **state)
{
    (void)state;
    struct trial trial;
    struct fake_function function = fake_function_of("k");
    begin("[kernel a]\nname = k\npriority = -2\n");
    decide_trial(trial_of(&trial, &function));
    assert_true(decide_launch_refused(&trial.launch, &trial.verdict, CUDA_ERROR_INVALID_VALUE));
    decide_launch_repeated(&trial.launch, &trial.verdict, CUDA_SUCCESS);
    assert_false(decide_trial(trial_of(&trial, &function))->change);
    reload("[kernel a]\nname = k\npriority = -1\n");
    assert_true(decide_trial(trial_of(&trial, &function))->change);
}

static void selectors_by_library_follow(void **state)
{
    (void)state;
    struct trial trial;
    struct fake_function function = fake_function_of("k");
    static const char library[] = "libx.so";
    begin("[kernel a]\nname = k\nlibrary = liby*\nmem_sync_domain = remote\n");
    trial_of(&trial, &function)->launch.library = library;
    assert_false(run_trial(&trial)->change);
    reload("[kernel a]\nname = k\nlibrary = libx*\nmem_sync_domain = remote\n");
    trial_of(&trial, &function)->launch.library = library;
    assert_int_equal(domain_of(run_trial(&trial)), 1);
}

static void devices_named_in_another_way_are_asked_about(void **state)
{
    (void)state;
    struct trial trial;
    struct fake_function function = fake_function_of("k");
    fake.devices[0].pci = "0000:19:00.0";
    begin(other);
    assert_false(run_trial(trial_of(&trial, &function))->change);
    reload("[kernel a]\nname = k\ndevice = 0000:19:00.0\nmem_sync_domain = remote\n");
    assert_int_equal(domain_of(run_trial(trial_of(&trial, &function))), 1);
}

/* ---- Numbers -----------------------------------------------------------------------------------
 */

static uint16_t rule_at(struct fake_function *function)
{
    struct trial trial;
    return result_of(run_trial(trial_of(&trial, function)), POLICY_SETTING_MEM_SYNC_DOMAIN).rule;
}

static void a_rule_that_says_the_same_keeps_its_number(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    begin(remote);
    uint16_t number = rule_at(&function);
    reload("[kernel before]\nname = other\npriority = 0\n"
           "[kernel a]\n; the same\nmem_sync_domain = remote\nname = k\n");
    assert_int_equal(rule_at(&function), number);
    reload(local);
    uint16_t another = rule_at(&function);
    assert_int_not_equal(another, number);
    reload(remote);
    assert_int_equal(rule_at(&function), number);
    reload(local);
    assert_int_equal(rule_at(&function), another);
}

static void a_new_rule_gets_a_row_of_its_own_in_the_report(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    begin(remote);
    uint16_t old = rule_at(&function);
    reload("\n\n[kernel quite-new]\nname = k\nmem_sync_domain = default\n");
    uint16_t number = rule_at(&function);
    assert_true(number > old);
    assert_ptr_equal(decide_rule_numbered(number), &in_force->rules[0]);
    assert_string_equal(decide_rule_numbered(old)->name, "a");
}

/* ---- Streams -----------------------------------------------------------------------------------
 */

static void a_default_streams_settings_change_at_once(void **state)
{
    (void)state;
    struct trial trial;
    struct fake_function function = fake_function_of("k");
    begin(other);
    for (int i = 0; i < 3; i++)
        assert_false(run_trial(trial_of(&trial, &function))->change);
    reload("[stream s]\nkind = legacy\nmem_sync_domain = remote\n");
    for (int i = 0; i < 3; i++)
        assert_int_equal(domain_of(run_trial(trial_of(&trial, &function))), 1);
    reload("[stream s]\nkind = legacy\nmem_sync_domain = default\n");
    for (int i = 0; i < 3; i++)
        assert_int_equal(domain_of(run_trial(trial_of(&trial, &function))), 0);
    reload(other);
    for (int i = 0; i < 3; i++)
        assert_false(run_trial(trial_of(&trial, &function))->change);
}

static void a_stream_keeps_the_rules_of_its_creation(void **state)
{
    (void)state;
    static int handle;
    CUstream stream = (CUstream)(void *)&handle;
    begin("[stream s]\ncreated_priority = 0\nmem_sync_domain = remote\n");
    decide_stream_created(stream, &(struct decide_stream_request){.flags = 1});
    uint16_t before = decide_stream_find(stream, false, NULL)->profile->rules[0];
    reload("[stream s]\ncreated_priority = 0\nmem_sync_domain = default\n");
    assert_int_equal(decide_stream_find(stream, false, NULL)->profile->rules[0], before);
    decide_stream_gone(stream);
    decide_stream_created(stream, &(struct decide_stream_request){.flags = 1});
    assert_int_not_equal(decide_stream_find(stream, false, NULL)->profile->rules[0], before);
    decide_stream_gone(stream);
}

static void a_kernel_rule_finds_streams_by_the_name_of_an_earlier_rule(void **state)
{
    (void)state;
    static int handle;
    CUstream stream = (CUstream)(void *)&handle;
    struct trial trial;
    struct fake_function function = fake_function_of("k");
    begin("[stream s]\ncreated_priority = 0\npriority = 0\n");
    decide_stream_created(stream, &(struct decide_stream_request){.flags = 1});
    reload("[stream s]\ncreated_priority = 0\npriority = -1\n"
           "[kernel a]\nstream = s\nmem_sync_domain = remote\n");
    trial_of(&trial, &function)->config.hStream = stream;
    assert_int_equal(domain_of(run_trial(&trial)), 1);
    assert_false(run_trial(trial_of(&trial, &function))->change);
    decide_stream_gone(stream);
}

/* ---- Partitions --------------------------------------------------------------------------------
 */

static void other_partitions_are_refused_and_nothing_changes(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "[partition side]\nsm_count = 16\n[kernel a]\nname = k\npartition = side\n",
        "[kernel a]\nname = k\nlocality_domain = 0\n",
    };
    struct trial trial;
    struct fake_function function = fake_function_of("k");
    char error[256];
    begin(remote);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        error[0] = '\0';
        assert_false(try_reload(refused[i], error, sizeof error));
        assert_non_null(strstr(error, i ? "locality_domain=0" : "side"));
        assert_int_equal(domain_of(run_trial(trial_of(&trial, &function))), 1);
    }
    begin("[partition side]\nsm_count = 16\n[kernel a]\nname = k\npartition = side\n");
    assert_false(try_reload("[partition side]\nsm_count = 32\n[kernel a]\nname = k\n"
                            "partition = side\n",
                            error, sizeof error));
    assert_false(try_reload(remote, error, sizeof error));
    assert_true(try_reload("[partition side]\nsm_count = 16\n[kernel b]\nname = x\n"
                           "partition = side\n",
                           error, sizeof error));
}

/* ---- Threads -----------------------------------------------------------------------------------
 */

enum {
    THREADS = 16,
    LAUNCHES_BETWEEN = 400, /* two reloads, of all threads together */
    RELOADS = 90,
    FUNCTIONS = 8,
};

/* Each launch goes to the legacy stream and gets one attribute by a kernel rule, one by a stream
 * rule: both must come from one policy. */
static const char pair[2][200] = {
    "[kernel a]\nname = k*\nmem_sync_domain = remote\n"
    "[stream s]\nkind = legacy\npriority = -1\n",
    "[kernel a]\nname = k*\nmem_sync_domain = default\n"
    "[stream s]\nkind = legacy\npriority = -2\n",
};
/* The second of these takes no part in launches: they pass by. */
static const char plain[2][100] = {
    "[kernel a]\nname = k*\nmem_sync_domain = remote\n",
    "[kernel a]\nname = x*\nmem_sync_domain = remote\n",
};

static struct fake_function shared[FUNCTIONS];
static unsigned long mixed, launched;
static bool stop;

static unsigned kind_of(const struct decide_verdict *verdict)
{
    const struct cuda_launch_attribute *priority;
    uint32_t domain;
    if (!verdict->change)
        return 2;
    domain = domain_of(verdict);
    priority = given(verdict, CU_LAUNCH_ATTRIBUTE_PRIORITY);
    if (!priority)
        return domain == 1 ? 3 : 4;
    if (domain == 1 && priority->value.priority == -1)
        return 0;
    return domain == 0 && priority->value.priority == -2 ? 1 : 4;
}

struct launcher {
    pthread_t thread;
    unsigned number;
    unsigned allowed; /* kinds, as bits */
};

static void *launch_on(void *argument)
{
    const struct launcher *launcher = argument;
    struct trial trial;
    unsigned long wrong = 0;
    report_thread_shard();
    for (unsigned i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        struct fake_function *function = &shared[(i + launcher->number) % FUNCTIONS];
        trial_of(&trial, function);
        if (decide_prepared_for((CUfunction)function) == NULL || i % 2) {
            run_trial(&trial);
            report_count_launch(trial.verdict.cell, trial.verdict.kind, 1);
            wrong += !(launcher->allowed >> kind_of(&trial.verdict) & 1);
        }
        __atomic_fetch_add(&launched, 1, __ATOMIC_RELAXED);
        if (launcher->number == 0 && i % 16 == 0)
            decide_function_changed(function);
    }
    __atomic_fetch_add(&mixed, wrong, __ATOMIC_RELAXED);
    return NULL;
}

static void launch_while_reloading(const char *first, const char *second, unsigned allowed)
{
    static struct launcher launchers[THREADS];
    fake.many_threads = true;
    for (unsigned i = 0; i < FUNCTIONS; i++)
        shared[i] = fake_function_of(i % 2 ? "k1" : "k2");
    begin(first);
    mixed = 0;
    stop = false;
    for (unsigned i = 0; i < THREADS; i++) {
        launchers[i] = (struct launcher){.number = i, .allowed = allowed};
        assert_int_equal(pthread_create(&launchers[i].thread, NULL, launch_on, &launchers[i]), 0);
    }
    for (unsigned i = 0; i < RELOADS; i++) {
        unsigned long before = __atomic_load_n(&launched, __ATOMIC_RELAXED);
        reload(i % 2 ? first : second);
        while (__atomic_load_n(&launched, __ATOMIC_RELAXED) < before + LAUNCHES_BETWEEN)
            sched_yield();
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(launchers[i].thread, NULL);
    assert_int_equal(mixed, 0);
    /* Whatever they kept about a function is by the rules in force. */
    struct trial trial;
    for (unsigned i = 0; i < FUNCTIONS; i++)
        assert_int_equal(kind_of(run_trial(trial_of(&trial, &shared[i]))), allowed == 3 ? 0 : 3);
}

static void every_launch_is_decided_by_one_policy(void **state)
{
    (void)state;
    launch_while_reloading(pair[0], pair[1], 1 << 0 | 1 << 1);
}

static void launches_that_pass_by_are_decided_by_one_policy(void **state)
{
    (void)state;
    launch_while_reloading(plain[0], plain[1], 1 << 2 | 1 << 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(launches_after_a_reload_get_the_new_settings),
        TEST(no_cache_serves_what_was_decided_before),
        TEST(a_place_of_the_short_way_stays_its_functions_over_a_reload),
        TEST(a_kernel_keeps_its_row_in_the_report),
        TEST(what_a_kernel_was_refused_is_tried_again_under_other_rules),
        TEST(selectors_by_library_follow),
        TEST(devices_named_in_another_way_are_asked_about),
        TEST(a_rule_that_says_the_same_keeps_its_number),
        TEST(a_new_rule_gets_a_row_of_its_own_in_the_report),
        TEST(a_default_streams_settings_change_at_once),
        TEST(a_stream_keeps_the_rules_of_its_creation),
        TEST(a_kernel_rule_finds_streams_by_the_name_of_an_earlier_rule),
        TEST(other_partitions_are_refused_and_nothing_changes),
        TEST(every_launch_is_decided_by_one_policy),
        TEST(launches_that_pass_by_are_decided_by_one_policy),
    };
    return cmocka_run_group_tests_name("decide_reload", tests, start_group, NULL);
}
