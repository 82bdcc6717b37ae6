/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread's device, context and last error. */
#include "runtime.h"
#include <stdatomic.h>
#include <string.h>

/* A reset of a device makes every thread look for its context again. */
static atomic_uint generation = 1;

static __thread int device;
static __thread unsigned int context_generation;
static __thread cudaError_t last_error;

int runtime_device(void)
{
    return device;
}

cudaError_t runtime_begin_bare(void)
{
    return lookup_driver();
}

static cudaError_t use_primary(void)
{
    CUcontext context;
    cudaError_t error = CALL(cuDevicePrimaryCtxRetain, &context, device);
    if (error == cudaSuccess)
        error = CALL(cuCtxSetCurrent, context);
    return error;
}

cudaError_t runtime_begin(void)
{
    cudaError_t error = lookup_driver();
    unsigned int now = atomic_load_explicit(&generation, memory_order_relaxed);
    if (error != cudaSuccess || context_generation == now)
        return error;
    /* A context that the application made current stays. */
    CUcontext current = NULL;
    error = CALL(cuCtxGetCurrent, &current);
    if (error == cudaSuccess && current == NULL)
        error = use_primary();
    if (error == cudaSuccess)
        context_generation = now;
    return error;
}

cudaError_t runtime_end(cudaError_t error)
{
    if (error != cudaSuccess && error != cudaErrorNotReady)
        last_error = error;
    return error;
}

cudaError_t CUDARTAPI cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t CUDARTAPI cudaPeekAtLastError(void)
{
    return last_error;
}

const char *CUDARTAPI cudaGetErrorName(cudaError_t error)
{
    const char *name = NULL;
    if (lookup_driver() == cudaSuccess && driver.cuGetErrorName != NULL)
        driver.cuGetErrorName((CUresult)error, &name);
    return name != NULL ? name : "unrecognized error code";
}

const char *CUDARTAPI cudaGetErrorString(cudaError_t error)
{
    return cudaGetErrorName(error);
}

cudaError_t CUDARTAPI cudaSetDevice(int ordinal)
{
    int count = 0;
    cudaError_t error = runtime_begin_bare();
    if (error == cudaSuccess)
        error = CALL(cuDeviceGetCount, &count);
    if (error == cudaSuccess && (ordinal < 0 || ordinal >= count))
        error = cudaErrorInvalidDevice;
    if (error == cudaSuccess) {
        device = ordinal;
        /* Documented since CUDA 12: it initialises the device and makes its context current. */
        error = use_primary();
    }
    if (error == cudaSuccess)
        context_generation = atomic_load(&generation);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaGetDevice(int *ordinal)
{
    if (ordinal == NULL)
        return runtime_end(cudaErrorInvalidValue);
    *ordinal = device;
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaInitDevice(int ordinal, unsigned int deviceFlags, unsigned int flags)
{
    CUcontext context;
    (void)deviceFlags;
    (void)flags;
    cudaError_t error = runtime_begin_bare();
    if (error == cudaSuccess)
        error = CALL(cuDevicePrimaryCtxRetain, &context, ordinal);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaDeviceReset(void)
{
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess)
        error = CALL(cuDevicePrimaryCtxReset, device);
    if (error == cudaSuccess)
        error = CALL(cuCtxSetCurrent, NULL);
    atomic_fetch_add(&generation, 1);
    return runtime_end(error);
}
