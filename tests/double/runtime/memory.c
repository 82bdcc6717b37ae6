/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: each call is one driver call, for copies the one of their direction. */
#include "runtime.h"
#include <string.h>

#define DEVICE(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

cudaError_t CUDARTAPI cudaMalloc(void **devPtr, size_t size)
{
    FORWARD(cuMemAlloc, (CUdeviceptr *)(void *)devPtr, size);
}

/* Measured: cudaFree(0) reaches the driver as cuMemFree(0). */
cudaError_t CUDARTAPI cudaFree(void *devPtr)
{
    FORWARD(cuMemFree, DEVICE(devPtr));
}

cudaError_t CUDARTAPI cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
    FORWARD(cuMemAllocManaged, (CUdeviceptr *)(void *)devPtr, size, flags);
}

cudaError_t CUDARTAPI cudaMallocHost(void **ptr, size_t size)
{
    FORWARD(cuMemHostAlloc, ptr, size, 0);
}

cudaError_t CUDARTAPI cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
    FORWARD(cuMemHostAlloc, pHost, size, flags);
}

cudaError_t CUDARTAPI cudaFreeHost(void *ptr)
{
    FORWARD(cuMemFreeHost, ptr);
}

cudaError_t CUDARTAPI cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
    FORWARD(cuMemHostRegister, ptr, size, flags);
}

cudaError_t CUDARTAPI cudaHostUnregister(void *ptr)
{
    FORWARD(cuMemHostUnregister, ptr);
}

cudaError_t CUDARTAPI cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags)
{
    FORWARD(cuMemHostGetDevicePointer, (CUdeviceptr *)(void *)pDevice, pHost, flags);
}

cudaError_t CUDARTAPI cudaMemGetInfo(size_t *free_out, size_t *total)
{
    FORWARD(cuMemGetInfo, free_out, total);
}

cudaError_t CUDARTAPI cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
    FORWARD(cuMemAllocAsync, (CUdeviceptr *)(void *)devPtr, size, hStream);
}

cudaError_t CUDARTAPI cudaMallocAsync_ptsz(void **devPtr, size_t size, cudaStream_t hStream)
{
    FORWARD(cuMemAllocAsync_ptsz, (CUdeviceptr *)(void *)devPtr, size, hStream);
}

cudaError_t CUDARTAPI cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
    FORWARD(cuMemFreeAsync, DEVICE(devPtr), hStream);
}

cudaError_t CUDARTAPI cudaFreeAsync_ptsz(void *devPtr, cudaStream_t hStream)
{
    FORWARD(cuMemFreeAsync_ptsz, DEVICE(devPtr), hStream);
}

cudaError_t CUDARTAPI cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                               const void *ptr)
{
    unsigned int type = 0;
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess && attributes == NULL)
        error = cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return runtime_end(error);
    memset(attributes, 0, sizeof(*attributes));
    /* Documented: memory unknown to CUDA is unregistered, and no error. */
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = -1;
    attributes->hostPointer = (void *)(uintptr_t)ptr;
    if (CALL(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, DEVICE(ptr)) ==
        cudaSuccess) {
        attributes->type = type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
        attributes->device = runtime_device();
        attributes->devicePointer = (void *)(uintptr_t)ptr;
    }
    return runtime_end(cudaSuccess);
}

