/* SPDX-License-Identifier: Apache-2.0 */
/* The place in a job, as launchers and batch systems tell it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "preload/rank.h"

static const char *const *variables;

static char *value_of(const char *name)
{
    size_t length = strlen(name);

    for (const char *const *variable = variables; *variable != NULL; variable++) {
        if (strncmp(*variable, name, length) == 0 && (*variable)[length] == '=') {
            return (char *)(uintptr_t)(*variable + length + 1);
        }
    }
    return NULL;
}

static struct preload_rank read_rank(const char *const *environment)
{
    variables = environment;
    return preload_rank_read(value_of);
}

#define READ(...) read_rank((const char *const[]){__VA_ARGS__, NULL})

static void assert_place(struct preload_rank place, const char *source, int64_t rank,
                         int64_t local_rank, int64_t world_size)
{
    assert_non_null(place.source);
    assert_string_equal(place.source, source);
    assert_int_equal(place.rank, rank);
    assert_int_equal(place.local_rank, local_rank);
    assert_int_equal(place.world_size, world_size);
}

static void assert_text(const struct preload_rank *place, enum preload_job_text text,
                        const char *expected)
{
    if (expected == NULL) {
        assert_null(place->texts[text]);
    } else {
        assert_non_null(place->texts[text]);
        assert_string_equal(place->texts[text], expected);
    }
}

static void each_launcher_is_understood(void **state)
{
    (void)state;
    assert_place(READ("RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=8"), "RANK", 3, 1, 8);
    assert_place(
        READ("OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_SIZE=8"),
        "OMPI_COMM_WORLD_RANK", 3, 1, 8);
    assert_place(READ("PMI_RANK=3", "MPI_LOCALRANKID=1", "PMI_SIZE=8"), "PMI_RANK", 3, 1, 8);
    assert_place(READ("SLURM_PROCID=3", "SLURM_LOCALID=1", "SLURM_STEP_NUM_TASKS=8"),
                 "SLURM_PROCID", 3, 1, 8);
    assert_place(READ("SLURM_PROCID=3", "SLURM_LOCALID=1", "SLURM_NTASKS=8"), "SLURM_PROCID", 3, 1,
                 8);
    assert_place(READ("PMIX_RANK=3"), "PMIX_RANK", 3, -1, -1);
}

static void the_innermost_launcher_wins(void **state)
{
    (void)state;
    assert_place(READ("SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_NTASKS=2", "RANK=5",
                      "LOCAL_RANK=1", "WORLD_SIZE=8"),
                 "RANK", 5, 1, 8);
    assert_place(READ("SLURM_PROCID=0", "PMIX_RANK=4", "OMPI_COMM_WORLD_RANK=4",
                      "OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_COMM_WORLD_SIZE=6"),
                 "OMPI_COMM_WORLD_RANK", 4, 0, 6);
}

static void what_pmix_leaves_out_is_taken_from_slurm_if_it_means_the_same_rank(void **state)
{
    (void)state;
    assert_place(READ("PMIX_RANK=3", "SLURM_PROCID=3", "SLURM_LOCALID=1", "SLURM_STEP_NUM_TASKS=8"),
                 "PMIX_RANK", 3, 1, 8);
    assert_place(READ("PMIX_RANK=3", "SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_STEP_NUM_TASKS=2"),
                 "PMIX_RANK", 3, -1, -1);
}

static void rank_alone_is_no_launcher(void **state)
{
    const struct preload_rank place = READ("RANK=captain", "WORLD_SIZE=8", "LOCAL_RANK=0");

    (void)state;
    assert_null(place.source);
    assert_null(READ("RANK=3").source);
    assert_null(READ("SLURM_PROCID=").source);
    assert_null(READ("SLURM_PROCID=-1").source);
    assert_null(READ("SLURM_PROCID=99999999999999999999").source);
}

static void the_batch_script_is_the_only_task_of_its_step(void **state)
{
    (void)state;
    assert_place(READ("SLURM_JOB_ID=7", "SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_NTASKS=16"),
                 "SLURM_PROCID", 0, 0, 1);
    assert_place(READ("SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_LOCALID=0",
                      "SLURM_NTASKS=16"),
                 "SLURM_PROCID", 0, 0, 16);
}

static void job_step_node_array_and_restart_are_told(void **state)
{
    const struct preload_rank place =
        READ("SLURM_JOB_ID=42", "SLURM_STEP_ID=3", "SLURMD_NODENAME=n7", "SLURM_ARRAY_JOB_ID=40",
             "SLURM_ARRAY_TASK_ID=2", "SLURM_RESTART_COUNT=1", "PMIX_NAMESPACE=slurm.pmix.42.3");

    (void)state;
    assert_text(&place, PRELOAD_JOB_ID, "42");
    assert_string_equal(place.sources[PRELOAD_JOB_ID], "SLURM_JOB_ID");
    assert_text(&place, PRELOAD_JOB_STEP, "3");
    assert_text(&place, PRELOAD_JOB_NODE, "n7");
    assert_text(&place, PRELOAD_JOB_ARRAY, "40");
    assert_text(&place, PRELOAD_JOB_ARRAY_TASK, "2");
    assert_text(&place, PRELOAD_JOB_RESTART, "1");
    assert_text(&place, PRELOAD_JOB_LAUNCH, "slurm.pmix.42.3");
}

static void other_batch_systems_are_understood(void **state)
{
    const struct preload_rank pbs = READ("PBS_JOBID=12[3].server", "PBS_ARRAY_INDEX=3");
    const struct preload_rank lsf = READ("LSB_JOBID=12", "LSB_JOBINDEX=3");
    const struct preload_rank single = READ("LSB_JOBID=12", "LSB_JOBINDEX=0");
    const struct preload_rank grid = READ("JOB_ID=12", "SGE_TASK_ID=undefined");
    const struct preload_rank torch =
        READ("TORCHELASTIC_RUN_ID=abc", "TORCHELASTIC_RESTART_COUNT=2");

    (void)state;
    assert_text(&pbs, PRELOAD_JOB_ID, "12[3].server");
    assert_text(&pbs, PRELOAD_JOB_ARRAY_TASK, "3");
    assert_text(&lsf, PRELOAD_JOB_ARRAY_TASK, "3");
    assert_text(&single, PRELOAD_JOB_ARRAY_TASK, NULL);
    assert_text(&grid, PRELOAD_JOB_ID, "12");
    assert_text(&grid, PRELOAD_JOB_ARRAY_TASK, NULL);
    assert_text(&torch, PRELOAD_JOB_ID, "abc");
    assert_text(&torch, PRELOAD_JOB_LAUNCH, "abc");
    assert_text(&torch, PRELOAD_JOB_RESTART, "2");
}

static void a_run_without_a_name_tells_nothing(void **state)
{
    const struct preload_rank place = READ("TORCHELASTIC_RUN_ID=none", "SLURM_JOB_ID=");

    (void)state;
    assert_null(place.job);
    assert_text(&place, PRELOAD_JOB_LAUNCH, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_launcher_is_understood),
        cmocka_unit_test(the_innermost_launcher_wins),
        cmocka_unit_test(what_pmix_leaves_out_is_taken_from_slurm_if_it_means_the_same_rank),
        cmocka_unit_test(rank_alone_is_no_launcher),
        cmocka_unit_test(the_batch_script_is_the_only_task_of_its_step),
        cmocka_unit_test(job_step_node_array_and_restart_are_told),
        cmocka_unit_test(other_batch_systems_are_understood),
        cmocka_unit_test(a_run_without_a_name_tells_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
