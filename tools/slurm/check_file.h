/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_SLURM_CHECK_FILE_H
#define CUDAPOLICY_TOOLS_SLURM_CHECK_FILE_H

/*
 * Whether the files that a task needs are there and usable, for the effective user: the files are
 * opened, which asks the right question also on file systems whose permissions are not the mode's.
 */

#include "policy/diagnostics.h"

/* Takes one line of what is wrong. */
typedef void slurm_complain(const char *line);

/* Complains of each diagnostic. */
void slurm_complain_of(struct policy_diagnostics *diagnostics, slurm_complain *complain);

/* Whether path holds a policy without mistakes: 0, or -1 with a line for each mistake. */
int slurm_check_policy(const char *path, slurm_complain *complain);

/* Whether path can be preloaded, as the loader would tell by a line that is easily missed: 0, or -1
 * with a line. */
int slurm_check_library(const char *path, slurm_complain *complain);

#endif
