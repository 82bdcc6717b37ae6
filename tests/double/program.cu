// SPDX-License-Identifier: Apache-2.0
// An ordinary CUDA program that launches a kernel in each way there is. Compiled by nvcc and run on the
// doubles; tests look at what reached the driver. Kernels do not run there, so no result is computed.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

__constant__ float factor[4];
__device__ int counter;

__global__ void axpy(float *x, float a)
{
    x[threadIdx.x] += a * factor[0];
}

template <typename T> __global__ void scale(T *x, T a)
{
    x[blockIdx.x] *= a;
}

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t check = (call);                                                                \
        if (check != cudaSuccess) {                                                                \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                     \
                         cudaGetErrorName(check));                                                 \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

static cudaGraphExec_t capture(cudaStream_t stream, float *memory)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    axpy<<<7, 32, 0, stream>>>(memory, 7.0f);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return executable;
}

static void launch_with_attributes(cudaStream_t stream, float *memory)
{
    cudaLaunchAttribute attributes[2];
    std::memset(attributes, 0, sizeof(attributes));
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim.x = 2;
    attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
    attributes[1].id = cudaLaunchAttributeMemSyncDomain;
    attributes[1].val.memSyncDomain = cudaLaunchMemSyncDomainRemote;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(4);
    config.blockDim = dim3(32);
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = 2;
    CHECK(cudaLaunchKernelEx(&config, axpy, memory, 4.0f));
}

static void add_node(float *memory)
{
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaGraphExec_t executable;
    float a = 8.0f;
    void *arguments[] = {&memory, &a};
    cudaKernelNodeParams params = {};
    params.func = (void *)axpy;
    params.gridDim = dim3(8);
    params.blockDim = dim3(32);
    params.kernelParams = arguments;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    cudaKernelNodeParams read;
    CHECK(cudaGraphKernelNodeGetParams(node, &read));
    if (read.func != (void *)axpy || read.gridDim.x != 8)
        std::exit(2);
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, 0));
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
}

// A launch that fails leaves its error until it is asked for.
static void keep_last_error(float *memory)
{
    axpy<<<0, 32>>>(memory, 0.0f);
    CHECK(cudaDeviceSynchronize());
    if (cudaPeekAtLastError() != cudaErrorInvalidValue ||
        cudaGetLastError() != cudaErrorInvalidValue || cudaGetLastError() != cudaSuccess)
        std::exit(3);
}

static void use_variables()
{
    float values[4] = {1, 2, 3, 4}, back[4];
    CHECK(cudaMemcpyToSymbol(factor, values, sizeof(values)));
    CHECK(cudaMemcpyFromSymbol(back, factor, sizeof(back)));
    if (std::memcmp(values, back, sizeof(values)) != 0)
        std::exit(4);
}

int main()
{
    cudaStream_t streams[3];
    cudaDeviceProp properties;
    float *memory;
    int devices;
    CHECK(cudaGetDeviceCount(&devices));
    CHECK(cudaGetDeviceProperties(&properties, 0));
    CHECK(cudaFree(0));
    CHECK(cudaMalloc(&memory, 1024));
    CHECK(cudaMemset(memory, 0, 1024));
    CHECK(cudaStreamCreate(&streams[0]));
    CHECK(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithPriority(&streams[2], cudaStreamNonBlocking, -1));
    use_variables();

    axpy<<<1, 32>>>(memory, 1.0f);
    CHECK(cudaGetLastError());
    scale<float><<<2, 32, 16, streams[0]>>>(memory, 2.0f);
    float a = 3.0f;
    void *arguments[] = {&memory, &a};
    CHECK(cudaLaunchKernel((const void *)axpy, dim3(3), dim3(32), arguments, 0, streams[1]));
    launch_with_attributes(streams[1], memory);
    CHECK(cudaLaunchCooperativeKernel((const void *)axpy, dim3(5), dim3(32), arguments, 0,
                                      streams[2]));
    cudaGraphExec_t executable = capture(streams[1], memory);
    CHECK(cudaGraphLaunch(executable, streams[1]));
    CHECK(cudaGraphLaunch(executable, 0));
    CHECK(cudaGraphExecDestroy(executable));
    add_node(memory);
    keep_last_error(memory);

    CHECK(cudaStreamSynchronize(streams[0]));
    for (int i = 0; i < 3; i++)
        CHECK(cudaStreamDestroy(streams[i]));
    CHECK(cudaFree(memory));
    CHECK(cudaDeviceSynchronize());
    return 0;
}
