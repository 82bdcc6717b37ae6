/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_WARNINGS_H
#define CUDAPOLICY_TOOLS_AB_WARNINGS_H

/* What a reader should know beside the verdicts. A part of analysis.c. */

#include "analysis.h"
#include "blocks.h"
#include "sequential.h"

/* Adds the warnings to an analysis that has everything else. */
void ab_warn(const struct ab_experiment *experiment, const struct ab_blocks *blocks,
             const struct ab_look *look, struct ab_analysis *analysis);

#endif
