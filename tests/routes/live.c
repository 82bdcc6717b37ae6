/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does what its arguments say, one after the other, on a libcuda that it is linked with:
 *
 *   step                the kernel "step"
 *   work BLOCKS         the kernel "work"
 *   stream NUMBER       the stream from now on: 0 is NULL, -1 the per-thread one, others are
 * created no_stream NUMBER    destroys it repeat COUNT … end  repeats what stands between (not
 * nested) node BLOCKS         a node of "work" in a graph that is made at the first; the latest is
 * "the node" host | conditional | memory | child BLOCKS another node: of that kind, or with a graph
 * of one node of "work" capture BLOCKS      a graph of one captured launch of "work" instantiate
 * flags|log|params|device launch | upload     the executable graph, in the stream update BLOCKS
 * from a new graph of one node of "work" set BLOCKS          the node in the executable graph
 *   enable 0|1          the same
 *   domain              prints the domain of the node in the graph
 *   destroy             the executable graph
 *   count               prints how many executable graphs there are
 *   fail TEXT           of the recording driver, from now on
 *   expect RESULT       of the call before, where that is not 0
 *   threads COUNT       so many threads launch "work" until the program ends
 *   note TEXT
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording_driver.h"

enum {
    STREAM_LIMIT = 8,
    THREAD_LIMIT = 8,
};

static CUcontext context;
static CUmodule module;
static CUfunction step, work;
static CUstream streams[STREAM_LIMIT];
static CUstream stream;
static bool per_thread;
static CUgraph graph;
static CUgraphNode node;
static CUgraphExec executable;
static CUresult last;
static atomic_bool ended;
static pthread_t threads[THREAD_LIMIT];
static int thread_count;

static void check(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: %d\n", what, (int)result);
    exit(3);
}
#define CHECK(call) check((call), #call)

static CUresult launch_kernel(CUfunction function, unsigned blocks, CUstream into)
{
    void *pointer = NULL;
    void *arguments[] = {&pointer};

    return cuLaunchKernel(function, blocks, 1, 1, 32, 1, 1, 0, into, arguments, NULL);
}

static CUDA_KERNEL_NODE_PARAMS_v2 parameters(unsigned blocks)
{
    static void *pointer;
    static void *arguments[] = {&pointer};

    return (CUDA_KERNEL_NODE_PARAMS_v2){.func = work,
                                        .gridDimX = blocks,
                                        .gridDimY = 1,
                                        .gridDimZ = 1,
                                        .blockDimX = 32,
                                        .blockDimY = 1,
                                        .blockDimZ = 1,
                                        .kernelParams = arguments};
}

static void add_kernel(CUgraph to, unsigned blocks, CUgraphNode *added)
{
    const CUDA_KERNEL_NODE_PARAMS_v2 kernel = parameters(blocks);

    CHECK(cuGraphAddKernelNode_v2(added, to, NULL, 0, &kernel));
}

static CUgraph the_graph(void)
{
    if (graph == NULL)
        CHECK(cuGraphCreate(&graph, 0));
    return graph;
}

static void host_function(void *unused)
{
    (void)unused;
}

static void add_node(const char *kind, unsigned blocks)
{
    CUgraphNode added;

    if (strcmp(kind, "child") == 0) {
        CUgraph child;

        CHECK(cuGraphCreate(&child, 0));
        add_kernel(child, blocks, &added);
        CHECK(cuGraphAddChildGraphNode(&added, the_graph(), NULL, 0, child));
    } else if (strcmp(kind, "host") == 0) {
        const CUDA_HOST_NODE_PARAMS host = {.fn = host_function};

        CHECK(cuGraphAddHostNode(&added, the_graph(), NULL, 0, &host));
    } else {
        CUgraphNodeParams conditional = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                                         .conditional = {.ctx = context, .size = 1}};

        CHECK(cuGraphAddNode(&added, the_graph(), NULL, 0, &conditional));
    }
}

