/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls every runtime function of the table of entry points.
 *
 * usage: runtime linked|dlsym-local|dlsym-default LIBRARY enforced|untouched driver|runtime
 *
 * LIBRARY is the soname of the runtime, or "static". The last argument says which layer applies the
 * policy: at the runtime's alone, the first launch passes as it came, since only then is it known
 * that no driver wrapper sees it. The output is that of matrix.c.
 */
#include "runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

bool enforced;
static bool runtime_layer, first_launch;
static enum runtime_route route;
static void *runtime_handle;

static cudaGraph_t graph;
static cudaKernel_t kernel;

/* The address by which the program knows its kernel. */
static void exercised(void)
{
}

struct runtime_row;
typedef const char *runtime_exercise(const struct runtime_row *row, void *function);

struct runtime_row {
    const char *symbol;
    bool per_thread;
    runtime_exercise *exercise; /* NULL: nobody has written it */
};

/* Weak, so that a row which nobody has written an exercise for is NULL and is told. */
#define RUNTIME(symbol, variant, wrapper, parameters, arguments)                                   \
    __attribute__((weak)) runtime_exercise exercise_##wrapper;
#include "preload/entries.def"

void *runtime_function(const char *symbol)
{
    switch (route) {
    case RUNTIME_LINKED:
        /* What this runtime has not, a weak reference may find in the preloaded library. */
        return runtime_handle != NULL && raw_dlsym(runtime_handle, symbol) == NULL
                   ? NULL
                   : runtime_linked(symbol);
    case RUNTIME_BY_HANDLE:
        return dlsym(runtime_handle, symbol);
    case RUNTIME_BY_DEFAULT:
        return dlsym(RTLD_DEFAULT, symbol);
    }
    return NULL;
}

#define CALL(symbol) ((__typeof__(&symbol))runtime_function(#symbol))

static void check_runtime(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %d\n", what, (int)error);
        exit(2);
    }
}
#define CHECK_RUNTIME(call) check_runtime((call), #call)

/* nvcc's host code calls these; its headers declare them for C++ only. */
static void register_kernel(void)
{
    void **(*register_binary)(const void *) = runtime_function("__cudaRegisterFatBinary");
    void (*register_end)(void **) = runtime_function("__cudaRegisterFatBinaryEnd");
    void (*register_function)(void **, const char *, char *, const char *, int, void *, void *,
                              void *, void *, int *) = runtime_function("__cudaRegisterFunction");
    cudaError_t (*get_kernel)(cudaKernel_t *, const void *) = runtime_function("__cudaGetKernel");
    static char name[] = "exercised";
    void **binary = register_binary("kernel exercised params=8\n");

    register_function(binary, (const char *)(void *)exercised, name, name, -1, NULL, NULL, NULL,
                      NULL, NULL);
    register_end(binary);
    CHECK_RUNTIME(get_kernel(&kernel, (const void *)exercised));
}

/* ---- launches ---------------------------------------------------------------------------------
 */

static const char *launch_name(const struct runtime_row *row, bool changed)
{
    if (changed || strncmp(row->symbol, "cudaLaunchKernelExC", 19) == 0)
        return row->per_thread ? "cuLaunchKernelEx_ptsz" : "cuLaunchKernelEx";
    if (strncmp(row->symbol, "cudaLaunchCooperativeKernel", 27) == 0)
        return row->per_thread ? "cuLaunchCooperativeKernel_ptsz" : "cuLaunchCooperativeKernel";
    return row->per_thread ? "cuLaunchKernel_ptsz" : "cuLaunchKernel";
}

