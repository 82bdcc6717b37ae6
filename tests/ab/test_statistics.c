/* SPDX-License-Identifier: Apache-2.0 */

/* How two arms are compared: by hand, against every sign flip, and on synthetic runs. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics.h>

#include "statistics.h"
#include "synthetic.h"

static double p_of(const double *values, size_t count)
{
    struct ab_subsets subsets;
    double p;

    ab_subsets_make(&subsets, values, count, 0, 1);
    p = ab_subsets_p(&subsets, 0);
    ab_subsets_release(&subsets);
    return p;
}

/* The test as it is defined: in which part of all sign flips is the sum at least as large. */
static double p_by_flips(const double *values, size_t count)
{
    size_t flips, as_large = 0, i;
    double observed = 0;

    for (i = 0; i < count; i++)
        observed += values[i];
    for (flips = 0; flips < (size_t)1 << count; flips++) {
        double sum = 0;

        for (i = 0; i < count; i++)
            sum += (flips >> i & 1) != 0 ? -values[i] : values[i];
        as_large += fabs(sum) >= fabs(observed) - 1e-12;
    }
    return (double)as_large / (double)((size_t)1 << count);
}

static gsl_rng *seeded(unsigned long seed)
{
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);

    gsl_rng_set(random, seed);
    return random;
}

static void p_values_are_those_counted_by_hand(void **state)
{
    (void)state;
    /* of the 8 flips of 1 2 3, two have a sum of 6 or -6 */
    assert_float_equal(p_of((const double[]){1, 2, 3}, 3), 2.0 / 8, 1e-12);
    /* of those of 1 2 -1, sums are 4 2 2 0 0 -2 -2 -4: six reach 2 */
    assert_float_equal(p_of((const double[]){1, 2, -1}, 3), 6.0 / 8, 1e-12);
    assert_float_equal(p_of((const double[]){-5}, 1), 1, 1e-12);
    assert_float_equal(p_of((const double[]){0, 0, 0, 0}, 4), 1, 1e-12);
    assert_float_equal(p_of((const double[]){.1, .1, .1, .1, .1, .1, .1, .1, .1, .1}, 10),
                       2.0 / 1024, 1e-12);
    assert_true(isnan(p_of(NULL, 0)));
}

static void p_values_are_those_of_all_sign_flips(void **state)
{
    gsl_rng *random = seeded(1);
    double values[16];
    size_t i, count;

    (void)state;
    for (count = 2; count <= 16; count++) {
        for (i = 0; i < count; i++)
            values[i] = gsl_ran_gaussian(random, 1) + 0.5;
        assert_float_equal(p_of(values, count), p_by_flips(values, count), 1e-12);
    }
    gsl_rng_free(random);
}

static void drawn_subsets_come_close_to_all_of_them(void **state)
{
    gsl_rng *random = seeded(2);
    double values[20];
    size_t i, round;

    (void)state;
    for (round = 0; round < 3; round++) {
        for (i = 0; i < 20; i++)
            values[i] = gsl_ran_gaussian(random, 1) + 0.3;
        assert_float_equal(p_of(values, 20), p_by_flips(values, 20), 0.01);
    }
    gsl_rng_free(random);
}

static void the_interval_excludes_exactly_what_the_test_rejects(void **state)
{
    static const double levels[] = {0.9, 0.95, 0.98, 0.994};
    gsl_rng *random = seeded(3);
    double values[40], low, high;
    size_t i, level, round;

    (void)state;
    for (round = 0; round < 200; round++) {
        size_t count = 10 + round % 30;
        struct ab_subsets subsets;

        for (i = 0; i < count; i++)
            values[i] = gsl_ran_gaussian(random, 1) + 0.4;
        ab_subsets_make(&subsets, values, count, 1999, round);
        for (level = 0; level < 4; level++) {
            assert_true(ab_subsets_interval(&subsets, levels[level], &low, &high));
            assert_true(low <= high);
            assert_int_equal(low > 0 || high < 0,
                             ab_subsets_p(&subsets, 0) <= (1 - levels[level]) * (1 + 1e-9));
        }
        ab_subsets_release(&subsets);
    }
    gsl_rng_free(random);
}

static void there_is_no_interval_where_there_are_too_few_values(void **state)
{
    static const double values[] = {1, 2, 3, 4, 5, 7};
    struct ab_subsets subsets;
    double low, high;

    (void)state;
    ab_subsets_make(&subsets, values, 5, 0, 1);
    assert_false(ab_subsets_interval(&subsets, 0.95, &low, &high));
    assert_true(isnan(low) && isnan(high));
    ab_subsets_release(&subsets);
    /* of 64 flips one in each direction: from the least value to the largest */
    ab_subsets_make(&subsets, values, 6, 0, 1);
    assert_true(ab_subsets_interval(&subsets, 0.95, &low, &high));
    assert_float_equal(low, 1, 1e-12);
    assert_float_equal(high, 7, 1e-12);
    ab_subsets_release(&subsets);
    ab_subsets_make(&subsets, NULL, 0, 0, 1);
    assert_false(ab_subsets_interval(&subsets, 0.95, &low, &high));
    ab_subsets_release(&subsets);
}

