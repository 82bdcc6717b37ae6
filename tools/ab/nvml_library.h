/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_NVML_LIBRARY_H
#define CUDAPOLICY_TOOLS_AB_NVML_LIBRARY_H

/*
 * The few functions of the NVIDIA Management Library that tell how a GPU fares, loaded at run time:
 * its header need not be there to build, nor the library to run. Values and layouts are those of
 * the public nvml.h; a test compares them with it where that header is.
 */

#include <stdbool.h>
#include <stddef.h>

enum {
    NVML_LIBRARY_SUCCESS = 0,
    NVML_LIBRARY_INSUFFICIENT_SIZE = 7,
    NVML_LIBRARY_GPU_IS_LOST = 15,

    NVML_LIBRARY_CLOCK_SM = 1,
    NVML_LIBRARY_TEMPERATURE_GPU = 0,
};

/* Why a GPU does not run at its highest clock. */
enum {
    NVML_LIBRARY_GPU_IDLE = 0x1,
    NVML_LIBRARY_APPLICATIONS_CLOCKS = 0x2, /* as somebody set them: asked for */
    NVML_LIBRARY_SW_POWER_CAP = 0x4,
    NVML_LIBRARY_HW_SLOWDOWN = 0x8, /* also set with each of the other two of the hardware */
    NVML_LIBRARY_SW_THERMAL = 0x20,
    NVML_LIBRARY_HW_THERMAL = 0x40,
    NVML_LIBRARY_HW_POWER_BRAKE = 0x80,
};

typedef struct nvml_library_device *nvml_library_device;

/* Of the first version of the function that lists processes, and of its later ones. */
struct nvml_library_process_v1 {
    unsigned pid;
    unsigned long long memory;
};
struct nvml_library_process_v2 {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};

/* Functions that an older library lacks are NULL; those before "optional" are always there. */
struct nvml_library {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*by_index)(unsigned index, nvml_library_device *device);
    int (*name)(nvml_library_device device, char *name, unsigned size);
    int (*uuid)(nvml_library_device device, char *uuid, unsigned size);
    /* optional */
    const char *(*error)(int result);
    int (*by_uuid)(const char *uuid, nvml_library_device *device);
    int (*parent)(nvml_library_device mig, nvml_library_device *device);
    int (*clock)(nvml_library_device device, int type, unsigned *megahertz);
    int (*clock_most)(nvml_library_device device, int type, unsigned *megahertz);
    int (*reasons)(nvml_library_device device, unsigned long long *reasons);
    int (*temperature)(nvml_library_device device, int sensor, unsigned *celsius);
    int (*power)(nvml_library_device device, unsigned *milliwatts);
    int (*power_limit)(nvml_library_device device, unsigned *milliwatts);
    int (*processes)(nvml_library_device device, unsigned *count, void *processes);
    bool processes_v1; /* it fills in structures of the first version */
};

/* Loads libnvidia-ml.so.1 and initialises it. False with the reason in error[size]. */
bool nvml_library_open(struct nvml_library *nvml, char *error, size_t size);

/* What a result means, in the library's words. */
const char *nvml_library_error(const struct nvml_library *nvml, int result);

/* Processes that compute on a device: ids, to be freed; NULL and 0 where there are none. False
 * when the library cannot say, e.g. for lack of permission. */
bool nvml_library_pids(const struct nvml_library *nvml, nvml_library_device device, unsigned **pids,
                       size_t *count);

void nvml_library_close(struct nvml_library *nvml);

#endif
