/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_COMPARISON_H
#define CUDAPOLICY_TOOLS_AB_COMPARISON_H

/* All arms against the baseline in one metric, with their verdicts: the statistics of statistics.h
 * at a look of sequential.h. Parts of analysis.c. */

#include <stdbool.h>
#include <stddef.h>

#include "analysis.h"
#include "blocks.h"
#include "sequential.h"

/* With fewer pairs nothing is decided, even where there are enough blocks (runs that failed). */
enum { AB_LEAST_PAIRS = 8 };

/*
 * Fills in the comparisons of all arms but the baseline, arm_count - 1 of them.
 *
 * In the primary metric the candidates are a family: a difference is shown where the p-value
 * adjusted by Holm's method is at most the level of the look. The repeated baseline and the arm
 * that shows what the preload costs ask other questions, each at the level of the look; so does
 * every arm in the exploratory metrics, whose verdicts are hints: with many of them some are wrong.
 *
 * "No difference" is shown, at the same level, by two one-sided tests: the interval at
 * 1 - 2 level lies within the margin. Where a difference is shown that is what is said, even if it
 * is smaller than the margin; margin_low and margin_high then tell.
 *
 * without_flagged: leaves blocks out in which the arm or the baseline has a GPU flag.
 */
void ab_compare_arms(const struct ab_experiment *experiment, const struct ab_blocks *blocks,
                     const struct ab_look *look, size_t metric, bool without_flagged,
                     struct ab_comparison *comparisons);

/* Whether a block has a flag for this arm. */
bool ab_block_flagged(const struct ab_blocks *blocks, size_t block, size_t arm);

/* Whether all of the interval for the margin lies within it. */
bool ab_within_margin(const struct ab_plan *plan, const struct ab_comparison *comparison);

/* Whether all of the interval lies outside the margin: a difference that matters is shown. */
bool ab_beyond_margin(const struct ab_plan *plan, const struct ab_comparison *comparison);

#endif
