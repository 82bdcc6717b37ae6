/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_TUNE_STAGE_H
#define CUDAPOLICY_TOOLS_TUNE_STAGE_H

/* A stage of a search: an experiment of its own, in a folder of its own, of the baseline and the
 * candidates that are still in it. */

#include "search.h"

struct stage {
    const char *name; /* of its folder, and in messages */
    const char *label;
    struct ab_plan plan;
    bool no_repeat;
    size_t count;
    const size_t *candidates; /* arm 1 + i of the experiment */
};

/* A seed for each stage, all of them from one. */
uint64_t stage_seed(uint64_t seed, uint64_t stage);

/* The experiment without runs; to be released even where it is false, after a message. */
bool stage_make_experiment(const struct search *search, const struct stage *stage,
                           struct ab_experiment *experiment);

/* Command, metrics, host and the like: what all stages have in common, arms left out. */
void stage_fill_experiment(const struct search *search, struct ab_experiment *experiment);

/* The folder of a stage, made where it is not there; to be freed. NULL after a message. */
char *stage_make_folder(const struct search *search, const char *name);

/* Makes the runs of a stage, those that its journal does not have when a search is continued, and
 * analyses all. False when it could not be done; what was run is in the experiment then, too. */
bool stage_run(const struct search *search, const struct stage *stage,
               struct ab_experiment *experiment, struct ab_analysis *analysis);

#endif
