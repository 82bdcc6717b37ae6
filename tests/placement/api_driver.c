/* SPDX-License-Identifier: Apache-2.0 */
#include "api.h"

#include <string.h>

static const char image[] = "kernel to_side params=4\n"
                            "kernel to_main params=4\n"
                            "kernel eager_side params=4\n"
                            "kernel with_domain params=4\n"
                            "kernel plain params=4\n";

static CUcontext contexts[API_DEVICES];
static CUmodule modules[API_DEVICES];
static CUfunction functions[API_DEVICES][API_KERNELS];
static char memory[2][64];

#define FORM(stream, function, ...)                                                                \
    ((int)((stream).per_thread ? function##_ptsz(__VA_ARGS__) : function(__VA_ARGS__)))

#define DEVICE_POINTER(i) ((CUdeviceptr)(uintptr_t)memory[i])

int api_retain(int device)
{
    CUresult result = cuInit(0);
    if (result == CUDA_SUCCESS)
        result = cuDevicePrimaryCtxRetain(&contexts[device], device);
    if (result == CUDA_SUCCESS)
        result = cuCtxSetCurrent(contexts[device]);
    if (result == CUDA_SUCCESS)
        result = cuModuleLoadData(&modules[device], image);
    for (int i = 0; i < API_KERNELS && result == CUDA_SUCCESS; i++)
        result = cuModuleGetFunction(&functions[device][i], modules[device], api_kernel_names[i]);
    return (int)result;
}

int api_device(int device)
{
    return (int)cuCtxSetCurrent(contexts[device]);
}

int api_release(int device)
{
    CUresult result = cuModuleUnload(modules[device]);
    return result != CUDA_SUCCESS ? (int)result : (int)cuDevicePrimaryCtxRelease_v2(device);
}

/* Documented: a reset does not release the context. */
int api_reset(int device)
{
    CUresult result = cuDevicePrimaryCtxReset_v2(device);
    cuDevicePrimaryCtxRelease_v2(device);
    return (int)result;
}

int api_stream_create(CUstream *stream, unsigned flags, int priority)
{
    return (int)(priority == 0 ? cuStreamCreate(stream, flags)
                               : cuStreamCreateWithPriority(stream, flags, priority));
}

int api_stream_destroy(CUstream stream)
{
    return (int)cuStreamDestroy_v2(stream);
}

int api_stream_priority(struct api_stream stream, int priority)
{
    CUstreamAttrValue value;
    memset(&value, 0, sizeof value);
    value.priority = priority;
    return FORM(stream, cuStreamSetAttribute, stream.handle, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
}

int api_event_create(CUevent *event)
{
    return (int)cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
}

int api_event_destroy(CUevent event)
{
    return (int)cuEventDestroy_v2(event);
}

int api_launch(int device, int kernel, enum api_launch form, unsigned serial,
               struct api_stream stream)
{
    void *arguments[] = {&serial};
    CUlaunchConfig config = {4, 1, 1, 64, 1, 1, 0, stream.handle, NULL, 0};
    CUfunction function = functions[device][kernel];
    switch (form) {
    case API_LAUNCH_EX:
        return FORM(stream, cuLaunchKernelEx, &config, function, arguments, NULL);
    case API_LAUNCH_COOPERATIVE:
        return FORM(stream, cuLaunchCooperativeKernel, function, 4, 1, 1, 64, 1, 1, 0,
                    stream.handle, arguments);
    case API_LAUNCH_KERNEL:
    default:
        return FORM(stream, cuLaunchKernel, function, 4, 1, 1, 64, 1, 1, 0, stream.handle,
                    arguments, NULL);
    }
}

int api_copy(struct api_stream stream)
{
    return FORM(stream, cuMemcpyDtoDAsync_v2, DEVICE_POINTER(0), DEVICE_POINTER(1), 64,
                stream.handle);
}

int api_copy_now(bool per_thread)
{
    return (int)(per_thread ? cuMemcpyDtoH_v2_ptds(memory[0], DEVICE_POINTER(1), 64)
                            : cuMemcpyDtoH_v2(memory[0], DEVICE_POINTER(1), 64));
}

int api_set(struct api_stream stream)
{
    return FORM(stream, cuMemsetD8Async, DEVICE_POINTER(0), 1, 64, stream.handle);
}

int api_host(struct api_stream stream, CUhostFn function, void *data)
{
    return FORM(stream, cuLaunchHostFunc, stream.handle, function, data);
}

int api_record(CUevent event, struct api_stream stream)
{
    return FORM(stream, cuEventRecord, event, stream.handle);
}

int api_wait(struct api_stream stream, CUevent event)
{
    return FORM(stream, cuStreamWaitEvent, stream.handle, event, 0);
}

int api_synchronize(struct api_stream stream)
{
    return FORM(stream, cuStreamSynchronize, stream.handle);
}

int api_synchronize_event(CUevent event)
{
    return (int)cuEventSynchronize(event);
}

int api_synchronize_context(void)
{
    return (int)cuCtxSynchronize();
}

int api_begin(struct api_stream stream, int mode)
{
    return FORM(stream, cuStreamBeginCapture_v2, stream.handle, (CUstreamCaptureMode)mode);
}

int api_end(struct api_stream stream, CUgraph *graph)
{
    return FORM(stream, cuStreamEndCapture, stream.handle, graph);
}

int api_mode(int mode)
{
    CUstreamCaptureMode value = (CUstreamCaptureMode)mode;
    return (int)cuThreadExchangeStreamCaptureMode(&value);
}

int api_capture(struct api_stream stream, int *status, const CUgraphNode **nodes, size_t *count)
{
    CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result =
        stream.per_thread
            ? cuStreamGetCaptureInfo_v2_ptsz(stream.handle, &found, NULL, NULL, nodes, count)
            : cuStreamGetCaptureInfo_v2(stream.handle, &found, NULL, NULL, nodes, count);
    *status = (int)found;
    return (int)result;
}

int api_depend(struct api_stream stream, CUgraphNode *nodes, size_t count, unsigned flags)
{
    return FORM(stream, cuStreamUpdateCaptureDependencies, stream.handle, nodes, count, flags);
}

int api_instantiate(CUgraphExec *executable, CUgraph graph)
{
    return (int)cuGraphInstantiateWithFlags(executable, graph, 0);
}

int api_update(CUgraphExec executable, CUgraph graph, int *what)
{
    CUgraphExecUpdateResultInfo info;
    memset(&info, 0, sizeof info);
    CUresult result = cuGraphExecUpdate_v2(executable, graph, &info);
    *what = (int)info.result;
    return (int)result;
}

int api_graph_launch(CUgraphExec executable, struct api_stream stream)
{
    return FORM(stream, cuGraphLaunch, executable, stream.handle);
}

int api_graph_destroy(CUgraph graph)
{
    return (int)cuGraphDestroy(graph);
}

int api_executable_destroy(CUgraphExec executable)
{
    return (int)cuGraphExecDestroy(executable);
}
