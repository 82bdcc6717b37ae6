/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: as many as configured, all alike, with the figures of the measured H200. */
#include "driver.h"
#include <stdio.h>
#include <string.h>

#define LOCALITY_DOMAIN_COUNT 149
#define LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT 157

bool device_is(CUdevice device)
{
    return device >= 0 && device < configuration.devices;
}

CUresult CUDAAPI cuDriverGetVersion(int *driverVersion)
{
    struct call call = call_begin_early(__func__);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && driverVersion == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *driverVersion = configuration.version;
    return call_end(&call, result);
}

CUresult CUDAAPI cuDeviceGetCount(int *count)
{
    struct call call = call_begin(__func__);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && count == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *count = configuration.devices;
    return call_end(&call, result);
}

/* Begins a call about one device and judges it. */
static struct call device_call(const char *name, CUdevice device, const void *output)
{
    struct call call = call_begin(name);
    call_add(&call, "device=%d", device);
    if (call.result == CUDA_SUCCESS && output == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS && !device_is(device))
        call.result = CUDA_ERROR_INVALID_DEVICE;
    return call;
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
    struct call call = device_call(__func__, ordinal, device);
    if (call.result == CUDA_SUCCESS)
        *device = ordinal;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuDeviceGetName(char *name, int len, CUdevice dev)
{
    struct call call = device_call(__func__, dev, name);
    if (call.result == CUDA_SUCCESS && len > 0)
        snprintf(name, (size_t)len, "Recording device %d", dev);
    return call_end(&call, call.result);
}

static void device_uuid(CUuuid *uuid, CUdevice device)
{
    memset(uuid, 0, sizeof(*uuid));
    memcpy(uuid->bytes, "recording", 9);
    uuid->bytes[15] = (char)device;
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    struct call call = device_call(__func__, dev, uuid);
    if (call.result == CUDA_SUCCESS)
        device_uuid(uuid, dev);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    struct call call = device_call(__func__, dev, uuid);
    if (call.result == CUDA_SUCCESS)
        device_uuid(uuid, dev);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    struct call call = device_call(__func__, dev, pciBusId);
    if (call.result == CUDA_SUCCESS && len < 13)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        snprintf(pciBusId, (size_t)len, "0000:%02X:00.0", 0x10 + dev);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
    struct call call = call_begin(__func__);
    CUresult result = call.result;
    unsigned int domain = 0, bus = 0, slot = 0;
    if (result == CUDA_SUCCESS && (dev == NULL || pciBusId == NULL))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        if (sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &slot) == 3 && domain == 0 && bus >= 0x10 &&
            device_is((CUdevice)bus - 0x10))
            *dev = (CUdevice)bus - 0x10;
        else
            result = CUDA_ERROR_INVALID_DEVICE;
    }
    return call_end(&call, result);
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    struct call call = device_call(__func__, dev, bytes);
    if (call.result == CUDA_SUCCESS)
        *bytes = (size_t)140 << 30;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    struct call call = device_call(__func__, dev, canAccessPeer);
    if (call.result == CUDA_SUCCESS && !device_is(peerDev))
        call.result = CUDA_ERROR_INVALID_DEVICE;
    if (call.result == CUDA_SUCCESS)
        *canAccessPeer = dev != peerDev;
    return call_end(&call, call.result);
}

/* Attributes that stand apart: the rest of the enumeration answers 0. */
static const struct {
    int attribute, value;
} figures[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 62914560},
};

static CUresult device_attribute(int *value, int attribute, CUdevice device)
{
    *value = 0;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = configuration.multiprocessors;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = configuration.capability_major;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = configuration.capability_minor;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
        *value = configuration.domains;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
        *value = configuration.capability_major >= 9;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *value = 0x10 + device;
        return CUDA_SUCCESS;
    case LOCALITY_DOMAIN_COUNT:
    case LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT:
        /* Measured: error 1 on a driver before 13.4. */
        if (configuration.version < 13040)
            return CUDA_ERROR_INVALID_VALUE;
        *value = attribute == LOCALITY_DOMAIN_COUNT ? domain_count() : domain_multiprocessors();
        return CUDA_SUCCESS;
    default:
        break;
    }
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
        if (figures[i].attribute == attribute)
            *value = figures[i].value;
    return attribute > 0 && attribute < LOCALITY_DOMAIN_COUNT ? CUDA_SUCCESS
                                                              : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    struct call call = device_call(__func__, dev, pi);
    call_add(&call, "attribute=%d", (int)attrib);
    if (call.result == CUDA_SUCCESS) {
        call.result = device_attribute(pi, (int)attrib, dev);
        call_add(&call, "value=%d", *pi);
    }
    return call_end(&call, call.result);
}
