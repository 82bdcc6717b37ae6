/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a live comparison in the mapped report. */
#include "test_report_support.h"

#include "report/layout.h"
#include "report/mapped.h"
#include "report/steps.h"
#include "report/view.h"

static const struct report_live live = {
    .seed = UINT64_C(12345678901234567890), .arms = 2, .slice = 4, .drop = 1, .warm_up = 2};

static void make_steps(uint64_t first, uint64_t count)
{
    for (uint64_t i = first; i < first + count; i++)
        report_step(i, i < live.warm_up ? REPORT_SLICE_NONE : (uint32_t)((i - 2) / 4),
                    (uint8_t)(i < 2 ? 0 : (i - 2) / 4 % 2));
}

static void begin(const char *name)
{
    start_report(in_folder(name));
    report_live(&live);
    report_count_launch(enter_cell_applied(enter_kernel("_Z1av")), REPORT_LAUNCH_EAGER, 1);
}

static void run_and_finish(void)
{
    begin("report.json");
    make_steps(0, 12);
    report_finish();
}

static json_t *live_of(json_t *report)
{
    json_t *found = json_object_get(report, "live");
    assert_true(json_is_object(found));
    return found;
}

static void the_report_has_configuration_and_slices(void **state)
{
    (void)state;
    assert_child_succeeds(run_and_finish);
    json_t *report = read_report("report.json"), *found = live_of(report);
    assert_int_equal(integer(found, "arms"), 2);
    assert_string_equal(text(found, "seed"), "12345678901234567890");
    assert_int_equal(integer(found, "slice"), 4);
    assert_int_equal(integer(found, "drop"), 1);
    assert_int_equal(integer(found, "warm_up"), 2);
    assert_int_equal(integer(found, "steps"), 12);
    assert_int_equal(integer(found, "not_entered"), 0);
    assert_int_equal(integer(found, "warm_up_steps"), 2);
    const json_t *slices = json_object_get(found, "slices"), *arms;
    assert_int_equal(json_array_size(slices), 3);
    for (int i = 0; i < 3; i++) {
        const json_t *slice = json_array_get(slices, (size_t)i);
        assert_int_equal(json_integer_value(json_array_get(slice, 0)), i);
        assert_int_equal(json_integer_value(json_array_get(slice, 1)), i % 2);
        assert_int_equal(json_integer_value(json_array_get(slice, 2)), 2 + 4 * i);
        assert_int_equal(json_integer_value(json_array_get(slice, 3)), i < 2 ? 4 : 2);
        /* The last one never ended. */
        assert_int_equal(json_is_real(json_array_get(slice, 4)), i < 2);
    }
    const json_t *span = json_object_get(found, "span");
    const json_int_t first = json_integer_value(json_array_get(span, 0));
    const json_int_t last = json_integer_value(json_array_get(span, 1));
    assert_int_equal(json_array_size(span), 2);
    /* Of this run: a wall clock, not the one of steps. */
    assert_true(first <= last && last <= (json_int_t)(time(NULL) + 1) * 1000000000);
    assert_true(first >= (json_int_t)(time(NULL) - 100) * 1000000000);
    arms = json_object_get(found, "arm_steps");
    assert_int_equal(json_array_size(arms), 2);
    assert_int_equal(json_integer_value(json_array_get(arms, 0)), 6);
    assert_int_equal(json_integer_value(json_array_get(arms, 1)), 4);
    json_decref(report);
}

static void run_and_be_killed(void)
{
    begin("report.json");
    make_steps(0, 10000); /* more than one reservation */
    raise(SIGKILL);
}

static void a_killed_process_leaves_its_steps(void **state)
{
    (void)state;
    assert_true(WIFSIGNALED(run_child(run_and_be_killed)));
    json_t *report = read_counters("report.json.counters"), *found = live_of(report);
    assert_int_equal(integer(found, "steps"), 10000);
    assert_int_equal(json_array_size(json_object_get(found, "slices")), 2500);
    assert_int_equal(integer(found, "slices_left_out"), 0);
    json_decref(report);
}

