/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_TRIAL_H
#define CUDAPOLICY_TOOLS_AB_TRIAL_H

/*
 * One run of the command under one arm: environment, its own process group, what it prints in
 * files, a time limit, the reports of all its processes, its metrics.
 */

#include <stdbool.h>
#include <stddef.h>

#include "experiment.h"
#include "gpu_state.h"
#include "same_output.h"

struct ab_trial_options {
    const char *library;                   /* of the preload, absolute */
    const char *folder;                    /* of the experiment: every run gets a folder in it */
    double time_limit;                     /* seconds; 0: none */
    const char *prepare, *cleanup, *check; /* shell commands, or NULL; {arm} … replaced, and the
                                              run's files named in their environment */
    struct ab_same_output *same_output;    /* NULL: not asked */
    const char *step_kernel;               /* see steps.h; with watch_steps */
    bool watch_steps;
    bool keep_output;      /* also of runs that went well */
    bool show_output;      /* pass what the command prints on to our stderr */
    struct gpu_state *gpu; /* NULL: not read */
};

/* Makes the run that run->arm, block and position say and fills in the rest of it. Signals that end
 * us (SIGINT, SIGTERM) end the run too: its outcome is AB_INTERRUPTED. */
void ab_trial_run(const struct ab_experiment *experiment, const struct ab_trial_options *options,
                  struct ab_run *run);

/* text with {arm}, {block}, {position}, {run} and {folder} replaced, "{{" and "}}" for braces; to
 * be freed. Braces around anything else stay as they are. */
char *ab_trial_expand(const char *text, const struct ab_experiment *experiment,
                      const struct ab_run *run, const char *folder);

/* Whether the user asked to end (SIGINT, SIGTERM, SIGHUP) since the last ab_trial_catch_signals. */
void ab_trial_catch_signals(void);
bool ab_trial_interrupted(void);

#endif
