/* SPDX-License-Identifier: Apache-2.0 */
#include "api.h"

#include <cuda_runtime_api.h>
#include <string.h>

/* The addresses by which the program knows its kernels. */
static char kernels[API_KERNELS];
static void **binary;
static char memory[2][64];
static const char image[] = "kernel to_side params=4\n"
                            "kernel to_main params=4\n"
                            "kernel eager_side params=4\n"
                            "kernel with_domain params=4\n"
                            "kernel plain params=4\n";

/* nvcc's host code calls these; its headers declare them for C++ only. */
void **__cudaRegisterFatBinary(const void *content);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, void *thread, void *block, void *block_dim,
                            void *grid_dim, int *warp_size);

#define FORM(stream, function, ...)                                                                \
    ((int)((stream).per_thread ? function##_ptsz(__VA_ARGS__) : function(__VA_ARGS__)))

static void register_kernels(void)
{
    static char names[API_KERNELS][32];
    binary = __cudaRegisterFatBinary(image);
    for (int i = 0; i < API_KERNELS; i++) {
        strcpy(names[i], api_kernel_names[i]);
        __cudaRegisterFunction(binary, &kernels[i], names[i], names[i], -1, NULL, NULL, NULL, NULL,
                               NULL);
    }
    __cudaRegisterFatBinaryEnd(binary);
}

int api_retain(int device)
{
    if (binary == NULL)
        register_kernels();
    cudaError_t error = cudaSetDevice(device);
    return error != cudaSuccess ? (int)error : (int)cudaFree(NULL);
}

int api_device(int device)
{
    return (int)cudaSetDevice(device);
}

int api_release(int device)
{
    return api_reset(device);
}

/* Of the current device. */
int api_reset(int device)
{
    cudaError_t error = cudaSetDevice(device);
    return error != cudaSuccess ? (int)error : (int)cudaDeviceReset();
}

int api_stream_create(CUstream *stream, unsigned flags, int priority)
{
    return (int)(priority == 0 ? cudaStreamCreateWithFlags(stream, flags)
                               : cudaStreamCreateWithPriority(stream, flags, priority));
}

int api_stream_destroy(CUstream stream)
{
    return (int)cudaStreamDestroy(stream);
}

int api_stream_priority(struct api_stream stream, int priority)
{
    cudaStreamAttrValue value;
    memset(&value, 0, sizeof value);
    value.priority = priority;
    return FORM(stream, cudaStreamSetAttribute, stream.handle, cudaLaunchAttributePriority, &value);
}

int api_event_create(CUevent *event)
{
    return (int)cudaEventCreateWithFlags(event, cudaEventDisableTiming);
}

int api_event_destroy(CUevent event)
{
    return (int)cudaEventDestroy(event);
}

int api_launch(int device, int kernel, enum api_launch form, unsigned serial,
               struct api_stream stream)
{
    void *arguments[] = {&serial};
    const dim3 grid = {4, 1, 1}, block = {64, 1, 1};
    cudaLaunchConfig_t config = {
        .gridDim = grid, .blockDim = block, .dynamicSmemBytes = 0, .stream = stream.handle};
    (void)device;
    switch (form) {
    case API_LAUNCH_EX:
        return FORM(stream, cudaLaunchKernelExC, &config, &kernels[kernel], arguments);
    case API_LAUNCH_COOPERATIVE:
        return FORM(stream, cudaLaunchCooperativeKernel, &kernels[kernel], grid, block, arguments,
                    0, stream.handle);
    case API_LAUNCH_KERNEL:
    default:
        return FORM(stream, cudaLaunchKernel, &kernels[kernel], grid, block, arguments, 0,
                    stream.handle);
    }
}

int api_copy(struct api_stream stream)
{
    return FORM(stream, cudaMemcpyAsync, memory[0], memory[1], 64, cudaMemcpyDeviceToDevice,
                stream.handle);
}

int api_copy_now(bool per_thread)
{
    return (int)(per_thread ? cudaMemcpy_ptds(memory[0], memory[1], 64, cudaMemcpyDeviceToHost)
                            : cudaMemcpy(memory[0], memory[1], 64, cudaMemcpyDeviceToHost));
}

int api_set(struct api_stream stream)
{
    return FORM(stream, cudaMemsetAsync, memory[0], 1, 64, stream.handle);
}

int api_host(struct api_stream stream, CUhostFn function, void *data)
{
    return FORM(stream, cudaLaunchHostFunc, stream.handle, function, data);
}

int api_record(CUevent event, struct api_stream stream)
{
    return FORM(stream, cudaEventRecord, event, stream.handle);
}

int api_wait(struct api_stream stream, CUevent event)
{
    return FORM(stream, cudaStreamWaitEvent, stream.handle, event, 0);
}

int api_synchronize(struct api_stream stream)
{
    return FORM(stream, cudaStreamSynchronize, stream.handle);
}

int api_synchronize_event(CUevent event)
{
    return (int)cudaEventSynchronize(event);
}

int api_synchronize_context(void)
{
    return (int)cudaDeviceSynchronize();
}

int api_begin(struct api_stream stream, int mode)
{
    return FORM(stream, cudaStreamBeginCapture, stream.handle, (enum cudaStreamCaptureMode)mode);
}

int api_end(struct api_stream stream, CUgraph *graph)
{
    return FORM(stream, cudaStreamEndCapture, stream.handle, graph);
}

int api_mode(int mode)
{
    enum cudaStreamCaptureMode value = (enum cudaStreamCaptureMode)mode;
    return (int)cudaThreadExchangeStreamCaptureMode(&value);
}

#if CUDART_VERSION >= 13000
int api_capture(struct api_stream stream, int *status, const CUgraphNode **nodes, size_t *count)
{
    enum cudaStreamCaptureStatus found = cudaStreamCaptureStatusNone;
    int result = FORM(stream, cudaStreamGetCaptureInfo, stream.handle, &found, NULL, NULL, nodes,
                      NULL, count);
    *status = (int)found;
    return result;
}

int api_depend(struct api_stream stream, CUgraphNode *nodes, size_t count, unsigned flags)
{
    return FORM(stream, cudaStreamUpdateCaptureDependencies, stream.handle, nodes, NULL, count,
                flags);
}
#else
/* In other headers these have other parameters, and the recording runtime has them for none. */
int api_capture(struct api_stream stream, int *status, const CUgraphNode **nodes, size_t *count)
{
    (void)nodes;
    (void)count;
    enum cudaStreamCaptureStatus found = cudaStreamCaptureStatusNone;
    int result = FORM(stream, cudaStreamIsCapturing, stream.handle, &found);
    *status = (int)found;
    return result;
}

int api_depend(struct api_stream stream, CUgraphNode *nodes, size_t count, unsigned flags)
{
    (void)stream;
    (void)nodes;
    (void)count;
    (void)flags;
    return (int)cudaErrorNotSupported;
}
#endif

int api_instantiate(CUgraphExec *executable, CUgraph graph)
{
    return (int)cudaGraphInstantiateWithFlags(executable, graph, 0);
}

int api_update(CUgraphExec executable, CUgraph graph, int *what)
{
    cudaGraphExecUpdateResultInfo info;
    memset(&info, 0, sizeof info);
    int result = (int)cudaGraphExecUpdate(executable, graph, &info);
    *what = (int)info.result;
    return result;
}

int api_graph_launch(CUgraphExec executable, struct api_stream stream)
{
    return FORM(stream, cudaGraphLaunch, executable, stream.handle);
}

int api_graph_destroy(CUgraph graph)
{
    return (int)cudaGraphDestroy(graph);
}

int api_executable_destroy(CUgraphExec executable)
{
    return (int)cudaGraphExecDestroy(executable);
}
