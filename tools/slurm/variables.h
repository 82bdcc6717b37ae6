/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_SLURM_VARIABLES_H
#define CUDAPOLICY_TOOLS_SLURM_VARIABLES_H

/* [env] of the policy that a task is under. */

#include "task.h"

/*
 * Sets in the task's environment, which already says which policy and which mode the task has, what
 * [env] of that policy sets. 0, or -1 with a line of complaint when a variable cannot be set. A
 * policy that does not load sets nothing: the library says why.
 */
int slurm_set_variables(const struct slurm_task *task);

#endif
