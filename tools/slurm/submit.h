/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_SLURM_SUBMIT_H
#define CUDAPOLICY_TOOLS_SLURM_SUBMIT_H

/* The client's side: srun, sbatch and salloc, before anything is submitted. */

#include "check_file.h"
#include "request.h"
#include "settings.h"

/*
 * Puts together what the options and the environment of the client ask for, checks it, and writes
 * it into the environment, whence it reaches tasks and steps. 0, or -1 with lines of complaint:
 * nothing is to be submitted; nothing is asked for then in the environment. note takes a line that
 * is no mistake.
 */
int slurm_submit(const struct slurm_settings *settings, const struct slurm_request *options,
                 slurm_complain *complain, slurm_complain *note);

/* True when the client's options or environment ask for a policy or a report. */
bool slurm_submit_is_asked(const struct slurm_request *options);

#endif
