/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_STATISTICS_H
#define CUDAPOLICY_TOOLS_AB_STATISTICS_H

/*
 * How two arms are compared: pure functions on arrays. docs/statistics.md has the reasons at
 * length, and the figures of the study that stands behind them (tests/ab/study.c).
 *
 * The values are d = log(arm / baseline), one a block. The order of the arms in a block is random,
 * so that under no effect the sign of each d is a fair coin, whatever else makes times differ:
 * modes drawn per process, drift, outliers.
 *
 * Test and interval are one thing, the sign-flip test and its inversion. A centre c is rejected by
 * as many sign flips of d - c as there are subsets of d whose mean lies beyond c; so the means of
 * all non-empty subsets, sorted, hold the p-value of every centre and the interval of every level,
 * and the two never contradict each other. Up to 16 values all subsets are taken: p-values are
 * exact. With more, subsets are drawn at random: the level is still exact, as what was observed
 * counts as one of the draws.
 *
 * Why no studentised bootstrap over blocks: with 10 blocks, of which the runs are slow one time in
 * five, its equal-tailed 95 % interval covers 91 %; a symmetric one covers, and is up to three
 * times as wide (where an arm takes the slow mode away). This one covers 95 % in all cases tried,
 * and is the narrowest of those that do. It is a resampling over runs too: subsets in place of
 * samples with replacement (Hartigan's typical values).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Means of non-empty subsets of the values. */
struct ab_subsets {
    size_t count;
    double *means;    /* ascending */
    double tolerance; /* means closer to a centre than this are equal to it: rounding */
};

enum {
    AB_SUBSETS_ALL = 16,      /* values up to which all subsets are taken */
    AB_SUBSETS_DRAWN = 32767, /* and how many are drawn with more */
};

/* draws: 0 for AB_SUBSETS_DRAWN. Without values, none. */
void ab_subsets_make(struct ab_subsets *subsets, const double *values, size_t count, size_t draws,
                     uint64_t seed);
void ab_subsets_release(struct ab_subsets *subsets);

/* The two-sided p-value of the sign-flip test that the values are centred at centre; NaN without
 * values. */
double ab_subsets_p(const struct ab_subsets *subsets, double centre);

/* All centres that are not rejected at 1 - level. False, and NaN, where there are too few values
 * for that: at 95 %, fewer than 6. */
bool ab_subsets_interval(const struct ab_subsets *subsets, double level, double *low, double *high);

/* Correlation of each value with the next one, with what a short series hides of it put back
 * (Kendall); within -0.9 .. 0.9. NaN with fewer than 6 values or when they are all the same. */
double ab_autocorrelation(const double *values, size_t count);

/*
 * The random order takes care of everything that goes with time. It cannot where an arm has a state
 * of its own that outlives a run (a cache of its own). Such leftover correlation makes the
 * effective number of blocks smaller; therefore deviations from the mean are made larger by
 * sqrt((1 + r) / (1 - r)) before they are compared, r the autocorrelation found, within 0 .. 0.5.
 * Returns the factor, at least 1: larger deviations can only make p-values larger.
 *
 * Costs 20 % of width at 10 blocks, 8 % at 40, where there is nothing of the kind: 95 % intervals
 * cover 96 % to 97 % then. At r = 0.3 it brings coverage from 86 % to 92 % with 10 blocks, and to
 * 93 % with 20 and 40. It does not make up for all of it: see docs/statistics.md.
 */
double ab_widen(double *values, size_t count);

/* Blocks needed to see a difference of logarithms with probability power in a two-sided test of
 * this level, by normal approximation; infinite where difference is 0. */
double ab_blocks_needed(double deviation, double difference, double level, double power);

/* The other way round: the difference that so many blocks see; NaN where they are too few. */
double ab_difference_seen(double deviation, double blocks, double level, double power);

/* Blocks needed to show with probability power that there is no difference larger than margin (a
 * difference of logarithms), when there is none at all. */
double ab_blocks_needed_for_none(double deviation, double margin, double level, double power);

/*
 * Arms that alternate inside running processes: values of slices nested in runs.
 *
 * With AB_NESTED_RUNS runs or more, the unit is the run: Student's interval for the mean of the
 * runs' means, which are sums of many slices. With fewer, slices are the unit, and the result is
 * about these processes only: what differs from process to process is not in it. Then the variance
 * of each run's mean is that of a moving-block bootstrap in closed form, with blocks long enough
 * for the autocorrelation found.
 */
struct ab_nested {
    size_t runs, slices;
    double mean;               /* of the values: mean over runs of their means; NaN */
    double ratio, low, high;   /* exp of it, and its interval; NaN: too few */
    double level;              /* of the interval */
    double p;                  /* two-sided, that the ratio is 1; NaN */
    double deviation;          /* standard error of the mean; NaN */
    bool these_processes_only; /* too few runs to speak of others */
};

enum { AB_NESTED_RUNS = 5 };

/* values: slices of the first run, then of the second, …; slices[runs]: how many each. */
void ab_nested_compare(struct ab_nested *nested, const double *values, const size_t *slices,
                       size_t runs, double level);

#endif
