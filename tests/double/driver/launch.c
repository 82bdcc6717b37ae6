/* SPDX-License-Identifier: Apache-2.0 */
/* The launch functions. */
#include "captured.h"
#include "driver.h"
#include <string.h>

/* The same device on both sides. Measured: functions of the primary context run on a
 * green-context stream without a change of the current context. */
static bool contexts_fit(const struct launch *launch)
{
    CUcontext function = launchable_context(&launch->what);
    CUcontext root = context_root(launch->stream->context);
    return function == NULL || context_root(function) == root;
}

/* Looks the handles up. Without the lock only if `may_create` is false. Measured: a created stream
 * needs no current context. */
static CUresult find_handles(struct launch *launch, CUstream standard, bool may_create)
{
    CUcontext context = context_current();
    if (context == NULL && !object_is(OBJECT_STREAM, launch->stream_handle))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context != NULL && !context_alive(context))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    launch->stream = stream_of(launch->stream_handle, standard, may_create);
    bool function = launchable_of(launch->handle, &launch->what);
    if (launch->stream == NULL)
        return stream_refusal(launch->stream_handle);
    if (!function || !contexts_fit(launch))
        return CUDA_ERROR_INVALID_HANDLE;
    return CUDA_SUCCESS;
}

static void record_events(const struct launch *launch)
{
    for (unsigned int i = 0; i < launch->attribute_count; i++) {
        CUlaunchAttribute *at = &launch->attributes[i];
        if (at->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT &&
            at->id != CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
            continue;
        CUevent event = at->value.programmaticEvent.event;
        if (!object_is(OBJECT_EVENT, event))
            continue;
        event->recorded++;
        capture_event(launch->stream, event);
    }
}

/* Documented: the handle for updates from the device is written into the caller's array. */
static void return_device_nodes(const struct launch *launch, CUgraphNode node)
{
    for (unsigned int i = 0; i < launch->attribute_count; i++) {
        CUlaunchAttribute *at = &launch->attributes[i];
        if (at->id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE &&
            at->value.deviceUpdatableKernelNode.deviceUpdatable != 0)
            at->value.deviceUpdatableKernelNode.devNode = (CUgraphDeviceNode)(void *)node;
    }
}

static bool wants_device_node(const struct launch *launch)
{
    for (unsigned int i = 0; i < launch->attribute_count; i++)
        if (launch->attributes[i].id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE &&
            launch->attributes[i].value.deviceUpdatableKernelNode.deviceUpdatable != 0)
            return true;
    return false;
}

/* Measured: capture copies the attributes of stream and launch to the node. */
static CUresult capture_launch(const struct launch *launch, const struct attribute_set *attributes)
{
    CUgraphNode node;
    CUresult result = capture_node(launch->stream, CU_GRAPH_NODE_TYPE_KERNEL, &node);
    if (result != CUDA_SUCCESS)
        return result;
    struct kernel_node *kernel = &node->kernel;
    kernel->what = launch->what;
    kernel->func = launch->what.function;
    kernel->kern = launch->what.kernel;
    kernel->context = launch->stream->context;
    memcpy(kernel->grid, launch->grid, sizeof(kernel->grid));
    memcpy(kernel->block, launch->block, sizeof(kernel->block));
    kernel->shared = launch->shared;
    kernel->captured = true;
    kernel->parameters = launch->parameters;
    kernel->extra = launch->extra;
    kernel_node_copy_arguments(kernel);
    for (unsigned int id = 0; id < ATTRIBUTE_IDS; id++)
        if (attribute_has(attributes, id) && attribute_on_node(id))
            attribute_put(&kernel->attributes, id, &attributes->value[id]);
    return_device_nodes(launch, node);
    return CUDA_SUCCESS;
}

static CUresult launch_now(struct call *call, const struct launch *launch)
{
    struct attribute_set effective;
    CUstream stream = launch->stream;
    CUresult result = capture_check(stream);
    if (result != CUDA_SUCCESS)
        return result;
    result = launch_check(launch, stream->context, &stream->attributes, &effective);
    if (stream->capture != NULL) {
        /* Measured: a refused cluster breaks the capture, an invalid value does not. */
        if (result == CUDA_ERROR_INVALID_CLUSTER_SIZE)
            capture_invalidate(stream);
        if (result == CUDA_SUCCESS)
            result = capture_launch(launch, &effective);
    } else if (result == CUDA_SUCCESS && wants_device_node(launch)) {
        result = CUDA_ERROR_INVALID_VALUE; /* documented: only while capturing */
    }
    if (result == CUDA_SUCCESS) {
        record_events(launch);
        call_effective(call, &effective);
        call_captured(call, stream);
    }
    return result;
}

/*
 * With nobody watching, a plain launch outside a capture costs a few checks and no lock: that is
 * what benchmarks use as their base line. Everything else takes the long way.
 */
static bool launch_quickly(struct launch *launch, CUstream standard, CUresult *result)
{
    if (atomic_load_explicit(&driver_watched, memory_order_relaxed) || !driver_initialized() ||
        find_handles(launch, standard, false) != CUDA_SUCCESS)
        return false;
    CUstream stream = launch->stream;
    if (stream->capture != NULL || launch->attribute_count > 8 ||
        (stream->kind == STREAM_LEGACY && context_root(stream->context)->capturing_blocking != 0))
        return false;
    for (unsigned int i = 0; i < launch->attribute_count; i++) {
        unsigned int id = (unsigned int)launch->attributes[i].id;
        if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT || id > 11)
            return false;
    }
    *result = launch_check(launch, stream->context, NULL, NULL);
    return true;
}

