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
    double hook_time_limit;                /* of each shell command; 0: none */
    const char *prepare, *cleanup, *check; /* shell commands, or NULL; {arm} … replaced, and the
                                              run's files named in their environment */
    struct ab_same_output *same_output;    /* NULL: not asked */
    const char *step_kernel;               /* see steps.h; with watch_steps */
    bool watch_steps;
    char *const
        *variables; /* NAME=VALUE for the command and the shell commands; {arm} … replaced */
    size_t variable_count;
    bool reference_taken;  /* an earlier run is what same_output compares with; else the next one of
                              the baseline that goes well is */
    bool keep_output;      /* also of runs that went well */
    bool keep_reports;     /* of all runs */
    bool show_output;      /* pass what the command prints on to our stderr, when it has ended */
    struct gpu_state *gpu; /* NULL: not read */
};

/* Whether NAME=VALUE is one of the variables that make the arm: each run gets them from its arm, so
 * that they cannot be given for all. */
bool ab_variable_is_of_arm(const char *variable);

/* What is wrong with one where it is given: "'NAME=VALUE' is not …". */
#define AB_VARIABLE_WANTED                                                                         \
    "a variable that can be given: each run gets it as its arm has it (other libraries to "        \
    "preload: in the environment of cudapolicy)"

/* Makes what all runs need in the experiment's folder, which is there. False with a message. */
bool ab_trial_make_folders(const struct ab_trial_options *options);

/* Makes the run that run->arm, block and position say and fills in the rest of it. Signals that end
 * us (SIGINT, SIGTERM, SIGHUP) end the run too: its outcome is AB_INTERRUPTED. So it is where the
 * run was suspended, and then it can be made again: ab_trial_interrupted() tells. False, with a
 * message on stderr, when for a reason that is not the arm's (a folder cannot be made, --prepare or
 * --cleanup fails) no run can be made. */
bool ab_trial_run(const struct ab_experiment *experiment, const struct ab_trial_options *options,
                  struct ab_run *run);

/* "12-3" (block and position), "w0-3" in a warm-up block; the folder of the run, with the files
 * stdout and stderr where these are kept. To be freed. */
char *ab_trial_run_name(const struct ab_run *run);
char *ab_trial_folder(const struct ab_experiment *experiment,
                      const struct ab_trial_options *options, const struct ab_run *run);

/* text with {arm}, {block}, {position}, {run} (its name) and {folder} (of the run) replaced;
 * "{{arm}}" stands for "{arm}" itself. Every other brace stays as it is. To be freed. */
char *ab_trial_expand(const char *text, const struct ab_experiment *experiment,
                      const struct ab_run *run, const char *folder);

/* From the first of these on, signals that would end us only end the run that is going on (a second
 * one at once). Whether the user asked to end since the last ab_trial_catch_signals. */
void ab_trial_catch_signals(void);
bool ab_trial_interrupted(void);

#endif
