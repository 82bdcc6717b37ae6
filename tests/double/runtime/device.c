/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about devices and versions. */
#include "runtime.h"
#include <string.h>

cudaError_t CUDARTAPI cudaGetDeviceCount(int *count)
{
    cudaError_t error = runtime_begin_bare();
    if (error == cudaSuccess)
        error = CALL(cuDeviceGetCount, count);
    else if (count != NULL)
        *count = 0;
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaDriverGetVersion(int *version)
{
    cudaError_t error = runtime_begin_bare();
    if (error == cudaSuccess)
        error = CALL(cuDriverGetVersion, version);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaRuntimeGetVersion(int *version)
{
    if (version == NULL)
        return runtime_end(cudaErrorInvalidValue);
    *version = RUNTIME_VERSION;
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    cudaError_t error = runtime_begin_bare();
    if (error == cudaSuccess)
        error = CALL(cuDeviceGetAttribute, value, (CUdevice_attribute)attribute, device);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaDeviceGetPCIBusId(char *text, int length, int device)
{
    cudaError_t error = runtime_begin_bare();
    if (error == cudaSuccess)
        error = CALL(cuDeviceGetPCIBusId, text, length, device);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaDeviceGetByPCIBusId(int *device, const char *text)
{
    cudaError_t error = runtime_begin_bare();
    if (error == cudaSuccess)
        error = CALL(cuDeviceGetByPCIBusId, device, text);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    cudaError_t error = runtime_begin_bare();
    if (error == cudaSuccess)
        error = CALL(cuDeviceCanAccessPeer, can, device, peer);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaDeviceSynchronize(void)
{
    FORWARD(cuCtxSynchronize);
}

cudaError_t CUDARTAPI cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    FORWARD(cuCtxGetStreamPriorityRange, least, greatest);
}

static cudaError_t attribute(int *value, CUdevice_attribute which, int device)
{
    return CALL(cuDeviceGetAttribute, value, which, device);
}

/* The fields up to maxGridSize, which lie alike in CUDA 12 and 13, and in 13 some further ones. */
static cudaError_t properties(struct cudaDeviceProp *to, int device)
{
    size_t memory = 0;
    int shared = 0;
    cudaError_t error = CALL(cuDeviceGetName, to->name, sizeof(to->name), device);
    if (error == cudaSuccess)
        error = CALL(cuDeviceTotalMem, &memory, device);
    if (error == cudaSuccess)
        error = CALL(cuDeviceGetUuid, &to->uuid, device);
    to->totalGlobalMem = memory;
    if (error == cudaSuccess)
        error = attribute(&shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device);
    to->sharedMemPerBlock = (size_t)shared;
    const struct {
        int *field;
        CUdevice_attribute which;
    } fields[] = {
        {&to->regsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
        {&to->warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
        {&to->maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
        {&to->maxThreadsDim[0], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X},
        {&to->maxThreadsDim[1], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y},
        {&to->maxThreadsDim[2], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z},
        {&to->maxGridSize[0], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X},
        {&to->maxGridSize[1], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y},
        {&to->maxGridSize[2], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z},
#if RUNTIME_MAJOR == CUDART_VERSION / 1000
        {&to->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
        {&to->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
        {&to->multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
        {&to->pciBusID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID},
        {&to->cooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
#endif
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && error == cudaSuccess; i++)
        error = attribute(fields[i].field, fields[i].which, device);
    return error;
}

static cudaError_t get_properties(struct cudaDeviceProp *prop, int device)
{
    cudaError_t error = runtime_begin_bare();
    if (error == cudaSuccess && prop == NULL)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess) {
#if RUNTIME_MAJOR == CUDART_VERSION / 1000
        memset(prop, 0, sizeof(*prop));
#endif
        error = properties(prop, device);
    }
    return runtime_end(error);
}

/* libcudart.so.12 exports two names, and its headers rename the one to the other. */
#undef cudaGetDeviceProperties
#if RUNTIME_MAJOR == 12 && CUDART_VERSION >= 13000
#pragma GCC visibility push(default)
cudaError_t CUDARTAPI cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device);
#pragma GCC visibility pop
#endif

#if RUNTIME_MAJOR == 12
cudaError_t CUDARTAPI cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device)
{
    return get_properties(prop, device);
}
#endif

cudaError_t CUDARTAPI cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    return get_properties(prop, device);
}
