/* SPDX-License-Identifier: Apache-2.0 */
#include "html_axis.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>

void html_axis_widen(double *low, double *high, const double *sorted, size_t count)
{
    double lower, upper, spread, least, most;

    if (count == 0) {
        return;
    }
    lower = gsl_stats_quantile_from_sorted_data(sorted, 1, count, 0.25);
    upper = gsl_stats_quantile_from_sorted_data(sorted, 1, count, 0.75);
    /* Far out is far beyond what a second mode of the values would be. */
    spread = fmax(upper - lower, 0.02 * fabs(upper));
    least = lower;
    most = upper;
    for (size_t i = 0; i < count; i++) {
        if (sorted[i] >= lower - 6 * spread && sorted[i] <= upper + 6 * spread) {
            least = fmin(least, sorted[i]);
            most = fmax(most, sorted[i]);
        }
    }
    *low = isfinite(*low) ? fmin(*low, least) : least;
    *high = isfinite(*high) ? fmax(*high, most) : most;
}

/* 1, 2 or 5 times a power of ten, so that about this many steps make the width. */
static double nice_step(double width, double steps)
{
    double raw = width / steps, power = pow(10, floor(log10(raw)));

    return power * (raw / power < 1.01 ? 1 : raw / power < 2.02 ? 2 : raw / power < 5.05 ? 5 : 10);
}

static void add_tick(struct html_axis *axis, double at, int decimals)
{
    if (axis->tick_count < HTML_TICK_LIMIT && html_axis_holds(axis, at)) {
        axis->ticks[axis->tick_count].at = at;
        snprintf(axis->ticks[axis->tick_count++].label, sizeof axis->ticks[0].label, "%.*f",
                 decimals, at);
    }
}

static void add_even_ticks(struct html_axis *axis, double steps)
{
    double step = nice_step(axis->high - axis->low, steps);
    int decimals = (int)fmax(0, ceil(-log10(step) - 1e-9));
    double first = ceil(axis->low / step - 1e-9);

    for (int i = 0; i < HTML_TICK_LIMIT; i++) {
        double at = (first + i) * step;

        add_tick(axis, fabs(at) < step / 2 ? 0 : at, decimals);
    }
}

struct html_axis html_axis_numbers(double low, double high)
{
    struct html_axis axis = {.low = low, .high = high};
    double room;

    if (!isfinite(low) || !isfinite(high)) {
        axis.low = 0;
        axis.high = 1;
    }
    room = axis.high > axis.low       ? 0.06 * (axis.high - axis.low)
           : fabs(axis.high) > 1e-300 ? 0.1 * fabs(axis.high)
                                      : 1;
    axis.low -= room;
    axis.high += room;
    if (low >= 0 && axis.low < 0) {
        axis.low = 0;
    }
    add_even_ticks(&axis, 7);
    return axis;
}

struct html_axis html_axis_counts(size_t count)
{
    struct html_axis axis = {.high = (double)count};

    add_even_ticks(&axis, count < 7 ? (double)count : 7);
    return axis;
}

struct html_axis html_axis_ratios(double low, double high)
{
    struct html_axis axis = {.low = 0.9, .high = 1.1, .logarithmic = true};
    double room;

    if (isfinite(low) && isfinite(high) && low > 0) {
        axis.low = fmin(low, 1);
        axis.high = fmax(high, 1);
    }
    axis.low = fmax(axis.low, 1e-4);
    axis.high = fmin(axis.high, 1e4);
    room = fmax(pow(axis.high / axis.low, 0.05), 1.002);
    axis.low /= room;
    axis.high *= room;
    if (axis.high / axis.low < 3) {
        add_even_ticks(&axis, 7);
        return axis;
    }
    for (int power = -5; power <= 5; power++) {
        static const double factors[] = {1, 2, 5};
        size_t used = axis.high / axis.low > 100 ? 1 : 3; /* only powers of ten where it is wide */

        for (size_t i = 0; i < used; i++) {
            add_tick(&axis, factors[i] * pow(10, power), power < 0 ? -power : 0);
        }
    }
    return axis;
}

bool html_axis_holds(const struct html_axis *axis, double value)
{
    return value >= axis->low && value <= axis->high;
}

double html_axis_percent(const struct html_axis *axis, double value)
{
    double part;

    if (value <= axis->low) {
        return 0;
    }
    if (value >= axis->high) {
        return 100;
    }
    part = axis->logarithmic ? log(value / axis->low) / log(axis->high / axis->low)
                             : (value - axis->low) / (axis->high - axis->low);
    return 100 * part;
}
