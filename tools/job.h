/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_JOB_H
#define CUDAPOLICY_TOOLS_JOB_H

/*
 * A program run under the preload, and the reports that its processes leave: the program's own, its
 * children's, the ranks of a job on this host. Each writes its report into one private folder.
 */

#include <stdbool.h>

#include "opened.h"
#include "policy/policy.h"
#include "results.h"

struct job {
    /* Set by the caller. */
    const char *policy;          /* file; NULL: an empty policy */
    const struct policy *loaded; /* what the file says: its [env] is applied; NULL: no [env] */
    const char *mode;            /* NULL: as the environment and the policy say */
    const char *log;             /* level, or NULL */
    const char *library;         /* as the user gave it, or NULL */
    const char *folder_given; /* reports stay, in a new folder in there; NULL: they are removed */
    bool strict;
    /* Of job.c. */
    char *folder;
    bool started, keep;
    struct opened opened; /* while it ran */
    bool unread; /* some report could not be read */
};

/* Runs argv and returns the status to end with; when the program did not begin to run, started is
 * false and a message is printed. */
int job_run(struct job *job, char **argv);

/* Reads every report in the folder. Files that cannot be read are named on stderr. */
void job_collect(struct job *job, struct results *results);

/* The same, and each to its group. */
struct job_groups;
void job_collect_groups(struct job *job, struct results *results, struct job_groups *groups);

/* Removes the folder, unless it was given or a process of the job still writes there. */
void job_release(struct job *job);

/* The value of CUDAPOLICY_REPORT with which every process writes its report into the folder, in
 * whose own name '%' is no part of the template. To be freed. */
char *job_report_template(const char *folder);

#endif
