/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_TARGETS_LOOK_H
#define CUDAPOLICY_TOOLS_TARGETS_LOOK_H

/* What /proc tells of one process: its counters' file, or why it has none. Part of targets.h. */

#include <stdbool.h>

/* What the mappings of a process say. */
struct target_look {
    bool failed;    /* they cannot be read */
    bool preloaded; /* our library is there */
    bool unusable;  /* it has counters, whose file we cannot open */
    char *counters;
};

/* counters is to be freed. */
struct target_look target_look_at(long pid);

/* Why the process has no counters that we can use, and what to do; to be freed. */
char *target_explain_missing(long pid, const struct target_look *look);

#endif