static void run_without_live(void)
{
    start_report(in_folder("report.json"));
    report_count_launch(enter_cell_applied(enter_kernel("_Z1av")), REPORT_LAUNCH_EAGER, 1);
    report_finish();
}

static void a_report_without_a_live_comparison_has_none_of_it(void **state)
{
    (void)state;
    assert_child_succeeds(run_without_live);
    json_t *report = read_report("report.json");
    assert_null(json_object_get(report, "live"));
    json_decref(report);
}

static void run_too_long(void)
{
    begin("report.json");
    make_steps(0, 3);
    /* The rows of the steps in between were never written. */
    make_steps(REPORT_STEP_LIMIT - 2, 5);
    report_finish();
}

static void steps_without_room_are_counted(void **state)
{
    (void)state;
    assert_child_succeeds(run_too_long);
    json_t *report = read_report("report.json"), *found = live_of(report);
    assert_int_equal(integer(found, "steps"), REPORT_STEP_LIMIT + 3);
    assert_int_equal(integer(found, "not_entered"), 3);
    assert_int_equal(integer(found, "warm_up_steps"), 2);
    json_decref(report);
}

static void run_many_slices(void)
{
    static const struct report_live two = {.seed = 1, .arms = 2, .slice = 2};
    start_report(in_folder("report.json"));
    report_live(&two);
    report_count_launch(enter_cell_applied(enter_kernel("_Z1av")), REPORT_LAUNCH_EAGER, 1);
    for (uint32_t i = 0; i < 50000; i++)
        report_step(i, i / 2, (uint8_t)(i / 2 % 2));
    report_finish();
}

static void the_json_form_is_bounded(void **state)
{
    (void)state;
    assert_child_succeeds(run_many_slices);
    json_t *report = read_report("report.json"), *found = live_of(report);
    assert_int_equal(json_array_size(json_object_get(found, "slices")), 20000);
    assert_int_equal(integer(found, "slices_left_out"), 5000);
    json_decref(report);
}

