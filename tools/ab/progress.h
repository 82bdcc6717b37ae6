/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_PROGRESS_H
#define CUDAPOLICY_TOOLS_AB_PROGRESS_H

/* How far an experiment is, on standard error: one line written again and again on a terminal, a
 * line a block elsewhere. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "experiment.h"

struct progress {
    bool quiet, terminal, shown;
    const char *label;
    int64_t started;     /* CLOCK_MONOTONIC */
    size_t made, failed; /* runs since */
};

void progress_start(struct progress *progress, const char *label, bool quiet);

/* Before a run: block of the experiment (a warm-up one or not), position in it. */
void progress_run(struct progress *progress, const struct ab_experiment *experiment,
                  const struct ab_run *run);

/* After a run; after the last one of a block. */
void progress_made(struct progress *progress, const struct ab_run *run);
void progress_block(struct progress *progress, const struct ab_experiment *experiment,
                    const struct ab_run *run);

/* Before anything else is printed: takes the line away. */
void progress_clear(struct progress *progress);

/* "3 min", to be freed. */
char *progress_duration(double seconds);

#endif
