/* SPDX-License-Identifier: Apache-2.0 */
/* Shards, kernels, cells and the control word. */
#include "test_report_support.h"

#include <errno.h>
#include <pthread.h>

enum { THREADS = 64, ROUNDS = 20000, SMALL_STACK = 64 * 1024 };

static pthread_barrier_t barrier;

static void run_threads(size_t count, void *(*body)(void *), void *argument)
{
    static pthread_t threads[512];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    expect(pthread_attr_setstacksize(&attributes, SMALL_STACK) == 0);
    for (size_t i = 0; i < count; i++)
        expect(pthread_create(&threads[i], &attributes, body, argument) == 0);
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void same_kernel_and_library_is_one_kernel(void)
{
    start_report(NULL);
    uint32_t first = enter_kernel("_Z1av"), second = enter_kernel("_Z1bv");
    expect(first != 0 && second != 0 && first != second);
    expect(enter_kernel("_Z1av") == first);
    expect(report_kernel(&(struct report_kernel_info){"_Z1av", "a", "a()", "libother.so", true}) !=
           first);
}

static void test_same_kernel_and_library_is_one_kernel(void **state)
{
    (void)state;
    assert_child_succeeds(same_kernel_and_library_is_one_kernel);
}

static void cell_is_one_for_equal_outcomes(void)
{
    start_report(NULL);
    uint32_t kernel = enter_kernel("_Z1av"), other = enter_kernel("_Z1bv");
    struct report_result results[SETTING_COUNT] = {result_applied, result_none};
    uint32_t cell = report_cell(kernel, results, 0);
    expect(cell != 0);
    expect(report_cell(kernel, results, 0) == cell);
    expect(report_cell(other, results, 0) != cell);
    expect(report_cell(kernel, results, 701) != cell);
    results[SETTING_CLUSTER] =
        (struct report_result){REPORT_OUTCOME_REFUSED, REPORT_REASON_GRAPH, RULE_SMALL};
    expect(report_cell(kernel, results, 0) != cell);
}

static void test_cell_is_one_for_equal_outcomes(void **state)
{
    (void)state;
    assert_child_succeeds(cell_is_one_for_equal_outcomes);
}

static void *launch_and_enter(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&barrier);
    for (unsigned round = 0; round < ROUNDS; round++) {
        char name[32];
        snprintf(name, sizeof name, "_Z7kernel%uv", round % 40);
        if (round < 400) { /* first sights, all threads at once */
            uint32_t kernel = enter_kernel(name);
            report_count_launch(enter_cell_applied(kernel), REPORT_LAUNCH_EAGER, 1);
            report_kernel_shape(kernel, round, 32, 0);
        } else {
            report_count_launch(1 + round % 40, REPORT_LAUNCH_REPLAYED, 2);
        }
        report_count_entry(ENTRY_LAUNCH);
        if (round % 1000 == 0) {
            report_gate_raise();
            report_note("info", "round %u", round);
            report_fact("test", "round", "%u", round);
            report_gate_lower();
        }
    }
    return NULL;
}

static void threads_count_exactly(void)
{
    start_report(in_folder("report.json"));
    pthread_barrier_init(&barrier, NULL, THREADS);
    run_threads(THREADS, launch_and_enter, NULL);
    report_finish();
}

static void test_64_threads_count_exactly(void **state)
{
    (void)state;
    assert_child_succeeds(threads_count_exactly);
    json_t *report = read_report("report.json");
    assert_int_equal(json_array_size(json_object_get(report, "kernels")), 40);
    assert_int_equal(integer(report, "launches"), THREADS * (400 + (ROUNDS - 400) * 2));
    json_t *route = find(json_object_get(report, "routes"), "entry", "cuLaunchKernel");
    assert_int_equal(integer(route, "calls"), THREADS * ROUNDS);
    json_t *rule = find(json_object_get(report, "rules"), "name", "small");
    assert_int_equal(integer(rule, "applied"), THREADS * (400 + (ROUNDS - 400) * 2));
    assert_int_equal(integer(rule, "kernels"), 40);
    json_decref(report);
}

static void *launch_once(void *cell)
{
    report_count_launch(*(uint32_t *)cell, REPORT_LAUNCH_EAGER, 1);
    expect(report_shard != NULL);
    return NULL;
}