static CUresult launch_any(const char *name, struct launch *launch, CUstream standard)
{
    CUresult result;
    if (launch_quickly(launch, standard, &result))
        return result;
    struct call call = call_begin(name);
    CUresult found = find_handles(launch, standard, true);
    call_launch(&call, launch);
    result = call.result;
    if (result == CUDA_SUCCESS)
        result = found;
    if (result == CUDA_SUCCESS)
        result = launch_now(&call, launch);
    return call_end(&call, result);
}

#define LAUNCH(...)                                                                                \
    {                                                                                              \
        .handle = f, .grid = {gridDimX, gridDimY, gridDimZ},                                       \
        .block = {blockDimX, blockDimY, blockDimZ}, .shared = sharedMemBytes,                      \
        .stream_handle = hStream, .parameters = kernelParams, __VA_ARGS__                          \
    }

CUresult CUDAAPI cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                unsigned int gridDimZ, unsigned int blockDimX,
                                unsigned int blockDimY, unsigned int blockDimZ,
                                unsigned int sharedMemBytes, CUstream hStream, void **kernelParams,
                                void **extra)
{
    struct launch launch = LAUNCH(.extra = extra);
    return launch_any(__func__, &launch, CU_STREAM_LEGACY);
}

CUresult CUDAAPI cuLaunchKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                     unsigned int gridDimZ, unsigned int blockDimX,
                                     unsigned int blockDimY, unsigned int blockDimZ,
                                     unsigned int sharedMemBytes, CUstream hStream,
                                     void **kernelParams, void **extra)
{
    struct launch launch = LAUNCH(.extra = extra);
    return launch_any(__func__, &launch, CU_STREAM_PER_THREAD);
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX,
                                           unsigned int gridDimY, unsigned int gridDimZ,
                                           unsigned int blockDimX, unsigned int blockDimY,
                                           unsigned int blockDimZ, unsigned int sharedMemBytes,
                                           CUstream hStream, void **kernelParams)
{
    struct launch launch = LAUNCH(.cooperative = true);
    return launch_any(__func__, &launch, CU_STREAM_LEGACY);
}

CUresult CUDAAPI cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gridDimX,
                                                unsigned int gridDimY, unsigned int gridDimZ,
                                                unsigned int blockDimX, unsigned int blockDimY,
                                                unsigned int blockDimZ, unsigned int sharedMemBytes,
                                                CUstream hStream, void **kernelParams)
{
    struct launch launch = LAUNCH(.cooperative = true);
    return launch_any(__func__, &launch, CU_STREAM_PER_THREAD);
}

