/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: created, destroyed, asked. All work is done at once, so none is ever busy. */
#include "driver.h"
#include <stdlib.h>
#include <string.h>

/* The calling thread's per-thread stream in the context it used last. */
static __thread CUstream per_thread_cached;

static CUstream per_thread_stream(CUcontext context, bool may_create)
{
    CUstream stream = per_thread_cached;
    unsigned int thread = thread_ordinal();
    if (stream != NULL && object_is(OBJECT_DEFAULT_STREAM, stream) && stream->context == context &&
        stream->kind == STREAM_PER_THREAD && stream->thread == thread)
        return stream;
    if (!may_create)
        return NULL;
    for (stream = object_next(OBJECT_DEFAULT_STREAM, NULL); stream != NULL;
         stream = object_next(OBJECT_DEFAULT_STREAM, stream))
        if (stream->kind == STREAM_PER_THREAD && stream->context == context &&
            stream->thread == thread)
            break;
    if (stream == NULL) {
        stream = object_new(OBJECT_DEFAULT_STREAM);
        if (stream == NULL)
            abort();
        stream->kind = STREAM_PER_THREAD;
        stream->context = context;
        stream->thread = thread;
    }
    per_thread_cached = stream;
    return stream;
}

CUstream stream_of(CUstream handle, CUstream standard, bool may_create)
{
    if (handle == NULL)
        handle = standard;
    if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        CUcontext context = context_current();
        if (context == NULL || !context_is(context))
            return NULL;
        if (handle == CU_STREAM_LEGACY)
            return context->legacy;
        /* Measured: a green context has no per-thread stream. */
        return context->green != NULL ? NULL : per_thread_stream(context, may_create);
    }
    return object_is(OBJECT_STREAM, handle) && !handle->orphan ? handle : NULL;
}

#define STREAM_DETACHED ((CUresult)917) /* CUDA_ERROR_STREAM_DETACHED of 13.1 */

