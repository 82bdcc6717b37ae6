/* SPDX-License-Identifier: Apache-2.0 */

/* See nvml_double.h. Compiled also with NVML_DOUBLE_OLD as a library of about 2015, which lists
 * processes by its first version only and knows neither MIG nor the reasons for clocks; and with
 * NVML_DOUBLE_HOT, which has a GPU that is slowed down by its temperature, for tests that cannot
 * tell it so. */

#include "nvml_double.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "nvml_library.h"

#define EXPORT __attribute__((visibility("default")))

/* Clang and gcc alike want a prototype before a function that others call. */
#define QUESTION(name, ...)                                                                        \
    EXPORT int name(__VA_ARGS__);                                                                  \
    EXPORT int name(__VA_ARGS__)

extern struct nvml_double nvml_double;
#ifdef NVML_DOUBLE_HOT
EXPORT struct nvml_double nvml_double = {.gpu_count = 1,
                                         .gpus = {{.name = "NVIDIA Double",
                                                   .uuid = "GPU-0",
                                                   .clock = 1000,
                                                   .clock_most = 2000,
                                                   .temperature = 90,
                                                   .power = 100000,
                                                   .power_limit = 200000,
                                                   .reasons = 0x40}}};
#else
EXPORT struct nvml_double nvml_double;
#endif

enum {
    INVALID_ARGUMENT = 2,
    NOT_FOUND = 6,
};

/* A device handle is the address of its GPU, that of a part the address one byte further. */
static struct nvml_double_gpu *gpu_of(const void *device)
{
    size_t offset = (size_t)((const char *)device - (const char *)nvml_double.gpus);

    return &nvml_double.gpus[offset / sizeof(struct nvml_double_gpu)];
}

static int is_part(const void *device)
{
    return (const char *)device != (const char *)gpu_of(device);
}

static int answer(void *device, unsigned value, unsigned *result)
{
    struct nvml_double_gpu *gpu = gpu_of(device);

    gpu->asked++;
    if (gpu->fails != 0) {
        return gpu->fails;
    }
    *result = value;
    return NVML_LIBRARY_SUCCESS;
}

static int answer_text(const char *text, char *buffer, unsigned size)
{
    if (strlen(text) >= size) {
        return NVML_LIBRARY_INSUFFICIENT_SIZE;
    }
    snprintf(buffer, size, "%s", text);
    return NVML_LIBRARY_SUCCESS;
}

QUESTION(nvmlInit_v2, void)
{
    if (nvml_double.init_fails != 0) {
        return nvml_double.init_fails;
    }
    nvml_double.started++;
    return NVML_LIBRARY_SUCCESS;
}

QUESTION(nvmlShutdown, void)
{
    nvml_double.started--;
    return NVML_LIBRARY_SUCCESS;
}

EXPORT const char *nvmlErrorString(int result);
EXPORT const char *nvmlErrorString(int result)
{
    return result == 9 ? "Driver Not Loaded" : "Unknown Error";
}

QUESTION(nvmlDeviceGetCount_v2, unsigned *count)
{
    *count = nvml_double.gpu_count;
    return NVML_LIBRARY_SUCCESS;
}

QUESTION(nvmlDeviceGetHandleByIndex_v2, unsigned index, void **device)
{
    if (index >= nvml_double.gpu_count) {
        return INVALID_ARGUMENT;
    }
    *device = &nvml_double.gpus[index];
    return NVML_LIBRARY_SUCCESS;
}

QUESTION(nvmlDeviceGetName, void *device, char *name, unsigned size)
{
    return answer_text(gpu_of(device)->name, name, size);
}

QUESTION(nvmlDeviceGetUUID, void *device, char *uuid, unsigned size)
{
    return answer_text(gpu_of(device)->uuid, uuid, size);
}