static void the_same_seed_gives_the_same_answer(void **state)
{
    struct ab_subsets one, other;
    double values[50];
    size_t i;

    (void)state;
    for (i = 0; i < 50; i++)
        values[i] = (double)(i * 37 % 50) - 20;
    ab_subsets_make(&one, values, 50, 500, 7);
    ab_subsets_make(&other, values, 50, 500, 7);
    assert_int_equal(one.count, 500);
    assert_memory_equal(one.means, other.means, 500 * sizeof *one.means);
    ab_subsets_release(&other);
    ab_subsets_make(&other, values, 50, 500, 8);
    assert_memory_not_equal(one.means, other.means, 500 * sizeof *one.means);
    ab_subsets_release(&one);
    ab_subsets_release(&other);
}

static void only_positive_autocorrelation_makes_deviations_larger(void **state)
{
    double falling[] = {1, -1, 1, -1, 1, -1, 1, -1, 1, -1};
    double rising[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    double same[] = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1};

    (void)state;
    assert_float_equal(ab_autocorrelation(falling, 10), -8.0 / 6, 0.5);
    assert_float_equal(ab_widen(falling, 10), 1, 0);
    assert_float_equal(falling[0], 1, 0);
    assert_float_equal(ab_widen(rising, 10), sqrt(1.5 / 0.5), 1e-12);
    assert_float_equal(rising[9], 5.5 + 4.5 * sqrt(1.5 / 0.5), 1e-12);
    assert_float_equal(gsl_stats_mean(rising, 1, 10), 5.5, 1e-12);
    assert_true(isnan(ab_autocorrelation(same, 7)));
    assert_float_equal(ab_widen(same, 7), 1, 0);
    assert_true(isnan(ab_autocorrelation(rising, 5)));
}

static void blocks_needed_follow_the_normal_approximation(void **state)
{
    (void)state;
    /* (1.960 + 0.842)^2 + 1.960^2 / 2 */
    assert_float_equal(ab_blocks_needed(0.02, 0.02, 0.05, 0.8), 9.770, 0.001);
    assert_float_equal(ab_blocks_needed(0.02, -0.02, 0.05, 0.8), 9.770, 0.001);
    assert_float_equal(ab_difference_seen(0.02, 9.770, 0.05, 0.8), 0.02, 1e-5);
    assert_true(isinf(ab_blocks_needed(0.02, 0, 0.05, 0.8)));
    assert_true(isnan(ab_difference_seen(0.02, 2, 0.05, 0.8)));
    /* (1.645 + 1.282)^2 + 1.645^2 / 2 */
    assert_float_equal(ab_blocks_needed_for_none(0.01, 0.01, 0.05, 0.8), 9.917, 0.001);
}

/* How often the interval of level 0.95 holds the truth, and how often the effect is shown. */
static void try_often(enum noise noise, size_t blocks, double effect, size_t experiments,
                      double *covered, double *shown)
{
    gsl_rng *random = seeded(4 + (unsigned long)noise);
    double *values = calloc(blocks, sizeof *values);
    size_t covers = 0, shows = 0, i, j;

    for (i = 0; i < experiments; i++) {
        struct synthetic synthetic;
        struct ab_subsets subsets;
        double low, high;

        synthetic_begin(&synthetic, random, noise);
        synthetic_differences(&synthetic, 2, blocks, values);
        for (j = 0; j < blocks; j++)
            values[j] += effect;
        ab_widen(values, blocks);
        ab_subsets_make(&subsets, values, blocks, 1999, i);
        assert_true(ab_subsets_interval(&subsets, 0.95, &low, &high));
        covers += low <= effect && effect <= high;
        shows += ab_subsets_p(&subsets, 0) <= 0.05;
        ab_subsets_release(&subsets);
    }
    *covered = (double)covers / (double)experiments;
    *shown = (double)shows / (double)experiments;
    free(values);
    gsl_rng_free(random);
}

static void intervals_cover_the_truth_whatever_the_noise(void **state)
{
    static const size_t counts[] = {10, 20, 40};
    double covered, shown;
    size_t noise, i;

    (void)state;
    for (noise = 0; noise < NOISE_STATE; noise++) {
        for (i = 0; i < 3; i++) {
            try_often((enum noise)noise, counts[i], -0.05, 1000, &covered, &shown);
            print_message("# %s, %zu blocks: covers %.3f\n", noise_names[noise], counts[i],
                          covered);
            assert_true(covered >= 0.93);
        }
    }
}

static void states_of_the_arms_own_are_allowed_for(void **state)
{
    double covered, shown;

    (void)state;
    try_often(NOISE_STATE, 10, 0, 2000, &covered, &shown);
    /* statistics.h says so: with 10 blocks it is 92 % */
    assert_true(covered >= 0.905);
    try_often(NOISE_STATE, 40, 0, 2000, &covered, &shown);
    assert_true(covered >= 0.93);
}

