/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_PRINT_H
#define CUDAPOLICY_TOOLS_AB_PRINT_H

/* An experiment and its analysis for a person at a terminal. */

#include <stdbool.h>
#include <stdio.h>

#include "analysis.h"
#include "experiment.h"

/* The table: arms with runs, failures, the primary metric, its ratio to the baseline with interval
 * and verdict; the noise floor; exploratory metrics; warnings; one sentence as the answer. */
void ab_print(const struct ab_experiment *experiment, const struct ab_analysis *analysis, bool wide,
              FILE *stream);

/* The answer alone: "fast is 1.42 times as fast as none (95 % interval 1.31 .. 1.55, 20 blocks)".
 * To be freed. */
char *ab_answer(const struct ab_experiment *experiment, const struct ab_analysis *analysis);

#endif
