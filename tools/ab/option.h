/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_OPTION_H
#define CUDAPOLICY_TOOLS_AB_OPTION_H

/* The command line of ab. */

#include <stdbool.h>
#include <stddef.h>

#include "command.h"
#include "experiment.h"

struct ab_options {
    struct ab_plan plan; /* seed 0: none chosen */
    bool few_blocks;     /* fewer than can decide anything */
    char **arms;         /* arm_count words of argv */
    size_t arm_count;
    bool no_repeat;
    size_t metric_count, metric_capacity;
    struct ab_metric *metrics; /* the primary one is the first; owned */
    const char *same_output;
    double relative, absolute; /* tolerance */
    bool watch_steps;
    const char *step_kernel; /* NULL: graph launches, where steps are watched */
    const char *prepare, *cleanup, *check;
    double time_limit; /* seconds; 0: of the baseline's runs */
    bool no_time_limit;
    size_t variable_count, variable_capacity;
    char **variables; /* NAME=VALUE words of argv */
    const char *folder, *resume;
    bool allow_unattached;
    bool keep_output, keep_reports, show_output;
    size_t export_count, export_capacity;
    const char **exports;
    bool force, json, quiet, wide;
    const char *library;
    char **command; /* of argv */
};

/* Fills in options from the command line; -1 when the command is to go on, else the status with
 * which it ends: after --help, or a mistake whose message is printed. */
int ab_options_parse(const struct command *command, int argc, char **argv,
                     struct ab_options *options);

void ab_options_release(struct ab_options *options);

#endif
