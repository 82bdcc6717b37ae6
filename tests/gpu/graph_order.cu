/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One executable graph, launched in turns into two streams that nothing else orders. The driver orders
 * launches of one executable behind each other, so that the graph's kernel, which reads a counter, takes
 * its time and writes it back one higher, counts every launch. Under a live comparison the launches are of
 * several executables, and the count is right only if somebody else keeps the order.
 *
 * Arguments: launches; with a second one, the two streams take turns in bursts of so many. Prints the
 * launches, the count and microseconds a launch; exit status 1 when launches were lost.
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            std::printf("error %s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(error_));       \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

__global__ void count_slowly(volatile unsigned *counter)
{
    const unsigned seen = *counter;
    __nanosleep(20000);
    *counter = seen + 1;
}

int main(int argc, char **argv)
{
    const int launches = argc > 1 ? std::atoi(argv[1]) : 2000;
    const int burst = argc > 2 ? std::atoi(argv[2]) : 1;
    cudaStream_t streams[2];
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    unsigned *counter, count;

    CHECK(cudaMalloc(&counter, sizeof *counter));
    CHECK(cudaMemset(counter, 0, sizeof *counter));
    for (cudaStream_t &stream : streams)
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal));
    count_slowly<<<1, 1, 0, streams[0]>>>(counter);
    CHECK(cudaStreamEndCapture(streams[0], &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaDeviceSynchronize());

    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; i++)
        CHECK(cudaGraphLaunch(executable, streams[i / burst % 2]));
    CHECK(cudaDeviceSynchronize());
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;

    CHECK(cudaMemcpy(&count, counter, sizeof count, cudaMemcpyDeviceToHost));
    std::printf("launches %d counted %u microseconds %.3f\n", launches, count, took.count() / launches);
    return count == (unsigned)launches ? 0 : 1;
}
