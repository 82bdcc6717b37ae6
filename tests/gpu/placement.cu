/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where kernels run, and in which order, under a policy with partitions. Prints a line a phase:
 *   phase NAME blocks N sms K set a-b,c-d
 *   value NAME got wanted
 *   told NAME answer
 * Built with -lcuda; the policy decides by kernel name and stream index.
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            std::printf("error %s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(error_));       \
            std::fflush(stdout);                                                                   \
            std::_Exit(1);                                                                         \
        }                                                                                          \
    } while (0)

/* More than a device holds at once: such grids need not stay co-resident. */
static const int BLOCKS = 8192;

__device__ unsigned sm_number()
{
    unsigned number;
    asm volatile("mov.u32 %0, %smid;" : "=r"(number));
    return number;
}

__device__ void note(unsigned *sms)
{
    if (threadIdx.x == 0)
        sms[blockIdx.x] = sm_number();
    long long begin = clock64();
    while (clock64() - begin < 10000)
        ;
}

namespace place {
/* A rule moves this one. */
__global__ void moved(unsigned *sms) { note(sms); }
/* No rule speaks of this one. */
__global__ void stays(unsigned *sms) { note(sms); }
/* Their order shows in the result. */
__global__ void moved_triple(unsigned *value) { *value = *value * 3 + 1; }
__global__ void double_it(unsigned *value) { *value = *value * 2; }
/* Takes its time, then writes. */
__global__ void late(volatile unsigned *flag)
{
    long long begin = clock64();
    while (clock64() - begin < 100000000)
        ;
    *flag = 1;
}
__global__ void moved_together(unsigned *sms)
{
    note(sms);
    cooperative_groups::this_grid().sync();
}
__global__ void __cluster_dims__(4, 1, 1) moved_cluster(unsigned *sms) { note(sms); }
} // namespace place

static unsigned *sms;
static std::vector<unsigned> host(BLOCKS);

static void clear()
{
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemset(sms, 0xff, BLOCKS * sizeof *sms));
    CHECK(cudaDeviceSynchronize());
}

static void show(const char *name, int blocks)
{
    std::set<unsigned> seen;
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(host.data(), sms, BLOCKS * sizeof *sms, cudaMemcpyDeviceToHost));
    for (int i = 0; i < blocks; i++)
        seen.insert(host[i]);
    std::string text;
    for (auto at = seen.begin(); at != seen.end();) {
        unsigned first = *at, last = first;
        for (++at; at != seen.end() && *at == last + 1; ++at)
            last = *at;
        text += (text.empty() ? "" : ",") + std::to_string(first) +
                (last != first ? "-" + std::to_string(last) : "");
    }
    std::printf("phase %s blocks %d sms %zu set %s\n", name, blocks, seen.size(), text.c_str());
    std::fflush(stdout);
    clear();
}

static unsigned order(cudaStream_t stream, unsigned *value, bool graph)
{
    unsigned got = 0, wanted = 1;
    cudaGraph_t captured;
    cudaGraphExec_t executable;
    CHECK(cudaMemcpy(value, &wanted, sizeof wanted, cudaMemcpyHostToDevice));
    if (graph)
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 50; i++) {
        place::moved_triple<<<1, 1, 0, stream>>>(value);
        place::double_it<<<1, 1, 0, stream>>>(value);
        place::moved_triple<<<1, 1, 0, stream>>>(value);
        place::moved_triple<<<1, 1, 0, stream>>>(value);
        place::double_it<<<1, 1, 0, stream>>>(value);
    }
    if (graph) {
        size_t nodes = 0, edges = 0;
        CHECK(cudaStreamEndCapture(stream, &captured));
        CHECK(cudaGraphGetNodes(captured, nullptr, &nodes));
#if CUDART_VERSION >= 13000
        CHECK(cudaGraphGetEdges(captured, nullptr, nullptr, nullptr, &edges));
#else
        CHECK(cudaGraphGetEdges(captured, nullptr, nullptr, &edges));
#endif
        std::printf("told graph nodes %zu edges %zu\n", nodes, edges);
        CHECK(cudaGraphInstantiate(&executable, captured, 0));
        CHECK(cudaGraphLaunch(executable, stream));
    }
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(&got, value, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 50; i++)
        wanted = ((wanted * 3 + 1) * 2 * 3 + 1) * 3 * 2 + 2;
    if (graph) {
        CHECK(cudaGraphExecDestroy(executable));
        CHECK(cudaGraphDestroy(captured));
    }
    std::printf("value %s %u %u\n", graph ? "captured order" : "order", got, wanted);
    return got;
}

