/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads do. */
#include "load.h"

#include <stdio.h>
#include <string.h>

void load_launch_often(unsigned number, unsigned times, struct load_counts *counts)
{
    const struct load_device *device = load_use(number);
    CUstream stream;
    CHECK(driver.cuStreamCreate(&stream, number % 3 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    for (unsigned i = 0; i < times; i++) {
        unsigned kernel = (number + i) % CHURN_FIRST;
        load_pause();
        load_launch(device->functions[kernel], kernel, i % 7 ? stream : NULL, number + i / 5,
                    counts);
        if (i % 500 == 499) {
            CHECK(driver.cuStreamDestroy_v2(stream));
            CHECK(driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -1));
        }
    }
    CHECK(driver.cuStreamDestroy_v2(stream));
}

/* The handles of what was unloaded come back under other names. */
static void churn_module(unsigned kernel, struct load_counts *counts)
{
    char image[64];
    CUmodule module;
    CUfunction function;
    snprintf(image, sizeof image, "kernel %s\n", load_kernel_name(kernel));
    CHECK(driver.cuModuleLoadData(&module, image));
    CHECK(driver.cuModuleGetFunction(&function, module, load_kernel_name(kernel)));
    load_launch(function, kernel, NULL, 0, counts);
    load_launch(function, kernel, NULL, 2, counts);
    CHECK(driver.cuModuleUnload(module));
}

static void churn_library(unsigned kernel, struct load_counts *counts)
{
    char image[64];
    CUlibrary library;
    CUkernel handle;
    snprintf(image, sizeof image, "kernel %s\n", load_kernel_name(kernel));
    CHECK(driver.cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    CHECK(driver.cuLibraryGetKernel(&handle, library, load_kernel_name(kernel)));
    load_launch((CUfunction)(void *)handle, kernel, NULL, 0, counts);
    CHECK(driver.cuLibraryUnload(library));
}

void load_churn_modules(unsigned number, unsigned times, struct load_counts *counts)
{
    load_use(number);
    for (unsigned i = 0; i < times; i++) {
        unsigned kernel = CHURN_FIRST + (number * 3 + i) % CHURN_COUNT;
        load_pause();
        if (i % 4 == 3)
            churn_library(kernel, counts);
        else
            churn_module(kernel, counts);
    }
}

void load_make_streams(unsigned number, unsigned times, struct load_counts *counts)
{
    const struct load_device *device = load_use(number);
    CUlaunchAttributeValue value;
    CUstream streams[3];
    memset(&value, 0, sizeof value);
    for (unsigned i = 0; i < times; i++) {
        load_pause();
        CHECK(driver.cuStreamCreate(&streams[0], CU_STREAM_NON_BLOCKING));
        CHECK(driver.cuStreamCreate(&streams[1], CU_STREAM_DEFAULT));
        CHECK(driver.cuStreamCreateWithPriority(&streams[2], CU_STREAM_NON_BLOCKING, -3));
        value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
        CHECK(driver.cuStreamSetAttribute(streams[0], CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
        CHECK(driver.cuStreamCopyAttributes(streams[1], streams[0]));
        for (unsigned j = 0; j < 3; j++)
            load_launch(device->functions[WORK_DOMAIN], WORK_DOMAIN, streams[j], j, counts);
        for (unsigned j = 0; j < 3; j++)
            CHECK(driver.cuStreamDestroy_v2(streams[(i + j) % 3]));
    }
}

/* A context of its own, whose end takes the module along. */
static void use_context(const struct load_device *device, unsigned number, unsigned kernel,
                        struct load_counts *counts)
{
    char image[64];
    CUcontext context;
    CUmodule module;
    CUfunction function;
    snprintf(image, sizeof image, "kernel %s\n", load_kernel_name(kernel));
    CHECK(driver.cuCtxCreate_v2(&context, 0, (int)(number % (unsigned)device_count)));
    CHECK(driver.cuModuleLoadData(&module, image));
    CHECK(driver.cuModuleGetFunction(&function, module, load_kernel_name(kernel)));
    load_launch(function, kernel, NULL, 0, counts);
    CHECK(driver.cuCtxDestroy_v2(context));
    CHECK(driver.cuCtxSetCurrent(device->context));
}

static void launch_by_look_up(CUfunction function, unsigned kernel, struct load_counts *counts)
{
    void *found = NULL;
    CHECK(driver.cuGetProcAddress_v2("cuLaunchKernel", &found, 7000, 0, NULL));
    CHECK(((__typeof__(driver.cuLaunchKernel))found)(function, 8, 1, 1, 64, 1, 1, 0, NULL, NULL,
                                                     NULL));
    counts->of[kernel][EAGER]++;
}

/* Those that all others launch. */
void load_change_functions(unsigned number, unsigned times, struct load_counts *counts)
{
    const struct load_device *device = load_use(number);
    for (unsigned i = 0; i < times; i++) {
        unsigned kernel = i % CHURN_FIRST;
        load_pause();
        CHECK(driver.cuFuncSetAttribute(device->functions[kernel],
                                        CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                        (int)(i % 101)));
        if (i % 8 == 0)
            CHECK(driver.cuFuncSetCacheConfig(device->functions[kernel], CU_FUNC_CACHE_PREFER_L1));
        launch_by_look_up(device->functions[kernel], kernel, counts);
        use_context(device, number, CHURN_FIRST + i % CHURN_COUNT, counts);
    }
}

/* ---- Graphs ------------------------------------------------------------------------------------
 */

/* A graph's kernels, and how often it ran. */
struct graph_run {
    uint64_t of[CHURN_FIRST];
};

static void run(CUgraphExec executable, CUstream stream, unsigned times,
                const struct graph_run *nodes, struct load_counts *counts)
{
    for (unsigned i = 0; i < times; i++)
        CHECK(driver.cuGraphLaunch(executable, stream));
    for (unsigned kernel = 0; kernel < CHURN_FIRST; kernel++)
        counts->of[kernel][REPLAYED] += times * nodes->of[kernel];
}

static CUgraph capture(const struct load_device *device, CUstream stream, unsigned length,
                       struct graph_run *nodes, struct load_counts *counts)
{
    CUgraph graph;
    CHECK(driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (unsigned i = 0; i < length; i++) {
        unsigned kernel = i % CHURN_FIRST;
        CHECK(driver.cuLaunchKernel(device->functions[kernel], 8, 1, 1, 64, 1, 1, 0, stream, NULL,
                                    NULL));
        counts->of[kernel][CAPTURED]++;
        nodes->of[kernel]++;
    }
    CHECK(driver.cuStreamEndCapture(stream, &graph));
    return graph;
}

static CUDA_KERNEL_NODE_PARAMS_v2 parameters_of(CUfunction function, unsigned blocks)
{
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    memset(&parameters, 0, sizeof parameters);
    parameters.func = function;
    parameters.gridDimX = blocks;
    parameters.gridDimY = parameters.gridDimZ = 1;
    parameters.blockDimX = 64;
    parameters.blockDimY = parameters.blockDimZ = 1;
    return parameters;
}

/* The node of the last kernel gets the kernel before it. */
static CUgraph build(const struct load_device *device, struct graph_run *nodes,
                     struct load_counts *counts)
{
    CUgraph graph, clone;
    CUgraphNode node = NULL;
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    CHECK(driver.cuGraphCreate(&graph, 0));
    for (unsigned kernel = 0; kernel < CHURN_FIRST; kernel++) {
        parameters = parameters_of(device->functions[kernel], 8);
        CHECK(driver.cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &parameters));
        counts->of[kernel][NODE]++;
        nodes->of[kernel]++;
    }
    parameters = parameters_of(device->functions[CHURN_FIRST - 2], 7);
    CHECK(driver.cuGraphKernelNodeSetParams_v2(node, &parameters));
    counts->of[CHURN_FIRST - 2][NODE]++;
    nodes->of[CHURN_FIRST - 1]--;
    nodes->of[CHURN_FIRST - 2]++;
    CHECK(driver.cuGraphClone(&clone, graph));
    CHECK(driver.cuGraphDestroy(graph));
    return clone;
}

static void update(CUgraphExec executable, const struct load_device *device, CUstream stream,
                   struct load_counts *counts)
{
    struct graph_run nodes = {{0}};
    CUgraphExecUpdateResultInfo info;
    CUgraph graph = capture(device, stream, 7, &nodes, counts);
    CHECK(driver.cuGraphExecUpdate_v2(executable, graph, &info));
    run(executable, stream, 2, &nodes, counts);
    CHECK(driver.cuGraphDestroy(graph));
}

void load_make_graphs(unsigned number, unsigned times, struct load_counts *counts)
{
    const struct load_device *device = load_use(number);
    CUstream stream;
    CHECK(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < times; i++) {
        struct graph_run captured = {{0}}, built = {{0}};
        CUgraphExec executable;
        load_pause();
        CUgraph graph = capture(device, stream, 7, &captured, counts);
        CHECK(driver.cuGraphInstantiateWithFlags(&executable, graph, 0));
        CHECK(driver.cuGraphDestroy(graph));
        run(executable, stream, 3, &captured, counts);
        update(executable, device, stream, counts);
        CHECK(driver.cuGraphExecDestroy(executable));
        graph = build(device, &built, counts);
        CHECK(driver.cuGraphInstantiateWithFlags(&executable, graph, 0));
        run(executable, stream, 2, &built, counts);
        CHECK(driver.cuGraphExecDestroy(executable));
        CHECK(driver.cuGraphDestroy(graph));
    }
    CHECK(driver.cuStreamDestroy_v2(stream));
}
