/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PRELOAD_RANK_H
#define CUDAPOLICY_PRELOAD_RANK_H

/* The process's place in its job, from the environment that its launcher made. */

#include <stdint.h>

struct preload_rank {
    int64_t rank, local_rank, world_size; /* -1: not known */
    const char *source;                   /* the variable that gave the rank; NULL: none */
    const char *job;                      /* the job's identifier; NULL: none */
};

/*
 * Reads the environment with getenv_function (secure_getenv, or a test's own). The innermost
 * launcher wins: RANK where LOCAL_RANK and WORLD_SIZE are set too (torchrun), then
 * OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, SLURM_PROCID. A variable that is no number is passed
 * over. The strings are the environment's own. Not for the launch path.
 */
struct preload_rank preload_rank_read(char *(*getenv_function)(const char *name));

#endif
