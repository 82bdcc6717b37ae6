/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_TUNE_SUGGEST_RULES_H
#define CUDAPOLICY_TOOLS_TUNE_SUGGEST_RULES_H

/*
 * What a record of a program suggests to try. A record knows which kernels were launched, by which
 * library, how often and in which grids, and which streams were made by whom; it does not know
 * which kernel ran on which stream, nor which ran at the same time. So these are guesses with their
 * reasons, to be measured, and no more is said than the record holds.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "results.h"

/*
 * Prints a policy that changes nothing by itself, with a [tune] section in which each suggestion is
 * a line with its reason. processes: how many the results are about. Returns the number of
 * suggestions; 0: nothing was printed, and *reason says why, to be freed.
 */
size_t suggest_rules(const struct results *results, int64_t processes, FILE *stream, char **reason);

/* Reads what results_load reads, or the inventory that `cudapolicy record --json` printed. False
 * after a message on stderr. */
bool suggest_rules_load(struct results *results, const char *path, int64_t *processes);

struct tune_options;

/* suggest_command.c: the command, once its options are read. Returns its status. */
int suggest_command(const struct tune_options *options);

#endif