static void capture(unsigned blocks)
{
    CUstream capturing;
    size_t count = 1;

    CHECK(cuStreamCreate(&capturing, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CHECK(launch_kernel(work, blocks, capturing));
    CHECK(cuStreamEndCapture(capturing, &graph));
    CHECK(cuGraphGetNodes(graph, &node, &count));
    CHECK(cuStreamDestroy_v2(capturing));
}

static void instantiate(const char *how)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS instantiation = {0};
    CUgraphNode wrong;
    char log[16];

    if (strcmp(how, "log") == 0)
        last = cuGraphInstantiate_v2(&executable, graph, &wrong, log, sizeof log);
    else if (strcmp(how, "params") == 0)
        last = cuGraphInstantiateWithParams(&executable, graph, &instantiation);
    else
        last = cuGraphInstantiateWithFlags(
            &executable, graph,
            strcmp(how, "device") == 0 ? CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH : 0);
}

static void update(unsigned blocks)
{
    CUgraphExecUpdateResultInfo info;
    CUgraph another;
    CUgraphNode added;

    CHECK(cuGraphCreate(&another, 0));
    add_kernel(another, blocks, &added);
    last = cuGraphExecUpdate_v2(executable, another, &info);
    CHECK(cuGraphDestroy(another));
}

static void print_domain(void)
{
    CUkernelNodeAttrValue value = {0};

    CHECK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
    printf("domain %d\n", (int)value.memSyncDomain);
}

static void *launch_on(void *number)
{
    CUstream own;

    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
    while (!atomic_load(&ended))
        CHECK(launch_kernel(work, 100 + (unsigned)(uintptr_t)number, own));
    return NULL;
}

static void choose_stream(int number)
{
    per_thread = number == -1;
    stream = number == -1 ? CU_STREAM_PER_THREAD : number == 0 ? NULL : streams[number];
    if (number > 0 && stream == NULL) {
        CHECK(cuStreamCreate(&streams[number], CU_STREAM_NON_BLOCKING));
        stream = streams[number];
    }
}

/* The number of words used. */
static int without_argument(const char *word)
{
    if (strcmp(word, "step") == 0)
        last = launch_kernel(step, 1, stream);
    else if (strcmp(word, "launch") == 0)
        last =
            per_thread ? cuGraphLaunch_ptsz(executable, NULL) : cuGraphLaunch(executable, stream);
    else if (strcmp(word, "upload") == 0)
        last = cuGraphUpload(executable, stream);
    else if (strcmp(word, "host") == 0 || strcmp(word, "conditional") == 0)
        add_node(word, 0);
    else if (strcmp(word, "domain") == 0)
        print_domain();
    else if (strcmp(word, "destroy") == 0)
        last = cuGraphExecDestroy(executable);
    else if (strcmp(word, "count") == 0)
        printf("executables %zu\n", recording_driver_live("executable"));
    else
        return 0;
    return 1;
}

static int with_argument(const char *word, const char *argument)
{
    const unsigned number = (unsigned)atoi(argument);
    const CUDA_KERNEL_NODE_PARAMS_v2 kernel = parameters(number);

    if (strcmp(word, "work") == 0)
        last = launch_kernel(work, number, stream);
    else if (strcmp(word, "stream") == 0)
        choose_stream(atoi(argument));
    else if (strcmp(word, "no_stream") == 0) {
        CHECK(cuStreamDestroy_v2(streams[number]));
        streams[number] = NULL;
    } else if (strcmp(word, "node") == 0)
        add_kernel(the_graph(), number, &node);
    else if (strcmp(word, "child") == 0)
        add_node(word, number);
    else if (strcmp(word, "capture") == 0)
        capture(number);
    else if (strcmp(word, "instantiate") == 0)
        instantiate(argument);
    else if (strcmp(word, "update") == 0)
        update(number);
    else if (strcmp(word, "set") == 0)
        last = cuGraphExecKernelNodeSetParams_v2(executable, node, &kernel);
    else if (strcmp(word, "enable") == 0)
        last = cuGraphNodeSetEnabled(executable, node, number);
    else if (strcmp(word, "fail") == 0)
        recording_driver_configure("FAIL", argument);
    else if (strcmp(word, "note") == 0)
        recording_driver_note(argument);
    else if (strcmp(word, "threads") == 0) {
        for (thread_count = 0; thread_count < (int)number; thread_count++)
            pthread_create(&threads[thread_count], NULL, launch_on,
                           (void *)(uintptr_t)thread_count);
    } else {
        fprintf(stderr, "live: %s?\n", word);
        exit(64);
    }
    return 2;
}

static void end_threads(void)
{
    atomic_store(&ended, true);
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    int begin = 0, left = 0;

    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, "kernel step params=8\nkernel work params=8\n"));
    CHECK(cuModuleGetFunction(&step, module, "step"));
    CHECK(cuModuleGetFunction(&work, module, "work"));
    for (int i = 1; i < argc;) {
        CUresult wanted = CUDA_SUCCESS;
        int used;

        if (strcmp(argv[i], "repeat") == 0) {
            left = atoi(argv[i + 1]);
            begin = i += 2;
            continue;
        }
        if (strcmp(argv[i], "end") == 0) {
            i = --left > 0 ? begin : i + 1;
            continue;
        }
        last = CUDA_SUCCESS;
        used = without_argument(argv[i]);
        i += used != 0 ? used : with_argument(argv[i], i + 1 < argc ? argv[i + 1] : "");
        if (i + 1 < argc && strcmp(argv[i], "expect") == 0) {
            wanted = (CUresult)atoi(argv[i + 1]);
            i += 2;
        }
        if (last != wanted) {
            fprintf(stderr, "live: result %d, not %d, before word %d\n", (int)last, (int)wanted, i);
            return 3;
        }
    }
    end_threads();
    return 0;
}