QUESTION(nvmlDeviceGetClockInfo, void *device, int type, unsigned *clock)
{
    return type == NVML_LIBRARY_CLOCK_SM && !is_part(device)
               ? answer(device, gpu_of(device)->clock, clock)
               : INVALID_ARGUMENT;
}

QUESTION(nvmlDeviceGetMaxClockInfo, void *device, int type, unsigned *clock)
{
    return type == NVML_LIBRARY_CLOCK_SM ? answer(device, gpu_of(device)->clock_most, clock)
                                         : INVALID_ARGUMENT;
}

QUESTION(nvmlDeviceGetTemperature, void *device, int sensor, unsigned *temperature)
{
    return sensor == NVML_LIBRARY_TEMPERATURE_GPU
               ? answer(device, gpu_of(device)->temperature, temperature)
               : INVALID_ARGUMENT;
}

QUESTION(nvmlDeviceGetPowerUsage, void *device, unsigned *power)
{
    return answer(device, gpu_of(device)->power, power);
}

QUESTION(nvmlDeviceGetEnforcedPowerLimit, void *device, unsigned *limit)
{
    return answer(device, gpu_of(device)->power_limit, limit);
}

/* The pids of a device, or of its part, into structures of this size. */
static int list_processes(void *device, unsigned *count, void *processes, size_t size)
{
    struct nvml_double_gpu *gpu = gpu_of(device);
    unsigned there = is_part(device) ? gpu->mig_pid_count : gpu->pid_count;
    const unsigned *pids = is_part(device) ? gpu->mig_pids : gpu->pids;
    unsigned room = *count;

    gpu->asked++;
    if (gpu->fails != 0 || gpu->fails_processes != 0) {
        return gpu->fails != 0 ? gpu->fails : gpu->fails_processes;
    }
    *count = there;
    if (there > room) {
        return NVML_LIBRARY_INSUFFICIENT_SIZE;
    }
    memset(processes, 0xee, there * size);
    for (unsigned i = 0; i < there; i++) {
        memcpy((char *)processes + i * size, &pids[i], sizeof pids[i]);
    }
    return NVML_LIBRARY_SUCCESS;
}

#ifdef NVML_DOUBLE_OLD

QUESTION(nvmlDeviceGetComputeRunningProcesses, void *device, unsigned *count, void *processes)
{
    return list_processes(device, count, processes, sizeof(struct nvml_library_process_v1));
}

#else

QUESTION(nvmlDeviceGetComputeRunningProcesses, void *device, unsigned *count, void *processes)
{
    (void)device, (void)count, (void)processes;
    return INVALID_ARGUMENT; /* the later version is to be asked */
}

QUESTION(nvmlDeviceGetComputeRunningProcesses_v3, void *device, unsigned *count, void *processes)
{
    return list_processes(device, count, processes, sizeof(struct nvml_library_process_v2));
}

QUESTION(nvmlDeviceGetCurrentClocksEventReasons, void *device, unsigned long long *reasons)
{
    unsigned value;
    int result = answer(device, (unsigned)gpu_of(device)->reasons, &value);

    if (result == NVML_LIBRARY_SUCCESS) {
        *reasons = value;
    }
    return result;
}

QUESTION(nvmlDeviceGetHandleByUUID, const char *uuid, void **device)
{
    for (unsigned i = 0; i < nvml_double.gpu_count; i++) {
        struct nvml_double_gpu *gpu = &nvml_double.gpus[i];

        if (strcmp(gpu->uuid, uuid) == 0) {
            *device = gpu;
            return NVML_LIBRARY_SUCCESS;
        }
        if (gpu->mig != NULL && strcmp(gpu->mig, uuid) == 0) {
            *device = (char *)gpu + 1;
            return NVML_LIBRARY_SUCCESS;
        }
    }
    return NOT_FOUND;
}

QUESTION(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, void *part, void **device)
{
    *device = gpu_of(part);
    return NVML_LIBRARY_SUCCESS;
}

#endif
