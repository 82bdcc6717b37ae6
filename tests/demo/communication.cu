/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of the demo. It knows nothing of cudapolicy. Kernels whose names the policy
 * communication-to-remote-domain.ini has, and one that no policy speaks of, add to numbers in
 * pinned host memory. They are launched by every route there is in a program compiled by nvcc:
 * first at once, then again while the stream captures; a node is added to that graph explicitly,
 * and the graph is launched three times.
 *
 * Prints a line for each node of the graph, with its attributes as the driver has them, and the sum
 * of the numbers: node KERNEL domain=D map=A,B cluster=X,Y,Z sum N
 *
 * With a number as its argument it goes on for so many steps: in each, compute is launched, and the
 * graph behind it. Prints a line a step: step time: T us
 *
 * With nvcc this is CUDA C++. Without it, and only for the recording driver, which executes no
 * kernel, it is C: cc -x c communication.cu.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#define BLOCKS 4
#define THREADS 128
#define NUMBERS (BLOCKS * THREADS)
#define GRAPH_LAUNCHES 3
#define NODES_MAX 32

#ifdef __CUDACC__
#define AT (blockIdx.x * blockDim.x + threadIdx.x)

namespace ours
{
template <typename T, int ranks> __global__ void cross_device_reduce_1(T *to)
{
    to[AT] += ranks;
}
} // namespace ours

extern "C" __global__ void one_shot_all_reduce_kernel(unsigned *to)
{
    to[AT] += 1;
}

__global__ void my_peer_writer(unsigned *to)
{
    to[AT] += 1;
}

__global__ void compute(unsigned *to)
{
    to[AT] += 1;
}

#define CROSS_DEVICE_REDUCE ((const void *)ours::cross_device_reduce_1<unsigned, 2>)
#else
#include "without_nvcc.h"
#endif

#define ONE_SHOT_ALL_REDUCE ((const void *)one_shot_all_reduce_kernel)
#define MY_PEER_WRITER ((const void *)my_peer_writer)
#define COMPUTE ((const void *)compute)

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const int check = (int)(call);                                                             \
        if (check != 0) {                                                                          \
            fprintf(stderr, "line %d: %s: error %d\n", __LINE__, #call, check);                    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const dim3 grid = {BLOCKS, 1, 1}, block = {THREADS, 1, 1};
static unsigned *numbers;
static void *arguments[] = {&numbers};

static int device_has(enum cudaDeviceAttr attribute)
{
    int value = 0;

    CHECK(cudaDeviceGetAttribute(&value, attribute, 0));
    return value;
}

/* One attribute of the program's own, where the device has what it is about. */
static void launch_with(const void *kernel, cudaStream_t stream, int given,
                        cudaLaunchAttribute attribute)
{
    cudaLaunchConfig_t config;

    memset(&config, 0, sizeof config);
    config.gridDim = grid;
    config.blockDim = block;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = given ? 1 : 0;
    CHECK(cudaLaunchKernelExC(&config, kernel, arguments));
}

static void launch_with_cluster(const void *kernel, cudaStream_t stream)
{
    cudaLaunchAttribute attribute;

    memset(&attribute, 0, sizeof attribute);
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 2;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    launch_with(kernel, stream, device_has(cudaDevAttrClusterLaunch), attribute);
}

static void launch_with_domain(const void *kernel, cudaStream_t stream,
                               enum cudaLaunchMemSyncDomain domain)
{
    cudaLaunchAttribute attribute;

    memset(&attribute, 0, sizeof attribute);
    attribute.id = cudaLaunchAttributeMemSyncDomain;
    attribute.val.memSyncDomain = domain;
    launch_with(kernel, stream, device_has(cudaDevAttrMemSyncDomainCount) > 1, attribute);
}

typedef CUresult (*driver_launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                  unsigned, unsigned, CUstream, void **, void **);

/* As libraries do that must not be linked with libcuda. */
static void launch_by_driver(const void *kernel, cudaStream_t stream)
{
    enum cudaDriverEntryPointQueryResult found;
    void *entry = NULL;
    cudaFunction_t function;

#if CUDART_VERSION >= 12050
    CHECK(cudaGetDriverEntryPointByVersion("cuLaunchKernel", &entry, 12000, cudaEnableDefault,
                                           &found));
#else
    CHECK(cudaGetDriverEntryPoint("cuLaunchKernel", &entry, cudaEnableDefault, &found));
#endif
    CHECK(cudaGetFuncBySymbol(&function, kernel));
    CHECK(((driver_launch)entry)((CUfunction)function, BLOCKS, 1, 1, THREADS, 1, 1, 0,
                                 (CUstream)stream, arguments, NULL));
}

static void launch_all(cudaStream_t stream)
{
#ifdef __CUDACC__
    compute<<<grid, block, 0, stream>>>(numbers);
    ours::cross_device_reduce_1<unsigned, 2><<<grid, block, 0, stream>>>(numbers);
    CHECK(cudaGetLastError());
#else
    CHECK(cudaLaunchKernel(COMPUTE, grid, block, arguments, 0, stream));
    CHECK(cudaLaunchKernel(CROSS_DEVICE_REDUCE, grid, block, arguments, 0, stream));
#endif
    launch_with_cluster(ONE_SHOT_ALL_REDUCE, stream);
    CHECK(cudaLaunchKernel(MY_PEER_WRITER, grid, block, arguments, 0, stream));
    CHECK(cudaLaunchCooperativeKernel(MY_PEER_WRITER, grid, block, arguments, 0, stream));
    launch_by_driver(MY_PEER_WRITER, stream);
    launch_with_domain(MY_PEER_WRITER, stream, cudaLaunchMemSyncDomainRemote);
    launch_with_domain(MY_PEER_WRITER, stream, cudaLaunchMemSyncDomainDefault);
}

/* Behind all nodes that there are. */
static cudaGraphNode_t add_node(cudaGraph_t graph, const cudaGraphNode_t *nodes, size_t count,
                                const void *kernel)
{
    struct cudaKernelNodeParams parameters;
    cudaGraphNode_t node;

    memset(&parameters, 0, sizeof parameters);
    parameters.func = (void *)kernel;
    parameters.gridDim = grid;
    parameters.blockDim = block;
    parameters.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&node, graph, nodes, count, &parameters));
    return node;
}

