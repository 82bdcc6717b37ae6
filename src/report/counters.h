/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_COUNTERS_H
#define CUDAPOLICY_REPORT_COUNTERS_H

/* What the tables need of the shards. */

#include <stdbool.h>
#include <stdint.h>

/* Makes the counters of cells below `cells` safe to raise in every shard that a thread holds or
 * will hold. Called between report_lock and report_unlock. */
bool report_counters_reserve(uint32_t cells);

/* In the child after fork, after the image was exchanged. */
void report_counters_after_fork(void);

#endif