/* What is wrong with the index-th launch since the record was emptied. */
static const char *launch_problem(const struct runtime_row *row, size_t index)
{
    const bool changed = enforced && !(first_launch && index == 0);
    const struct recording_call *call = NULL;
    const CUlaunchAttributeValue *domain, *cooperative;
    size_t count = 0;

    for (size_t i = 0; i < recording.call_count(NULL); i++)
        if (strncmp(recording.call(i)->name, "cuLaunch", 8) == 0 && count++ == index)
            call = recording.call(i);
    if (count != 3)
        return problem("%zu launches reached the driver, 3 were made", count);
    if (strcmp(call->name, launch_name(row, changed)) != 0)
        return problem("launch %zu: %s was called, not %s", index, call->name,
                       launch_name(row, changed));
    if (strcmp(call->stream_name, row->per_thread ? "per_thread" : "legacy") != 0)
        return problem("NULL meant the stream %s", call->stream_name);
    if (call->grid[0] != 2 || call->block[0] != 64 || call->shared != 16 ||
        strcmp(call->kernel, "exercised") != 0 || call->handle != RECORDING_HANDLE_KERNEL)
        return problem("another launch than was made: %s", call->text);
    domain = effective_attribute(&call->effective, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN);
    if ((domain != NULL && domain->memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE) != changed)
        return problem("launch %zu: the domain is wrong: %s", index, call->text);
    cooperative = effective_attribute(&call->effective, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
    if (changed && strncmp(row->symbol, "cudaLaunchCooperativeKernel", 27) == 0 &&
        (cooperative == NULL || cooperative->cooperative != 1))
        return "the launch is not cooperative";
    return NULL;
}

static const char *launches_problem(const struct runtime_row *row)
{
    const char *wrong = NULL;

    for (size_t i = 0; i < 3 && wrong == NULL; i++)
        wrong = launch_problem(row, i);
    first_launch = false;
    return wrong;
}

const char *exercise_runtime_launch(const struct runtime_row *row, void *function)
{
    cudaError_t (*launch)(const void *, dim3, dim3, void **, size_t, cudaStream_t) = function;
    /* <<<>>> of CUDA 13 passes a handle; the older function the host's address. */
    const bool by_handle = row->symbol[0] == '_';
    const void *what = by_handle ? (const void *)kernel : (const void *)exercised;
    void *pointer = NULL;
    void *arguments[] = {&pointer};

    recording.forget();
    for (int i = 0; i < 3; i++)
        CHECK_RUNTIME(
            launch(what, (dim3){2, 1, 1}, (dim3){64, 1, 1}, arguments, 16, (cudaStream_t)0));
    return launches_problem(row);
}

const char *exercise_runtime_launch_cooperative(const struct runtime_row *row, void *function)
{
    return exercise_runtime_launch(row, function);
}

const char *exercise_runtime_launch_ex(const struct runtime_row *row, void *function)
{
    cudaError_t (*launch)(const cudaLaunchConfig_t *, const void *, void **) = function;
    const cudaLaunchConfig_t config = {
        .gridDim = {2, 1, 1},
        .blockDim = {64, 1, 1},
        .dynamicSmemBytes = 16,
    };
    void *pointer = NULL;
    void *arguments[] = {&pointer};

    recording.forget();
    for (int i = 0; i < 3; i++)
        CHECK_RUNTIME(launch(&config, (const void *)exercised, arguments));
    return launches_problem(row);
}

/* ---- streams ----------------------------------------------------------------------------------
 */

/* A priority is given at creation: the runtime's layer, which acts afterwards, leaves it. */
static const char *created(CUstream stream, unsigned wanted_flags, int wanted_priority)
{
    int priority;
    unsigned flags;

    CHECK(RAW(cuStreamGetPriority)(stream, &priority));
    CHECK(RAW(cuStreamGetFlags)(stream, &flags));
    if (flags != wanted_flags)
        return problem("the stream's flags are %u", flags);
    if (priority != (enforced && !runtime_layer ? -1 : wanted_priority))
        return problem("the stream's priority is %d", priority);
    return stream_problem(stream);
}

const char *exercise_runtime_stream_create(const struct runtime_row *row, void *function)
{
    cudaError_t (*create)(cudaStream_t *) = function;
    cudaStream_t stream;

    (void)row;
    CHECK_RUNTIME(create(&stream));
    return created(stream, CU_STREAM_DEFAULT, 0);
}

const char *exercise_runtime_stream_create_with_flags(const struct runtime_row *row, void *function)
{
    cudaError_t (*create)(cudaStream_t *, unsigned) = function;
    cudaStream_t stream;

    (void)row;
    CHECK_RUNTIME(create(&stream, cudaStreamNonBlocking));
    return created(stream, CU_STREAM_NON_BLOCKING, 0);
}

const char *exercise_runtime_stream_create_with_priority(const struct runtime_row *row,
                                                         void *function)
{
    cudaError_t (*create)(cudaStream_t *, unsigned, int) = function;
    cudaStream_t stream;

    (void)row;
    CHECK_RUNTIME(create(&stream, cudaStreamNonBlocking, -2));
    return created(stream, CU_STREAM_NON_BLOCKING, -2);
}

/* On an execution context (CUDA 13.1), which is a green one. */
const char *exercise_runtime_stream_create_green(const struct runtime_row *row, void *function)
{
    cudaError_t (*create)(cudaStream_t *, void *, unsigned, int) = function;
    cudaStream_t stream;
    void *context = green_context();
    const char *wrong;

    (void)row;
    CHECK_RUNTIME(create(&stream, context, cudaStreamNonBlocking, -2));
    wrong = created(stream, CU_STREAM_NON_BLOCKING, -2);
    green_context_end(context);
    return wrong;
}

/* ---- graph nodes: settled by the driver's wrappers, by the runtime's only the caller is noted --
 */

static const char *added(CUgraphNode node)
{
    if (!runtime_layer)
        return node_problem(node);
    return node_attribute(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN).memSyncDomain ==
                   CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT
               ? NULL
               : "the node is not in the default domain";
}

static struct cudaKernelNodeParams node_parameters(void)
{
    static void *pointer;
    static void *arguments[] = {&pointer};
    const struct cudaKernelNodeParams parameters = {
        .func = (void *)exercised,
        .gridDim = {2, 1, 1},
        .blockDim = {64, 1, 1},
        .kernelParams = arguments,
    };

    return parameters;
}

const char *exercise_runtime_add_kernel_node(const struct runtime_row *row, void *function)
{
    cudaError_t (*add)(cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *, size_t,
                       const struct cudaKernelNodeParams *) = function;
    const struct cudaKernelNodeParams parameters = node_parameters();
    cudaGraphNode_t node;

    (void)row;
    CHECK_RUNTIME(add(&node, graph, NULL, 0, &parameters));
    return added(node);
}

const char *exercise_runtime_kernel_node_set_params(const struct runtime_row *row, void *function)
{
    cudaError_t (*set)(cudaGraphNode_t, const struct cudaKernelNodeParams *) = function;
    const struct cudaKernelNodeParams parameters = node_parameters();
    cudaGraphNode_t node;

    (void)row;
    CHECK_RUNTIME(CALL(cudaGraphAddKernelNode)(&node, graph, NULL, 0, &parameters));
    CHECK_RUNTIME(set(node, &parameters));
    return added(node);
}

#if CUDART_VERSION >= 13000
static struct cudaGraphNodeParams generic_parameters(void)
{
    const struct cudaKernelNodeParams kernel_parameters = node_parameters();
    struct cudaGraphNodeParams parameters;

    memset(&parameters, 0, sizeof parameters);
    parameters.type = cudaGraphNodeTypeKernel;
    parameters.kernel.func = kernel_parameters.func;
    parameters.kernel.gridDim = kernel_parameters.gridDim;
    parameters.kernel.blockDim = kernel_parameters.blockDim;
    parameters.kernel.kernelParams = kernel_parameters.kernelParams;
    return parameters;
}

const char *exercise_runtime_add_node(const struct runtime_row *row, void *function)
{
    cudaError_t (*add)(cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *,
                       const cudaGraphEdgeData *, size_t, struct cudaGraphNodeParams *) = function;
    struct cudaGraphNodeParams parameters = generic_parameters();
    cudaGraphNode_t before, node;

    (void)row;
    CHECK_RUNTIME(CALL(cudaGraphAddEmptyNode)(&before, graph, NULL, 0));
    CHECK_RUNTIME(add(&node, graph, &before, NULL, 1, &parameters));
    return added(node);
}

const char *exercise_runtime_node_set_params(const struct runtime_row *row, void *function)
{
    cudaError_t (*set)(cudaGraphNode_t, struct cudaGraphNodeParams *) = function;
    const struct cudaKernelNodeParams kernel_parameters = node_parameters();
    struct cudaGraphNodeParams parameters = generic_parameters();
    cudaGraphNode_t node;

    (void)row;
    CHECK_RUNTIME(CALL(cudaGraphAddKernelNode)(&node, graph, NULL, 0, &kernel_parameters));
    CHECK_RUNTIME(set(node, &parameters));
    return added(node);
}
#endif

/* ---- the table --------------------------------------------------------------------------------
 */

#define PLAIN false
#define PTSZ true
static const struct runtime_row rows_of_runtime[] = {
#define RUNTIME(symbol, variant, wrapper, parameters, arguments)                                   \
    {#symbol, variant, exercise_##wrapper},
#include "preload/entries.def"
};

static const char *exercise(const struct runtime_row *row)
{
    void *function = runtime_function(row->symbol);
    const char *wrong;

    if (row->exercise == NULL)
        return "missing";
    if (function == NULL)
        return "absent";
    wrong = row->exercise(row, function);
    return wrong != NULL ? wrong : "ok";
}

static bool load(const char *name, const char *library)
{
    if (strcmp(name, "linked") == 0) {
        route = RUNTIME_LINKED;
        runtime_handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD); /* NULL: static */
        return runtime_linked != NULL;
    }
    route = strcmp(name, "dlsym-local") == 0 ? RUNTIME_BY_HANDLE : RUNTIME_BY_DEFAULT;
    runtime_handle =
        dlopen(library, RTLD_NOW | (route == RUNTIME_BY_HANDLE ? RTLD_LOCAL : RTLD_GLOBAL));
    return runtime_handle != NULL;
}

int plugin_main(int argc, char **argv)
{
    raw_dlsym_find();
    if (argc != 5 || !load(argv[1], argv[2])) {
        fprintf(stderr, "usage: runtime ROUTE LIBRARY enforced|untouched driver|runtime\n");
        return 64;
    }
    enforced = strcmp(argv[3], "enforced") == 0;
    first_launch = runtime_layer = strcmp(argv[4], "runtime") == 0;
    CHECK_RUNTIME(CALL(cudaFree)(NULL));
    driver_start(RTLD_NOW | RTLD_LOCAL);
    register_kernel();
    CHECK_RUNTIME(CALL(cudaGraphCreate)(&graph, 0));
    for (size_t i = 0; i < sizeof rows_of_runtime / sizeof rows_of_runtime[0]; i++) {
        printf("%s\t%s\n", rows_of_runtime[i].symbol, exercise(&rows_of_runtime[i]));
        fflush(stdout);
    }
    return 0;
}