/* Of docs/statistics.md, less what chance makes of 600 experiments. */
static void power_is_what_is_stated(void **state)
{
    double covered, few, some, many;

    (void)state;
    try_often(NOISE_NORMAL, 10, log(0.95), 600, &covered, &few);
    assert_true(few >= 0.95);
    try_often(NOISE_BIMODAL, 10, log(0.95), 600, &covered, &few);
    try_often(NOISE_BIMODAL, 40, log(0.95), 600, &covered, &some);
    try_often(NOISE_BIMODAL, 160, log(0.95), 600, &covered, &many);
    print_message("# 5 %% with two modes: %.3f %.3f %.3f\n", few, some, many);
    assert_true(many >= 0.40);
    assert_true(few < some && some < many);
    try_often(NOISE_BIMODAL, 40, log(0.7), 600, &covered, &many);
    assert_true(many >= 0.95);
}

static void with_five_runs_the_run_is_the_unit(void **state)
{
    /* means 1 2 3 4 5: 3 +- t(0.975, 4) sqrt(2.5 / 5) */
    static const double values[] = {0.9, 1.1, 2, 2, 2, 3, 3.5, 4.5, 5};
    static const size_t slices[] = {2, 3, 1, 2, 1};
    double reach = 2.776445 * sqrt(0.5);
    struct ab_nested nested;

    (void)state;
    ab_nested_compare(&nested, values, slices, 5, 0.95);
    assert_false(nested.these_processes_only);
    assert_int_equal(nested.runs, 5);
    assert_int_equal(nested.slices, 9);
    assert_float_equal(nested.ratio, exp(3), 1e-9);
    assert_float_equal(log(nested.low), 3 - reach, 1e-5);
    assert_float_equal(log(nested.high), 3 + reach, 1e-5);
    assert_float_equal(nested.p, 2 * gsl_cdf_tdist_Q(3 / sqrt(0.5), 4), 1e-9);
}

static void too_few_slices_have_no_interval(void **state)
{
    static const double values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    static const size_t slices[] = {7, 3};
    struct ab_nested nested;

    (void)state;
    ab_nested_compare(&nested, values, slices, 2, 0.95);
    assert_false(isnan(nested.ratio));
    assert_true(isnan(nested.low) && isnan(nested.high) && isnan(nested.p));
    ab_nested_compare(&nested, values, slices, 0, 0.95);
    assert_true(isnan(nested.ratio) && isnan(nested.low));
    assert_int_equal(nested.runs, 0);
}

/* Slices that go on with what the ones before them had, in processes that differ. */
static double nested_coverage(size_t runs, double *within_only)
{
    gsl_rng *random = seeded(5);
    size_t covers = 0, slices[8], i, run, slice;
    double values[8 * 60], within = 0;

    for (i = 0; i < 2000; i++) {
        struct ab_nested nested;
        double truth = 0, of_processes = 0;

        for (run = 0; run < runs; run++) {
            double process = gsl_ran_gaussian(random, 0.02), at = gsl_ran_ugaussian(random);

            slices[run] = 60;
            of_processes += process / (double)runs;
            for (slice = 0; slice < 60; slice++)
                values[run * 60 + slice] = process + 0.05 * autoregressive(random, &at, 0.3);
        }
        ab_nested_compare(&nested, values, slices, runs, 0.95);
        within += nested.these_processes_only;
        truth = nested.these_processes_only ? of_processes : 0;
        covers += log(nested.low) <= truth && truth <= log(nested.high);
    }
    gsl_rng_free(random);
    *within_only = within / 2000;
    return (double)covers / 2000;
}

static void intervals_of_nested_slices_cover(void **state)
{
    double within;

    (void)state;
    assert_true(nested_coverage(2, &within) >= 0.92);
    assert_float_equal(within, 1, 0);
    assert_true(nested_coverage(5, &within) >= 0.93);
    assert_float_equal(within, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p_values_are_those_counted_by_hand),
        cmocka_unit_test(p_values_are_those_of_all_sign_flips),
        cmocka_unit_test(drawn_subsets_come_close_to_all_of_them),
        cmocka_unit_test(the_interval_excludes_exactly_what_the_test_rejects),
        cmocka_unit_test(there_is_no_interval_where_there_are_too_few_values),
        cmocka_unit_test(the_same_seed_gives_the_same_answer),
        cmocka_unit_test(only_positive_autocorrelation_makes_deviations_larger),
        cmocka_unit_test(blocks_needed_follow_the_normal_approximation),
        cmocka_unit_test(intervals_cover_the_truth_whatever_the_noise),
        cmocka_unit_test(states_of_the_arms_own_are_allowed_for),
        cmocka_unit_test(power_is_what_is_stated),
        cmocka_unit_test(with_five_runs_the_run_is_the_unit),
        cmocka_unit_test(too_few_slices_have_no_interval),
        cmocka_unit_test(intervals_of_nested_slices_cover),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
