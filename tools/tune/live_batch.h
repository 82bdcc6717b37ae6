/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_TUNE_LIVE_BATCH_H
#define CUDAPOLICY_TOOLS_TUNE_LIVE_BATCH_H

/* The runs of one batch of candidates that alternate by step. */

#include "stage.h"

struct live_batch {
    struct ab_experiment experiment; /* its arms are those that alternate */
    struct ab_experiment trial;      /* one arm, the policy of all: what is run */
    struct ab_live_plan plan;
    size_t run_count;
    struct ab_live_run *runs;
    bool *changed; /* by arm: a rule of it changed something in some run */
    size_t flagged;
    bool interrupted;
};

/* Makes the runs that are missing, in the stage's folder. False with the reason, to be freed, when
 * one of them cannot be made or has no whole block; or when interrupted, with what was run. */
bool live_batch_run(struct live_batch *batch, const struct search *search,
                    const struct stage *stage, size_t number, size_t batches, char **reason);

void live_batch_release(struct live_batch *batch);

#endif
