/* SPDX-License-Identifier: Apache-2.0 */

/* What the runs of one arm look like. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <gsl/gsl_randist.h>
#include <math.h>

#include "sample.h"

static void a_sample_is_summarised(void **state)
{
    struct ab_sample sample;

    (void)state;
    ab_sample_summarise((const double[]){4, 1, 2, 9}, 4, &sample);
    assert_float_equal(sample.mean, 4, 1e-12);
    assert_float_equal(sample.median, 3, 1e-12);
    assert_float_equal(sample.deviation, sqrt(38.0 / 3), 1e-12);
    assert_float_equal(sample.least, 1, 0);
    assert_float_equal(sample.most, 9, 0);
    ab_sample_summarise((const double[]){4}, 1, &sample);
    assert_float_equal(sample.median, 4, 0);
    assert_true(isnan(sample.deviation));
    ab_sample_summarise(NULL, 0, &sample);
    assert_true(isnan(sample.mean) && isnan(sample.median) && isnan(sample.most));
}

static void two_groups_are_two_modes_and_no_outliers(void **state)
{
    static const double values[] = {24.1, 38.2, 24.0, 23.9, 24.2, 38.0,
                                    24.1, 23.8, 37.9, 24.0, 24.0, 24.1};
    struct ab_modes modes;

    (void)state;
    ab_modes_find(values, 12, &modes);
    assert_true(modes.bimodal);
    assert_float_equal(modes.modes[0], 24.0, 1e-9);
    assert_float_equal(modes.modes[1], 38.0, 1e-9);
    assert_int_equal(modes.lower, 9);
    assert_int_equal(ab_outliers(values, 12, &modes), 0);
    ab_modes_find(values, 8, &modes);
    assert_false(modes.bimodal);
}

static void single_far_runs_are_outliers_and_no_mode(void **state)
{
    double values[] = {24.1, 38.2, 24.0, 23.9, 24.2, 24.3, 24.1, 23.8, 24.0, 24.0, 24.1, 90};
    struct ab_modes modes;

    (void)state;
    ab_modes_find(values, 12, &modes);
    assert_false(modes.bimodal);
    assert_true(isnan(modes.modes[0]));
    assert_int_equal(ab_outliers(values, 12, &modes), 2);
    /* of values so few nothing is far */
    assert_int_equal(ab_outliers(values, 7, &modes), 0);
}

static void values_that_are_all_the_same_are_nothing_special(void **state)
{
    static const double values[] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    static const double times[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct ab_modes modes;
    double p;

    (void)state;
    ab_modes_find(values, 10, &modes);
    assert_false(modes.bimodal);
    assert_int_equal(ab_outliers(values, 10, &modes), 0);
    assert_true(isnan(ab_drift(values, times, 10, &p)));
    assert_true(isnan(p));
}

static double part_bimodal(size_t count, int kind)
{
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    double values[40];
    size_t called = 0, i, j;

    gsl_rng_set(random, 21);
    for (i = 0; i < 4000; i++) {
        struct ab_modes modes;

        for (j = 0; j < count; j++)
            values[j] = kind == 0   ? exp(gsl_ran_gaussian(random, 0.5))
                        : kind == 1 ? 100 + gsl_ran_gaussian(random, 1)
                        : kind == 2 ? 10 + gsl_rng_uniform(random)
                                    : (gsl_rng_uniform(random) < 0.5 ? 24 : 38) *
                                          exp(gsl_ran_gaussian(random, 0.02));
        ab_modes_find(values, count, &modes);
        called += modes.bimodal;
    }
    gsl_rng_free(random);
    return (double)called / 4000;
}

static void one_mode_is_seldom_taken_for_two(void **state)
{
    static const size_t counts[] = {10, 20, 40};
    size_t i;
    int kind;

    (void)state;
    for (i = 0; i < 3; i++) {
        for (kind = 0; kind < 3; kind++)
            assert_true(part_bimodal(counts[i], kind) <= 0.055);
    }
}

static void two_modes_are_seen(void **state)
{
    (void)state;
    assert_true(part_bimodal(10, 3) >= 0.85);
    assert_true(part_bimodal(20, 3) >= 0.99);
}

static void drift_is_the_correlation_of_ranks(void **state)
{
    static const double times[] = {0, 1, 2, 3, 4, 5, 6, 7};
    double p;

    (void)state;
    /* squares of the differences of ranks: 2 (1 + 1); 1 - 6 * 4 / (8 * 63) */
    assert_float_equal(ab_drift((const double[]){2, 1, 3, 4, 5, 6, 8, 7}, times, 8, &p),
                       1 - 24.0 / 504, 1e-12);
    assert_true(p < 0.001);
    assert_float_equal(ab_drift((const double[]){9, 8, 7, 6, 5, 4, 3, 2}, times, 8, &p), -1, 1e-12);
    assert_float_equal(p, 0, 0);
    ab_drift((const double[]){3, 7, 1, 8, 2, 6, 4, 5}, times, 8, &p);
    assert_true(p > 0.3);
    assert_true(isnan(ab_drift(times, times, 7, &p)));
}

static void fisher_is_as_by_hand(void **state)
{
    (void)state;
    /* all 3 failures of 6 runs in the arm: 1 of 20 ways to choose 3 of 6 */
    assert_float_equal(ab_fails_more_p(3, 3, 0, 3), 1.0 / 20, 1e-12);
    assert_float_equal(ab_fails_more_p(2, 3, 1, 3), 10.0 / 20, 1e-12);
    assert_float_equal(ab_fails_more_p(1, 10, 0, 10), 0.5, 1e-12);
    assert_float_equal(ab_fails_more_p(0, 10, 5, 10), 1, 0);
    assert_float_equal(ab_fails_more_p(0, 10, 0, 10), 1, 0);
    assert_true(isnan(ab_fails_more_p(0, 0, 0, 10)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_is_summarised),
        cmocka_unit_test(two_groups_are_two_modes_and_no_outliers),
        cmocka_unit_test(single_far_runs_are_outliers_and_no_mode),
        cmocka_unit_test(values_that_are_all_the_same_are_nothing_special),
        cmocka_unit_test(one_mode_is_seldom_taken_for_two),
        cmocka_unit_test(two_modes_are_seen),
        cmocka_unit_test(drift_is_the_correlation_of_ranks),
        cmocka_unit_test(fisher_is_as_by_hand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
