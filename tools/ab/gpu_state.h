/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_GPU_STATE_H
#define CUDAPOLICY_TOOLS_AB_GPU_STATE_H

/*
 * What the GPUs of this host did during a run, read through NVML, which is loaded at run time where
 * it is. Only reads; settings stay as they are. Not in the preload.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "experiment.h"

struct gpu_state;

/* NULL where there is no NVML or no GPU, with the reason in error[size]. Looks only at the GPUs
 * that CUDA_VISIBLE_DEVICES of our environment allows, where it can tell. */
struct gpu_state *gpu_state_open(char *error, size_t size);

/* One line about each GPU for the report: name, UUID, clocks, power limit; to be freed. */
char *gpu_state_describe(const struct gpu_state *state);

/* Begins a run; then sample every 200 ms or so; then end. Processes of the group (and their
 * descendants in it) are ours; others on a GPU are flagged. */
void gpu_state_begin(struct gpu_state *state, pid_t process_group);
void gpu_state_sample(struct gpu_state *state);
/* The clock is the mean of the samples in which a GPU worked. A GPU that no longer answers is not
 * asked again; what it said before counts. known: at least one question was answered. */
void gpu_state_end(struct gpu_state *state, struct ab_run_gpu *gpu);

void gpu_state_close(struct gpu_state *state);

/* Sets AB_GPU_CLOCKS_CHANGED in the runs whose clock is more than 3 % away from the median of the
 * experiment's runs, and clears it in the others. After each run, or at the end: what it says
 * depends on all runs. */
void gpu_state_mark_clocks(struct ab_experiment *experiment);

#endif