static void fork_and_step(void)
{
    int status = -1;
    begin("parent.json");
    make_steps(0, 9);
    report_arm_set(3, 1);
    pid_t child = fork();
    if (child == 0) {
        report_after_fork(in_folder("child.json"));
        report_live(&live);
        expect(report_control->part.arm == 0);
        expect(report_control->whole == report_control_expected);
        report_count_launch(enter_cell_applied(enter_kernel("_Z1bv")), REPORT_LAUNCH_EAGER, 1);
        make_steps(0, 4);
        report_arm_set(1, 1);
        expect(report_control->part.arm == 1);
        report_finish();
        _exit(0);
    }
    expect(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect(report_control->part.arm == 1);
    make_steps(9, 1);
    report_finish();
}

static void a_forked_child_has_steps_of_its_own(void **state)
{
    (void)state;
    assert_child_succeeds(fork_and_step);
    json_t *parent = read_report("parent.json"), *child = read_report("child.json");
    assert_int_equal(integer(live_of(parent), "steps"), 10);
    assert_int_equal(integer(live_of(child), "steps"), 4);
    assert_int_equal(json_array_size(json_object_get(live_of(child), "slices")), 1);
    json_decref(parent);
    json_decref(child);
}

static void set_arms(void)
{
    begin("report.json");
    expect(report_control->whole == report_control_expected);
    report_arm_set(2, 1);
    expect(report_control->part.arm == 1);
    expect(report_control->whole == report_control_expected);
    report_arm_set(1, 0); /* a thread that comes late */
    expect(report_control->part.arm == 1);
    report_gate_raise();
    report_arm_set(3, 0);
    expect(report_control->part.arm == 0 && report_control->part.gate == 1);
    report_gate_lower();
    expect(report_control->whole == report_control_expected);
    /* A change of the mode from outside leaves the arm as it is. */
    report_arm_set(4, 1);
    char error[200];
    expect(report_counters_set_mode(report_counters_path(), 1, error, sizeof error));
    expect(report_control->part.arm == 1 && report_control->part.mode == 1);
    report_finish();
}

static void the_arm_is_set_in_order_and_leaves_mode_and_gate(void **state)
{
    (void)state;
    assert_child_succeeds(set_arms);
}

static void set_arm_before_the_file(void)
{
    start_report(in_folder("report.json"));
    report_live(&live);
    report_arm_set(1, 1);
    expect(report_control->part.arm == 1);
    report_count_launch(enter_cell_applied(enter_kernel("_Z1av")), REPORT_LAUNCH_EAGER, 1);
    expect(report_counters_path() != NULL); /* the word is in the file now */
    expect(report_control->part.arm == 1);
    expect(report_control->whole == report_control_expected);
    report_finish();
}

static void the_arm_goes_into_the_file_with_the_word(void **state)
{
    (void)state;
    assert_child_succeeds(set_arm_before_the_file);
}

#define ROW(seconds, number, arm_)                                                                 \
    {                                                                                              \
        .time = (seconds)*INT64_C(1000000000), .slice = number, .arm = arm_                        \
    }

static void a_slice_lasts_from_its_first_counted_step_to_the_next_slice(void **state)
{
    static const struct report_live three = {.arms = 2, .slice = 3, .drop = 1};
    const struct report_step_row rows[] = {
        ROW(10, 0, 1), ROW(11, 0, 1), ROW(12, 0, 1), ROW(15, 1, 0),
        ROW(17, 1, 0), ROW(19, 1, 0), ROW(23, 2, 0),
    };
    size_t count;

    (void)state;
    struct report_slice *slices = report_slices(&three, rows, sizeof rows / sizeof rows[0], &count);
    assert_int_equal(count, 3);
    assert_true(slices[0].seconds == 4); /* 15 - 11 */
    assert_true(slices[1].seconds == 6);
    assert_true(slices[2].seconds != slices[2].seconds);
    free(slices);
}

static void slices_with_missing_steps_have_no_time(void **state)
{
    static const struct report_live three = {.arms = 2, .slice = 3, .drop = 1};
    struct report_step_row rows[] = {
        ROW(10, 0, 1), ROW(11, 0, 1), ROW(12, 0, 1), ROW(15, 1, 0), ROW(0, 0, 0),
        ROW(19, 1, 0), ROW(23, 2, 0), ROW(20, 2, 0), ROW(25, 2, 0), ROW(1, 3, 0),
    };
    size_t count;

    (void)state;
    struct report_slice *slices = report_slices(&three, rows, sizeof rows / sizeof rows[0], &count);
    assert_int_equal(count, 4);
    assert_true(slices[0].seconds == 4);
    assert_true(slices[1].seconds != slices[1].seconds);
    assert_true(slices[2].seconds != slices[2].seconds); /* time goes back: not a file of ours */
    free(slices);
    assert_null(report_slices(&three, rows, 0, &count));
    assert_int_equal(count, 0);
}

int main(void)
{
#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(the_report_has_configuration_and_slices),
        IN_FOLDER(a_killed_process_leaves_its_steps),
        IN_FOLDER(a_report_without_a_live_comparison_has_none_of_it),
        IN_FOLDER(steps_without_room_are_counted),
        IN_FOLDER(the_json_form_is_bounded),
        IN_FOLDER(a_forked_child_has_steps_of_its_own),
        IN_FOLDER(the_arm_is_set_in_order_and_leaves_mode_and_gate),
        IN_FOLDER(the_arm_goes_into_the_file_with_the_word),
        cmocka_unit_test(a_slice_lasts_from_its_first_counted_step_to_the_next_slice),
        cmocka_unit_test(slices_with_missing_steps_have_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