/* The driver function of a direction. */
#define COPY(suffix, to, from, count)                                                              \
    switch (kind) {                                                                                \
    case cudaMemcpyHostToDevice:                                                                   \
        FORWARD(cuMemcpyHtoD##suffix, DEVICE(to), from, count);                                    \
    case cudaMemcpyDeviceToHost:                                                                   \
        FORWARD(cuMemcpyDtoH##suffix, to, DEVICE(from), count);                                    \
    case cudaMemcpyDeviceToDevice:                                                                 \
        FORWARD(cuMemcpyDtoD##suffix, DEVICE(to), DEVICE(from), count);                            \
    case cudaMemcpyHostToHost:                                                                     \
    case cudaMemcpyDefault:                                                                        \
        FORWARD(cuMemcpy##suffix, DEVICE(to), DEVICE(from), count);                                \
    default:                                                                                       \
        return runtime_end(cudaErrorInvalidMemcpyDirection);                                       \
    }

#define COPY_ASYNC(suffix, to, from, count)                                                        \
    switch (kind) {                                                                                \
    case cudaMemcpyHostToDevice:                                                                   \
        FORWARD(cuMemcpyHtoDAsync##suffix, DEVICE(to), from, count, stream);                       \
    case cudaMemcpyDeviceToHost:                                                                   \
        FORWARD(cuMemcpyDtoHAsync##suffix, to, DEVICE(from), count, stream);                       \
    case cudaMemcpyDeviceToDevice:                                                                 \
        FORWARD(cuMemcpyDtoDAsync##suffix, DEVICE(to), DEVICE(from), count, stream);               \
    case cudaMemcpyHostToHost:                                                                     \
    case cudaMemcpyDefault:                                                                        \
        FORWARD(cuMemcpyAsync##suffix, DEVICE(to), DEVICE(from), count, stream);                   \
    default:                                                                                       \
        return runtime_end(cudaErrorInvalidMemcpyDirection);                                       \
    }

cudaError_t CUDARTAPI cudaMemcpy(void *dst, const void *src, size_t count,
                                 enum cudaMemcpyKind kind){COPY(, dst, src, count)}

cudaError_t CUDARTAPI cudaMemcpy_ptds(void *dst, const void *src, size_t count,
                                      enum cudaMemcpyKind kind){COPY(_ptds, dst, src, count)}

cudaError_t CUDARTAPI
    cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                    cudaStream_t stream){COPY_ASYNC(, dst, src, count)}

cudaError_t CUDARTAPI
    cudaMemcpyAsync_ptsz(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                         cudaStream_t stream){COPY_ASYNC(_ptsz, dst, src, count)}

cudaError_t CUDARTAPI cudaMemset(void *devPtr, int value, size_t count)
{
    FORWARD(cuMemsetD8, DEVICE(devPtr), (unsigned char)value, count);
}

cudaError_t CUDARTAPI cudaMemset_ptds(void *devPtr, int value, size_t count)
{
    FORWARD(cuMemsetD8_ptds, DEVICE(devPtr), (unsigned char)value, count);
}

cudaError_t CUDARTAPI cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
    FORWARD(cuMemsetD8Async, DEVICE(devPtr), (unsigned char)value, count, stream);
}

cudaError_t CUDARTAPI cudaMemsetAsync_ptsz(void *devPtr, int value, size_t count,
                                           cudaStream_t stream)
{
    FORWARD(cuMemsetD8Async_ptsz, DEVICE(devPtr), (unsigned char)value, count, stream);
}

/* --- variables ------------------------------------------------------------------------------- */

/* The variable's memory from `offset` on, if `count` bytes fit there. */
static cudaError_t variable(const void *symbol, size_t count, size_t offset, CUdeviceptr *pointer)
{
    size_t size;
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess)
        error = registry_variable(symbol, pointer, &size);
    if (error == cudaSuccess && (offset > size || count > size - offset))
        error = cudaErrorInvalidValue;
    *pointer += offset;
    return error;
}

cudaError_t CUDARTAPI cudaGetSymbolAddress(void **devPtr, const void *symbol)
{
    CUdeviceptr pointer = 0;
    cudaError_t error = variable(symbol, 0, 0, &pointer);
    if (error == cudaSuccess)
        *devPtr = (void *)(uintptr_t)pointer;
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaGetSymbolSize(size_t *size, const void *symbol)
{
    CUdeviceptr pointer;
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess)
        error = registry_variable(symbol, &pointer, size);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count,
                                         size_t offset, enum cudaMemcpyKind kind)
{
    CUdeviceptr pointer = 0;
    cudaError_t error = variable(symbol, count, offset, &pointer);
    if (error != cudaSuccess)
        return runtime_end(error);
    COPY(, (void *)(uintptr_t)pointer, src, count)
}

cudaError_t CUDARTAPI cudaMemcpyToSymbol_ptds(const void *symbol, const void *src, size_t count,
                                              size_t offset, enum cudaMemcpyKind kind)
{
    CUdeviceptr pointer = 0;
    cudaError_t error = variable(symbol, count, offset, &pointer);
    if (error != cudaSuccess)
        return runtime_end(error);
    COPY(_ptds, (void *)(uintptr_t)pointer, src, count)
}

cudaError_t CUDARTAPI cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count,
                                           size_t offset, enum cudaMemcpyKind kind)
{
    CUdeviceptr pointer = 0;
    cudaError_t error = variable(symbol, count, offset, &pointer);
    if (error != cudaSuccess)
        return runtime_end(error);
    COPY(, dst, (const void *)(uintptr_t)pointer, count)
}

cudaError_t CUDARTAPI cudaMemcpyFromSymbol_ptds(void *dst, const void *symbol, size_t count,
                                                size_t offset, enum cudaMemcpyKind kind)
{
    CUdeviceptr pointer = 0;
    cudaError_t error = variable(symbol, count, offset, &pointer);
    if (error != cudaSuccess)
        return runtime_end(error);
    COPY(_ptds, dst, (const void *)(uintptr_t)pointer, count)
}