static CUresult launch_ex(const char *name, const CUlaunchConfig *config, CUfunction function,
                          void **parameters, void **extra, CUstream standard)
{
    if (config == NULL) {
        struct call call = call_begin(name);
        return call_end(&call,
                        call.result != CUDA_SUCCESS ? call.result : CUDA_ERROR_INVALID_VALUE);
    }
    struct launch launch = {
        .handle = function,
        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
        .shared = config->sharedMemBytes,
        .stream_handle = config->hStream,
        .attributes = config->attrs,
        .attribute_count = config->numAttrs,
        .parameters = parameters,
        .extra = extra,
    };
    return launch_any(name, &launch, standard);
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                                  void **extra)
{
    return launch_ex(__func__, config, f, kernelParams, extra, CU_STREAM_LEGACY);
}

CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f,
                                       void **kernelParams, void **extra)
{
    return launch_ex(__func__, config, f, kernelParams, extra, CU_STREAM_PER_THREAD);
}

CUresult CUDAAPI cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launchParamsList,
                                                      unsigned int numDevices, unsigned int flags)
{
    struct call call = call_begin(__func__);
    call_add(&call, "devices=%u flags=%u", numDevices, flags);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && (launchParamsList == NULL || numDevices == 0))
        result = CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < numDevices && result == CUDA_SUCCESS; i++)
        if (!object_is(OBJECT_STREAM, launchParamsList[i].hStream))
            result = CUDA_ERROR_INVALID_HANDLE;
    return call_end(&call, result);
}

/* The function runs at once, in the caller's thread and without the lock: it may not call CUDA, but
 * a test may look at the record. */
static CUresult host_function(const char *name, CUstream handle, CUstream standard,
                              CUhostFn function, void *data)
{
    struct call call = call_begin(name);
    CUstream stream = stream_of(handle, standard, true);
    call_stream(&call, handle, stream);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && stream == NULL && context_current() == NULL)
        result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && stream == NULL)
        result = stream_refusal(handle);
    if (result == CUDA_SUCCESS && function == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = capture_check(stream);
    bool now = result == CUDA_SUCCESS && stream->capture == NULL;
    if (result == CUDA_SUCCESS && !now) {
        CUgraphNode node;
        result = capture_node(stream, CU_GRAPH_NODE_TYPE_HOST, &node);
        if (result == CUDA_SUCCESS) {
            node->host = function;
            node->host_data = data;
            call_captured(&call, stream);
        }
    }
    result = call_end(&call, result);
    if (now)
        function(data);
    return result;
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    return host_function(__func__, hStream, CU_STREAM_LEGACY, fn, userData);
}

CUresult CUDAAPI cuLaunchHostFunc_ptsz(CUstream hStream, CUhostFn fn, void *userData)
{
    return host_function(__func__, hStream, CU_STREAM_PER_THREAD, fn, userData);
}

/* --- the launch functions of CUDA 2 ---------------------------------------------------------- */

CUresult CUDAAPI cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
    struct call call = call_begin(__func__);
    call_function(&call, hfunc);
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_FUNCTION, hfunc))
        call.result = CUDA_ERROR_INVALID_HANDLE;
    if (call.result == CUDA_SUCCESS) {
        hfunc->block[0] = (unsigned int)x;
        hfunc->block[1] = (unsigned int)y;
        hfunc->block[2] = (unsigned int)z;
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
    struct call call = call_begin(__func__);
    call_function(&call, hfunc);
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_FUNCTION, hfunc))
        call.result = CUDA_ERROR_INVALID_HANDLE;
    if (call.result == CUDA_SUCCESS)
        hfunc->shared = bytes;
    return call_end(&call, call.result);
}

static CUresult launch_old(const char *name, CUfunction function, int width, int height,
                           CUstream stream)
{
    struct launch launch = {
        .handle = function,
        .grid = {(unsigned int)width, (unsigned int)height, 1},
        .stream_handle = stream,
    };
    if (object_is(OBJECT_FUNCTION, function)) {
        memcpy(launch.block, function->block, sizeof(launch.block));
        launch.shared = function->shared;
    }
    return launch_any(name, &launch, CU_STREAM_LEGACY);
}

CUresult CUDAAPI cuLaunch(CUfunction f)
{
    return launch_old(__func__, f, 1, 1, NULL);
}

CUresult CUDAAPI cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
    return launch_old(__func__, f, grid_width, grid_height, NULL);
}

CUresult CUDAAPI cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
    return launch_old(__func__, f, grid_width, grid_height, hStream);
}
