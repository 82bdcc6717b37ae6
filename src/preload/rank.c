/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/rank.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef char *environment_function(const char *name);

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
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS", false},
};
enum {
    LAUNCHER_COUNT = sizeof launchers / sizeof launchers[0],
    JOB_VARIABLES = 6,
};

const char *const preload_job_keys[PRELOAD_JOB_TEXTS] = {
    [PRELOAD_JOB_ID] = "id",           [PRELOAD_JOB_STEP] = "step",
    [PRELOAD_JOB_LAUNCH] = "launch",   [PRELOAD_JOB_NODE] = "node",
    [PRELOAD_JOB_ARRAY] = "array_job", [PRELOAD_JOB_ARRAY_TASK] = "array_task",
    [PRELOAD_JOB_RESTART] = "restart",
};

/* The first that is set counts. */
static const char *const job_variables[PRELOAD_JOB_TEXTS][JOB_VARIABLES] = {
    [PRELOAD_JOB_ID] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "TORCHELASTIC_RUN_ID"},
    [PRELOAD_JOB_STEP] = {"SLURM_STEP_ID"},
    [PRELOAD_JOB_LAUNCH] = {"TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE"},
    [PRELOAD_JOB_NODE] = {"SLURMD_NODENAME"},
    [PRELOAD_JOB_ARRAY] = {"SLURM_ARRAY_JOB_ID"},
    [PRELOAD_JOB_ARRAY_TASK] = {"SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID",
                                "LSB_JOBINDEX", "SGE_TASK_ID"},
    [PRELOAD_JOB_RESTART] = {"TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"},
};

/* What stands for "none": torchrun's run without a name, an LSF or Grid Engine job without array.
 */
static const char *const nothing[] = {"", "none", "undefined"};

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

static bool tells_something(const char *text)
{
    if (text == NULL)
        return false;
    for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++)
        if (strcmp(text, nothing[i]) == 0)
            return false;
    return true;
}

/* The batch script of a Slurm job is its only task, though SLURM_NTASKS has the number of those
 * that its steps may have: steps have a number, it has none. */
static int64_t slurm_size(environment_function *environment)
{
    const int64_t size = number(environment("SLURM_STEP_NUM_TASKS"));

    if (size >= 0)
        return size;
    if (environment("SLURM_JOB_ID") != NULL && environment("SLURM_STEP_ID") == NULL)
        return 1;
    return number(environment("SLURM_NTASKS"));
}

static struct preload_rank read_launcher(const struct launcher *launcher,
                                         environment_function *environment)
{
    struct preload_rank found = {
        .rank = number(environment(launcher->rank)),
        .local_rank = number(environment(launcher->local_rank)),
        .world_size = launcher == &launchers[LAUNCHER_COUNT - 1]
                          ? slurm_size(environment)
                          : number(environment(launcher->world_size)),
        .source = launcher->rank,
    };

    if (found.rank < 0 || (launcher->needs_all && (found.local_rank < 0 || found.world_size < 0)))
        return (struct preload_rank){.rank = -1, .local_rank = -1, .world_size = -1};
    return found;
}

/* PMIx tells the rank alone, but Slurm, which started it, tells the rest. */
static void complete(struct preload_rank *found, const struct preload_rank *other)
{
    if (other->rank != found->rank)
        return;
    if (found->local_rank < 0)
        found->local_rank = other->local_rank;
    if (found->world_size < 0)
        found->world_size = other->world_size;
}

static void read_job(struct preload_rank *found, environment_function *environment)
{
    for (int text = 0; text < PRELOAD_JOB_TEXTS; text++)
        for (int i = 0; i < JOB_VARIABLES && job_variables[text][i] != NULL; i++) {
            const char *value = environment(job_variables[text][i]);

            if (found->texts[text] == NULL && tells_something(value)) {
                found->texts[text] = value;
                found->sources[text] = job_variables[text][i];
            }
        }
    /* LSF numbers the tasks of arrays from 1: 0 is a job that is no array. */
    if (found->sources[PRELOAD_JOB_ARRAY_TASK] != NULL &&
        strcmp(found->sources[PRELOAD_JOB_ARRAY_TASK], "LSB_JOBINDEX") == 0 &&
        strcmp(found->texts[PRELOAD_JOB_ARRAY_TASK], "0") == 0)
        found->texts[PRELOAD_JOB_ARRAY_TASK] = NULL;
    found->job = found->texts[PRELOAD_JOB_ID];
}

struct preload_rank preload_rank_read(char *(*getenv_function)(const char *name))
{
    struct preload_rank found = {.rank = -1, .local_rank = -1, .world_size = -1};

    for (size_t i = 0; i < LAUNCHER_COUNT; i++) {
        const struct preload_rank one = read_launcher(&launchers[i], getenv_function);

        if (one.source != NULL && found.source == NULL)
            found = one;
        else if (one.source != NULL)
            complete(&found, &one);
    }
    read_job(&found, getenv_function);
    return found;
}
