/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_SCHEDULE_H
#define CUDAPOLICY_TOOLS_AB_SCHEDULE_H

/* In which order the arms of a block run. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fills order[arm_count] with a permutation of the arms that depends on nothing but seed, block and
 * warm_up: a resumed experiment goes on as it would have. Uniform over all permutations. */
void ab_schedule_block(uint64_t seed, uint32_t block, bool warm_up, size_t arm_count,
                       uint32_t *order);

/* A seed that nobody chose. */
uint64_t ab_schedule_seed(void);

#endif
