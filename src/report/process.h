/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_PROCESS_H
#define CUDAPOLICY_REPORT_PROCESS_H

/* Which process a counters' file belongs to. Reads /proc; allocates nothing, takes no lock; not for
 * the launch path. */

#include <stdbool.h>
#include <stdint.h>

#include "report/layout.h"

/* Fills in the calling process, but for its strings. What /proc does not tell stays 0 or "". */
void report_process_fill(struct report_process *process);

/* Whether that process runs now. False when it cannot be known from here (another boot, host or pid
 * namespace); then *known is false. */
bool report_process_running(const struct report_process *process, bool *known);

/* Nanoseconds since 1970. */
int64_t report_time(void);

#endif
