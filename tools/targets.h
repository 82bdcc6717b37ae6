/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_TARGETS_H
#define CUDAPOLICY_TOOLS_TARGETS_H

/*
 * Running processes under the preload, as a user names them: by process id, by job, by a counters'
 * file or a folder of such. What is to be done to a process is done through its counters' file,
 * which it has mapped and so can be found by.
 */

#include <stdbool.h>
#include <stddef.h>

struct target {
    long pid;       /* in our pid namespace; 0: not known */
    char *counters; /* a name by which the file can be opened; NULL: it has none that we can use */
    char *problem;  /* where counters is NULL: why, and what to do */
};

struct targets {
    size_t count, capacity;
    struct target *items;
};

/*
 * Adds the processes that text stands for:
 *   - a number, pid:N: the process; where it has no counters, the processes below it, and with
 *     children both; a number that is no process is a job;
 *   - job:ID, ID: every process of this host, that we may look at, whose job has that id;
 *   - a file: the process of these counters;
 *   - a folder: the running processes of all counters in it and in the folders in it.
 * False with a message on stderr when there is none.
 */
bool targets_find(struct targets *targets, const char *text, bool children);

/* False where the process's mappings can be read and the file is not among them: then it is a copy,
 * or belongs to a program that the process executed another one over, or the process is over. */
bool targets_may_use(long pid, const char *counters);

void targets_release(struct targets *targets);

#endif
