/* SPDX-License-Identifier: Apache-2.0 */
/* Initialisation, primary and created contexts, and each thread's stack of current ones. */
#include "driver.h"
#include <stdlib.h>
#include <string.h>

#define STACK_MAX 64

static atomic_bool initialized;
static CUcontext primaries[DEVICES_MAX];

/* Grows with every reset: what a thread had current before does not count any more. */
static atomic_uint generation = 1;

static __thread struct {
    unsigned int generation;
    unsigned int depth;
    CUcontext stack[STACK_MAX]; /* the current one is on top */
} threads_contexts;

static void stack_check(void)
{
    unsigned int now = atomic_load_explicit(&generation, memory_order_relaxed);
    if (threads_contexts.generation == now)
        return;
    threads_contexts.generation = now;
    threads_contexts.depth = 0;
}

bool driver_initialized(void)
{
    return atomic_load_explicit(&initialized, memory_order_relaxed);
}

bool context_is(CUcontext context)
{
    return object_is(OBJECT_CONTEXT, context);
}

CUcontext context_current(void)
{
    stack_check();
    if (threads_contexts.depth == 0)
        return NULL;
    return threads_contexts.stack[threads_contexts.depth - 1];
}

CUcontext context_root(CUcontext context)
{
    return context->green == NULL ? context : context_primary(context->device);
}

struct sm_set context_sms(CUcontext context)
{
    return context->green != NULL ? context->green->sms : device_sms();
}

CUcontext context_new(int device)
{
    CUcontext context = object_new(OBJECT_CONTEXT);
    if (context == NULL)
        return NULL;
    context->device = device;
    context->legacy = object_new(OBJECT_DEFAULT_STREAM);
    if (context->legacy == NULL)
        abort();
    context->legacy->kind = STREAM_LEGACY;
    context->legacy->context = context;
    return context;
}

/* The device's primary context; the handle exists, and stays, from the first question on. */
CUcontext context_primary(int device)
{
    if (primaries[device] == NULL) {
        primaries[device] = context_new(device);
        if (primaries[device] == NULL)
            abort();
        primaries[device]->primary = true;
    }
    return primaries[device];
}

static void context_empty(CUcontext context)
{
    stream_context_gone(context);
    module_context_gone(context);
}

void context_destroy(CUcontext context)
{
    context_empty(context);
    object_free(OBJECT_DEFAULT_STREAM, context->legacy);
    object_free(OBJECT_CONTEXT, context);
}

void context_reset(void)
{
    memset(primaries, 0, sizeof(primaries));
    atomic_store(&initialized, false);
    atomic_fetch_add(&generation, 1);
}

bool context_alive(CUcontext context)
{
    return context_is(context) && (!context->primary || context->retained != 0 || context->stuck);
}

CUresult context_usable(CUcontext *context)
{
    *context = context_current();
    if (*context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    return context_alive(*context) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static unsigned int green_contexts(int device)
{
    unsigned int count = 0;
    for (CUgreenCtx green = object_next(OBJECT_GREEN_CONTEXT, NULL); green != NULL;
         green = object_next(OBJECT_GREEN_CONTEXT, green))
        count += green->device == device;
    return count;
}

void context_unretain(CUcontext context)
{
    if (context->retained != 0 && --context->retained == 0)
        context_empty(context);
}

CUresult CUDAAPI cuInit(unsigned int Flags)
{
    bool call_out = configuration.call_out;
    if (call_out)
        driver_call_out();
    struct call call = call_begin_early(__func__);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && Flags != 0)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && configuration.devices == 0)
        result = CUDA_ERROR_NO_DEVICE;
    if (result == CUDA_SUCCESS)
        atomic_store(&initialized, true);
    return call_end(&call, result);
}

/* --- primary contexts ------------------------------------------------------------------------ */

