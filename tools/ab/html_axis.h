/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_HTML_AXIS_H
#define CUDAPOLICY_TOOLS_AB_HTML_AXIS_H

/* Axes of plots: from what to what, where the ticks are. */

#include <stdbool.h>
#include <stddef.h>

enum {
    HTML_TICK_LIMIT = 12,
};

struct html_axis {
    double low, high;
    bool logarithmic;
    size_t tick_count;
    struct {
        double at;
        char label[24];
    } ticks[HTML_TICK_LIMIT];
};

/* The range of values without those that are so far out that the others would not be seen. Called
 * arm by arm, with sorted values; *low and *high widen, and begin as NaN. */
void html_axis_widen(double *low, double *high, const double *sorted, size_t count);

/* An axis of numbers, or of ratios about 1, that holds low to high. NaN: of 0 to 1, of 0.9 to 1.1.
 */
struct html_axis html_axis_numbers(double low, double high);
struct html_axis html_axis_ratios(double low, double high);

/* An axis of 0 to count, with ticks at whole numbers. */
struct html_axis html_axis_counts(size_t count);

/* Where value is, in percent of the axis; at its end when it is outside. */
double html_axis_percent(const struct html_axis *axis, double value);
bool html_axis_holds(const struct html_axis *axis, double value);

#endif
