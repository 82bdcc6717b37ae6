/* SPDX-License-Identifier: Apache-2.0 */
#include "devices.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/driver.h"
#include "memory.h"

/* Functions of the driver, by the symbols under which it exports this version of them. */
struct driver {
    CUresult (*initialise)(unsigned flags);
    CUresult (*version)(int *version);
    CUresult (*count)(int *count);
    CUresult (*get)(CUdevice *device, int index);
    CUresult (*name)(char *name, int size, CUdevice device);
    CUresult (*uuid)(CUuuid *uuid, CUdevice device);
    CUresult (*pci)(char *address, int size, CUdevice device);
    CUresult (*attribute)(int *value, CUdevice_attribute attribute, CUdevice device);
    CUresult (*error)(CUresult result, const char **text);
};

static bool find(void *library, const char *symbol, void *member)
{
    void *function = dlsym(library, symbol);

    /* POSIX lets a function's address travel in a void pointer; ISO C has no cast for it. */
    memcpy(member, &function, sizeof function);
    return function != NULL;
}

static bool fill(void *library, struct driver *driver)
{
    return find(library, "cuInit", &driver->initialise) &&
           find(library, "cuDriverGetVersion", &driver->version) &&
           find(library, "cuDeviceGetCount", &driver->count) &&
           find(library, "cuDeviceGet", &driver->get) &&
           find(library, "cuDeviceGetName", &driver->name) &&
           find(library, "cuDeviceGetPCIBusId", &driver->pci) &&
           find(library, "cuDeviceGetAttribute", &driver->attribute) &&
           find(library, "cuGetErrorString", &driver->error) &&
           /* The second version tells the parts of a divided GPU apart; it came with CUDA 11.4. */
           (find(library, "cuDeviceGetUuid_v2", &driver->uuid) ||
            find(library, "cuDeviceGetUuid", &driver->uuid));
}

/* For the parts of the library that ask the driver themselves. Before CUDA 12.0 there is no second
 * version of that function, and nothing that they would find with it. */
static void fill_library(void *library)
{
    cuda_get_proc_address resolve;

    if (find(library, "cuGetProcAddress_v2", &resolve)) {
        cuda_driver_fill(&cuda_driver, resolve);
    }
}

static int attribute(const struct driver *driver, CUdevice device, int number, int otherwise)
{
    int value;

    if (driver->attribute(&value, (CUdevice_attribute)number, device) != CUDA_SUCCESS) {
        return otherwise;
    }
    return value;
}

static void format_uuid(const CUuuid *uuid, char *text, size_t size)
{
    const uint8_t *byte = (const uint8_t *)uuid->bytes;

    snprintf(text, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             byte[0], byte[1], byte[2], byte[3], byte[4], byte[5], byte[6], byte[7], byte[8],
             byte[9], byte[10], byte[11], byte[12], byte[13], byte[14], byte[15]);
}

static void read_device(const struct driver *driver, int index, struct device *device)
{
    CUdevice handle;
    CUuuid uuid;

    *device = (struct device){.name = "?", .uuid = "?", .pci = "?"};
    if (driver->get(&handle, index) != CUDA_SUCCESS) {
        return;
    }
    driver->name(device->name, sizeof device->name, handle);
    driver->pci(device->pci, sizeof device->pci, handle);
    if (driver->uuid(&uuid, handle) == CUDA_SUCCESS) {
        format_uuid(&uuid, device->uuid, sizeof device->uuid);
    }
    device->compute_major =
        attribute(driver, handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    device->compute_minor =
        attribute(driver, handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    device->multiprocessors =
        attribute(driver, handle, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
    /* Drivers before CUDA 12 know neither of these. */
    device->mem_sync_domains =
        attribute(driver, handle, CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, 1);
    device->clusters = attribute(driver, handle, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0) != 0;
}

static const char *error_text(const struct driver *driver, CUresult result)
{
    const char *text;

    return driver->error(result, &text) == CUDA_SUCCESS && text != NULL ? text : "unknown error";
}

void devices_read(struct devices *devices)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    struct driver driver;
    CUresult result;
    int count = 0;

    *devices = (struct devices){0};
    if (library == NULL) {
        devices->absent = memory_format("no CUDA driver: %s", dlerror());
        return;
    }
    if (!fill(library, &driver)) {
        devices->absent = memory_copy("the CUDA driver is older than any that is supported");
        return;
    }
    driver.version(&devices->driver_version);
    result = driver.initialise(0);
    if (result == CUDA_SUCCESS) {
        result = driver.count(&count);
    }
    if (result != CUDA_SUCCESS || count <= 0) {
        devices->absent = memory_format("no GPU: %s (error %d of the driver)",
                                        result == CUDA_SUCCESS ? "the driver counts none"
                                                               : error_text(&driver, result),
                                        (int)result);
        return;
    }
    fill_library(library);
    devices->list = memory_allocate((size_t)count, sizeof *devices->list);
    devices->count = (size_t)count;
    for (int i = 0; i < count; i++) {
        read_device(&driver, i, &devices->list[i]);
    }
    /* The driver stays loaded: taking it out of a process that initialised it is not supported. */
}

void devices_release(struct devices *devices)
{
    free(devices->absent);
    free(devices->list);
    *devices = (struct devices){0};
}
