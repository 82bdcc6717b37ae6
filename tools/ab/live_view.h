/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_LIVE_VIEW_H
#define CUDAPOLICY_TOOLS_AB_LIVE_VIEW_H

/*
 * A live comparison as an experiment and its analysis, so that it is printed and exported by what
 * prints and exports any other: a slice stands for a run. What is computed of it is in live.h: the
 * view only shows it.
 */

#include "analysis.h"
#include "live.h"

enum {
    AB_LIVE_SHOWN = 1500, /* blocks on a page; of more, neighbouring ones are shown as one */
};

struct ab_live_view {
    struct ab_experiment experiment; /* shares arms and command with the one it was made of */
    struct ab_analysis analysis;
    struct ab_live_design design;
    struct ab_metric metric;
};

/* most: blocks that may be shown; 0: all. What it is made of has to outlive it. */
void ab_live_view_make(struct ab_live_view *view, const struct ab_live_comparison *comparisons,
                       const struct ab_experiment *experiment, const struct ab_live_run *runs,
                       size_t run_count, const struct ab_live_plan *plan, size_t most);
void ab_live_view_release(struct ab_live_view *view);

#endif