static struct call primary_call(const char *name, CUdevice device)
{
    struct call call = call_begin(name);
    call_add(&call, "device=%d", device);
    if (call.result == CUDA_SUCCESS && !device_is(device))
        call.result = CUDA_ERROR_INVALID_DEVICE;
    return call;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct call call = primary_call(__func__, dev);
    if (call.result == CUDA_SUCCESS && pctx == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        *pctx = context_primary(dev);
        (*pctx)->retained++;
    }
    return call_end(&call, call.result);
}

static CUresult primary_release(const char *name, CUdevice device)
{
    struct call call = primary_call(name, device);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS) {
        CUcontext context = context_primary(device);
        if (context->retained == 0) {
            result = CUDA_ERROR_INVALID_CONTEXT;
        } else if (context->retained == 1 && green_contexts(device) != 0) {
            /* Measured: what green contexts hold is not the program's to release. It is counted
             * all the same, and the context then stays active even without them. */
            context->retained = 0;
            context->stuck = true;
            result = CUDA_ERROR_NOT_PERMITTED;
        } else {
            context_unretain(context);
        }
    }
    return call_end(&call, result);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return primary_release(__func__, dev);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    return primary_release(__func__, dev);
}

static CUresult primary_reset(const char *name, CUdevice device)
{
    struct call call = primary_call(name, device);
    /* Measured: not while there are green contexts, and then nothing happens. */
    if (call.result == CUDA_SUCCESS && green_contexts(device) != 0)
        call.result = CUDA_ERROR_NOT_PERMITTED;
    if (call.result == CUDA_SUCCESS) {
        CUcontext context = context_primary(device);
        context_empty(context);
        context->retained = 0;
        context->stuck = false;
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev)
{
    return primary_reset(__func__, dev);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    return primary_reset(__func__, dev);
}

static CUresult primary_set_flags(const char *name, CUdevice device, unsigned int flags)
{
    struct call call = primary_call(name, device);
    call_add(&call, "flags=%u", flags);
    if (call.result == CUDA_SUCCESS)
        context_primary(device)->flags = flags;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    return primary_set_flags(__func__, dev, flags);
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    return primary_set_flags(__func__, dev, flags);
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    struct call call = primary_call(__func__, dev);
    if (call.result == CUDA_SUCCESS && (flags == NULL || active == NULL))
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        *flags = context_primary(dev)->flags;
        *active = context_alive(context_primary(dev));
        call_add(&call, "active=%d", *active);
    }
    return call_end(&call, call.result);
}

/* --- created contexts ------------------------------------------------------------------------ */

static bool push(CUcontext context)
{
    stack_check();
    if (threads_contexts.depth == STACK_MAX)
        return false;
    threads_contexts.stack[threads_contexts.depth++] = context;
    return true;
}

static CUresult create(const char *name, CUcontext *context, unsigned int flags, CUdevice device)
{
    struct call call = primary_call(name, device);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && context == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *context = context_new(device);
        if (*context == NULL || !push(*context))
            result = CUDA_ERROR_OUT_OF_MEMORY;
        else
            (*context)->flags = flags;
    }
    if (result == CUDA_SUCCESS)
        call_context(&call, *context);
    return call_end(&call, result);
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return create(__func__, pctx, flags, dev);
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                                unsigned int flags, CUdevice dev)
{
    (void)paramsArray;
    (void)numParams;
    return create(__func__, pctx, flags, dev);
}

#if CUDA_VERSION >= 12050
CUresult CUDAAPI cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams,
                                unsigned int flags, CUdevice dev)
{
    (void)ctxCreateParams;
    return create(__func__, pctx, flags, dev);
}
#endif

static CUresult destroy(const char *name, CUcontext context)
{
    struct call call = call_begin(name);
    call_context(&call, context);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS &&
        (!context_is(context) || context->primary || context->green != NULL))
        result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS) {
        /* Documented: it is popped from the calling thread's stack if it is current there. */
        if (context_current() == context)
            threads_contexts.depth--;
        context_destroy(context);
    }
    return call_end(&call, result);
}

CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
    return destroy(__func__, ctx);
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext ctx)
{
    return destroy(__func__, ctx);
}

