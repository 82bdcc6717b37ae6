/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_LIVE_OPTION_H
#define CUDAPOLICY_TOOLS_AB_LIVE_OPTION_H

/* The command line of ab --live. */

#include "live.h"

struct ab_live_options {
    const struct command *command;
    struct ab_live_plan plan; /* seed 0: none chosen */
    enum ab_claim claim;
    int64_t runs;
    bool no_repeat, show_output, keep_output, keep_reports, json, wide, quiet, force;
    const char *prepare, *cleanup, *check; /* shell commands; NULL: none */
    const char *same_output;               /* NULL: not asked */
    double relative, absolute;             /* its tolerance */
    bool tolerance;                        /* was given */
    double time_limit;                     /* seconds of a run; 0: from the runs made */
    bool no_time_limit;
    const char *folder, *resume, *library;
    size_t export_count, export_capacity;
    const char **exports; /* words of argv; the array is owned */
    bool graph_steps;     /* was given */
    bool metric_given;
    struct ab_metric metric; /* owned; plan.metric where it was given */
    size_t variable_count, variable_capacity;
    char **variables; /* NAME=VALUE words of argv; the array is owned */
    char *const *arms;
    size_t arm_count;
    char **argv; /* of the command */
};

/* -1 when the command is to go on, else the status with which it ends. */
int ab_live_options_parse(struct ab_live_options *options, const struct command *command, int argc,
                          char **argv);

/* One more; not copied. */
void ab_live_options_add_variable(struct ab_live_options *options, char *variable);

void ab_live_options_release(struct ab_live_options *options);

#endif
