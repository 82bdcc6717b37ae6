/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_PROCESS_H
#define CUDAPOLICY_REPORT_PROCESS_H

/* Which process a counters' file belongs to. Reads /proc; allocates nothing, takes no lock; not for
 * the launch path. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/layout.h"

/* Fills in the calling process, but for its strings. What /proc does not tell stays 0 or "". */
void report_process_fill(struct report_process *process);

/* Whether that process runs now. False when it cannot be known from here (another boot, host or pid
 * namespace); then *known is false. */
bool report_process_running(const struct report_process *process, bool *known);

/* The calling process's parent, the parent's parent and so on, the first of each pid namespace left
 * out: "PID@TICKS PID@TICKS ..." with the start of each in clock ticks since the boot, which tells
 * a process from a later one of its number. As many as have room. */
void report_process_ancestors(char *text, size_t size);

/* Nanoseconds since 1970. */
int64_t report_time(void);

#endif
