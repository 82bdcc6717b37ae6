/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/rank.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

struct launcher {
    const char *rank, *local_rank, *world_size;
    bool needs_all; /* RANK alone is a common name */
};

/* Names: torchrun's, Open MPI's, PMIx's, MPICH's and Slurm's own documentation. */
static const struct launcher launchers[] = {
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", true},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", false},
    {"PMIX_RANK", "PMIX_LOCAL_RANK", "PMIX_SIZE", false},
    {"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", false},
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", false},
};

static const char *const job_variables[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID",
                                            "TORCHELASTIC_RUN_ID"};

static int64_t number(const char *text)
{
    char *end;
    long long value;

    if (text == NULL || text[0] == '\0')
        return -1;
    errno = 0;
    value = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' && value >= 0 ? value : -1;
}

struct preload_rank preload_rank_read(char *(*getenv_function)(const char *name))
{
    struct preload_rank found = {.rank = -1, .local_rank = -1, .world_size = -1};

    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0] && found.source == NULL; i++) {
        const struct launcher *launcher = &launchers[i];
        const int64_t rank = number(getenv_function(launcher->rank));
        const int64_t local_rank = number(getenv_function(launcher->local_rank));
        const int64_t world_size = number(getenv_function(launcher->world_size));

        if (rank < 0 || (launcher->needs_all && (local_rank < 0 || world_size < 0)))
            continue;
        found = (struct preload_rank){.rank = rank,
                                      .local_rank = local_rank,
                                      .world_size = world_size,
                                      .source = launcher->rank};
    }
    for (size_t i = 0; i < sizeof job_variables / sizeof job_variables[0]; i++) {
        const char *job = getenv_function(job_variables[i]);

        if (job != NULL && job[0] != '\0') {
            found.job = job;
            break;
        }
    }
    return found;
}
