/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts: contexts that run on a part of a device's SMs. */
#include "driver.h"
#include "newer.h"
#include <string.h>

static CUresult create(CUgreenCtx *out, CUdevResourceDesc description, CUdevice device)
{
    CUgreenCtx green = object_new(OBJECT_GREEN_CONTEXT);
    if (green == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    green->device = device;
    green->sms = description->sms;
    green->grouped = description->grouped;
    green->together = description->together;
    green->shape = description->shape;
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
    /* Measured: no other flags. Documented: since 13.3 none is a choice, too. */
    bool known =
        flags == CU_GREEN_CTX_DEFAULT_STREAM || (flags == 0 && configuration.version >= 13030);
    if (result == CUDA_SUCCESS && (phCtx == NULL || !known || !object_is(OBJECT_DESCRIPTION, desc)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && desc->device != dev)
        result = CUDA_ERROR_INVALID_DEVICE; /* measured */
    if (result == CUDA_SUCCESS)
        result = create(phCtx, desc, dev);
    if (result == CUDA_SUCCESS) {
        call_object(&call, "green_context", OBJECT_GREEN_CONTEXT, *phCtx);
        call_context(&call, (*phCtx)->context);
        call_sms(&call, &(*phCtx)->sms);
    }
    return call_end(&call, result);
}

static struct call green_call(const char *name, CUgreenCtx green, const void *output)
{
    struct call call = call_begin(name);
    call_object(&call, "green_context", OBJECT_GREEN_CONTEXT, green);
    /* Measured: a destroyed one is told apart. */
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_GREEN_CONTEXT, green))
        call.result = object_was(OBJECT_GREEN_CONTEXT, green) ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                              : CUDA_ERROR_INVALID_CONTEXT;
    if (call.result == CUDA_SUCCESS && output == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    return call;
}

CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    struct call call = green_call(__func__, hCtx, &configuration);
    if (call.result == CUDA_SUCCESS) {
        int device = hCtx->device;
        stream_orphan(hCtx);
        context_destroy(hCtx->context);
        object_free(OBJECT_GREEN_CONTEXT, hCtx);
        context_unretain(context_primary(device));
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

/* Measured: an event of the context while one of its streams captures is refused, and the capture
 * is invalid. Documented: so is waiting for an event of a capture. */
static CUresult check_capture(CUgreenCtx green, CUevent waited)
{
    bool captured = waited != NULL && waited->capture_id != 0;
    if (green->context->capturing == 0 && !captured)
        return CUDA_SUCCESS;
    capture_invalidate_context(green->context);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult CUDAAPI cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    struct call call = green_call(__func__, hCtx, &configuration);
    call_object(&call, "event", OBJECT_EVENT, hEvent);
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_EVENT, hEvent))
        call.result = CUDA_ERROR_INVALID_HANDLE;
    if (call.result == CUDA_SUCCESS)
        call.result = check_capture(hCtx, NULL);
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
    if (call.result == CUDA_SUCCESS)
        call.result = check_capture(hCtx, hEvent);
    return call_end(&call, call.result);
}

/* Documented: of a default stream the current context's. */
CUresult CUDAAPI cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx)
{
    struct call call = call_begin(__func__);
    CUstream stream = stream_of(hStream, CU_STREAM_LEGACY, true);
    call_stream(&call, hStream, stream);
    if (call.result == CUDA_SUCCESS && phCtx == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS && stream == NULL && context_current() == NULL)
        call.result = CUDA_ERROR_INVALID_CONTEXT;
    if (call.result == CUDA_SUCCESS && stream == NULL)
        call.result = stream_refusal(hStream);
    if (call.result == CUDA_SUCCESS)
        *phCtx = stream->context->green;
    return call_end(&call, call.result);
}

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

/* Documented: with NULL the current context, if that is a green one. */
CUresult CUDAAPI cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId)
{
    CUcontext current = context_current();
    if (greenCtx == NULL && current != NULL && context_is(current))
        greenCtx = current->green;
    struct call call = green_call(__func__, greenCtx, greenCtxId);
    if (call.result == CUDA_SUCCESS)
        *greenCtxId = greenCtx->context->object.ordinal;
    return call_end(&call, call.result);
}