static void ask(const char *name, cudaStream_t stream)
{
    CUcontext context = nullptr, current = nullptr;
    unsigned flags = 99;
    int priority = 99, device = 99;
    unsigned long long id = 0;
    cuCtxGetCurrent(&current);
    CUresult result = cuStreamGetCtx((CUstream)stream, &context);
    CHECK(cudaStreamGetFlags(stream, &flags));
    CHECK(cudaStreamGetPriority(stream, &priority));
    CHECK(cudaStreamGetId(stream, &id));
#if CUDART_VERSION >= 12080
    CHECK(cudaStreamGetDevice(stream, &device));
#endif
    std::printf("told %s context %d %s flags %u priority %d device %d\n", name, (int)result,
                context == current ? "current" : "other", flags, priority, device);
}

static void graphs(cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    place::moved<<<BLOCKS, 128, 0, stream>>>(sms);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, nullptr));
    show("captured moved", BLOCKS);

    cudaGraph_t again;
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    place::moved<<<BLOCKS, 128, 0, stream>>>(sms);
    CHECK(cudaStreamEndCapture(stream, &again));
    cudaError_t updated = cudaGraphExecUpdate(executable, again, &info);
    std::printf("told update of the same capture %d\n", (int)updated);
    CHECK(cudaGraphLaunch(executable, stream));
    show("captured moved, updated", BLOCKS);
    CHECK(cudaGraphDestroy(again));
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));

    cudaGraphNode_t node;
    cudaKernelNodeParams parameters = {};
    void *arguments[] = {&sms};
    parameters.func = (void *)place::moved;
    parameters.gridDim = dim3(BLOCKS);
    parameters.blockDim = dim3(128);
    parameters.kernelParams = arguments;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, stream));
    show("explicit node", BLOCKS);
    cudaKernelNodeParams read = {};
    CHECK(cudaGraphKernelNodeGetParams(node, &read));
    std::printf("told node function %s\n", read.func == parameters.func ? "same" : "other");
    parameters.blockDim = dim3(64);
    CHECK(cudaGraphKernelNodeSetParams(node, &parameters));
    CHECK(cudaGraphExecKernelNodeSetParams(executable, node, &parameters));
    CHECK(cudaGraphLaunch(executable, stream));
    show("explicit node, set in the executable", BLOCKS);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, stream));
    show("explicit node, set in the graph", BLOCKS);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
}

static void together(cudaStream_t stream, const char *name, int blocks)
{
    void *arguments[] = {&sms};
    cudaError_t result = cudaLaunchCooperativeKernel((const void *)place::moved_together,
                                                     dim3(blocks), dim3(512), arguments, 0, stream);
    std::printf("told %s %d\n", name, (int)result);
    show(name, blocks);
}

static void threads(unsigned *value)
{
    std::vector<std::thread> all;
    for (int i = 0; i < 8; i++)
        all.emplace_back([i, value] {
            unsigned one = 1, got = 0, wanted = 1;
            unsigned *mine = value + i;
            CHECK(cudaMemcpyAsync(mine, &one, sizeof one, cudaMemcpyHostToDevice,
                                  cudaStreamPerThread));
            for (int k = 0; k < 1000; k++) {
                place::moved_triple<<<1, 1, 0, cudaStreamPerThread>>>(mine);
                place::double_it<<<1, 1, 0, cudaStreamPerThread>>>(mine);
                wanted = (wanted * 3 + 1) * 2;
            }
            CHECK(cudaMemcpyAsync(&got, mine, sizeof got, cudaMemcpyDeviceToHost,
                                  cudaStreamPerThread));
            CHECK(cudaStreamSynchronize(cudaStreamPerThread));
            if (got != wanted)
                std::printf("value thread %u %u\n", got, wanted);
        });
    for (auto &thread : all)
        thread.join();
    std::printf("told threads done\n");
}