static void shards_are_used_again(void)
{
    start_report(NULL);
    uint32_t cell = enter_cell_applied(enter_kernel("_Z1av"));
    struct report_shard *own = report_thread_shard();
    for (size_t i = 0; i < 3 * REPORT_SHARD_LIMIT; i++)
        run_threads(1, launch_once, &cell);
    uint64_t sum = 0;
    for (size_t kind = 0; kind < REPORT_LAUNCH_KIND_COUNT; kind++)
        sum += own->launches[cell][kind];
    expect(sum == 0); /* the others' are elsewhere */
}

static void test_shard_is_free_for_another_when_its_thread_ends(void **state)
{
    (void)state;
    assert_child_succeeds(shards_are_used_again);
}

static unsigned without_shard;

static void *launch_beside_all_others(void *cell)
{
    report_thread_shard();
    pthread_barrier_wait(&barrier);
    if (report_shard == NULL)
        __atomic_fetch_add(&without_shard, 1, __ATOMIC_RELAXED);
    for (unsigned round = 0; round < 1000; round++) {
        report_count_launch(*(uint32_t *)cell, REPORT_LAUNCH_EAGER, 1);
        report_count_entry(ENTRY_LAUNCH);
    }
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void threads_share(void)
{
    enum { MANY = REPORT_SHARD_LIMIT + 44 };
    start_report(in_folder("report.json"));
    uint32_t cell = enter_cell_applied(enter_kernel("_Z1av"));
    pthread_barrier_init(&barrier, NULL, MANY);
    run_threads(MANY, launch_beside_all_others, &cell);
    expect(without_shard == 45); /* the last shard belongs to nobody */
    report_finish();
}

static void test_threads_beyond_the_shards_share_the_last_one_exactly(void **state)
{
    (void)state;
    assert_child_succeeds(threads_share);
    json_t *report = read_report("report.json");
    assert_int_equal(integer(report, "launches"), (REPORT_SHARD_LIMIT + 44) * 1000);
    json_t *route = find(json_object_get(report, "routes"), "entry", "cuLaunchKernel");
    assert_int_equal(integer(route, "calls"), (REPORT_SHARD_LIMIT + 44) * 1000);
    json_decref(report);
}

static void tables_overflow(void)
{
    char name[64];
    uint32_t last = 0;
    start_report(in_folder("report.json"));
    for (unsigned i = 0; i < REPORT_KERNEL_LIMIT + 10; i++) {
        snprintf(name, sizeof name, "_Z6kernel%uv", i);
        uint32_t kernel = enter_kernel(name);
        expect((kernel == 0) == (i >= REPORT_KERNEL_LIMIT - 1));
        if (kernel != 0)
            last = kernel;
    }
    expect(enter_kernel("_Z6kernel17v") == 18); /* those that are in are still found */
    for (uint32_t detail = 0; detail < REPORT_CELL_LIMIT + 10; detail++) {
        const struct report_result refused[SETTING_COUNT] = {
            {REPORT_OUTCOME_REFUSED, REPORT_REASON_REFUSED_BY_DRIVER, RULE_SMALL}, result_none};
        uint32_t cell = report_cell(last, refused, detail);
        expect((cell == 0) == (detail >= REPORT_CELL_LIMIT - 1));
        report_count_launch(cell, REPORT_LAUNCH_EAGER, 1);
    }
    report_finish();
}

static void test_full_tables_share_their_first_row_and_lose_no_count(void **state)
{
    (void)state;
    assert_child_succeeds(tables_overflow);
    json_t *report = read_report("report.json");
    assert_int_equal(integer(report, "launches"), REPORT_CELL_LIMIT + 10);
    assert_int_equal(integer(find_kernel_json(report, "(others)"), "launches"), 11);
    json_t *overflow = json_object_get(report, "overflow");
    assert_int_equal(integer(overflow, "kernels"), 11);
    assert_int_equal(integer(overflow, "cells"), 11);
    json_decref(report);
}

static void names_too_long_for_the_file(void)
{
    enum { LONG = 4 * 1024 * 1024 };
    char *name = malloc(LONG);
    expect(name != NULL);
    memset(name, 'x', LONG - 1);
    name[LONG - 1] = '\0';
    start_report(in_folder("report.json"));
    unsigned entered = 0;
    for (char i = 'a'; i < 'a' + 12; i++) {
        name[0] = i;
        entered += enter_kernel(name) != 0;
    }
    expect(entered == 7); /* of 4 MiB each in 32 MiB, which hold other strings too */
    /* No room for another string, and nothing breaks. */
    report_note("warning", "%s", "still here");
    report_fact("a", "b", "%s", "c");
    report_count_launch(enter_cell_applied(1), REPORT_LAUNCH_EAGER, 1);
    free(name);
    report_finish();
}

static void test_names_beyond_the_room_for_strings_go_to_others(void **state)
{
    (void)state;
    assert_child_succeeds(names_too_long_for_the_file);
    json_t *report = read_report("report.json");
    assert_int_equal(integer(json_object_get(report, "overflow"), "kernels"), 5);
    json_decref(report);
}

static void gate_is_counted(void)
{
    start_report(in_folder("report.json"));
    expect(report_control->whole == report_control_expected);
    report_gate_raise();
    report_gate_raise();
    expect(report_control->whole != report_control_expected);
    union report_control *before = report_control;
    report_thread_shard();
    expect(report_control != before); /* in the file now, gate and all */
    expect(report_control->part.gate == 2);
    report_gate_lower();
    report_gate_lower();
    expect(report_control->whole == report_control_expected);
    report_gate_lower(); /* once too often is not 2^32 */
    expect(report_control->part.gate == 0);
}

static void test_gate_keeps_its_count_when_the_file_is_made(void **state)
{
    (void)state;
    assert_child_succeeds(gate_is_counted);
}

static void control_differs_before_start(void)
{
    expect(report_control->whole != report_control_expected);
}

static void test_entry_points_go_the_long_way_before_the_start(void **state)
{
    (void)state;
    assert_child_succeeds(control_differs_before_start);
}

static bool survived;

static void *launch_with_cancellation_pending(void *unused)
{
    (void)unused;
    pthread_cancel(pthread_self());
    report_count_launch(enter_cell_applied(enter_kernel("_Z1av")), REPORT_LAUNCH_EAGER, 1);
    survived = true;
    /* Enough is shown; being cancelled now would confuse the address sanitizer. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return NULL;
}

static void cancels_a_thread(void)
{
    start_report(in_folder("report.json"));
    run_threads(1, launch_with_cancellation_pending, NULL);
    expect(survived);
    expect(enter_kernel("_Z1bv") != 0); /* the lock is free */
    report_finish();
    expect(report_written_path() != NULL);
}

static void test_cancelled_thread_leaves_no_lock_behind(void **state)
{
    (void)state;
    assert_child_succeeds(cancels_a_thread);
}

static void errno_is_kept(void)
{
    start_report(in_folder("no such folder/report.json"));
    errno = 1234;
    uint32_t cell = enter_cell_applied(enter_kernel("_Z1av"));
    report_count_launch(cell, REPORT_LAUNCH_EAGER, 1);
    report_note("warning", "x");
    report_finish();
    expect(errno == 1234);
}

static void test_errno_is_kept(void **state)
{
    (void)state;
    assert_child_succeeds(errno_is_kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_kernel_and_library_is_one_kernel),
        cmocka_unit_test(test_cell_is_one_for_equal_outcomes),
        cmocka_unit_test_setup_teardown(test_64_threads_count_exactly, make_folder, remove_folder),
        cmocka_unit_test(test_shard_is_free_for_another_when_its_thread_ends),
        cmocka_unit_test_setup_teardown(test_threads_beyond_the_shards_share_the_last_one_exactly,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_full_tables_share_their_first_row_and_lose_no_count,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_names_beyond_the_room_for_strings_go_to_others,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_gate_keeps_its_count_when_the_file_is_made,
                                        make_folder, remove_folder),
        cmocka_unit_test(test_entry_points_go_the_long_way_before_the_start),
        cmocka_unit_test_setup_teardown(test_cancelled_thread_leaves_no_lock_behind, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_errno_is_kept, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
