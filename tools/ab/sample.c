/* SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

enum { LEAST_VALUES = 8 };

void ab_sample_summarise(const double *values, size_t count, struct ab_sample *sample)
{
    double *sorted;

    *sample = (struct ab_sample){NAN, NAN, NAN, NAN, NAN};
    if (count == 0)
        return;
    sorted = memory_allocate(count, sizeof *sorted);
    memcpy(sorted, values, count * sizeof *sorted);
    gsl_sort(sorted, 1, count);
    sample->mean = gsl_stats_mean(sorted, 1, count);
    sample->median = gsl_stats_median_from_sorted_data(sorted, 1, count);
    if (count > 1)
        sample->deviation = gsl_stats_sd_m(sorted, 1, count, sample->mean);
    sample->least = sorted[0];
    sample->most = sorted[count - 1];
    free(sorted);
}

/* A sorted copy, of logarithms where all values are positive: times are skewed. */
static double *sorted_copy(const double *values, size_t count, bool *logarithms)
{
    double *sorted = memory_allocate(count + 1, sizeof *sorted);
    size_t i;

    memcpy(sorted, values, count * sizeof *sorted);
    gsl_sort(sorted, 1, count);
    *logarithms = count > 0 && sorted[0] > 0;
    for (i = 0; *logarithms && i < count; i++)
        sorted[i] = log(sorted[i]);
    return sorted;
}

/* The least squares within two groups, of all squares; how many values are in the lower group. */
static double split(const double *sorted, size_t count, size_t *lower)
{
    double mean = gsl_stats_mean(sorted, 1, count), all = 0, below = 0, between = 0;
    size_t least = count / 10 > 3 ? count / 10 : 3, i;

    *lower = 0;
    for (i = 0; i < count; i++)
        all += (sorted[i] - mean) * (sorted[i] - mean);
    for (i = 0; i + least < count; i++) {
        double here;

        below += sorted[i] - mean;
        if (i + 1 < least)
            continue;
        here = below * below * (1 / (double)(i + 1) + 1 / (double)(count - i - 1));
        if (here > between) {
            between = here;
            *lower = i + 1;
        }
    }
    return all > 0 ? 1 - between / all : 1;
}

void ab_modes_find(const double *values, size_t count, struct ab_modes *modes)
{
    bool logarithms;
    double *sorted;

    *modes = (struct ab_modes){.modes = {NAN, NAN}};
    if (count <= LEAST_VALUES)
        return;
    sorted = sorted_copy(values, count, &logarithms);
    modes->bimodal = split(sorted, count, &modes->lower) < 0.195 * (1 - 5.6 / (double)count);
    if (modes->bimodal) {
        modes->modes[0] = gsl_stats_median_from_sorted_data(sorted, 1, modes->lower);
        modes->modes[1] =
            gsl_stats_median_from_sorted_data(sorted + modes->lower, 1, count - modes->lower);
        if (logarithms) {
            modes->modes[0] = exp(modes->modes[0]);
            modes->modes[1] = exp(modes->modes[1]);
        }
    } else {
        modes->lower = 0;
    }
    free(sorted);
}

static size_t count_outliers(const double *sorted, size_t count)
{
    double low, high, reach;
    size_t outliers = 0, i;

    if (count < LEAST_VALUES)
        return 0;
    low = gsl_stats_quantile_from_sorted_data(sorted, 1, count, 0.25);
    high = gsl_stats_quantile_from_sorted_data(sorted, 1, count, 0.75);
    reach = 3 * (high - low);
    /* values so coarse that most are the same: then the deviation has to do */
    if (!(reach > 0))
        reach = 3 * gsl_stats_sd(sorted, 1, count);
    for (i = 0; i < count; i++)
        outliers += sorted[i] < low - reach || sorted[i] > high + reach;
    return outliers;
}

size_t ab_outliers(const double *values, size_t count, const struct ab_modes *modes)
{
    bool logarithms;
    double *sorted = sorted_copy(values, count, &logarithms);
    size_t lower = modes->bimodal ? modes->lower : 0;
    size_t outliers = count_outliers(sorted, lower) + count_outliers(sorted + lower, count - lower);

    free(sorted);
    return outliers;
}

double ab_drift(const double *values, const double *times, size_t count, double *p)
{
    double correlation, t;
    double *work;

    *p = NAN;
    if (count < LEAST_VALUES || gsl_stats_variance(values, 1, count) <= 0 ||
        gsl_stats_variance(times, 1, count) <= 0)
        return NAN;
    work = memory_allocate(2 * count, sizeof *work);
    correlation = gsl_stats_spearman(values, 1, times, 1, count, work);
    free(work);
    if (fabs(correlation) >= 1) {
        *p = 0;
        return correlation;
    }
    t = fabs(correlation) * sqrt(((double)count - 2) / (1 - correlation * correlation));
    *p = 2 * gsl_cdf_tdist_Q(t, (double)count - 2);
    return correlation;
}

double ab_fails_more_p(size_t failures, size_t runs, size_t baseline_failures, size_t baseline_runs)
{
    size_t all = failures + baseline_failures;

    if (runs == 0 || baseline_runs == 0)
        return NAN;
    if (failures == 0)
        return 1;
    return gsl_cdf_hypergeometric_Q((unsigned)failures - 1, (unsigned)all,
                                    (unsigned)(runs + baseline_runs - all), (unsigned)runs);
}
