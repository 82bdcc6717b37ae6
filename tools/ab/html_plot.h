/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_HTML_PLOT_H
#define CUDAPOLICY_TOOLS_AB_HTML_PLOT_H

/*
 * Plots of the page, as SVG. Coordinates across are percentages: a plot is as wide as there is
 * room, while its marks and its text keep their size.
 */

#include <stdio.h>

#include "analysis.h"
#include "experiment.h"

/* Runs in the order in which they were made: a dot each, failed ones below. */
void html_plot_runs(const struct ab_experiment *experiment, FILE *stream);

/* For each arm, what each block says of its ratio to the baseline. */
void html_plot_blocks(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                      FILE *stream);

/* The intervals of all arms, with the margin. */
void html_plot_intervals(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                         FILE *stream);

/* The mark of an arm, to stand in text. */
void html_plot_key(const struct ab_experiment *experiment, size_t arm, FILE *stream);

#endif