static void everything()
{
    cudaStream_t first, second, blocking, high;
    unsigned *value, *flag, *device_flag;
    CHECK(cudaFree(nullptr));
    CHECK(cudaMalloc(&sms, BLOCKS * sizeof *sms));
    CHECK(cudaMalloc(&value, 64 * sizeof *value));
    CHECK(cudaHostAlloc(&flag, sizeof *flag, cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&device_flag, flag, 0));
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK(cudaStreamCreate(&blocking));
    CHECK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, -3));
    clear();
    place::stays<<<BLOCKS, 128, 0, first>>>(sms);
    show("stream 0", BLOCKS);
    place::stays<<<BLOCKS, 128, 0, second>>>(sms);
    show("stream 1", BLOCKS);
    place::stays<<<BLOCKS, 128, 0, blocking>>>(sms);
    show("blocking stream", BLOCKS);
    place::stays<<<BLOCKS, 128, 0, high>>>(sms);
    show("stream with priority", BLOCKS);
    place::stays<<<BLOCKS, 128>>>(sms);
    show("legacy stream", BLOCKS);
    place::moved<<<BLOCKS, 128, 0, second>>>(sms);
    show("moved from stream 1", BLOCKS);
    place::moved<<<BLOCKS, 128, 0, blocking>>>(sms);
    show("moved from the blocking stream", BLOCKS);
    place::moved<<<BLOCKS, 128, 0, first>>>(sms);
    show("moved from stream 0", BLOCKS);
    place::moved<<<BLOCKS, 128>>>(sms);
    show("moved from the legacy stream", BLOCKS);
    place::moved<<<BLOCKS, 128, 0, cudaStreamPerThread>>>(sms);
    show("moved from the per-thread stream", BLOCKS);
    place::moved_cluster<<<BLOCKS, 128, 0, second>>>(sms);
    show("moved with a cluster", BLOCKS);
    ask("stream 0", first);
    ask("stream 1", second);
    ask("stream with priority", high);
    together(second, "cooperative, fits the partition", 16);
    together(second, "cooperative, fits the device only", 132);
    together(first, "cooperative on stream 0, fits the device only", 132);
    order(second, value, false);
    order(blocking, value, false);
    order(first, value, false);
    order(nullptr, value, false);
    order(second, value, true);
    order(first, value, true);
    graphs(second);
    threads(value);

    *flag = 0;
    place::late<<<1, 1, 0, first>>>(device_flag);
    CHECK(cudaDeviceSynchronize());
    std::printf("value device waits for stream 0 %u 1\n", *(volatile unsigned *)flag);
    CHECK(cudaStreamDestroy(first));
    CHECK(cudaStreamDestroy(second));
    CHECK(cudaStreamDestroy(blocking));
    CHECK(cudaStreamDestroy(high));
    CHECK(cudaFree(sms));
    CHECK(cudaFree(value));
    CHECK(cudaFreeHost(flag));
}

/* The cost of a launch that is moved: nanoseconds each, launches submitted back to back. */
static void cost()
{
    unsigned *value;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    float milliseconds;
    const int launches = 20000;
    CHECK(cudaMalloc(&value, 64 * sizeof *value));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    for (int kind = 0; kind < 2; kind++)
        for (int round = 0; round < 3; round++) {
            CHECK(cudaEventRecord(begin, stream));
            for (int i = 0; i < launches; i++)
                if (kind == 0)
                    place::double_it<<<1, 1, 0, stream>>>(value);
                else
                    place::moved_triple<<<1, 1, 0, stream>>>(value);
            CHECK(cudaEventRecord(end, stream));
            CHECK(cudaStreamSynchronize(stream));
            CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
            if (round == 2)
                std::printf("cost %s %.0f\n", kind == 0 ? "stays" : "moved",
                            milliseconds * 1e6 / launches);
        }
}

/* What 128 streams cost, as PyTorch's pools have them: milliseconds to create, bytes of the device. */
static void streams()
{
    cudaStream_t stream[128];
    size_t before, after, total;
    cudaEvent_t begin;
    CHECK(cudaFree(nullptr));
    CHECK(cudaStreamCreateWithPriority(&stream[0], cudaStreamNonBlocking, -1));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaMemGetInfo(&before, &total));
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 128; i++)
        CHECK(cudaStreamCreateWithPriority(&stream[i], cudaStreamNonBlocking, -1 - i % 4));
    auto end = std::chrono::steady_clock::now();
    CHECK(cudaMemGetInfo(&after, &total));
    std::printf("streams %.3f %zu\n",
                std::chrono::duration<double, std::milli>(end - start).count(), before - after);
}

int main(int count, char **arguments)
{
    if (count > 1 && std::string(arguments[1]) == "streams") {
        streams();
        return 0;
    }
    if (count > 1 && std::string(arguments[1]) == "cost") {
        cost();
        return 0;
    }
    everything();
    CHECK(cudaDeviceReset());
    std::printf("told reset\n");
    everything();
    std::printf("told end\n");
    return 0;
}
