/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches. Measured: the runtime passes a CUkernel cast to CUfunction, and the calls go through
 * the pointers of its own look-ups, plain or per-thread by the form that the program was compiled
 * to.
 */
#include "runtime.h"
#include <string.h>

#define CONFIGURATIONS_MAX 32

struct configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};

static __thread struct configuration configurations[CONFIGURATIONS_MAX];
static __thread unsigned int configuration_count;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     struct CUstream_st *stream)
{
    if (configuration_count == CONFIGURATIONS_MAX)
        return (unsigned)cudaErrorInvalidConfiguration;
    struct configuration *top = &configurations[configuration_count++];
    top->grid = grid;
    top->block = block;
    top->shared = shared;
    top->stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    if (configuration_count == 0)
        return cudaErrorMissingConfiguration;
    const struct configuration *top = &configurations[--configuration_count];
    *grid = top->grid;
    *block = top->block;
    *shared = top->shared;
    *(cudaStream_t *)stream = top->stream;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess)
        error = registry_kernel(host, kernel);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr)
{
    return __cudaGetKernel(kernelPtr, entryFuncAddr);
}

cudaError_t CUDARTAPI cudaGetFuncBySymbol(cudaFunction_t *functionPtr, const void *symbolPtr)
{
    CUkernel kernel;
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess)
        error = registry_kernel(symbolPtr, &kernel);
    if (error == cudaSuccess)
        error = CALL(cuKernelGetFunction, functionPtr, kernel);
    return runtime_end(error);
}

#define DIMENSIONS                                                                                 \
    (CUfunction)(void *) kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,                \
        (unsigned int)shared, stream

static cudaError_t launch(CUkernel kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                          cudaStream_t stream, bool per_thread)
{
    return per_thread ? CALL(cuLaunchKernel_ptsz, DIMENSIONS, arguments, NULL)
                      : CALL(cuLaunchKernel, DIMENSIONS, arguments, NULL);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream)
{
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess && kernel == NULL)
        error = cudaErrorInvalidDeviceFunction;
    if (error == cudaSuccess)
        error = launch(kernel, grid, block, arguments, shared, stream, false);
    return runtime_end(error);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                                    size_t shared, cudaStream_t stream)
{
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess && kernel == NULL)
        error = cudaErrorInvalidDeviceFunction;
    if (error == cudaSuccess)
        error = launch(kernel, grid, block, arguments, shared, stream, true);
    return runtime_end(error);
}

static cudaError_t launch_host(const void *host, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream, bool per_thread)
{
    CUkernel kernel;
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess)
        error = registry_kernel(host, &kernel);
    if (error == cudaSuccess)
        error = launch(kernel, grid, block, arguments, shared, stream, per_thread);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args,
                                       size_t sharedMem, cudaStream_t stream)
{
    return launch_host(func, gridDim, blockDim, args, sharedMem, stream, false);
}

cudaError_t CUDARTAPI cudaLaunchKernel_ptsz(const void *func, dim3 gridDim, dim3 blockDim,
                                            void **args, size_t sharedMem, cudaStream_t stream)
{
    return launch_host(func, gridDim, blockDim, args, sharedMem, stream, true);
}

static cudaError_t launch_cooperative(const void *host, dim3 grid, dim3 block, void **arguments,
                                      size_t shared, cudaStream_t stream, bool per_thread)
{
    CUkernel kernel;
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess)
        error = registry_kernel(host, &kernel);
    if (error == cudaSuccess)
        error = per_thread ? CALL(cuLaunchCooperativeKernel_ptsz, DIMENSIONS, arguments)
                           : CALL(cuLaunchCooperativeKernel, DIMENSIONS, arguments);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim,
                                                  void **args, size_t sharedMem,
                                                  cudaStream_t stream)
{
    return launch_cooperative(func, gridDim, blockDim, args, sharedMem, stream, false);
}

cudaError_t CUDARTAPI cudaLaunchCooperativeKernel_ptsz(const void *func, dim3 gridDim,
                                                       dim3 blockDim, void **args, size_t sharedMem,
                                                       cudaStream_t stream)
{
    return launch_cooperative(func, gridDim, blockDim, args, sharedMem, stream, true);
}

static cudaError_t launch_ex(const cudaLaunchConfig_t *from, const void *host, void **arguments,
                             bool per_thread)
{
    CUkernel kernel;
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess && from == NULL)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = registry_kernel(host, &kernel);
    if (error != cudaSuccess)
        return runtime_end(error);
    CUlaunchConfig config;
    memset(&config, 0, sizeof(config));
    config.gridDimX = from->gridDim.x;
    config.gridDimY = from->gridDim.y;
    config.gridDimZ = from->gridDim.z;
    config.blockDimX = from->blockDim.x;
    config.blockDimY = from->blockDim.y;
    config.blockDimZ = from->blockDim.z;
    config.sharedMemBytes = (unsigned int)from->dynamicSmemBytes;
    config.hStream = from->stream;
    /* The two structures of an attribute lie alike. */
    config.attrs = (CUlaunchAttribute *)(void *)from->attrs;
    config.numAttrs = from->numAttrs;
    CUfunction function = (CUfunction)(void *)kernel;
    /* Assumed: more than the driver's 32 bits can hold is refused, not cut. */
    if (from->dynamicSmemBytes > 0xffffffffu)
        return runtime_end(cudaErrorInvalidValue);
    error = per_thread ? CALL(cuLaunchKernelEx_ptsz, &config, function, arguments, NULL)
                       : CALL(cuLaunchKernelEx, &config, function, arguments, NULL);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func,
                                          void **args)
{
    return launch_ex(config, func, args, false);
}

cudaError_t CUDARTAPI cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *func,
                                               void **args)
{
    return launch_ex(config, func, args, true);
}

cudaError_t CUDARTAPI cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
    FORWARD(cuLaunchHostFunc, stream, fn, userData);
}

cudaError_t CUDARTAPI cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
    FORWARD(cuLaunchHostFunc_ptsz, stream, fn, userData);
}
