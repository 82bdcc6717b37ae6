/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_SAMPLE_H
#define CUDAPOLICY_TOOLS_AB_SAMPLE_H

/* What the runs of one arm look like: pure functions on arrays. Nothing here decides between arms;
 * it is what a reader should know before believing that. */

#include <stdbool.h>
#include <stddef.h>

struct ab_sample {
    double mean, median, deviation, least, most; /* NaN where there are too few values */
};
void ab_sample_summarise(const double *values, size_t count, struct ab_sample *sample);

/*
 * Whether the values come in two groups. The sorted values (their logarithms where all are
 * positive) are cut in two so that the squares within the groups are least; bimodal where what is
 * left of all squares is less than 0.195 (1 - 5.6 / count), each group holding a tenth of the
 * values and 3 at least. Up to 8 values: never.
 *
 * Calibrated on the evenly distributed values, which of all those with one mode are split most
 * easily: 4 % to 5 % of those are called bimodal; of normal, log-normal, exponential, Laplace and
 * Student values (2 or 3 degrees of freedom) at most 3 %, for 10 to 160 values. Modes at 24 and 38
 * with 2 % noise are found with the power in docs/statistics.md: where both modes have 3 runs,
 * practically always.
 */
struct ab_modes {
    bool bimodal;
    double modes[2]; /* medians of the groups; NaN unless bimodal */
    size_t lower;    /* values in the lower group */
};
void ab_modes_find(const double *values, size_t count, struct ab_modes *modes);

/* Values further than 3 interquartile ranges outside the quartiles (on the scale of logarithms
 * where all are positive), of each mode apart where there are two: a second mode is not made of
 * outliers. Of fewer than 8 values: 0. */
size_t ab_outliers(const double *values, size_t count, const struct ab_modes *modes);

/* Spearman's correlation of value and time; p two-sided, by Student's approximation. Both NaN with
 * fewer than 8 values, or where there is no variation. */
double ab_drift(const double *values, const double *times, size_t count, double *p);

/* Fisher's exact test, one-sided: how likely an arm that fails no more often than the baseline has
 * at least so many of all the failures. NaN where an arm has no runs. */
double ab_fails_more_p(size_t failures, size_t runs, size_t baseline_failures,
                       size_t baseline_runs);

#endif