/* The kernel of a node, in the readable form. Nodes need not tell the function that was launched,
 * but another handle of the same kernel. */
static const char *name_of(const void *function)
{
    static const struct {
        const void *kernel;
        const char *last, *name;
    } kernels[] = {
        {CROSS_DEVICE_REDUCE, "cross_device_reduce_1", "ours::cross_device_reduce_1"},
        {ONE_SHOT_ALL_REDUCE, "one_shot_all_reduce_kernel", "one_shot_all_reduce_kernel"},
        {MY_PEER_WRITER, "my_peer_writer", "my_peer_writer"},
        {COMPUTE, "compute", "compute"},
    };
    const char *mangled = "";

#if CUDART_VERSION >= 12030
    CHECK(cudaFuncGetName(&mangled, function));
#endif
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (kernels[i].kernel == function || strstr(mangled, kernels[i].last) != NULL)
            return kernels[i].name;
    return "?";
}

static void print_node(cudaGraphNode_t node)
{
    struct cudaKernelNodeParams parameters;
    cudaLaunchAttributeValue domain, map, cluster;

    CHECK(cudaGraphKernelNodeGetParams(node, &parameters));
    CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeMemSyncDomain, &domain));
    CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeMemSyncDomainMap, &map));
    CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &cluster));
    printf("node %s domain=%d map=%d,%d cluster=%u,%u,%u\n", name_of(parameters.func),
           (int)domain.memSyncDomain, map.memSyncDomainMap.default_, map.memSyncDomainMap.remote,
           cluster.clusterDim.x, cluster.clusterDim.y, cluster.clusterDim.z);
}

static double microseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void make_step(cudaGraphExec_t executable, cudaStream_t stream)
{
    const double start = microseconds();

    CHECK(cudaLaunchKernel(COMPUTE, grid, block, arguments, 0, stream));
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    printf("step time: %.3f us\n", microseconds() - start);
}

int main(int argc, char **argv)
{
    const long steps = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaGraphNode_t nodes[NODES_MAX];
    size_t count = NODES_MAX - 1;
    unsigned long sum = 0;

    CHECK(cudaMallocHost((void **)&numbers, NUMBERS * sizeof *numbers));
    memset(numbers, 0, NUMBERS * sizeof *numbers);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    launch_all(stream);
    CHECK(cudaStreamSynchronize(stream));

    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    launch_all(stream);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphGetNodes(graph, nodes, &count));
    nodes[count] = add_node(graph, nodes, count, MY_PEER_WRITER);
    count++;
    for (size_t i = 0; i < count; i++)
        print_node(nodes[i]);

    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < GRAPH_LAUNCHES; i++)
        CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < NUMBERS; i++)
        sum += numbers[i];
    printf("sum %lu\n", sum);
    for (long i = 0; i < steps; i++)
        make_step(executable, stream);
    return 0;
}
