/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TEST_NVML_DOUBLE_H
#define CUDAPOLICY_TEST_NVML_DOUBLE_H

/* A library that stands in for NVML: its GPUs say what a test told them. Tests find the state by
 * the symbol nvml_double. */

enum {
    NVML_DOUBLE_GPUS = 4,
    NVML_DOUBLE_PIDS = 600,
};

struct nvml_double_gpu {
    const char *name, *uuid;
    const char *mig; /* UUID of a part of it, or NULL */
    unsigned clock, clock_most, temperature, power, power_limit;
    unsigned long long reasons;
    int fails; /* with this result, whatever it is asked; 0: it answers */
    int fails_processes;
    unsigned pid_count, pids[NVML_DOUBLE_PIDS];
    unsigned mig_pid_count, mig_pids[NVML_DOUBLE_PIDS];
    unsigned asked; /* questions so far */
};

struct nvml_double {
    int init_fails;
    int started; /* inits without their shutdown */
    unsigned gpu_count;
    struct nvml_double_gpu gpus[NVML_DOUBLE_GPUS];
};

#endif
