/* SPDX-License-Identifier: Apache-2.0 */
/* Events, and how they carry a capture from one stream to another. */
#include "captured.h"
#include "driver.h"
#include <string.h>

CUresult CUDAAPI cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    struct call call = call_begin(__func__);
    call_add(&call, "flags=%u", Flags);
    CUresult result = call.result;
    CUcontext context = context_current();
    if (result == CUDA_SUCCESS && context == NULL)
        result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && (phEvent == NULL || (Flags & ~7u) != 0))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *phEvent = object_new(OBJECT_EVENT);
        if (*phEvent == NULL) {
            result = CUDA_ERROR_OUT_OF_MEMORY;
        } else {
            (*phEvent)->context = context;
            (*phEvent)->flags = Flags;
            call_object(&call, "event", OBJECT_EVENT, *phEvent);
        }
    }
    return call_end(&call, result);
}

static struct call event_call(const char *name, CUevent event)
{
    struct call call = call_begin(name);
    call_object(&call, "event", OBJECT_EVENT, event);
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_EVENT, event))
        call.result = CUDA_ERROR_INVALID_HANDLE;
    return call;
}

static CUresult destroy(const char *name, CUevent event)
{
    struct call call = event_call(name, event);
    if (call.result == CUDA_SUCCESS) {
        node_list_clear(&event->nodes);
        object_free(OBJECT_EVENT, event);
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuEventDestroy(CUevent hEvent)
{
    return destroy(__func__, hEvent);
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent hEvent)
{
    return destroy(__func__, hEvent);
}

/* Documented: an event last recorded in a capture cannot be waited for by the host. */
static CUresult host_wait(const char *name, CUevent event)
{
    struct call call = event_call(name, event);
    if (call.result == CUDA_SUCCESS && event->capture_id != 0)
        call.result = CUDA_ERROR_CAPTURED_EVENT;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuEventSynchronize(CUevent hEvent)
{
    return host_wait(__func__, hEvent);
}

CUresult CUDAAPI cuEventQuery(CUevent hEvent)
{
    return host_wait(__func__, hEvent);
}

static CUresult elapsed(const char *name, float *milliseconds, CUevent start, CUevent end)
{
    struct call call = event_call(name, start);
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_EVENT, end))
        call.result = CUDA_ERROR_INVALID_HANDLE;
    if (call.result == CUDA_SUCCESS && milliseconds == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS && (start->recorded == 0 || end->recorded == 0))
        call.result = CUDA_ERROR_INVALID_HANDLE;
    if (call.result == CUDA_SUCCESS)
        *milliseconds = 1.0f;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    return elapsed(__func__, pMilliseconds, hStart, hEnd);
}

#if CUDA_VERSION >= 12080
CUresult CUDAAPI cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    return elapsed(__func__, pMilliseconds, hStart, hEnd);
}
#endif

/* Begins a call about an event and a stream. */
static struct call both_call(const char *name, CUevent event, CUstream handle, CUstream standard,
                             CUstream *stream)
{
    struct call call = event_call(name, event);
    *stream = stream_of(handle, standard, true);
    call_stream(&call, handle, *stream);
    if (call.result == CUDA_SUCCESS && *stream == NULL && context_current() == NULL)
        call.result = CUDA_ERROR_INVALID_CONTEXT;
    if (call.result == CUDA_SUCCESS && *stream == NULL)
        call.result = stream_refusal(handle);
    if (call.result == CUDA_SUCCESS)
        call.result = capture_check(*stream);
    return call;
}

static CUresult record(const char *name, CUstream standard, CUevent event, CUstream handle,
                       unsigned int flags)
{
    CUstream stream;
    struct call call = both_call(name, event, handle, standard, &stream);
    call_add(&call, "flags=%u", flags);
    /* Measured: an event of another context, where a green one counts as the primary. */
    if (call.result == CUDA_SUCCESS && context_is(event->context) &&
        context_root(event->context) != context_root(stream->context))
        call.result = CUDA_ERROR_INVALID_HANDLE;
    if (call.result == CUDA_SUCCESS) {
        event->recorded++;
        capture_event(stream, event);
        call_dependencies(&call, stream);
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuEventRecord(CUevent hEvent, CUstream hStream)
{
    return record(__func__, CU_STREAM_LEGACY, hEvent, hStream, 0);
}

CUresult CUDAAPI cuEventRecord_ptsz(CUevent hEvent, CUstream hStream)
{
    return record(__func__, CU_STREAM_PER_THREAD, hEvent, hStream, 0);
}

CUresult CUDAAPI cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    return record(__func__, CU_STREAM_LEGACY, hEvent, hStream, flags);
}

CUresult CUDAAPI cuEventRecordWithFlags_ptsz(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    return record(__func__, CU_STREAM_PER_THREAD, hEvent, hStream, flags);
}

static CUresult wait(const char *name, CUstream standard, CUstream handle, CUevent event,
                     unsigned int flags)
{
    CUstream stream;
    struct call call = both_call(name, event, handle, standard, &stream);
    call_add(&call, "flags=%u", flags);
    if (call.result == CUDA_SUCCESS)
        call.result = capture_join(stream, event);
    if (call.result == CUDA_SUCCESS)
        call_dependencies(&call, stream);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    return wait(__func__, CU_STREAM_LEGACY, hStream, hEvent, Flags);
}

CUresult CUDAAPI cuStreamWaitEvent_ptsz(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    return wait(__func__, CU_STREAM_PER_THREAD, hStream, hEvent, Flags);
}
