/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short kernels on one stream, beside kernels that write pinned host memory on another. No launch has a
 * memory-synchronization domain of its own. At the end of each short kernel the GPU flushes what was
 * written in the kernel's domain, so it waits for the writer's stores to host memory unless the two are
 * in different domains (CUDA C++ Programming Guide, "Memory Synchronization Domains").
 *
 * Arguments: repetitions (default 15). Prints one line a repetition: milliseconds of the short kernels.
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

__global__ void write_host_memory(unsigned *host, size_t words, unsigned passes)
{
    const size_t stride = (size_t)gridDim.x * blockDim.x;

    for (unsigned pass = 0; pass < passes; pass++)
        for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += stride)
            host[i] = pass + (unsigned)i;
}

__global__ void short_kernel(float *data)
{
    data[blockIdx.x * blockDim.x + threadIdx.x] += 1.0f;
}

int main(int argc, char **argv)
{
    const int repetitions = argc > 1 ? std::atoi(argv[1]) : 15;
    const int short_kernels = 4000;
    const size_t words = (size_t)64 << 20 >> 2;
    unsigned *host, *host_on_device;
    float *data;
    cudaStream_t writer, worker;
    cudaEvent_t begin, end, written;

    CHECK(cudaHostAlloc(&host, words * sizeof *host, cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&host_on_device, host, 0));
    CHECK(cudaMalloc(&data, 64 * 256 * sizeof *data));
    CHECK(cudaMemset(data, 0, 64 * 256 * sizeof *data));
    CHECK(cudaStreamCreateWithFlags(&writer, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&worker, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventCreate(&written));

    for (int repetition = -2; repetition < repetitions; repetition++) {
        float milliseconds, all;

        CHECK(cudaEventRecord(begin, worker));
        CHECK(cudaStreamWaitEvent(writer, begin));
        write_host_memory<<<32, 256, 0, writer>>>(host_on_device, words, 40);
        CHECK(cudaEventRecord(written, writer));
        for (int i = 0; i < short_kernels; i++)
            short_kernel<<<64, 256, 0, worker>>>(data);
        CHECK(cudaEventRecord(end, worker));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
        CHECK(cudaEventElapsedTime(&all, begin, written));
        if (repetition >= 0)
            std::printf("%.3f %.3f\n", milliseconds, all);
    }
    return 0;
}
