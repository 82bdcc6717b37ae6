/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills: done at once, or by each launch of the graph they are captured into. */
#include "captured.h"
#include "driver.h"
#include <string.h>

void transfer_run(const struct transfer *transfer)
{
    if (transfer->source != NULL) {
        memmove(transfer->target, transfer->source, transfer->size);
        return;
    }
    for (size_t at = 0; at + transfer->width <= transfer->size; at += transfer->width)
        memcpy((char *)transfer->target + at, &transfer->value, transfer->width);
}

static struct transfer copy_of(CUdeviceptr target, CUdeviceptr source, size_t size)
{
    struct transfer transfer = {
        .target = (void *)(uintptr_t)target,
        .source = (const void *)(uintptr_t)source,
        .size = size,
    };
    return transfer;
}

static struct transfer fill_of(CUdeviceptr target, unsigned int value, unsigned int width,
                               size_t count)
{
    struct transfer transfer = {
        .target = (void *)(uintptr_t)target,
        .size = count * width,
        .value = value,
        .width = width,
    };
    return transfer;
}

static CUresult run_or_capture(CUstream stream, const struct transfer *transfer)
{
    CUresult result = capture_check(stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (transfer->size != 0 &&
        (transfer->target == NULL || (transfer->source == NULL && transfer->width == 0)))
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture == NULL) {
        transfer_run(transfer);
        return CUDA_SUCCESS;
    }
    CUgraphNode node;
    result = capture_node(
        stream, transfer->source == NULL ? CU_GRAPH_NODE_TYPE_MEMSET : CU_GRAPH_NODE_TYPE_MEMCPY,
        &node);
    if (result == CUDA_SUCCESS)
        node->transfer = *transfer;
    return result;
}

/* A transfer in `handle`'s stream; the synchronous ones use the default stream of their form. */
static CUresult transfer(const char *name, CUstream standard, CUstream handle,
                         struct transfer transfer)
{
    struct call call = call_begin(name);
    CUstream stream = stream_of(handle, standard, true);
    call_stream(&call, handle, stream);
    call_add(&call, "bytes=%zu", transfer.size);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && stream == NULL && context_current() == NULL)
        result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && stream == NULL)
        result = stream_refusal(handle);
    if (result == CUDA_SUCCESS)
        result = run_or_capture(stream, &transfer);
    if (result == CUDA_SUCCESS)
        call_captured(&call, stream);
    return call_end(&call, result);
}

/* Each function in its two forms, which differ in the default stream. */
#define SYNCHRONOUS(function, parameters, value)                                                   \
    CUresult CUDAAPI function parameters                                                           \
    {                                                                                              \
        return transfer(__func__, CU_STREAM_LEGACY, NULL, value);                                  \
    }                                                                                              \
    CUresult CUDAAPI function##_ptds parameters                                                    \
    {                                                                                              \
        return transfer(__func__, CU_STREAM_PER_THREAD, NULL, value);                              \
    }

#define ASYNCHRONOUS(function, parameters, value)                                                  \
    CUresult CUDAAPI function parameters                                                           \
    {                                                                                              \
        return transfer(__func__, CU_STREAM_LEGACY, hStream, value);                               \
    }                                                                                              \
    CUresult CUDAAPI function##_ptsz parameters                                                    \
    {                                                                                              \
        return transfer(__func__, CU_STREAM_PER_THREAD, hStream, value);                           \
    }

#define HOST(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

SYNCHRONOUS(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount),
            copy_of(dst, src, ByteCount))
ASYNCHRONOUS(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream),
             copy_of(dst, src, ByteCount))
SYNCHRONOUS(cuMemcpyHtoD_v2, (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount),
            copy_of(dstDevice, HOST(srcHost), ByteCount))
ASYNCHRONOUS(cuMemcpyHtoDAsync_v2,
             (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream),
             copy_of(dstDevice, HOST(srcHost), ByteCount))
SYNCHRONOUS(cuMemcpyDtoH_v2, (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount),
            copy_of(HOST(dstHost), srcDevice, ByteCount))
ASYNCHRONOUS(cuMemcpyDtoHAsync_v2,
             (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
             copy_of(HOST(dstHost), srcDevice, ByteCount))
SYNCHRONOUS(cuMemcpyDtoD_v2, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount),
            copy_of(dstDevice, srcDevice, ByteCount))
ASYNCHRONOUS(cuMemcpyDtoDAsync_v2,
             (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
             copy_of(dstDevice, srcDevice, ByteCount))
SYNCHRONOUS(cuMemsetD8_v2, (CUdeviceptr dstDevice, unsigned char uc, size_t N),
            fill_of(dstDevice, uc, 1, N))
ASYNCHRONOUS(cuMemsetD8Async, (CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream),
             fill_of(dstDevice, uc, 1, N))
SYNCHRONOUS(cuMemsetD32_v2, (CUdeviceptr dstDevice, unsigned int ui, size_t N),
            fill_of(dstDevice, ui, 4, N))
ASYNCHRONOUS(cuMemsetD32Async, (CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream),
             fill_of(dstDevice, ui, 4, N))
