/* SPDX-License-Identifier: Apache-2.0 */
#include "statistics.h"

#include <float.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* The sums of all subsets of up to 8 values: the sum of a subset is that of the subset without its
 * lowest member, and that member. */
static void sum_subsets(const double *values, size_t count, double *sums)
{
    size_t subset;

    sums[0] = 0;
    for (subset = 1; subset < (size_t)1 << count; subset++)
        sums[subset] = sums[subset & (subset - 1)] + values[__builtin_ctzl(subset)];
}

static void take_all(struct ab_subsets *subsets, const double *values, size_t count)
{
    double *sums = memory_allocate((size_t)1 << count, sizeof *sums);
    size_t subset;

    subsets->count = ((size_t)1 << count) - 1;
    subsets->means = memory_allocate(subsets->count, sizeof *subsets->means);
    sum_subsets(values, count, sums);
    for (subset = 1; subset <= subsets->count; subset++)
        subsets->means[subset - 1] = sums[subset] / __builtin_popcountl(subset);
    free(sums);
}

/* A subset of a thousand values is drawn byte by byte: what the 256 subsets of eight values sum to
 * is known beforehand. */
static void draw(struct ab_subsets *subsets, const double *values, size_t count, size_t draws,
                 uint64_t seed)
{
    size_t groups = (count + 7) / 8;
    double(*sums)[256] = memory_allocate(groups, sizeof *sums);
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    size_t group, drawn = 0;

    gsl_rng_set(random, (seed ^ seed >> 32) & 0xffffffff);
    for (group = 0; group < groups; group++)
        sum_subsets(values + 8 * group, count - 8 * group < 8 ? count - 8 * group : 8, sums[group]);
    subsets->count = draws;
    subsets->means = memory_allocate(draws, sizeof *subsets->means);
    while (drawn < draws) {
        unsigned long bits = 0;
        double sum = 0;
        int size = 0;

        for (group = 0; group < groups; group++, bits >>= 8) {
            size_t left = count - 8 * group;
            unsigned long subset;

            if (group % 4 == 0)
                bits = gsl_rng_get(random);
            subset = bits & 255 & (left < 8 ? (1UL << left) - 1 : 255);
            sum += sums[group][subset];
            size += __builtin_popcountl(subset);
        }
        if (size > 0)
            subsets->means[drawn++] = sum / size;
    }
    gsl_rng_free(random);
    free(sums);
}

void ab_subsets_make(struct ab_subsets *subsets, const double *values, size_t count, size_t draws,
                     uint64_t seed)
{
    double largest = 0;
    size_t i;

    memset(subsets, 0, sizeof *subsets);
    if (count == 0)
        return;
    for (i = 0; i < count; i++)
        largest = fmax(largest, fabs(values[i]));
    subsets->tolerance = largest * (double)count * 4 * DBL_EPSILON;
    if (count <= AB_SUBSETS_ALL)
        take_all(subsets, values, count);
    else
        draw(subsets, values, count, draws == 0 ? AB_SUBSETS_DRAWN : draws, seed);
    gsl_sort(subsets->means, 1, subsets->count);
}

void ab_subsets_release(struct ab_subsets *subsets)
{
    free(subsets->means);
    memset(subsets, 0, sizeof *subsets);
}