CUresult stream_refusal(CUstream handle)
{
    if (!object_is(OBJECT_STREAM, handle) || !handle->orphan)
        return CUDA_ERROR_INVALID_HANDLE;
    return configuration.version >= 13010 ? STREAM_DETACHED : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void stream_orphan(CUgreenCtx green)
{
    for (CUstream stream = object_next(OBJECT_STREAM, NULL); stream != NULL;
         stream = object_next(OBJECT_STREAM, stream)) {
        if (stream->green != green)
            continue;
        if (stream->capture != NULL) {
            /* Documented since 13.1. Measured before: a capture that the stream had joined goes on.
             */
            if (configuration.version >= 13010)
                capture_invalidate(stream);
            capture_leave(stream);
        }
        stream->orphan = true;
        stream->green = NULL;
        stream->context = NULL;
    }
}

CUresult stream_new(CUcontext context, unsigned int flags, int priority, CUgreenCtx green,
                    CUstream *out)
{
    if (out == NULL || (flags & ~(unsigned int)CU_STREAM_NON_BLOCKING) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUlaunchAttributeValue value;
    memset(&value, 0, sizeof(value));
    value.priority = priority;
    attribute_check(CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
    CUstream stream = object_new(OBJECT_STREAM);
    if (stream == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stream->kind = STREAM_CREATED;
    stream->context = context;
    stream->green = green;
    /* Measured: in a green context every stream is non-blocking, asked for or not. */
    stream->flags = context->green != NULL ? CU_STREAM_NON_BLOCKING : flags;
    stream->priority = value.priority;
    if (stream->priority != 0)
        attribute_put(&stream->attributes, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
    *out = stream;
    return CUDA_SUCCESS;
}

void stream_free(CUstream stream)
{
    if (stream->capture != NULL)
        capture_leave(stream);
    node_list_clear(&stream->tail);
    object_free(stream->kind == STREAM_CREATED ? OBJECT_STREAM : OBJECT_DEFAULT_STREAM, stream);
}

void stream_context_gone(CUcontext context)
{
    for (CUstream stream = object_next(OBJECT_STREAM, NULL); stream != NULL;
         stream = object_next(OBJECT_STREAM, stream))
        if (stream->context == context)
            stream_free(stream);
    for (CUstream stream = object_next(OBJECT_DEFAULT_STREAM, NULL); stream != NULL;
         stream = object_next(OBJECT_DEFAULT_STREAM, stream))
        if (stream->context == context && stream->kind == STREAM_PER_THREAD)
            stream_free(stream);
    /* The legacy stream stays as long as its context's handle, but forgets what was set on it. */
    memset(&context->legacy->attributes, 0, sizeof(context->legacy->attributes));
}

static CUresult create(struct call *call, CUstream *stream, unsigned int flags, int priority)
{
    call_add(call, "flags=%u priority=%d", flags, priority);
    if (call->result != CUDA_SUCCESS)
        return call->result;
    CUcontext context;
    CUresult result = context_usable(&context);
    if (result != CUDA_SUCCESS)
        return result;
    result = stream_new(context, flags, priority, context->green, stream);
    if (result == CUDA_SUCCESS)
        call_stream(call, *stream, *stream);
    return result;
}

CUresult CUDAAPI cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    struct call call = call_begin(__func__);
    return call_end(&call, create(&call, phStream, Flags, 0));
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    struct call call = call_begin(__func__);
    return call_end(&call, create(&call, phStream, flags, priority));
}

static CUresult destroy(const char *name, CUstream handle)
{
    struct call call = call_begin(name);
    bool is_stream = object_is(OBJECT_STREAM, handle);
    call_stream(&call, handle, is_stream ? handle : NULL);
    CUresult result = call.result;
    /* Documented: a stream that lost its green context can be destroyed since 13.1, not before. */
    if (result == CUDA_SUCCESS && (!is_stream || (handle->orphan && configuration.version < 13010)))
        result = stream_refusal(handle);
    if (result == CUDA_SUCCESS)
        stream_free(handle);
    return call_end(&call, result);
}

CUresult CUDAAPI cuStreamDestroy(CUstream hStream)
{
    return destroy(__func__, hStream);
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream hStream)
{
    return destroy(__func__, hStream);
}

/*
 * Begins a call about a stream; *stream is NULL only when the call must fail.
 *
 * Measured: a capturing stream does not tell its flags, device and id (error 900), and whoever asks
 * invalidates the capture; its priority, context and attributes it tells. The legacy stream tells
 * nothing of all this while a blocking stream captures (906, and that capture is invalid); device
 * and id of that one are assumed.
 */
static struct call stream_call(const char *name, CUstream handle, CUstream standard,
                               CUresult (*check)(CUstream stream), CUstream *stream)
{
    struct call call = call_begin(name);
    *stream = stream_of(handle, standard, true);
    call_stream(&call, handle, *stream);
    if (call.result == CUDA_SUCCESS && *stream == NULL && context_current() == NULL)
        call.result = CUDA_ERROR_INVALID_CONTEXT;
    if (call.result == CUDA_SUCCESS && *stream == NULL)
        call.result = stream_refusal(handle);
    if (call.result == CUDA_SUCCESS)
        call.result = check(*stream);
    return call;
}

/* Each of these has a legacy and a per-thread form that differ in what NULL means. */
#define TWO_FORMS(function, parameters, implementation, ...)                                       \
    CUresult CUDAAPI function parameters                                                           \
    {                                                                                              \
        return implementation(__func__, CU_STREAM_LEGACY, __VA_ARGS__);                            \
    }                                                                                              \
    CUresult CUDAAPI function##_ptsz parameters                                                    \
    {                                                                                              \
        return implementation(__func__, CU_STREAM_PER_THREAD, __VA_ARGS__);                        \
    }

static CUresult get_context(const char *name, CUstream standard, CUstream handle,
                            CUcontext *context)
{
    CUstream stream;
    struct call call = stream_call(name, handle, standard, capture_check_legacy, &stream);
    if (call.result == CUDA_SUCCESS && context == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        *context = stream->context; /* measured: of a green context's stream not the primary one */
    return call_end(&call, call.result);
}

TWO_FORMS(cuStreamGetCtx, (CUstream hStream, CUcontext *pctx), get_context, hStream, pctx)

#if CUDA_VERSION >= 12050
/* Measured: of a green context's stream the green context and the device's primary context, of any
 * other its own context and null; an output may be missing. */
static CUresult get_contexts(const char *name, CUstream standard, CUstream handle,
                             CUcontext *context, CUgreenCtx *green)
{
    CUstream stream;
    struct call call = stream_call(name, handle, standard, capture_check_legacy, &stream);
    if (call.result == CUDA_SUCCESS && context != NULL)
        *context = context_root(stream->context);
    if (call.result == CUDA_SUCCESS && green != NULL)
        *green = stream->context->green;
    return call_end(&call, call.result);
}

TWO_FORMS(cuStreamGetCtx_v2, (CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx),
          get_contexts, hStream, pCtx, pGreenCtx)
#endif

#if CUDA_VERSION >= 12080
static CUresult get_device(const char *name, CUstream standard, CUstream handle, CUdevice *device)
{
    CUstream stream;
    struct call call = stream_call(name, handle, standard, capture_check_idle, &stream);
    if (call.result == CUDA_SUCCESS && device == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        *device = stream->context->device;
    return call_end(&call, call.result);
}

TWO_FORMS(cuStreamGetDevice, (CUstream hStream, CUdevice *device), get_device, hStream, device)
#endif

static CUresult get_id(const char *name, CUstream standard, CUstream handle, unsigned long long *id)
{
    CUstream stream;
    struct call call = stream_call(name, handle, standard, capture_check_idle, &stream);
    if (call.result == CUDA_SUCCESS && id == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        unsigned long long base = stream->kind == STREAM_CREATED ? 1u << 20 : 0;
        *id = base + stream->object.ordinal;
    }
    return call_end(&call, call.result);
}

TWO_FORMS(cuStreamGetId, (CUstream hStream, unsigned long long *streamId), get_id, hStream,
          streamId)

static CUresult get_priority(const char *name, CUstream standard, CUstream handle, int *priority)
{
    CUstream stream;
    struct call call = stream_call(name, handle, standard, capture_check_legacy, &stream);
    if (call.result == CUDA_SUCCESS && priority == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        *priority = stream->priority;
    return call_end(&call, call.result);
}

TWO_FORMS(cuStreamGetPriority, (CUstream hStream, int *priority), get_priority, hStream, priority)

static CUresult get_flags(const char *name, CUstream standard, CUstream handle, unsigned int *flags)
{
    CUstream stream;
    struct call call = stream_call(name, handle, standard, capture_check_idle, &stream);
    if (call.result == CUDA_SUCCESS && flags == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        *flags = stream->flags;
    return call_end(&call, call.result);
}

TWO_FORMS(cuStreamGetFlags, (CUstream hStream, unsigned int *flags), get_flags, hStream, flags)

/* Documented: waiting for a capturing stream is not permitted, and invalidates the capture. */
static CUresult synchronize(const char *name, CUstream standard, CUstream handle)
{
    CUstream stream;
    struct call call = stream_call(name, handle, standard, capture_check_idle, &stream);
    return call_end(&call, call.result);
}

TWO_FORMS(cuStreamSynchronize, (CUstream hStream), synchronize, hStream)
TWO_FORMS(cuStreamQuery, (CUstream hStream), synchronize, hStream)
