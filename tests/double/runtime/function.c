/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of kernels, and how many blocks of them fit. */
#include "runtime.h"
#include <string.h>

/* Begins a call about the kernel of a host function. */
static cudaError_t begin(const void *host, CUkernel *kernel)
{
    cudaError_t error = runtime_begin();
    return error == cudaSuccess ? registry_kernel(host, kernel) : error;
}

cudaError_t CUDARTAPI cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
    CUkernel kernel;
    cudaError_t error = begin(func, &kernel);
    if (error == cudaSuccess)
        error =
            CALL(cuKernelSetAttribute, (CUfunction_attribute)attr, value, kernel, runtime_device());
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache cacheConfig)
{
    CUkernel kernel;
    cudaError_t error = begin(func, &kernel);
    if (error == cudaSuccess)
        error = CALL(cuKernelSetCacheConfig, kernel, (CUfunc_cache)cacheConfig, runtime_device());
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaFuncGetName(const char **name, const void *func)
{
    CUkernel kernel;
    cudaError_t error = begin(func, &kernel);
    if (error == cudaSuccess)
        error = CALL(cuKernelGetName, name, kernel);
    return runtime_end(error);
}

static cudaError_t attributes(struct cudaFuncAttributes *to, CUkernel kernel)
{
    int values[16] = {0};
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < 16 && error == cudaSuccess; i++)
        error = CALL(cuKernelGetAttribute, &values[i], (CUfunction_attribute)i, kernel,
                     runtime_device());
    memset(to, 0, sizeof(*to));
    to->maxThreadsPerBlock = values[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
    to->sharedSizeBytes = (size_t)values[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
    to->constSizeBytes = (size_t)values[CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES];
    to->localSizeBytes = (size_t)values[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES];
    to->numRegs = values[CU_FUNC_ATTRIBUTE_NUM_REGS];
    to->ptxVersion = values[CU_FUNC_ATTRIBUTE_PTX_VERSION];
    to->binaryVersion = values[CU_FUNC_ATTRIBUTE_BINARY_VERSION];
    to->maxDynamicSharedSizeBytes = values[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES];
    to->preferredShmemCarveout = values[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT];
    to->clusterDimMustBeSet = values[CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET];
    to->requiredClusterWidth = values[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
    to->requiredClusterHeight = values[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT];
    to->requiredClusterDepth = values[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH];
    to->nonPortableClusterSizeAllowed = values[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED];
    return error;
}

cudaError_t CUDARTAPI cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
    CUkernel kernel;
    cudaError_t error = begin(func, &kernel);
    if (error == cudaSuccess && attr == NULL)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = attributes(attr, kernel);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *numBlocks, const void *func, int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
    CUkernel kernel;
    cudaError_t error = begin(func, &kernel);
    if (error == cudaSuccess)
        error = CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, numBlocks,
                     (CUfunction)(void *)kernel, blockSize, dynamicSMemSize, flags);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks,
                                                                    const void *func, int blockSize,
                                                                    size_t dynamicSMemSize)
{
    CUkernel kernel;
    cudaError_t error = begin(func, &kernel);
    if (error == cudaSuccess)
        error = CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, numBlocks,
                     (CUfunction)(void *)kernel, blockSize, dynamicSMemSize, 0);
    return runtime_end(error);
}

static CUlaunchConfig convert(const cudaLaunchConfig_t *from)
{
    CUlaunchConfig to;
    memset(&to, 0, sizeof(to));
    to.gridDimX = from->gridDim.x;
    to.gridDimY = from->gridDim.y;
    to.gridDimZ = from->gridDim.z;
    to.blockDimX = from->blockDim.x;
    to.blockDimY = from->blockDim.y;
    to.blockDimZ = from->blockDim.z;
    to.sharedMemBytes = (unsigned int)from->dynamicSmemBytes;
    to.hStream = from->stream;
    to.attrs = (CUlaunchAttribute *)(void *)from->attrs;
    to.numAttrs = from->numAttrs;
    return to;
}

cudaError_t CUDARTAPI cudaOccupancyMaxPotentialClusterSize(int *clusterSize, const void *func,
                                                           const cudaLaunchConfig_t *launchConfig)
{
    CUkernel kernel;
    cudaError_t error = begin(func, &kernel);
    if (error == cudaSuccess && launchConfig == NULL)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess) {
        CUlaunchConfig config = convert(launchConfig);
        error = CALL(cuOccupancyMaxPotentialClusterSize, clusterSize, (CUfunction)(void *)kernel,
                     &config);
    }
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaOccupancyMaxActiveClusters(int *numClusters, const void *func,
                                                     const cudaLaunchConfig_t *launchConfig)
{
    CUkernel kernel;
    cudaError_t error = begin(func, &kernel);
    if (error == cudaSuccess && launchConfig == NULL)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess) {
        CUlaunchConfig config = convert(launchConfig);
        error =
            CALL(cuOccupancyMaxActiveClusters, numClusters, (CUfunction)(void *)kernel, &config);
    }
    return runtime_end(error);
}
