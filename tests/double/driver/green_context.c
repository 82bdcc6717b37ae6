/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts: splitting the SMs of a device. The numbers are those measured on the H200 (132
 * SMs, minimum 8, alignment 8): 1 gives 8, 16 gives 16, 20 gives 24, 66 gives 72; one split into
 * minimum groups gives 15 of them and a rest of 12.
 */
#include "driver.h"
#include <string.h>

/* What we keep in a resource's padding; the driver's own content there is private. */
struct mark {
    uint32_t magic;
    int device;
    uint32_t split; /* an output of a split: measured, it cannot be split again (915) */
};

#define MARK_MAGIC 0x4d534752u

static struct mark mark_of(const CUdevResource *resource)
{
    struct mark mark;
    memcpy(&mark, resource->_internal_padding, sizeof(mark));
    return mark;
}

static void fill_resource(CUdevResource *resource, int device, unsigned int count, bool split)
{
    struct mark mark = {MARK_MAGIC, device, split};
    memset(resource, 0, sizeof(*resource));
    resource->type = CU_DEV_RESOURCE_TYPE_SM;
    resource->sm.smCount = count;
#if CUDA_VERSION >= 13000
    resource->sm.minSmPartitionSize = (unsigned int)configuration.partition_minimum;
    resource->sm.smCoscheduledAlignment = (unsigned int)configuration.partition_alignment;
#endif
    memcpy(resource->_internal_padding, &mark, sizeof(mark));
}

/* Fills a question's answer in and ends its call. */
static CUresult answer(struct call *call, CUresult wrong, bool exists, int device,
                       unsigned int count, CUdevResource *resource, CUdevResourceType type)
{
    CUresult result = call->result;
    call_add(call, "type=%d", (int)type);
    if (result == CUDA_SUCCESS && !exists)
        result = wrong;
    if (result == CUDA_SUCCESS && resource == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && type != CU_DEV_RESOURCE_TYPE_SM)
        result = CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (result == CUDA_SUCCESS) {
        fill_resource(resource, device, count, false);
        call_add(call, "sms=%u", count);
    }
    return call_end(call, result);
}

CUresult CUDAAPI cuDeviceGetDevResource(CUdevice device, CUdevResource *resource,
                                        CUdevResourceType type)
{
    struct call call = call_begin(__func__);
    call_add(&call, "device=%d", device);
    return answer(&call, CUDA_ERROR_INVALID_DEVICE, device_is(device), device,
                  (unsigned int)configuration.multiprocessors, resource, type);
}

CUresult CUDAAPI cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource,
                                     CUdevResourceType type)
{
    struct call call = call_begin(__func__);
    bool exists = context_is(hCtx);
    call_context(&call, hCtx);
    return answer(&call, CUDA_ERROR_INVALID_CONTEXT, exists, exists ? hCtx->device : 0,
                  exists ? context_multiprocessors(hCtx) : 0, resource, type);
}

CUresult CUDAAPI cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource,
                                          CUdevResourceType type)
{
    struct call call = call_begin(__func__);
    bool exists = object_is(OBJECT_GREEN_CONTEXT, hCtx);
    call_object(&call, "green_context", OBJECT_GREEN_CONTEXT, hCtx);
    return answer(&call, CUDA_ERROR_INVALID_CONTEXT, exists, exists ? hCtx->device : 0,
                  exists ? hCtx->multiprocessors : 0, resource, type);
}

static unsigned int granted(unsigned int wanted)
{
    unsigned int step = (unsigned int)configuration.partition_alignment;
    unsigned int size = (wanted + step - 1) / step * step;
    unsigned int least = (unsigned int)configuration.partition_minimum;
    return size < least ? least : size;
}

/* Measured: 132 SMs make 15 groups of 8, and 12 remain; a last group whose rest would be smaller
 * than a partition joins that rest. */
static unsigned int groups_possible(unsigned int total, unsigned int size)
{
    unsigned int groups = total / size;
    unsigned int rest = total % size;
    if (groups > 1 && rest != 0 && rest < (unsigned int)configuration.partition_minimum)
        groups--;
    return groups;
}

static CUresult split(CUdevResource *outputs, unsigned int *groups, const CUdevResource *input,
                      CUdevResource *remaining, unsigned int wanted)
{
    if (groups == NULL || input == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct mark mark = mark_of(input);
    if (input->type != CU_DEV_RESOURCE_TYPE_SM || mark.magic != MARK_MAGIC)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (mark.split != 0)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    unsigned int total = input->sm.smCount;
    unsigned int size = granted(wanted);
    unsigned int count = groups_possible(total, size);
    if (count == 0)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    /* Documented: with no result only the number of groups is given. */
    if (outputs == NULL) {
        *groups = count;
        return CUDA_SUCCESS;
    }
    if (*groups < count)
        count = *groups;
    *groups = count;
    for (unsigned int i = 0; i < count; i++)
        fill_resource(&outputs[i], mark.device, size, true);
    unsigned int rest = total - count * size;
    if (remaining != NULL) {
        if (rest == 0)
            memset(remaining, 0, sizeof(*remaining));
        else
            fill_resource(remaining, mark.device, rest, true);
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
                                             const CUdevResource *input, CUdevResource *remaining,
                                             unsigned int useFlags, unsigned int minCount)
{
    struct call call = call_begin(__func__);
    call_add(&call, "flags=%u wanted=%u", useFlags, minCount);
    if (call.result == CUDA_SUCCESS)
        call.result = split(result, nbGroups, input, remaining, minCount);
    if (call.result == CUDA_SUCCESS)
        call_add(&call, "groups=%u granted=%u", *nbGroups, granted(minCount));
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources,
                                           unsigned int nbResources)
{
    struct call call = call_begin(__func__);
    CUresult result = call.result;
    unsigned int count = 0;
    int device = -1;
    if (result == CUDA_SUCCESS && (phDesc == NULL || resources == NULL || nbResources == 0))
        result = CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < nbResources && result == CUDA_SUCCESS; i++) {
        struct mark mark = mark_of(&resources[i]);
        if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM || mark.magic != MARK_MAGIC)
            result = CUDA_ERROR_INVALID_RESOURCE_TYPE;
        else if (device >= 0 && device != mark.device)
            result = CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        device = mark.device;
        count += resources[i].sm.smCount;
    }
    if (result == CUDA_SUCCESS) {
        *phDesc = object_new(OBJECT_DESCRIPTION);
        if (*phDesc == NULL) {
            result = CUDA_ERROR_OUT_OF_MEMORY;
        } else {
            (*phDesc)->device = device;
            (*phDesc)->multiprocessors = count;
            call_add(&call, "resources=%u sms=%u", nbResources, count);
        }
    }
    return call_end(&call, result);
}

