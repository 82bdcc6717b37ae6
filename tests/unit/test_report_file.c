/* SPDX-License-Identifier: Apache-2.0 */
/* The counters' file: what is left of a killed process, and what happens when there is no room. */
#include "test_report_support.h"

#include <pthread.h>
#include <sys/resource.h>

static void count_launches(uint32_t cell, unsigned launches)
{
    for (unsigned i = 0; i < launches; i++)
        report_count_launch(cell, REPORT_LAUNCH_EAGER, 1);
}

static void ends_in_good_order(void)
{
    start_report(in_folder("report.json"));
    report_fact("job", "id", "%d", 17);
    expect(!exists("report.json.counters"));
    count_launches(enter_cell_applied(enter_kernel("_Z1av")), 5);
    expect(exists("report.json.counters"));
    expect(strcmp(report_counters_path(), in_folder("report.json.counters")) == 0);
    report_finish();
    expect(strcmp(report_written_path(), in_folder("report.json")) == 0);
    report_finish();
    count_launches(1, 5); /* destructors may still launch */
}

static void test_file_gives_way_to_the_report_at_the_end(void **state)
{
    (void)state;
    assert_child_succeeds(ends_in_good_order);
    assert_int_equal(count_files(), 1);
    json_t *report = read_report("report.json");
    assert_true(json_is_true(json_object_get(report, "complete")));
    assert_int_equal(integer(report, "launches"), 5);
    struct stat status;
    assert_int_equal(stat(in_folder("report.json"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    json_decref(report);
}

static void launches_nothing(void)
{
    start_report(in_folder("report.json"));
    report_fact("job", "id", "%d", 17);
    report_count_entry(ENTRY_STREAM);
    enter_cell_applied(enter_kernel("_Z1av"));
    expect(!exists("report.json.counters"));
    report_finish();
}

static void test_process_that_launches_nothing_leaves_nothing(void **state)
{
    (void)state;
    assert_child_succeeds(launches_nothing);
    assert_int_equal(count_files(), 0);
}

static void *count_in_thread(void *cell)
{
    count_launches(*(uint32_t *)cell, 12345);
    return NULL;
}

static void is_killed(void)
{
    pthread_t threads[4];
    start_report(in_folder("report.json"));
    report_fact("job", "id", "%d", 17);
    report_count_entry(ENTRY_STREAM);
    uint32_t kernel = enter_kernel("_Z1av");
    uint32_t cell = enter_cell_applied(kernel);
    report_kernel_shape(kernel, 40, 256, 1024);
    for (size_t i = 0; i < 4; i++)
        expect(pthread_create(&threads[i], NULL, count_in_thread, &cell) == 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    report_fact("job", "id", "%d", 18); /* replaced in the file, and another one added */
    report_fact("driver", "version", "%d", 13000);
    report_note("warning", "last words");
    report_count_launch(enter_cell_unmatched(kernel), REPORT_LAUNCH_CAPTURED, 3);
    raise(SIGKILL);
}

static void test_killed_process_leaves_exact_counts(void **state)
{
    (void)state;
    int status = run_child(is_killed);
    assert_true(WIFSIGNALED(status));
    json_t *report = read_counters("report.json.counters");
    assert_true(json_is_false(json_object_get(report, "complete")));
    assert_true(json_is_false(json_object_get(report, "partial")));
    const json_t *process = json_object_get(report, "process");
    assert_true(json_is_null(json_object_get(process, "end")));
    assert_true(json_is_false(json_object_get(process, "running")));
    assert_int_equal(integer(report, "launches"), 4 * 12345 + 3);
    json_t *kernel = find_kernel_json(report, "_Z1av");
    assert_int_equal(integer(json_object_get(kernel, "launches_by_kind"), "eager"), 4 * 12345);
    assert_int_equal(integer(json_object_get(kernel, "launches_by_kind"), "captured"), 3);
    const json_t *shapes = json_object_get(kernel, "shapes");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(shapes, "grid_blocks"), 1)),
                     40);
    assert_string_equal(text(json_object_get(json_object_get(report, "facts"), "job"), "id"), "18");
    assert_string_equal(
        text(json_object_get(json_object_get(report, "facts"), "driver"), "version"), "13000");
    assert_non_null(find(json_object_get(report, "notes"), "text", "last words"));
    assert_int_equal(
        integer(find(json_object_get(report, "routes"), "entry", "cuStreamCreate"), "calls"), 1);
    json_decref(report);
}

static int ready[2], done[2];

static void waits_after_launching(void)
{
    char byte = 0;
    start_report(in_folder("report.json"));
    count_launches(enter_cell_applied(enter_kernel("_Z1av")), 7);
    expect(write(ready[1], &byte, 1) == 1);
    expect(read(done[0], &byte, 1) == 1);
    /* The word was changed from outside, by one generation, and no gate with it. */
    expect(report_control->whole != report_control_expected);
    expect(report_control->part.mode == 1);
    expect(report_control->part.generation == 1);
    expect(report_control->part.gate == 0);
    report_finish();
}

static void test_running_process_is_read_and_takes_another_mode(void **state)
{
    (void)state;
    char byte = 0, error[256] = "";
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(done), 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(110);
        waits_after_launching();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    json_t *report = read_counters("report.json.counters");
    assert_true(json_is_true(json_object_get(json_object_get(report, "process"), "running")));
    assert_true(json_is_false(json_object_get(report, "complete")));
    assert_int_equal(integer(report, "launches"), 7);
    assert_string_equal(text(report, "mode"), "enforce");
    json_decref(report);
    assert_true(report_counters_set_mode(in_folder("report.json.counters"), 1, error, 256));
    assert_int_equal(write(done[1], &byte, 1), 1);
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    report = read_report("report.json");
    assert_string_equal(text(report, "mode"), "observe");
    json_decref(report);
    assert_false(report_counters_set_mode(in_folder("report.json"), 1, error, 256));
    assert_false(report_counters_set_mode(in_folder("nowhere"), 1, error, 256));
    for (size_t i = 0; i < 2; i++) {
        close(ready[i]);
        close(done[i]);
    }
}

static void launches_once(void)
{
    start_report(in_folder("report.json"));
    count_launches(enter_cell_applied(enter_kernel("_Z1av")), 1);
    report_finish();
}

static void write_file(const char *name, const char *content)
{
    FILE *stream = fopen(in_folder(name), "w");
    assert_non_null(stream);
    fputs(content, stream);
    fclose(stream);
}

static void assert_content(const char *name, const char *content)
{
    char line[256] = "";
    FILE *stream = fopen(in_folder(name), "r");
    assert_non_null(stream);
    size_t length = fread(line, 1, sizeof line - 1, stream);
    line[length] = '\0';
    fclose(stream);
    assert_string_equal(line, content);
}

static void test_nothing_is_overwritten(void **state)
{
    (void)state;
    write_file("report.json", "precious");
    write_file("report.json.counters", "precious");
    write_file("report.json.part", "precious");
    write_file("report.json.1", "precious");
    assert_child_succeeds(launches_once);
    assert_content("report.json", "precious");
    assert_content("report.json.counters", "precious");
    assert_content("report.json.part", "precious");
    assert_content("report.json.1", "precious");
    assert_int_equal(count_files(), 5);
    json_decref(read_report("report.json.2"));
}

static void test_links_are_not_followed(void **state)
{
    (void)state;
    write_file("victim", "precious");
    assert_int_equal(symlink("victim", in_folder("report.json")), 0);
    assert_int_equal(symlink("victim", in_folder("report.json.counters")), 0);
    assert_int_equal(symlink("dangling", in_folder("report.json.part")), 0);
    assert_int_equal(symlink("dangling", in_folder("report.json.1")), 0);
    assert_child_succeeds(launches_once);
    assert_content("victim", "precious");
    assert_false(exists("dangling"));
    json_decref(read_report("report.json.2"));
}

static void moves_about(void)
{
    expect(chdir(folder) == 0);
    start_report("report.json");
    expect(chdir("/") == 0);
    count_launches(enter_cell_applied(enter_kernel("_Z1av")), 1);
    report_finish();
}

static void test_relative_path_stays_where_the_process_started(void **state)
{
    (void)state;
    assert_child_succeeds(moves_about);
    json_decref(read_report("report.json"));
}

static void limit_file_size(rlim_t size)
{
    struct rlimit limit = {size, size};
    signal(SIGXFSZ, SIG_DFL); /* which kills, when it arrives */
    expect(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void has_no_room_for_counters(void)
{
    limit_file_size(1024 * 1024);
    start_report(in_folder("report.json"));
    count_launches(enter_cell_applied(enter_kernel("_Z1av")), 9);
    expect(report_counters_path() == NULL);
    report_finish();
}

static void test_limit_on_file_sizes_costs_the_counters_file_only(void **state)
{
    (void)state;
    assert_child_succeeds(has_no_room_for_counters);
    assert_int_equal(count_files(), 1);
    json_t *report = read_report("report.json");
    assert_int_equal(integer(report, "launches"), 9);
    json_decref(report);
}

static void has_no_room_at_the_end(void)
{
    sigset_t pending;
    start_report(in_folder("report.json"));
    count_launches(enter_cell_applied(enter_kernel("_Z1av")), 9);
    limit_file_size(100);
    report_finish();
    expect(report_written_path() == NULL);
    sigpending(&pending);
    expect(!sigismember(&pending, SIGXFSZ));
}

static void test_report_without_room_leaves_the_counters(void **state)
{
    (void)state;
    assert_child_succeeds(has_no_room_at_the_end);
    assert_int_equal(count_files(), 1);
    json_t *report = read_counters("report.json.counters");
    assert_true(json_is_true(json_object_get(report, "complete")));
    assert_int_equal(integer(report, "launches"), 9);
    json_decref(report);
}

static void has_own_pending_signal(void)
{
    sigset_t blocked, pending;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    raise(SIGXFSZ);
    limit_file_size(100);
    start_report(in_folder("report.json"));
    count_launches(enter_cell_applied(enter_kernel("_Z1av")), 9);
    report_finish();
    sigpending(&pending);
    expect(sigismember(&pending, SIGXFSZ));
}

static void test_signal_of_the_program_itself_stays_pending(void **state)
{
    (void)state;
    assert_child_succeeds(has_own_pending_signal);
}

/* Disk blocks for further pages are asked for by the file's name: without it there are none, which
 * is what a full disk looks like. */
static void loses_its_file(bool finish)
{
    start_report(in_folder("report.json"));
    uint32_t kernel = enter_kernel("_Z1av");
    count_launches(enter_cell_applied(kernel), 10);
    expect(rename(in_folder("report.json.counters"), in_folder("moved")) == 0);
    expect(symlink("moved", in_folder("report.json.counters")) == 0);
    for (uint32_t detail = 0; detail < 5000; detail++) {
        const struct report_result refused[SETTING_COUNT] = {
            {REPORT_OUTCOME_REFUSED, REPORT_REASON_REFUSED_BY_DRIVER, RULE_SMALL}, result_none};
        uint32_t cell = report_cell(kernel, refused, detail);
        expect(cell != 0);
        count_launches(cell, 1);
    }
    if (finish)
        report_finish();
}

static void loses_its_file_and_ends(void)
{
    loses_its_file(true);
}

static void loses_its_file_and_dies(void)
{
    loses_its_file(false);
    raise(SIGKILL);
}

static void test_full_disk_costs_nothing_when_the_process_ends(void **state)
{
    (void)state;
    assert_child_succeeds(loses_its_file_and_ends);
    json_t *report = read_report("report.json");
    assert_int_equal(integer(report, "launches"), 5010);
    assert_true(exists("report.json.counters")); /* not ours: left alone */
    json_decref(report);
}

static void test_full_disk_is_said_when_the_process_is_killed(void **state)
{
    (void)state;
    run_child(loses_its_file_and_dies);
    json_t *report = read_counters("moved");
    assert_true(json_is_true(json_object_get(report, "partial")));
    assert_true(integer(report, "launches") >= 10);
    assert_true(integer(report, "launches") < 5010);
    json_decref(report);
}

static unsigned count_descriptors(void)
{
    unsigned count = 0;
    for (int descriptor = 0; descriptor < 1024; descriptor++)
        count += fcntl(descriptor, F_GETFD) >= 0;
    return count;
}

/* Programs close, and use again, descriptors that they do not know. */
static void counts_descriptors(void)
{
    unsigned before = count_descriptors();
    start_report(in_folder("report.json"));
    count_launches(enter_cell_applied(enter_kernel("_Z1av")), 1);
    expect(report_counters_path() != NULL);
    expect(count_descriptors() == before);
    report_finish();
    expect(count_descriptors() == before);
}

static void test_no_descriptor_stays_open(void **state)
{
    (void)state;
    assert_child_succeeds(counts_descriptors);
}

static void runs_without_standard_streams(void)
{
    close(0);
    close(1);
    close(2);
    start_report(in_folder("report.json"));
    count_launches(enter_cell_applied(enter_kernel("_Z1av")), 1);
    expect(write(1, "printed", 7) < 0);
    report_finish();
}

static void test_closed_standard_streams_stay_closed(void **state)
{
    (void)state;
    assert_child_succeeds(runs_without_standard_streams);
    json_decref(read_report("report.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, make_folder, remove_folder)
        TEST(file_gives_way_to_the_report_at_the_end),
        TEST(process_that_launches_nothing_leaves_nothing),
        TEST(killed_process_leaves_exact_counts),
        TEST(running_process_is_read_and_takes_another_mode),
        TEST(nothing_is_overwritten),
        TEST(links_are_not_followed),
        TEST(relative_path_stays_where_the_process_started),
        TEST(limit_on_file_sizes_costs_the_counters_file_only),
        TEST(report_without_room_leaves_the_counters),
        TEST(signal_of_the_program_itself_stays_pending),
        TEST(full_disk_costs_nothing_when_the_process_ends),
        TEST(full_disk_is_said_when_the_process_is_killed),
        TEST(no_descriptor_stays_open),
        TEST(closed_standard_streams_stay_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
