/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_SLURM_VARIABLES_H
#define CUDAPOLICY_TOOLS_SLURM_VARIABLES_H

/* The policy that a task is under, and its [env]. */

#include "policy/policy.h"
#include "site.h"
#include "task.h"

/*
 * The policy that the task's environment names, with the site's around it, which the result takes
 * over; the site's alone where there is no other, or where the other does not load or fit, of which
 * the library says why. To be freed; NULL where there is none at all.
 */
struct policy *slurm_task_policy(const struct slurm_task *task, struct slurm_site *site);

/*
 * Sets in the task's environment, which already says which mode the task has, what [env] of its
 * policy (NULL: none) sets. 0, or -1 with a line of complaint when a variable cannot be set.
 */
int slurm_set_variables(const struct slurm_task *task, const struct policy *policy);

#endif
