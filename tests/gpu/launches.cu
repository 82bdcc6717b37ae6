/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches kernels in every way that a program compiled by nvcc can, then captures the same launches in
 * a graph and prints the attributes of each node as the driver has them. Compiled with the static and
 * the shared runtime, for the legacy and the per-thread default stream.
 *
 * Prints "eager N" for the launches made, and a line a node:
 *   node NAME domain D map A B cluster X Y Z priority P
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            std::printf("error %s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(error_));       \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

namespace work {
template <typename T> __global__ void remote(T *data)
{
    data[blockIdx.x * blockDim.x + threadIdx.x] += T(1);
}
__global__ void untouched(float *data)
{
    data[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
__global__ void clustered(float *data)
{
    data[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
} // namespace work

static int launched;

static void launch_all(float *data, cudaStream_t stream, bool with_default_stream)
{
    void *arguments[] = {&data};
    cudaLaunchConfig_t config = {};
    cudaFunction_t function;
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;

    work::remote<float><<<8, 128, 0, stream>>>(data);
    work::untouched<<<8, 128, 0, stream>>>(data);
    work::clustered<<<8, 128, 0, stream>>>(data);
    CHECK(cudaLaunchKernel((const void *)work::remote<float>, dim3(8), dim3(128), arguments, 0,
                           stream));
    CHECK(cudaLaunchCooperativeKernel((const void *)work::remote<float>, dim3(8), dim3(128),
                                      arguments, 0, stream));
    config.gridDim = dim3(8);
    config.blockDim = dim3(128);
    config.stream = stream;
    CHECK(cudaLaunchKernelEx(&config, work::remote<float>, data));
    launched += 6;

    CHECK(cudaGetFuncBySymbol(&function, (const void *)work::remote<float>));
    CHECK(cudaGetDriverEntryPointByVersion("cuLaunchKernel", &entry, 12000,
                                           cudaEnableDefault, &found));
    reinterpret_cast<CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                  unsigned, unsigned, CUstream, void **, void **)>(entry)(
        (CUfunction)function, 8, 1, 1, 128, 1, 1, 0, (CUstream)stream, arguments, nullptr);
    launched += 1;
    if (with_default_stream) {
        work::remote<float><<<8, 128>>>(data);
        work::remote<float><<<8, 128, 0, cudaStreamLegacy>>>(data);
        work::remote<float><<<8, 128, 0, cudaStreamPerThread>>>(data);
        launched += 3;
    }
}

static void print_node(cudaGraphNode_t node)
{
    cudaKernelNodeParams parameters;
    cudaLaunchAttributeValue domain = {}, map = {}, cluster = {}, priority = {};
    const char *name = "?";

    CHECK(cudaGraphKernelNodeGetParams(node, &parameters));
    CHECK(cudaFuncGetName(&name, parameters.func));
    CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeMemSyncDomain, &domain));
    CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeMemSyncDomainMap, &map));
    CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &cluster));
    CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributePriority, &priority));
    std::printf("node %s domain %d map %d %d cluster %u %u %u priority %d\n", name,
                (int)domain.memSyncDomain, map.memSyncDomainMap.default_,
                map.memSyncDomainMap.remote, cluster.clusterDim.x, cluster.clusterDim.y,
                cluster.clusterDim.z, priority.priority);
}

int main()
{
    float *data;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    size_t count = 0;
    std::vector<float> host(1024);

    CHECK(cudaMalloc(&data, 1024 * sizeof *data));
    CHECK(cudaMemset(data, 0, 1024 * sizeof *data));
    CHECK(cudaStreamCreate(&stream));
    launch_all(data, stream, true);
    CHECK(cudaDeviceSynchronize());
    std::printf("eager %d\n", launched);

    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    launch_all(data, stream, false);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphGetNodes(graph, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
    for (cudaGraphNode_t node : nodes)
        print_node(node);

    cudaGraphNode_t added;
    cudaKernelNodeParams parameters = {};
    void *arguments[] = {&data};
    parameters.func = (void *)work::remote<float>;
    parameters.gridDim = dim3(8);
    parameters.blockDim = dim3(128);
    parameters.kernelParams = arguments;
    cudaGraphNode_t *last = count != 0 ? &nodes[count - 1] : nullptr;
    CHECK(cudaGraphAddKernelNode(&added, graph, last, last != nullptr, &parameters));
    std::printf("explicit ");
    print_node(added);

    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 5; i++)
        CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(host.data(), data, 1024 * sizeof *data, cudaMemcpyDeviceToHost));
    std::printf("sum %g\n", host[0] + host[1023]);
    return 0;
}
