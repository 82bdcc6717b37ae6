/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory is host memory. */
#include "captured.h"
#include "driver.h"
#include <stdlib.h>
#include <string.h>

/* What was allocated and not freed, so that freeing anything else is an error and no crash. */
struct allocation {
    struct allocation *next;
    char *start;
    size_t size;
    bool host;
};

static struct allocation *allocations;

static CUresult allocate(void **pointer, size_t size, bool host)
{
    if (pointer == NULL || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct allocation *allocation = calloc(1, sizeof(*allocation));
    if (allocation == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (posix_memalign((void **)&allocation->start, 256, size) != 0) {
        free(allocation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation->size = size;
    allocation->host = host;
    allocation->next = allocations;
    allocations = allocation;
    *pointer = allocation->start;
    return CUDA_SUCCESS;
}

void memory_reset(void)
{
    while (allocations != NULL) {
        struct allocation *next = allocations->next;
        free(allocations->start);
        free(allocations);
        allocations = next;
    }
}

static CUresult release(const void *pointer)
{
    if (pointer == NULL)
        return CUDA_SUCCESS;
    for (struct allocation **at = &allocations; *at != NULL; at = &(*at)->next) {
        if ((*at)->start != pointer)
            continue;
        struct allocation *gone = *at;
        *at = gone->next;
        free(gone->start);
        free(gone);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

static const struct allocation *find(CUdeviceptr pointer)
{
    for (const struct allocation *at = allocations; at != NULL; at = at->next)
        if (pointer >= (CUdeviceptr)(uintptr_t)at->start &&
            pointer < (CUdeviceptr)(uintptr_t)at->start + at->size)
            return at;
    return NULL;
}

static struct call memory_call(const char *name, size_t size)
{
    struct call call = call_begin(name);
    call_add(&call, "bytes=%zu", size);
    CUcontext context;
    if (call.result == CUDA_SUCCESS)
        call.result = context_usable(&context);
    return call;
}

/* Allocation is what captures prohibit: documented at cuThreadExchangeStreamCaptureMode. */
static CUresult allocate_now(const char *name, void **pointer, size_t size, bool host)
{
    struct call call = memory_call(name, size);
    if (call.result == CUDA_SUCCESS)
        call.result = capture_unsafe_call();
    if (call.result == CUDA_SUCCESS)
        call.result = allocate(pointer, size, host);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    return allocate_now(__func__, (void **)dptr, bytesize, false);
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    (void)flags;
    return allocate_now(__func__, (void **)dptr, bytesize, false);
}

CUresult CUDAAPI cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    return allocate_now(__func__, pp, bytesize, true);
}

CUresult CUDAAPI cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    (void)Flags;
    return allocate_now(__func__, pp, bytesize, true);
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr dptr)
{
    struct call call = memory_call(__func__, 0);
    if (call.result == CUDA_SUCCESS)
        call.result = release((const void *)(uintptr_t)dptr);
    return call_end(&call, call.result);
}

/* In stream order, which here is at once. While capturing the memory is made now and stays. */
static CUresult allocate_async(const char *name, CUstream standard, CUdeviceptr *pointer,
                               size_t size, CUstream handle)
{
    struct call call = memory_call(name, size);
    CUstream stream = stream_of(handle, standard, true);
    call_stream(&call, handle, stream);
    if (call.result == CUDA_SUCCESS)
        call.result = stream == NULL ? stream_refusal(handle) : capture_check(stream);
    if (call.result == CUDA_SUCCESS && stream->capture != NULL) {
        CUgraphNode node;
        call.result = capture_node(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &node);
        if (call.result == CUDA_SUCCESS)
            call_captured(&call, stream);
    }
    if (call.result == CUDA_SUCCESS)
        call.result = allocate((void **)pointer, size, false);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    return allocate_async(__func__, CU_STREAM_LEGACY, dptr, bytesize, hStream);
}

CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    return allocate_async(__func__, CU_STREAM_PER_THREAD, dptr, bytesize, hStream);
}

static CUresult free_async(const char *name, CUstream standard, CUdeviceptr pointer,
                           CUstream handle)
{
    struct call call = memory_call(name, 0);
    CUstream stream = stream_of(handle, standard, true);
    call_stream(&call, handle, stream);
    if (call.result == CUDA_SUCCESS)
        call.result = stream == NULL ? stream_refusal(handle) : capture_check(stream);
    if (call.result == CUDA_SUCCESS && stream->capture != NULL) {
        CUgraphNode node;
        call.result = capture_node(stream, CU_GRAPH_NODE_TYPE_MEM_FREE, &node);
        if (call.result == CUDA_SUCCESS)
            call_captured(&call, stream);
    } else if (call.result == CUDA_SUCCESS) {
        call.result = release((const void *)(uintptr_t)pointer);
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    return free_async(__func__, CU_STREAM_LEGACY, dptr, hStream);
}

CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
    return free_async(__func__, CU_STREAM_PER_THREAD, dptr, hStream);
}

CUresult CUDAAPI cuMemFreeHost(void *p)
{
    struct call call = memory_call(__func__, 0);
    if (call.result == CUDA_SUCCESS)
        call.result = release(p);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    struct call call = memory_call(__func__, 0);
    (void)Flags;
    if (call.result == CUDA_SUCCESS && pdptr == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        *pdptr = (CUdeviceptr)(uintptr_t)p;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    struct call call = memory_call(__func__, bytesize);
    (void)Flags;
    if (call.result == CUDA_SUCCESS && p == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuMemHostUnregister(void *p)
{
    struct call call = memory_call(__func__, 0);
    if (call.result == CUDA_SUCCESS && p == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuMemGetInfo_v2(size_t *free_out, size_t *total)
{
    struct call call = memory_call(__func__, 0);
    if (call.result == CUDA_SUCCESS && free_out != NULL)
        *free_out = (size_t)139 << 30;
    if (call.result == CUDA_SUCCESS && total != NULL)
        *total = (size_t)140 << 30;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct call call = memory_call(__func__, 0);
    call_add(&call, "attribute=%d", (int)attribute);
    const struct allocation *found = find(ptr);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && (data == NULL || found == NULL))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
            *(unsigned int *)data = found->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        else if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            *(int *)data = context_current()->device;
        else if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER)
            *(CUdeviceptr *)data = ptr;
        else
            result = CUDA_ERROR_NOT_SUPPORTED;
    }
    return call_end(&call, result);
}

/* Memory of a variable in an image: made when it is first asked for, since sizes are unknown. */
CUresult memory_global(struct image *image, const char *name, CUdeviceptr *pointer, size_t *bytes)
{
    struct image_global *at = image->globals;
    while (at != NULL && strcmp(at->name, name) != 0)
        at = at->next;
    if (at == NULL && !image->on_demand)
        return CUDA_ERROR_NOT_FOUND;
    if (at == NULL) {
        at = calloc(1, sizeof(*at));
        if (at == NULL || (at->name = strdup(name)) == NULL)
            abort();
        at->next = image->globals;
        image->globals = at;
    }
    if (pointer != NULL)
        *pointer = (CUdeviceptr)(uintptr_t)at->memory;
    if (bytes != NULL)
        *bytes = sizeof(at->memory);
    return CUDA_SUCCESS;
}

static CUresult global(const char *call_name, enum object_kind kind, const void *owner,
                       struct image *image, const char *name, CUdeviceptr *pointer, size_t *bytes)
{
    struct call call = call_begin(call_name);
    call_object(&call, object_kind_name(kind), kind, owner);
    call_add(&call, "name=%s", name == NULL ? "null" : name);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && image == NULL)
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && name == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = memory_global(image, name, pointer, bytes);
    return call_end(&call, result);
}

CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod,
                                      const char *name)
{
    struct image *image = object_is(OBJECT_MODULE, hmod) ? hmod->image : NULL;
    return global(__func__, OBJECT_MODULE, hmod, image, name, dptr, bytes);
}

CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                                    const char *name)
{
    struct image *image = object_is(OBJECT_LIBRARY, library) ? library->image : NULL;
    return global(__func__, OBJECT_LIBRARY, library, image, name, dptr, bytes);
}