/* The oldest way to share a context; nothing counts these references here. */
CUresult CUDAAPI cuCtxDetach(CUcontext ctx)
{
    return destroy(__func__, ctx);
}

/* --- the current context --------------------------------------------------------------------- */

CUresult CUDAAPI cuCtxSetCurrent(CUcontext ctx)
{
    struct call call = call_begin(__func__);
    call_context(&call, ctx);
    CUresult result = call.result;
    /* Measured: a destroyed one can be made current, and every use of it is refused then. */
    if (result == CUDA_SUCCESS && ctx != NULL && !object_was(OBJECT_CONTEXT, ctx))
        result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS) {
        stack_check();
        if (threads_contexts.depth != 0)
            threads_contexts.depth--;
        if (ctx != NULL)
            push(ctx);
    }
    return call_end(&call, result);
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *pctx)
{
    struct call call = call_begin(__func__);
    if (call.result == CUDA_SUCCESS && pctx == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        *pctx = context_current();
        call_context(&call, *pctx);
    }
    return call_end(&call, call.result);
}

static CUresult push_current(const char *name, CUcontext context)
{
    struct call call = call_begin(name);
    call_context(&call, context);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && (!context_is(context) || !push(context)))
        result = CUDA_ERROR_INVALID_CONTEXT;
    return call_end(&call, result);
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext ctx)
{
    return push_current(__func__, ctx);
}

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext ctx)
{
    return push_current(__func__, ctx);
}

static CUresult pop_current(const char *name, CUcontext *context)
{
    struct call call = call_begin(name);
    CUresult result = call.result;
    CUcontext current = context_current();
    if (result == CUDA_SUCCESS && current == NULL)
        result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS) {
        threads_contexts.depth--;
        if (context != NULL)
            *context = current;
    }
    return call_end(&call, result);
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *pctx)
{
    return pop_current(__func__, pctx);
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *pctx)
{
    return pop_current(__func__, pctx);
}

/* Begins a call that works on the current context. */
static struct call current_call(const char *name, CUcontext *context)
{
    struct call call = call_begin(name);
    if (call.result == CUDA_SUCCESS)
        call.result = context_usable(context);
    return call;
}

/* Measured: a current context that was destroyed still tells its device. */
CUresult CUDAAPI cuCtxGetDevice(CUdevice *device)
{
    CUcontext context = context_current();
    struct call call = call_begin(__func__);
    if (call.result == CUDA_SUCCESS && context == NULL)
        call.result = CUDA_ERROR_INVALID_CONTEXT;
    if (call.result == CUDA_SUCCESS && device == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        *device = context->device;
    return call_end(&call, call.result);
}

/* Documented: not permitted while a stream of the context captures, and the primary one covers its
 * green ones. Measured: error 900 in both; the capture in a green context that is synchronized
 * itself is invalid afterwards, that of a primary one is not. */
static CUresult synchronize(CUcontext context)
{
    if (context->capturing == 0)
        return CUDA_SUCCESS;
    if (context->green != NULL)
        capture_invalidate_context(context);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult CUDAAPI cuCtxSynchronize(void)
{
    CUcontext context;
    struct call call = current_call(__func__, &context);
    return call_end(&call, call.result != CUDA_SUCCESS ? call.result : synchronize(context));
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    CUcontext context;
    struct call call = ctx == NULL ? current_call(__func__, &context) : call_begin(__func__);
    if (ctx != NULL)
        context = ctx;
    if (call.result == CUDA_SUCCESS && (device == NULL || !context_is(context)))
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        *device = context->device;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext ctx)
{
    CUcontext context;
    struct call call = ctx == NULL ? current_call(__func__, &context) : call_begin(__func__);
    if (ctx != NULL)
        context = ctx;
    if (call.result == CUDA_SUCCESS && !context_is(context))
        call.result = CUDA_ERROR_INVALID_CONTEXT;
    if (call.result == CUDA_SUCCESS)
        call.result = synchronize(context);
    return call_end(&call, call.result);
}
#endif
