/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_BLOCKS_H
#define CUDAPOLICY_TOOLS_AB_BLOCKS_H

/* The runs of an experiment by block and arm: complete blocks only, without those of the warm-up.
 * Runs that the user interrupted were not made; of two runs of an arm in a block (a block that was
 * begun again) the later one counts. */

#include <stdbool.h>
#include <stddef.h>

#include "experiment.h"

struct ab_blocks {
    size_t count;
    size_t arm_count;
    const struct ab_run **runs; /* [block * arm_count + arm], blocks ascending */
};

void ab_blocks_of(const struct ab_experiment *experiment, struct ab_blocks *blocks);
void ab_blocks_release(struct ab_blocks *blocks);

/* A run that was made and is no warm-up. */
bool ab_run_counts(const struct ab_experiment *experiment, const struct ab_run *run);

/* Its value in a metric; NaN where the run is not AB_OK or has none. */
double ab_run_value_of(const struct ab_run *run, size_t metric);

#endif
