/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library, or a program, with kernels of its own, as nvcc makes them: who its launches, streams
 * and nodes belong to is what the tests look at.
 *
 * usage: kernels NAME
 *
 * Launches kernel NAME by cudaLaunchKernel, __cudaLaunchKernel and cudaLaunchKernelExC, creates a
 * stream, and adds a node to a graph and sets its parameters. With KERNELS_LOADED the runtime is
 * not linked: its functions are looked up in the library that the environment's KERNELS_RUNTIME
 * names.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "plugin.h"

/* crt/host_runtime.h declares these for C++ only. */
void **__cudaRegisterFatBinary(const void *content);
void __cudaRegisterFatBinaryEnd(void **binary);
void __cudaUnregisterFatBinary(void **binary);
void __cudaRegisterFunction(void **binary, const char *host, char *device, const char *name,
                            int limit, void *thread, void *block, void *block_size, void *grid_size,
                            int *warp_size);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream);

#ifdef KERNELS_LOADED
static void *runtime;
#define CALL(symbol) ((__typeof__(&symbol))dlsym(runtime, #symbol))
#else
#define CALL(symbol) symbol
#endif

static void kernel(void)
{
}

static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s: %d\n", what, (int)error);
    exit(3);
}
#define CHECK(call) check((call), #call)

static void launch(void)
{
    const cudaLaunchConfig_t config = {.gridDim = {3, 1, 1}, .blockDim = {32, 1, 1}};
    void *pointer = NULL;
    void *arguments[] = {&pointer};
    cudaKernel_t handle;

    CHECK(CALL(cudaLaunchKernel)((const void *)kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments,
                                 0, NULL));
    CHECK(CALL(__cudaGetKernel)(&handle, (const void *)kernel));
    CHECK(CALL(__cudaLaunchKernel)(handle, (dim3){2, 1, 1}, (dim3){32, 1, 1}, arguments, 0, NULL));
    CHECK(CALL(cudaLaunchKernelExC)(&config, (const void *)kernel, arguments));
}

static void add_node(void)
{
    void *pointer = NULL;
    void *arguments[] = {&pointer};
    struct cudaKernelNodeParams parameters = {
        .func = (void *)kernel,
        .gridDim = {4, 1, 1},
        .blockDim = {32, 1, 1},
        .kernelParams = arguments,
    };
    cudaGraph_t graph;
    cudaGraphNode_t node;

    CHECK(CALL(cudaGraphCreate)(&graph, 0));
    CHECK(CALL(cudaGraphAddKernelNode)(&node, graph, NULL, 0, &parameters));
    parameters.gridDim.x = 5;
    CHECK(CALL(cudaGraphKernelNodeSetParams)(node, &parameters));
}

int plugin_main(int argc, char **argv)
{
    char image[256];
    void **binary;
    cudaStream_t stream;

    if (argc < 2)
        return 64;
#ifdef KERNELS_LOADED
    runtime = dlopen(getenv("KERNELS_RUNTIME"), RTLD_NOW | RTLD_LOCAL);
    if (runtime == NULL)
        return 4;
#endif
    snprintf(image, sizeof image, "kernel %s params=8\n", argv[1]);
    binary = CALL(__cudaRegisterFatBinary)(image);
    CALL(__cudaRegisterFunction)
    (binary, (const char *)(void *)kernel, argv[1], argv[1], -1, NULL, NULL, NULL, NULL, NULL);
    CALL(__cudaRegisterFatBinaryEnd)(binary);
    launch();
    CHECK(CALL(cudaStreamCreate)(&stream));
    add_node();
    CALL(__cudaUnregisterFatBinary)(binary);
    return 0;
}
