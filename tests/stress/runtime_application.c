/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses the runtime, always the same, whatever its calls answer. What the runtime
 * keeps as the thread's last error is a result, too.
 *
 * usage: stress_runtime_application RESULTS
 */
#include "calls.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

enum {
    KERNELS = 4,
};

/* The addresses by which the program knows its kernels. */
static char kernels[KERNELS];
static char names[KERNELS][8] = {"alpha", "beta", "gamma", "zeta"};
static const char image[] = "kernel alpha\n"
                            "kernel beta regs=40\n"
                            "kernel gamma cluster=2,1,1\n"
                            "kernel zeta\n";

/* nvcc's host code calls these; its headers declare them for C++ only. */
void **__cudaRegisterFatBinary(const void *content);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, void *thread, void *block, void *block_dim,
                            void *grid_dim, int *warp_size);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);

static cudaError_t finish(const char *symbol, cudaError_t result)
{
    calls_end(symbol, (CUresult)result);
    calls_tell("last %d", (int)cudaPeekAtLastError());
    return result;
}

#define RUNTIME(symbol, ...)                                                                       \
    ({                                                                                             \
        calls_begin(#symbol);                                                                      \
        finish(#symbol, symbol(__VA_ARGS__));                                                      \
    })

static dim3 dim(unsigned x)
{
    return (dim3){x, 1, 1};
}

static void **register_kernels(void)
{
    void **binary = __cudaRegisterFatBinary(image);
    for (int i = 0; i < KERNELS; i++)
        __cudaRegisterFunction(binary, &kernels[i], names[i], names[i], -1, NULL, NULL, NULL, NULL,
                               NULL);
    __cudaRegisterFatBinaryEnd(binary);
    return binary;
}

static void launch(cudaStream_t stream)
{
    cudaKernel_t kernel;
    for (int i = 0; i < KERNELS; i++)
        for (unsigned blocks = 6; blocks < 9; blocks++)
            RUNTIME(cudaLaunchKernel, &kernels[i], dim(blocks), dim(64), NULL, 0, stream);
    RUNTIME(cudaLaunchCooperativeKernel, &kernels[0], dim(8), dim(64), NULL, 0, stream);
    RUNTIME(cudaLaunchKernel, &kernels[0], dim(0), dim(64), NULL, 0, stream);
    RUNTIME(cudaGetLastError);
    RUNTIME(cudaLaunchKernel, image, dim(4), dim(64), NULL, 0, stream);
    RUNTIME(cudaGetLastError);
    RUNTIME(__cudaGetKernel, &kernel, &kernels[1]);
    RUNTIME(__cudaLaunchKernel, kernel, dim(8), dim(64), NULL, 0, stream);
    RUNTIME(cudaLaunchKernel_ptsz, &kernels[0], dim(8), dim(64), NULL, 0, NULL);
}

static void capture(cudaStream_t stream)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    RUNTIME(cudaStreamBeginCapture, stream, cudaStreamCaptureModeGlobal);
    for (int i = 0; i < KERNELS; i++)
        RUNTIME(cudaLaunchKernel, &kernels[i], dim(8), dim(64), NULL, 0, stream);
    RUNTIME(cudaStreamEndCapture, stream, &graph);
    RUNTIME(cudaGraphInstantiate, &executable, graph, 0);
    RUNTIME(cudaGraphLaunch, executable, stream);
    RUNTIME(cudaGraphLaunch, executable, stream);
    RUNTIME(cudaGraphExecDestroy, executable);
    RUNTIME(cudaGraphDestroy, graph);
}

static void add_nodes(cudaStream_t stream)
{
    cudaGraph_t graph = NULL;
    cudaGraphNode_t node;
    cudaGraphExec_t executable = NULL;
    struct cudaKernelNodeParams parameters;
    memset(&parameters, 0, sizeof parameters);
    parameters.gridDim = dim(8);
    parameters.blockDim = dim(64);
    RUNTIME(cudaGraphCreate, &graph, 0);
    for (int i = 0; i < KERNELS; i++) {
        parameters.func = &kernels[i];
        RUNTIME(cudaGraphAddKernelNode, &node, graph, NULL, 0, &parameters);
    }
    parameters.gridDim = dim(7);
    RUNTIME(cudaGraphKernelNodeSetParams, node, &parameters);
    RUNTIME(cudaGraphInstantiate, &executable, graph, 0);
    RUNTIME(cudaGraphLaunch, executable, stream);
    RUNTIME(cudaGraphExecDestroy, executable);
    RUNTIME(cudaGraphDestroy, graph);
}

int main(int argc, char **argv)
{
    cudaStream_t streams[3] = {NULL, NULL, NULL};
    if (argc != 2) {
        fprintf(stderr, "usage: %s RESULTS\n", argv[0]);
        return 2;
    }
    calls_start(false, argv[1]);
    for (int round = 0; round < 2; round++) {
        void **binary = register_kernels();
        RUNTIME(cudaStreamCreate, &streams[0]);
        RUNTIME(cudaStreamCreateWithFlags, &streams[1], cudaStreamNonBlocking);
        RUNTIME(cudaStreamCreateWithPriority, &streams[2], cudaStreamNonBlocking, -2);
        for (int i = 0; i < 3; i++) {
            launch(streams[i]);
            capture(streams[i]);
            add_nodes(streams[i]);
        }
        launch(NULL);
        for (int i = 0; i < 3; i++)
            RUNTIME(cudaStreamDestroy, streams[i]);
        __cudaUnregisterFatBinary(binary);
    }
    calls_finish();
    return 0;
}
