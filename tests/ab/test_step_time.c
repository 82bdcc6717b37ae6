/* SPDX-License-Identifier: Apache-2.0 */

/* The time of a step, from samples of its count. */

#include "metric_support.h"

#include <math.h>

#include "metric.h"
#include "steps.h"

enum { MILLISECOND = 1000000 };

static struct ab_run_value value;
static char error[512];

/* Reads the metric from samples that are given. */
static bool read_steps(const struct ab_step_process *processes, size_t count, int skip,
                       enum ab_across across)
{
    struct ab_step_process copies[4];
    struct ab_steps steps = {.process_count = count, .processes = copies};
    struct ab_run_files files = {.steps = &steps};
    struct ab_metric metric;
    bool read;

    memcpy(copies, processes, count * sizeof copies[0]);
    ab_metric_step(&metric, "gemm");
    metric.skip = skip;
    metric.across = across;
    read = ab_metric_read(&metric, &files, &value, error, sizeof error);
    ab_metric_release(&metric);
    return read;
}

static void assert_near(double number, double expected)
{
    assert_true(fabs(number - expected) <= 1e-9 * fabs(expected));
}

static void step_time_is_all_time_by_all_steps(void **state)
{
    struct ab_step_sample samples[] = {{0, 1},
                                       {100 * (int64_t)MILLISECOND, 2},
                                       {110 * (int64_t)MILLISECOND, 5},
                                       {115 * (int64_t)MILLISECOND, 6},
                                       {130 * (int64_t)MILLISECOND, 12}};
    const struct ab_step_process process = {.sample_count = 5, .samples = samples};

    (void)state;
    assert_true(read_steps(&process, 1, 0, AB_ACROSS_MAX));
    assert_near(value.value, 0.130 / 11);
    assert_int_equal(value.warm_up, 1);
    assert_int_equal(value.count, 11);
    assert_true(read_steps(&process, 1, 2, AB_ACROSS_MAX));
    assert_near(value.value, 0.003); /* 30 ms, 10 steps */
    assert_int_equal(value.warm_up, 2);
    assert_int_equal(value.count, 10);
    assert_true(read_steps(&process, 1, 3, AB_ACROSS_MAX));
    assert_near(value.value, 0.020 / 7); /* the third step was seen with the fifth */
    assert_true(read_steps(&process, 1, 6, AB_ACROSS_MAX));
    assert_false(read_steps(&process, 1, 7, AB_ACROSS_MAX));
    assert_contains(error, "all 12 steps of a rank are warm-up: 7 are skipped");
}

static void step_warm_up_is_found(void **state)
{
    struct ab_step_sample samples[60];
    const struct ab_step_process process = {.sample_count = 60, .samples = samples};
    int64_t time = 0;

    (void)state;
    for (int i = 0; i < 60; i++) {
        time += (i <= 5 ? 200 : 10 + i % 3) * (int64_t)MILLISECOND;
        samples[i] = (struct ab_step_sample){time, 2 * (i + 1)};
    }
    assert_true(read_steps(&process, 1, -1, AB_ACROSS_MAX));
    assert_in_range(value.warm_up, 12, 40);
    assert_true(value.value > 0.005 && value.value < 0.006);
    assert_int_equal(value.count + value.warm_up, 120);
    assert_false(isnan(value.autocorrelation));
}

static void ranks_of_steps_become_one(void **state)
{
    struct ab_step_sample fast[] = {{0, 1}, {10 * MILLISECOND, 2}, {20 * MILLISECOND, 3}};
    struct ab_step_sample slow[] = {{0, 1}, {30 * MILLISECOND, 2}, {60 * MILLISECOND, 3}};
    struct ab_step_sample once[] = {{0, 1}};
    const struct ab_step_process processes[] = {{.sample_count = 3, .samples = fast},
                                                {.sample_count = 1, .samples = once},
                                                {.sample_count = 3, .samples = slow},
                                                {.sample_count = 0}};

    (void)state;
    assert_true(read_steps(processes, 4, 0, AB_ACROSS_MAX));
    assert_near(value.value, 0.030);
    assert_int_equal(value.count, 4);
    assert_true(read_steps(processes, 4, 0, AB_ACROSS_MEAN));
    assert_near(value.value, 0.020);
}

static void without_enough_steps_the_reason_is_told(void **state)
{
    struct ab_step_sample samples[] = {{0, 1}, {10 * MILLISECOND, 900}};
    const struct ab_step_process few = {.sample_count = 2, .samples = samples}, none = {0};
    struct ab_metric metric;
    struct ab_run_files files = {0};

    (void)state;
    assert_false(read_steps(&few, 1, 0, AB_ACROSS_MAX));
    assert_contains(error, "kernels like gemm were launched 900 times, seen to rise at 2 "
                           "readings");
    assert_true(isnan(value.value));
    assert_false(read_steps(&none, 1, 0, AB_ACROSS_MAX));
    assert_contains(error, "none of the 1 processes with counters launched kernels like");
    assert_false(read_steps(&none, 0, 0, AB_ACROSS_MAX));
    assert_contains(error, "no process launched a kernel, or all ended within 5 ms, between two");
    ab_metric_step(&metric, NULL);
    assert_string_equal(metric.definition, "");
    assert_string_equal(metric.unit, "s");
    assert_int_equal(metric.direction, AB_LESS_IS_BETTER);
    assert_false(ab_metric_read(&metric, &files, &value, error, sizeof error));
    assert_contains(error, "not watched");
    ab_metric_release(&metric);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(step_time_is_all_time_by_all_steps),
        cmocka_unit_test(step_warm_up_is_found),
        cmocka_unit_test(ranks_of_steps_become_one),
        cmocka_unit_test(without_enough_steps_the_reason_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
