/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_SLURM_TASK_H
#define CUDAPOLICY_TOOLS_SLURM_TASK_H

/* The environment of a task under a policy. */

#include "check_file.h"
#include "node_report.h"
#include "request.h"
#include "settings.h"

struct slurm_task {
    slurm_lookup *get;
    int (*set)(void *environment, const char *name, const char *value); /* 0, or not */
    void (*unset)(void *environment, const char *name);
    void *environment;
    slurm_complain *complain;
    const struct slurm_step *step; /* for a folder of reports; NULL: not known */
};

/*
 * Changes the task's environment as the request and the site's settings say. 0: it may start; -1,
 * with lines of complaint: it must not, since what its user asked for cannot be had. What only the
 * site wants and cannot be had is complained of, and the task starts without.
 * Called as the task's user.
 */
int slurm_task_prepare(const struct slurm_task *task, const struct slurm_settings *settings,
                       const struct slurm_request *request);

#endif