static CUresult create(CUgreenCtx *out, CUdevResourceDesc description, CUdevice device)
{
    CUgreenCtx green = object_new(OBJECT_GREEN_CONTEXT);
    if (green == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    green->device = device;
    green->multiprocessors = description->multiprocessors;
    green->context = context_new(device);
    if (green->context == NULL) {
        object_free(OBJECT_GREEN_CONTEXT, green);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    green->context->green = green;
    /* Documented: it retains the primary context until it is destroyed. */
    context_primary(device)->retained++;
    *out = green;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev,
                                  unsigned int flags)
{
    struct call call = call_begin(__func__);
    CUresult result = call.result;
    call_add(&call, "device=%d flags=%u", dev, flags);
    if (result == CUDA_SUCCESS && !device_is(dev))
        result = CUDA_ERROR_INVALID_DEVICE;
    /* Documented: the flag is required. */
    if (result == CUDA_SUCCESS && (phCtx == NULL || flags != CU_GREEN_CTX_DEFAULT_STREAM ||
                                   !object_is(OBJECT_DESCRIPTION, desc) || desc->device != dev))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = create(phCtx, desc, dev);
    if (result == CUDA_SUCCESS) {
        call_object(&call, "green_context", OBJECT_GREEN_CONTEXT, *phCtx);
        call_context(&call, (*phCtx)->context);
        call_add(&call, "sms=%u", (*phCtx)->multiprocessors);
    }
    return call_end(&call, result);
}

static struct call green_call(const char *name, CUgreenCtx green, const void *output)
{
    struct call call = call_begin(name);
    call_object(&call, "green_context", OBJECT_GREEN_CONTEXT, green);
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_GREEN_CONTEXT, green))
        call.result = CUDA_ERROR_INVALID_CONTEXT;
    if (call.result == CUDA_SUCCESS && output == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    return call;
}

CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    struct call call = green_call(__func__, hCtx, &configuration);
    if (call.result == CUDA_SUCCESS) {
        stream_orphan(hCtx);
        context_primary(hCtx->device)->retained--;
        context_destroy(hCtx->context);
        object_free(OBJECT_GREEN_CONTEXT, hCtx);
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
    struct call call = green_call(__func__, hCtx, pContext);
    if (call.result == CUDA_SUCCESS) {
        *pContext = hCtx->context;
        call_context(&call, *pContext);
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    struct call call = green_call(__func__, hCtx, &configuration);
    call_object(&call, "event", OBJECT_EVENT, hEvent);
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_EVENT, hEvent))
        call.result = CUDA_ERROR_INVALID_HANDLE;
    /* Documented: unsupported while a stream of the context captures. */
    if (call.result == CUDA_SUCCESS && hCtx->context->capturing != 0)
        call.result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (call.result == CUDA_SUCCESS)
        hEvent->recorded++;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    struct call call = green_call(__func__, hCtx, &configuration);
    call_object(&call, "event", OBJECT_EVENT, hEvent);
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_EVENT, hEvent))
        call.result = CUDA_ERROR_INVALID_HANDLE;
    if (call.result == CUDA_SUCCESS && (hCtx->context->capturing != 0 || hEvent->capture_id != 0))
        call.result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx)
{
    struct call call = call_begin(__func__);
    CUstream stream = stream_of(hStream, CU_STREAM_LEGACY, true);
    call_stream(&call, hStream, stream);
    if (call.result == CUDA_SUCCESS && phCtx == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS && stream == NULL)
        call.result = stream_refusal(hStream);
    if (call.result == CUDA_SUCCESS)
        *phCtx = stream->green;
    return call_end(&call, call.result);
}

#if CUDA_VERSION >= 12050
CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags,
                                        int priority)
{
    struct call call = green_call(__func__, greenCtx, phStream);
    call_add(&call, "flags=%u priority=%d", flags, priority);
    /* Measured: without the non-blocking flag an invalid value. */
    if (call.result == CUDA_SUCCESS && flags != CU_STREAM_NON_BLOCKING)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        call.result = stream_new(greenCtx->context, flags, priority, greenCtx, phStream);
    if (call.result == CUDA_SUCCESS)
        call_stream(&call, *phStream, *phStream);
    return call_end(&call, call.result);
}
#endif

#if CUDA_VERSION >= 13000
CUresult CUDAAPI cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId)
{
    struct call call = green_call(__func__, greenCtx, greenCtxId);
    if (call.result == CUDA_SUCCESS)
        *greenCtxId = greenCtx->context->object.ordinal;
    return call_end(&call, call.result);
}
#endif
