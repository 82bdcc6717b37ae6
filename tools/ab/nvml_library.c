/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

static bool find(void *library, const char *symbol, void *member)
{
    void *function = dlsym(library, symbol);

    /* POSIX lets a function's address travel in a void pointer; ISO C has no cast for it. */
    memcpy(member, &function, sizeof function);
    return function != NULL;
}

/* False when one of those is missing without which nothing can be asked. */
static bool fill(struct nvml_library *nvml)
{
    void *library = nvml->library;

    find(library, "nvmlErrorString", &nvml->error);
    find(library, "nvmlDeviceGetHandleByUUID", &nvml->by_uuid);
    find(library, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", &nvml->parent);
    find(library, "nvmlDeviceGetClockInfo", &nvml->clock);
    find(library, "nvmlDeviceGetMaxClockInfo", &nvml->clock_most);
    find(library, "nvmlDeviceGetTemperature", &nvml->temperature);
    find(library, "nvmlDeviceGetPowerUsage", &nvml->power);
    find(library, "nvmlDeviceGetEnforcedPowerLimit", &nvml->power_limit);
    /* The same function: throttling was renamed to clock events. */
    if (!find(library, "nvmlDeviceGetCurrentClocksEventReasons", &nvml->reasons)) {
        find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml->reasons);
    }
    if (!find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->processes) &&
        !find(library, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml->processes)) {
        nvml->processes_v1 =
            find(library, "nvmlDeviceGetComputeRunningProcesses", &nvml->processes);
    }
    return find(library, "nvmlInit_v2", &nvml->init) &&
           find(library, "nvmlShutdown", &nvml->shutdown) &&
           find(library, "nvmlDeviceGetCount_v2", &nvml->count) &&
           find(library, "nvmlDeviceGetHandleByIndex_v2", &nvml->by_index) &&
           find(library, "nvmlDeviceGetName", &nvml->name) &&
           find(library, "nvmlDeviceGetUUID", &nvml->uuid);
}

bool nvml_library_open(struct nvml_library *nvml, char *error, size_t size)
{
    int result;

    memset(nvml, 0, sizeof *nvml);
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (nvml->library == NULL) {
        snprintf(error, size, "NVML cannot be loaded: %s", dlerror());
        return false;
    }
    if (!fill(nvml)) {
        snprintf(error, size, "this NVML is too old: %s", dlerror());
        dlclose(nvml->library);
        return false;
    }
    result = nvml->init();
    if (result != NVML_LIBRARY_SUCCESS) {
        snprintf(error, size, "NVML does not start: %s", nvml_library_error(nvml, result));
        dlclose(nvml->library);
        return false;
    }
    return true;
}

const char *nvml_library_error(const struct nvml_library *nvml, int result)
{
    const char *text = nvml->error == NULL ? NULL : nvml->error(result);

    return text == NULL ? "unknown error" : text;
}

bool nvml_library_pids(const struct nvml_library *nvml, nvml_library_device device, unsigned **pids,
                       size_t *count)
{
    size_t element = nvml->processes_v1 ? sizeof(struct nvml_library_process_v1)
                                        : sizeof(struct nvml_library_process_v2);
    unsigned room = 64, found = 0;
    char *processes;
    int result;

    *pids = NULL;
    *count = 0;
    if (nvml->processes == NULL) {
        return false;
    }
    /* More may have started between two calls: room for twice as many as it said, but not for
     * ever. */
    for (int attempt = 0;; attempt++) {
        processes = memory_allocate(room, element);
        found = room;
        result = nvml->processes(device, &found, processes);
        if (result != NVML_LIBRARY_INSUFFICIENT_SIZE || attempt == 4) {
            break;
        }
        free(processes);
        room = (found > room ? found : room) * 2;
    }
    if (result != NVML_LIBRARY_SUCCESS || found > room) {
        free(processes);
        return false;
    }
    if (found > 0) {
        *pids = memory_allocate(found, sizeof **pids);
        *count = found;
        for (size_t i = 0; i < found; i++) {
            /* The id comes first in every version. */
            memcpy(&(*pids)[i], processes + i * element, sizeof(unsigned));
        }
    }
    free(processes);
    return true;
}

void nvml_library_close(struct nvml_library *nvml)
{
    if (nvml->library != NULL) {
        nvml->shutdown();
        dlclose(nvml->library);
        nvml->library = NULL;
    }
}
