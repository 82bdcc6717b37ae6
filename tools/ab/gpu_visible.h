/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_GPU_VISIBLE_H
#define CUDAPOLICY_TOOLS_AB_GPU_VISIBLE_H

/* Which GPUs a program of this environment sees, as NVML's devices. */

#include <stddef.h>

#include "nvml_library.h"

enum {
    GPU_NAME_SIZE = 96, /* of names and UUIDs, as NVML has it */
};

struct gpu_device {
    nvml_library_device device;    /* the whole GPU: clocks, power, temperature */
    nvml_library_device processes; /* the part of it whose processes count */
    unsigned index;                /* NVML's */
    char name[GPU_NAME_SIZE], uuid[GPU_NAME_SIZE];
    char part[GPU_NAME_SIZE]; /* UUID of the part (MIG), or "" */
};

/* The devices that CUDA_VISIBLE_DEVICES allows, to be freed; NULL and 0 with the reason in
 * error[size] when there are none. Where an index does not tell which GPU it is, because CUDA
 * sorts by speed and NVML by address, all of them. */
struct gpu_device *gpu_visible(const struct nvml_library *nvml, size_t *count, char *error,
                               size_t size);

#endif
