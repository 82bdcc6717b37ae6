/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_TUNE_TUNE_OPTION_H
#define CUDAPOLICY_TOOLS_TUNE_TUNE_OPTION_H

/* The command line of tune: options of its own, and those of ab. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "command.h"
#include "option.h"
#include "search.h"

struct tune_options {
    struct ab_options ab; /* its arms mean nothing */
    const char *policy, *output, *suggest;
    const char *baseline; /* NULL: not given */
    size_t vary_count, vary_capacity;
    const char **vary; /* words of argv */
    bool each, halving;
    enum search_live live;
    uint32_t live_runs;
    struct ab_live_plan live_plan; /* what of it is given here: slice, drop, warm_up */
    uint32_t limit, blocks;
    char **words; /* to which ab's options point */
};

/* Fills in options; -1 when the command is to go on, else the status with which it ends. With
 * suggest, ab is not filled in but for force. */
int tune_options_parse(const struct command *command, int argc, char **argv,
                       struct tune_options *options);

void tune_options_release(struct tune_options *options);

#endif
