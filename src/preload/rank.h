/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PRELOAD_RANK_H
#define CUDAPOLICY_PRELOAD_RANK_H

/* The process's place in its job, from the environment that its launcher made. */

#include <stdint.h>

/* What tells a job's runs and nodes apart. */
enum preload_job_text {
    PRELOAD_JOB_ID,         /* of the batch system; else torchrun's run */
    PRELOAD_JOB_STEP,       /* Slurm's step */
    PRELOAD_JOB_LAUNCH,     /* one call of the launcher: PMIx's namespace, or torchrun's run */
    PRELOAD_JOB_NODE,       /* the node's name, as the batch system has it */
    PRELOAD_JOB_ARRAY,      /* the job array, */
    PRELOAD_JOB_ARRAY_TASK, /* and which of its tasks */
    PRELOAD_JOB_RESTART,    /* how often the job, or torchrun's workers, were started again */
    PRELOAD_JOB_TEXTS
};

struct preload_rank {
    int64_t rank, local_rank, world_size;   /* -1: not known */
    const char *source;                     /* the variable that gave the rank; NULL: none */
    const char *job;                        /* the job's identifier; NULL: none */
    const char *texts[PRELOAD_JOB_TEXTS];   /* NULL: not known; the first is the same as job */
    const char *sources[PRELOAD_JOB_TEXTS]; /* the variables that gave them */
};

/* Their keys in the report's section "job". */
extern const char *const preload_job_keys[PRELOAD_JOB_TEXTS];

/*
 * Reads the environment with getenv_function (secure_getenv, or a test's own). The innermost
 * launcher wins: RANK where LOCAL_RANK and WORLD_SIZE are set too (torchrun), then
 * OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, SLURM_PROCID. A variable that is no number is passed
 * over. What the launcher does not tell of local rank and size is taken from another one that gives
 * the same rank. The strings are the environment's own. Not for the launch path.
 */
struct preload_rank preload_rank_read(char *(*getenv_function)(const char *name));

#endif
