/* SPDX-License-Identifier: Apache-2.0 */

/* A live comparison for a person. */

#include "live_view.h"
#include "print.h"

void ab_live_print(const struct ab_live_comparison *comparisons,
                   const struct ab_experiment *experiment, const struct ab_live_run *runs,
                   size_t run_count, const struct ab_live_plan *plan, bool wide, FILE *stream)
{
    struct ab_live_view view;

    ab_live_view_make(&view, comparisons, experiment, runs, run_count, plan, 0);
    ab_print(&view.experiment, &view.analysis, wide, stream);
    ab_live_view_release(&view);
}
