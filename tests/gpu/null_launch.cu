/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of launching an empty kernel: prints nanoseconds a launch, the median of 21 rounds of 20,000
 * launches, the stream drained between rounds. Arguments: none. */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cuda_runtime.h>

__global__ void empty()
{
}

int main()
{
    const int rounds = 21, launches = 20000;
    double times[rounds];

    for (int round = -1; round < rounds; round++) {
        cudaDeviceSynchronize();
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < launches; i++) {
            empty<<<1, 32>>>();
            if (i % 500 == 499)
                cudaDeviceSynchronize();
        }
        const std::chrono::duration<double, std::nano> taken =
            std::chrono::steady_clock::now() - begin;
        if (round >= 0)
            times[round] = taken.count() / launches;
    }
    if (cudaGetLastError() != cudaSuccess)
        return 1;
    std::sort(times, times + rounds);
    std::printf("%.1f\n", times[rounds / 2]);
    return 0;
}
