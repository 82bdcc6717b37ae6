/* SPDX-License-Identifier: Apache-2.0 */
/* Processes whose address space is limited: what a report takes of it, and what happens without. */
#include "test_report_support.h"

#include <pthread.h>
#include <sys/resource.h>

#include "skip.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

enum {
    MIB = 1024 * 1024,
    THREADS = 8,
    LAUNCHES = 5, /* of each thread */
};

static size_t headroom; /* what a child may take, beyond what it has */

static size_t address_space(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;
    expect(file != NULL && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void limit_address_space(void)
{
    size_t size = address_space() + headroom;
    struct rlimit limit = {size, size};
    expect(setrlimit(RLIMIT_AS, &limit) == 0);
}

static uint32_t cell;
static pthread_barrier_t barrier;

static void *launch(void *unused)
{
    for (int i = 0; i < LAUNCHES; i++) {
        report_count_entry(ENTRY_LAUNCH);
        report_count_launch(cell, REPORT_LAUNCH_EAGER, 1);
    }
    if (unused != NULL)
        pthread_barrier_wait(&barrier); /* no shard is given back before all have one */
    return NULL;
}

/* Threads with stacks of their own, made before the limit, which is not about them. */
static void *wait_and_launch(void *unused)
{
    pthread_barrier_wait(&barrier);
    return launch(unused);
}

static void every_call(void)
{
    uint32_t kernel = enter_kernel("_Z1av");
    cell = enter_cell_applied(kernel);
    report_kernel_shape(kernel, 1, 1, 1);
    report_fact("a", "b", "c");
    report_note("a", "b");
    report_gate_raise();
    report_gate_lower();
    report_stream(&(struct report_stream_info){
        .library = "libapp.so", .kind = "created", .rule = REPORT_RULE_NONE});
    expect(report_thread_shard() != NULL);
}

static void lives_under_a_limit(void)
{
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    expect(pthread_attr_init(&attributes) == 0);
    expect(pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
    expect(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
    for (int i = 0; i < THREADS; i++)
        expect(pthread_create(&threads[i], &attributes, wait_and_launch, &barrier) == 0);
    limit_address_space();
    start_report(in_folder("report.json"));
    every_call();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++)
        expect(pthread_join(threads[i], NULL) == 0);
    pid_t child = fork();
    if (child == 0) {
        report_after_fork(in_folder("child.json"));
        every_call();
        launch(NULL);
        report_finish();
        _exit(0);
    }
    int status = -1;
    expect(waitpid(child, &status, 0) == child && status == 0);
    report_finish();
}

/* All that was counted is in the report, or in the counters that it could not be made of; or there
 * is neither, since there was no room for counters. */
static bool reported(const char *name, int64_t launches)
{
    char counters[64];
    snprintf(counters, sizeof counters, "%s.counters", name);
    if (!exists(name) && !exists(counters))
        return false;
    json_t *report = exists(name) ? read_report(name) : read_counters(counters);
    int64_t found = integer(report, "launches");
    json_decref(report);
    if (found != launches)
        fail_msg("%s: %lld launches, with %zu KiB", name, (long long)found, headroom / 1024);
    unlink(in_folder(name));
    unlink(in_folder(counters));
    return true;
}

static void test_whatever_the_limit_the_process_lives_and_no_launch_is_lost(void **state)
{
    (void)state;
#ifdef SANITIZED
    skip_because("the sanitizers need all the address space there is");
#endif
    size_t with = 0, without = 0;
    for (headroom = 0; headroom < 120 * MIB;
         headroom += headroom < 48 * MIB ? 3 * MIB / 4 : 9 * MIB) {
        assert_child_succeeds(lives_under_a_limit);
        bool parent = reported("report.json", THREADS * LAUNCHES);
        reported("child.json", LAUNCHES);
        with += parent;
        without += !parent;
    }
    assert_true(with > 0 && without > 0); /* some had room, some had none */
}

static void needs_little(void)
{
    size_t before, first, rest;
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    expect(pthread_attr_init(&attributes) == 0);
    expect(pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
    expect(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
    for (int i = 0; i < THREADS; i++)
        expect(pthread_create(&threads[i], &attributes, wait_and_launch, &barrier) == 0);
    start_report(in_folder("report.json"));
    before = address_space();
    every_call();
    first = address_space() - before;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    rest = address_space() - before - first;
    for (int i = 0; i < THREADS; i++)
        expect(pthread_join(threads[i], NULL) == 0);
    fprintf(stderr, "the report takes %zu KiB, and %zu KiB for %d more threads\n", first / 1024,
            rest / 1024, THREADS);
    expect(first < 48 * MIB);
    expect(rest < THREADS * MIB);
    report_finish();
}

static void test_a_report_takes_little_address_space(void **state)
{
    (void)state;
#ifdef SANITIZED
    skip_because("the sanitizers' own memory is not the report's");
#endif
    assert_child_succeeds(needs_little);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, make_folder, remove_folder)
        TEST(whatever_the_limit_the_process_lives_and_no_launch_is_lost),
        TEST(a_report_takes_little_address_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
