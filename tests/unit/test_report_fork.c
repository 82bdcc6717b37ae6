/* SPDX-License-Identifier: Apache-2.0 */
/* A forked child counts for itself. */
#include "test_report_support.h"

#include <pthread.h>

static void launch(uint32_t cell, unsigned launches)
{
    for (unsigned i = 0; i < launches; i++)
        report_count_launch(cell, REPORT_LAUNCH_EAGER, 1);
}

static void wait_for_success(pid_t child)
{
    int status = -1;
    expect(child > 0);
    expect(waitpid(child, &status, 0) == child);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void child_launches(void)
{
    start_report(in_folder("parent.json"));
    report_fact("job", "id", "%d", 17);
    report_stream(&(struct report_stream_info){
        .library = "libapp.so", .kind = "created", .rule = REPORT_RULE_NONE});
    uint32_t kernel = enter_kernel("_Z1av");
    uint32_t cell = enter_cell_applied(kernel);
    report_kernel_shape(kernel, 1000, 32, 0);
    launch(cell, 10);
    report_gate_raise();
    union report_control *of_parent = report_control;
    pid_t child = fork();
    if (child == 0) {
        report_after_fork(in_folder("child.json"));
        expect(report_shard == NULL);
        expect(report_control != of_parent);
        expect(report_control->part.gate == 1); /* this thread raised it, and will lower it */
        report_gate_lower();
        report_control->part.mode = 1; /* nobody else's */
        launch(cell, 3);               /* a number from before the fork */
        launch(enter_cell_unmatched(enter_kernel("_Z1bv")), 4);
        expect(enter_kernel("_Z1av") == kernel);
        report_note("info", "from the child");
        report_finish();
        _exit(0);
    }
    wait_for_success(child);
    expect(report_control->part.mode == 0);
    expect(report_control->part.gate == 1);
    launch(cell, 1);
    report_finish();
}

static void test_child_has_a_report_of_its_own(void **state)
{
    (void)state;
    assert_child_succeeds(child_launches);
    json_t *parent = read_report("parent.json"), *child = read_report("child.json");
    assert_int_equal(integer(parent, "launches"), 11);
    assert_int_equal(json_array_size(json_object_get(parent, "kernels")), 1);
    assert_int_equal(json_array_size(json_object_get(parent, "notes")), 0);
    assert_int_equal(integer(child, "launches"), 7);
    assert_int_equal(integer(find_kernel_json(child, "_Z1av"), "launches"), 3);
    assert_int_equal(integer(find_kernel_json(child, "_Z1bv"), "launches"), 4);
    /* Shapes and streams are the parent's, facts are the child's as well. */
    assert_true(json_is_null(json_object_get(find_kernel_json(child, "_Z1av"), "shapes")));
    assert_int_equal(json_array_size(json_object_get(child, "streams")), 0);
    assert_string_equal(text(json_object_get(json_object_get(child, "facts"), "job"), "id"), "17");
    assert_int_not_equal(integer(json_object_get(parent, "process"), "pid"),
                         integer(json_object_get(child, "process"), "pid"));
    assert_int_equal(count_files(), 2);
    json_decref(parent);
    json_decref(child);
}

static void parent_never_launches(void)
{
    start_report(in_folder("report.json"));
    uint32_t cell = enter_cell_applied(enter_kernel("_Z1av"));
    for (unsigned i = 0; i < 3; i++) { /* all with one path: suffixes keep them apart */
        pid_t child = fork();
        if (child == 0) {
            report_after_fork(in_folder("report.json"));
            launch(cell, 1);
            report_finish();
            _exit(0);
        }
        wait_for_success(child);
    }
    report_finish();
}

static void test_children_of_a_parent_that_never_launches(void **state)
{
    (void)state;
    assert_child_succeeds(parent_never_launches);
    assert_int_equal(count_files(), 3);
    json_decref(read_report("report.json"));
    json_decref(read_report("report.json.1"));
    json_decref(read_report("report.json.2"));
}

static bool stop;

static void *keep_the_lock_busy(void *unused)
{
    (void)unused;
    for (unsigned i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        char name[32];
        snprintf(name, sizeof name, "_Z6kernel%uv", i % 5000);
        launch(enter_cell_applied(enter_kernel(name)), 1);
        report_note("info", "%u", i % 500);
    }
    return NULL;
}

static void forks_beside_busy_threads(void)
{
    pthread_t threads[3];
    start_report(in_folder("report.json"));
    for (size_t i = 0; i < 3; i++)
        expect(pthread_create(&threads[i], NULL, keep_the_lock_busy, NULL) == 0);
    for (unsigned i = 0; i < 60; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(100); /* a lock that nobody gives back ends here */
            report_after_fork(in_folder("child.json"));
            uint32_t kernel = enter_kernel("_Z5childv"), seen = enter_kernel("_Z6kernel3v");
            expect(kernel != 0 && seen != 0 && kernel != seen);
            expect(enter_kernel("_Z5childv") == kernel);
            uint32_t cell = enter_cell_unmatched(kernel);
            expect(cell != 0 && enter_cell_unmatched(kernel) == cell);
            launch(cell, 5);
            report_finish();
            json_t *report = read_report(strrchr(report_written_path(), '/') + 1);
            expect(integer(report, "launches") == 5);
            expect(json_array_size(json_object_get(report, "kernels")) == 1);
            expect(integer(find_kernel_json(report, "_Z5childv"), "launches") == 5);
            unlink(report_written_path());
            _exit(0);
        }
        wait_for_success(child);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (size_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    report_finish();
    json_t *report = read_report("report.json");
    expect(find_kernel_json(report, "_Z5childv") == NULL);
    json_decref(report);
}

static void test_fork_beside_threads_that_hold_the_lock(void **state)
{
    (void)state;
    assert_child_succeeds(forks_beside_busy_threads);
}

static void *launch_and_exit(void *cell)
{
    launch(*(uint32_t *)cell, 1);
    return NULL;
}

static void child_uses_threads(void)
{
    start_report(in_folder("report.json"));
    uint32_t cell = enter_cell_applied(enter_kernel("_Z1av"));
    launch(cell, 1);
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        report_after_fork(in_folder("child.json"));
        for (unsigned i = 0; i < 2 * REPORT_SHARD_LIMIT; i++) {
            expect(pthread_create(&thread, NULL, launch_and_exit, &cell) == 0);
            pthread_join(thread, NULL);
        }
        report_finish();
        exit(0); /* with the destructors that the parent's thread registered */
    }
    wait_for_success(child);
    json_t *report = read_report("child.json");
    expect(integer(report, "launches") == 2 * REPORT_SHARD_LIMIT);
    json_decref(report);
}

static void test_child_claims_and_gives_back_shards(void **state)
{
    (void)state;
    assert_child_succeeds(child_uses_threads);
}

static void child_without_report(void)
{
    start_report(in_folder("report.json"));
    uint32_t cell = enter_cell_applied(enter_kernel("_Z1av"));
    launch(cell, 1);
    pid_t child = fork();
    if (child == 0) {
        report_after_fork(NULL);
        launch(cell, 100);
        expect(report_counters_path() == NULL);
        report_finish();
        _exit(0);
    }
    wait_for_success(child);
    report_finish();
}

static void test_child_without_a_path_counts_in_private(void **state)
{
    (void)state;
    assert_child_succeeds(child_without_report);
    assert_int_equal(count_files(), 1);
    json_t *report = read_report("report.json");
    assert_int_equal(integer(report, "launches"), 1);
    json_decref(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, make_folder, remove_folder)
        TEST(child_has_a_report_of_its_own),
        TEST(children_of_a_parent_that_never_launches),
        TEST(fork_beside_threads_that_hold_the_lock),
        TEST(child_claims_and_gives_back_shards),
        TEST(child_without_a_path_counts_in_private),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
