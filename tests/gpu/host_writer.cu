/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short kernels on one stream, beside kernels that write pinned host memory on another. No launch has a
 * memory-synchronization domain of its own. At the end of each short kernel the GPU flushes what was
 * written in the kernel's domain, so it waits for the writer's stores to host memory unless the two are
 * in different domains (CUDA C++ Programming Guide, "Memory Synchronization Domains").
 *
 * Arguments: repetitions, blocks of the writer, nanoseconds it pauses between stores, short kernels, their
 * blocks. Prints one line a repetition: milliseconds of the short kernels, and of the writer. The writer
 * runs until it is told that the short kernels have ended.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            std::printf("error %s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(error_));       \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

__global__ void write_host_memory(unsigned *host, size_t words, unsigned pause,
                                  const volatile unsigned *stop)
{
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    while (*stop == 0) {
        host[i] = (unsigned)i;
        i += stride;
        if (i >= words)
            i -= words;
        if (pause != 0)
            __nanosleep(pause);
    }
}

__global__ void short_kernel(float *data)
{
    data[blockIdx.x * blockDim.x + threadIdx.x] += 1.0f;
}

static int argument(int argc, char **argv, int index, int otherwise)
{
    return argc > index ? std::atoi(argv[index]) : otherwise;
}

int main(int argc, char **argv)
{
    const int repetitions = argument(argc, argv, 1, 15);
    const int writer_blocks = argument(argc, argv, 2, 8);
    const int pause = argument(argc, argv, 3, 0);
    const int short_kernels = argument(argc, argv, 4, 4000);
    const int short_blocks = argument(argc, argv, 5, 64);
    const size_t words = (size_t)64 << 20 >> 2;
    unsigned *host, *host_on_device, *stop;
    float *data;
    cudaStream_t writer, worker, control;
    cudaEvent_t begin, end, written;

    CHECK(cudaHostAlloc(&host, words * sizeof *host, cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&host_on_device, host, 0));
    CHECK(cudaMalloc(&stop, sizeof *stop));
    CHECK(cudaMalloc(&data, short_blocks * 256 * sizeof *data));
    CHECK(cudaMemset(data, 0, short_blocks * 256 * sizeof *data));
    CHECK(cudaStreamCreateWithFlags(&writer, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&worker, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&control, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventCreate(&written));

    short_kernel<<<short_blocks, 256, 0, worker>>>(data); /* loaded now: loading waits for the device */
    for (int repetition = -2; repetition < repetitions; repetition++) {
        float milliseconds, all;

        CHECK(cudaMemset(stop, 0, sizeof *stop));
        CHECK(cudaDeviceSynchronize());
        write_host_memory<<<writer_blocks, 256, 0, writer>>>(host_on_device, words, pause, stop);
        CHECK(cudaEventRecord(written, writer));
        CHECK(cudaEventRecord(begin, worker));
        for (int i = 0; i < short_kernels; i++)
            short_kernel<<<short_blocks, 256, 0, worker>>>(data);
        CHECK(cudaEventRecord(end, worker));
        CHECK(cudaStreamSynchronize(worker));
        CHECK(cudaMemsetAsync(stop, 1, sizeof *stop, control));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
        CHECK(cudaEventElapsedTime(&all, begin, written));
        if (repetition >= 0)
            std::printf("%.3f %.3f\n", milliseconds, all);
    }
    return 0;
}