/* How many of the means lie below a value. */
static size_t count_below(const struct ab_subsets *subsets, double value)
{
    size_t low = 0, high = subsets->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (subsets->means[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double ab_subsets_p(const struct ab_subsets *subsets, double centre)
{
    size_t not_above, not_below, least;

    if (subsets->count == 0)
        return NAN;
    not_above = count_below(subsets, nextafter(centre + subsets->tolerance, INFINITY));
    not_below = subsets->count - count_below(subsets, centre - subsets->tolerance);
    least = not_above < not_below ? not_above : not_below;
    return fmin(1, 2 * (1 + (double)least) / (1 + (double)subsets->count));
}

bool ab_subsets_interval(const struct ab_subsets *subsets, double level, double *low, double *high)
{
    /* against 0.05 / 2 * 40 = 0.99999… */
    double place = floor((1 - level) / 2 * ((double)subsets->count + 1) * (1 + 1e-12));

    *low = *high = NAN;
    if (subsets->count == 0 || !(place >= 1) || place > ((double)subsets->count + 1) / 2)
        return false;
    *low = subsets->means[(size_t)place - 1];
    *high = subsets->means[subsets->count - (size_t)place];
    return true;
}

double ab_autocorrelation(const double *values, size_t count)
{
    double mean, squares = 0, products = 0, found, scale;
    size_t i;

    if (count < 6)
        return NAN;
    mean = gsl_stats_mean(values, 1, count);
    scale = fabs(mean);
    for (i = 0; i < count; i++) {
        squares += (values[i] - mean) * (values[i] - mean);
        if (i > 0)
            products += (values[i] - mean) * (values[i - 1] - mean);
    }
    if (!(squares > (double)count * pow(scale * 8 * DBL_EPSILON, 2)))
        return NAN;
    found = ((double)count * products / squares + 1) / ((double)count - 4);
    return fmax(-0.9, fmin(0.9, found));
}

double ab_widen(double *values, size_t count)
{
    double correlation = ab_autocorrelation(values, count), factor, mean;
    size_t i;

    if (!(correlation > 0))
        return 1;
    correlation = fmin(correlation, 0.5);
    factor = sqrt((1 + correlation) / (1 - correlation));
    mean = gsl_stats_mean(values, 1, count);
    for (i = 0; i < count; i++)
        values[i] = mean + factor * (values[i] - mean);
    return factor;
}

/* The deviation is estimated too: a t-test needs about this many blocks more than a z-test
 * (Guenther). */
static double more_blocks(double z)
{
    return z * z / 2;
}

double ab_blocks_needed(double deviation, double difference, double level, double power)
{
    double z = gsl_cdf_ugaussian_Qinv(level / 2);

    return pow((z + gsl_cdf_ugaussian_Pinv(power)) * deviation / difference, 2) + more_blocks(z);
}

double ab_difference_seen(double deviation, double blocks, double level, double power)
{
    double z = gsl_cdf_ugaussian_Qinv(level / 2);

    if (!(blocks > more_blocks(z) + 1))
        return NAN;
    return (z + gsl_cdf_ugaussian_Pinv(power)) * deviation / sqrt(blocks - more_blocks(z));
}

double ab_blocks_needed_for_none(double deviation, double margin, double level, double power)
{
    double z = gsl_cdf_ugaussian_Qinv(level);

    return pow((z + gsl_cdf_ugaussian_Pinv((1 + power) / 2)) * deviation / margin, 2) +
           more_blocks(z);
}

/* How long the blocks of a moving-block bootstrap have to be for values with this correlation: the
 * length with the least error of the variance were they autoregressive, twice over, as it is the
 * variance being too small that costs coverage; at least the cube root of the count. */
static size_t block_length(double correlation, size_t count)
{
    double n = (double)count, length = cbrt(n);

    if (correlation > 0)
        length =
            fmax(length, 2 * cbrt(6 * n * pow(correlation / (1 - correlation * correlation), 2)));
    return (size_t)fmax(1, fmin(ceil(length), floor(n / 4)));
}

/* Variance of the mean of a run's slices, and on how many degrees of freedom it stands. */
static double variance_of_mean(const double *values, size_t count, double *freedom)
{
    double mean = gsl_stats_mean(values, 1, count), correlation, sum = 0, squares = 0;
    size_t length, blocks, i;

    *freedom = 0;
    if (count < 8)
        return NAN;
    correlation = ab_autocorrelation(values, count);
    length = block_length(isnan(correlation) ? 0 : correlation, count);
    blocks = count - length + 1;
    for (i = 0; i < length; i++)
        sum += values[i] - mean;
    for (i = 0; i < blocks; i++) {
        squares += sum * sum;
        if (i + length < count)
            sum += values[i + length] - values[i];
    }
    /* overlapping blocks are worth one and a half times those side by side */
    *freedom = length == 1 ? (double)count - 1 : 1.5 * ((double)count / (double)length - 1);
    return squares / (double)blocks / (double)length / (double)(count - length);
}

static void within_runs(struct ab_nested *nested, const double *values, const size_t *slices,
                        double *freedom)
{
    double variance = 0, below = 0;
    size_t run;

    /* Satterthwaite's degrees of freedom of a sum of variances */
    for (run = 0; run < nested->runs; run++) {
        double here, own = variance_of_mean(values, slices[run], &here);

        variance += own;
        below += own * own / here;
        values += slices[run];
    }
    nested->these_processes_only = true;
    nested->deviation = sqrt(variance) / (double)nested->runs;
    *freedom = below > 0 ? variance * variance / below : (double)nested->slices;
}

void ab_nested_compare(struct ab_nested *nested, const double *values, const size_t *slices,
                       size_t runs, double level)
{
    double *means = memory_allocate(runs + 1, sizeof *means), freedom = 0, reach;
    const double *next = values;
    size_t run;

    *nested = (struct ab_nested){.mean = NAN,
                                 .ratio = NAN,
                                 .low = NAN,
                                 .high = NAN,
                                 .p = NAN,
                                 .deviation = NAN,
                                 .level = level};
    for (run = 0; run < runs; run++) {
        if (slices[run] > 0)
            means[nested->runs++] = gsl_stats_mean(next, 1, slices[run]);
        nested->slices += slices[run];
        next += slices[run];
    }
    if (nested->runs > 0) {
        nested->mean = gsl_stats_mean(means, 1, nested->runs);
        nested->ratio = exp(nested->mean);
    }
    if (nested->runs >= AB_NESTED_RUNS) {
        freedom = (double)nested->runs - 1;
        nested->deviation = gsl_stats_sd(means, 1, nested->runs) / sqrt((double)nested->runs);
    } else if (nested->runs > 0 && nested->runs == runs) {
        within_runs(nested, values, slices, &freedom);
    }
    free(means);
    if (isnan(nested->deviation))
        return;
    reach = gsl_cdf_tdist_Qinv((1 - level) / 2, freedom) * nested->deviation;
    nested->low = exp(nested->mean - reach);
    nested->high = exp(nested->mean + reach);
    if (nested->deviation > 0)
        nested->p = 2 * gsl_cdf_tdist_Q(fabs(nested->mean) / nested->deviation, freedom);
    else
        nested->p = nested->mean == 0 ? 1 : 0;
}
