/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_SLURM_REQUEST_H
#define CUDAPOLICY_TOOLS_SLURM_REQUEST_H

/*
 * What a user asks of the plugin, by options or by variables of the environment.
 *
 * The same variables carry the request from the client to the tasks, and from a job to its steps:
 * by their prefix they survive --export=NONE, and the client writes resolved values into them, with
 * absolute paths.
 */

#include <stdbool.h>

#include "policy/policy.h"

#define SLURM_REQUEST_POLICY "SLURM_CUDA_POLICY"
#define SLURM_REQUEST_NO_POLICY "SLURM_NO_CUDA_POLICY"
#define SLURM_REQUEST_MODE "SLURM_CUDA_POLICY_MODE"
#define SLURM_REQUEST_REPORT "SLURM_CUDA_POLICY_REPORT"

/* The strings are borrowed. */
struct slurm_request {
    const char *policy; /* NULL: not asked for */
    const char *mode;   /* a mode's name, or NULL */
    const char *report; /* a template of a path, or NULL */
    bool no_policy;     /* never together with policy */
};

/* How a variable's value is found; NULL when it is not set. */
typedef const char *slurm_lookup(void *environment, const char *name);

/*
 * The request that the variables make; an empty variable makes none. 0, or -1 with what is wrong or
 * contradictory in message, of SLURM_MESSAGE_SIZE bytes.
 */
int slurm_request_read(struct slurm_request *request, slurm_lookup *lookup, void *environment,
                       char *message);

/* What the options of a command line say goes before what the variables say. */
void slurm_request_override(struct slurm_request *request, const struct slurm_request *options);

/*
 * path, absolute, to be freed: seen from the present folder. of_template: what is put before it
 * goes through the expansion of a report template. NULL, with errno, when the folder or memory
 * fails.
 */
char *slurm_request_absolute(const char *path, bool of_template);

#endif
