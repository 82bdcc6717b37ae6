/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_TRIAL_PARTS_H
#define CUDAPOLICY_TOOLS_AB_TRIAL_PARTS_H

/* What the files that make one run share: trial.c, trial_environment.c, trial_hook.c. */

#include <stdint.h>

#include "environment.h"
#include "steps.h"
#include "trial.h"

/* What one run needs while it is made. */
struct trial {
    const struct ab_experiment *experiment;
    const struct ab_trial_options *options;
    struct ab_run *run;
    const struct ab_arm *arm;
    char *folder, *output, *errors, *reports;
    struct ab_steps steps;
    int64_t next_gpu_sample; /* in ticks */
};

/* trial_environment.c. Of the command: what makes the arm. Of shell commands around it: never under
 * the preload, and told which run it is. */
void trial_run_environment(const struct trial *trial, struct environment *environment);
void trial_hook_environment(const struct trial *trial, struct environment *environment);

/* The empty policy of the arm "observe", to be freed. */
char *trial_observe_policy(const struct ab_trial_options *options);

/* trial_hook.c. Runs a shell command, which name stands for in messages and in the run's folder.
 * Why it said no is in *message, to be freed. */
enum hook_result { HOOK_FINE, HOOK_SAYS_NO, HOOK_INTERRUPTED, HOOK_NOT_RUN };
enum hook_result trial_run_hook(const struct trial *trial, const char *name, const char *text,
                                char **message);

/* --prepare and --cleanup: where they fail (false, with a message), the experiment cannot go on. */
bool trial_run_required_hook(const struct trial *trial, const char *name, const char *text);

/* trial.c. How a process ended, to be freed; a file for what it prints, -1 after a message. */
char *trial_wait_status_text(int wait_status);
int trial_open_output(const char *path);

#endif
