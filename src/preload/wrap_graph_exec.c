/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs. The decision engine is told after a call that succeeded, or before one that
 * ends a handle. In a live comparison an executable graph may have siblings: what the program does
 * to its own is done to them too.
 */
#include "preload/wrap_graph.h"

#include "decide/capture.h"
#include "decide/decide.h"
#include "decide/graph_live.h"
#include "decide/live.h"

static void before_instantiation(CUgraph graph, unsigned long long flags)
{
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0)
        decide_graph_for_device(graph);
}

/* How the program made its executable graph, or changed it: for its siblings in a live comparison.
 */
struct repeated_call {
    struct decide_live_call call; /* first: the address of one is the address of the other */
    void *real;
    unsigned long long flags;
    CUgraph graph;
    CUgraphNode node;
    const void *parameters;
    CUcontext context; /* the last argument, or to be current meanwhile */
    unsigned enabled;
};

static const struct repeated_call *repeated(const struct decide_live_call *call)
{
    return (const struct repeated_call *)(const void *)call;
}

static CUresult instantiated(const struct preload_slot *slot, CUresult result,
                             const CUgraphExec *executable, CUgraph graph,
                             const struct repeated_call *repeat)
{
    wrap_count(slot);
    if (result == CUDA_SUCCESS && executable != NULL) {
        decide_graph_instantiated(*executable, graph);
        if (decide_live_arms != 0)
            decide_live_graph_instantiated(*executable, graph, repeat->flags, &repeat->call);
    }
    return result;
}

static CUresult make_with_log(const struct decide_live_call *call, CUgraphExec *executable,
                              CUgraph graph)
{
    CUresult (*real)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t) = repeated(call)->real;
    CUgraphNode error_node;
    char log[1];

    return real(executable, graph, &error_node, log, sizeof log);
}

static CUresult graph_instantiate_with_log(const struct preload_slot *slot, const void *caller,
                                           CUgraphExec *executable, CUgraph graph,
                                           CUgraphNode *error_node, char *log, size_t size)
{
    CUresult (*real)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t) = wrap_real(slot);
    const struct repeated_call repeat = {.call.make = make_with_log, .real = (void *)real};

    (void)caller;
    return instantiated(slot, real(executable, graph, error_node, log, size), executable, graph,
                        &repeat);
}

static CUresult make_with_flags(const struct decide_live_call *call, CUgraphExec *executable,
                                CUgraph graph)
{
    CUresult (*real)(CUgraphExec *, CUgraph, unsigned long long) = repeated(call)->real;

    return real(executable, graph, repeated(call)->flags);
}

static CUresult graph_instantiate_with_flags(const struct preload_slot *slot, const void *caller,
                                             CUgraphExec *executable, CUgraph graph,
                                             unsigned long long flags)
{
    CUresult (*real)(CUgraphExec *, CUgraph, unsigned long long) = wrap_real(slot);
    const struct repeated_call repeat = {
        .call.make = make_with_flags, .real = (void *)real, .flags = flags};

    (void)caller;
    before_instantiation(graph, flags);
    return instantiated(slot, real(executable, graph, flags), executable, graph, &repeat);
}

/* CUDA_GRAPH_INSTANTIATE_PARAMS: the last two members are written to. */
struct instantiation {
    cuuint64_t flags;
    CUstream upload;
    CUgraphNode error_node;
    int result;
};

static CUresult make_with_params(const struct decide_live_call *call, CUgraphExec *executable,
                                 CUgraph graph)
{
    CUresult (*real)(CUgraphExec *, CUgraph, void *) = repeated(call)->real;
    struct instantiation parameters = *(const struct instantiation *)repeated(call)->parameters;

    return real(executable, graph, &parameters);
}

static CUresult graph_instantiate_with_params(const struct preload_slot *slot, const void *caller,
                                              CUgraphExec *executable, CUgraph graph,
                                              void *parameters)
{
    CUresult (*real)(CUgraphExec *, CUgraph, void *) = wrap_real(slot);
    const struct repeated_call repeat = {
        .call.make = make_with_params,
        .real = (void *)real,
        .flags = parameters != NULL ? ((struct instantiation *)parameters)->flags : 0,
        .parameters = parameters,
    };

    (void)caller;
    if (parameters != NULL)
        before_instantiation(graph, repeat.flags);
    return instantiated(slot, real(executable, graph, parameters), executable, graph, &repeat);
}

/* The program's call about its executable succeeded. graph, node, parameters: as
 * decide_live_graph_changed takes them. */
static void changed(CUgraphExec executable, CUgraph graph, CUgraphNode node,
                    const struct cuda_kernel_node_params *parameters,
                    const struct repeated_call *repeat)
{
    if (__builtin_expect(decide_live_arms != 0, 0))
        decide_live_graph_changed(executable, graph, node, parameters, &repeat->call);
}

static CUresult update_v1(const struct decide_live_call *call, CUgraphExec sibling)
{
    CUresult (*real)(CUgraphExec, CUgraph, CUgraphNode *, int *) = repeated(call)->real;
    CUgraphNode error_node;
    int update_result;

    return real(sibling, repeated(call)->graph, &error_node, &update_result);
}

static CUresult updated(const struct preload_slot *slot, CUgraphExec executable, CUgraph graph,
                        CUresult result, const struct repeated_call *repeat)
{
    wrap_count(slot);
    if (result == CUDA_SUCCESS) {
        decide_graph_updated(executable, graph);
        changed(executable, graph, NULL, NULL, repeat);
    }
    return result;
}

static CUresult graph_exec_update_v1(const struct preload_slot *slot, const void *caller,
                                     CUgraphExec executable, CUgraph graph, CUgraphNode *error_node,
                                     void *update_result)
{
    CUresult (*real)(CUgraphExec, CUgraph, CUgraphNode *, void *) = wrap_real(slot);
    const CUresult result = real(executable, graph, error_node, update_result);
    const struct repeated_call repeat = {
        .call.repeat = update_v1, .real = (void *)real, .graph = graph};

    (void)caller;
    return updated(slot, executable, graph, result, &repeat);
}

static CUresult update_v2(const struct decide_live_call *call, CUgraphExec sibling)
{
    CUresult (*real)(CUgraphExec, CUgraph, void *) = repeated(call)->real;
    struct { /* CUgraphExecUpdateResultInfo */
        int result;
        CUgraphNode node, from;
    } info;

    return real(sibling, repeated(call)->graph, &info);
}

static CUresult graph_exec_update_v2(const struct preload_slot *slot, const void *caller,
                                     CUgraphExec executable, CUgraph graph, void *update_result)
{
    CUresult (*real)(CUgraphExec, CUgraph, void *) = wrap_real(slot);
    const CUresult result = real(executable, graph, update_result);
    const struct repeated_call repeat = {
        .call.repeat = update_v2, .real = (void *)real, .graph = graph};

    (void)caller;
    return updated(slot, executable, graph, result, &repeat);
}

/* The program's call about a node on a partition, so that the node stays there: parameters are
 * those that decide_node_placed gave. Not made as it came, should that fail. */
static CUresult set_placed(CUresult (*real)(CUgraphExec, CUgraphNode, const void *),
                           CUgraphExec executable, CUgraphNode node, const void *parameters,
                           CUcontext current)
{
    CUresult result;

    if (real == NULL || !decide_node_enter(current))
        return CUDA_ERROR_NOT_SUPPORTED;
    result = real(executable, node, parameters);
    decide_node_leave(current);
    return result;
}

typedef CUresult (*set_function)(CUgraphExec, CUgraphNode, const void *);

static CUresult set_again(const struct decide_live_call *call, CUgraphExec sibling)
{
    const struct repeated_call *repeat = repeated(call);

    return set_placed((set_function)repeat->real, sibling, repeat->node, repeat->parameters,
                      repeat->context);
}

/* A node's parameters in the executable graph, as the program gives them, or so that the node stays
 * on its partition. */
struct node_change {
    set_function real, real_placed;
    const void *given, *placed; /* placed NULL: as given */
    CUcontext current;          /* with placed */
};

static CUresult set_node(CUgraphExec executable, CUgraphNode node, const struct node_change *change,
                         CUgraph child, const struct cuda_kernel_node_params *kernel)
{
    struct repeated_call repeat = {.call.repeat = set_again, .node = node};
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;

    if (change->placed != NULL) {
        repeat.real = (void *)change->real_placed;
        repeat.parameters = change->placed;
        repeat.context = change->current;
        result = set_placed(change->real_placed, executable, node, change->placed, change->current);
    }
    if (result != CUDA_SUCCESS) {
        repeat.real = (void *)change->real;
        repeat.parameters = change->given;
        repeat.context = NULL;
        result = change->real(executable, node, change->given);
    }
    if (result == CUDA_SUCCESS) {
        if (kernel != NULL)
            decide_graph_node_updated(executable, node, kernel);
        changed(executable, child, node, kernel, &repeat);
    }
    return result;
}

static CUresult exec_kernel_node_set_params_v1(const struct preload_slot *slot, const void *caller,
                                               CUgraphExec executable, CUgraphNode node,
                                               const void *parameters)
{
    struct node_change change = {.real = (set_function)wrap_real(slot), .given = parameters};
    struct cuda_kernel_node_params kernel = {0}, placed;

    (void)caller;
    wrap_count(slot);
    if (parameters != NULL) {
        kernel = wrap_first_version(parameters);
        if (decide_node_placed(node, &kernel, &placed, &change.current)) {
            change.placed = &placed;
            change.real_placed =
                (set_function)preload_canonical(ENTRY_cuGraphExecKernelNodeSetParams_v2);
        }
    }
    return set_node(executable, node, &change, NULL, &kernel);
}

static CUresult exec_kernel_node_set_params_v2(const struct preload_slot *slot, const void *caller,
                                               CUgraphExec executable, CUgraphNode node,
                                               const void *parameters)
{
    struct node_change change = {.real = (set_function)wrap_real(slot), .given = parameters};
    struct cuda_kernel_node_params placed;

    (void)caller;
    wrap_count(slot);
    if (parameters != NULL && decide_node_placed(node, parameters, &placed, &change.current)) {
        change.placed = &placed;
        change.real_placed = change.real;
    }
    return set_node(executable, node, &change, NULL, parameters);
}

static CUresult exec_node_set_params(const struct preload_slot *slot, const void *caller,
                                     CUgraphExec executable, CUgraphNode node, void *parameters)
{
    struct node_change change = {.real = (set_function)wrap_real(slot), .given = parameters};
    const struct cuda_kernel_node_params *kernel = wrap_kernel_of(parameters);
    struct cuda_graph_node_params placed;
    struct cuda_kernel_node_params placed_kernel;

    (void)caller;
    wrap_count(slot);
    if (kernel != NULL && decide_node_placed(node, kernel, &placed_kernel, &change.current)) {
        placed = *(const struct cuda_graph_node_params *)parameters;
        placed.node.kernel = placed_kernel;
        change.placed = &placed;
        change.real_placed = change.real;
    }
    return set_node(executable, node, &change, wrap_child_of(parameters), kernel);
}

/* Host nodes, events, semaphores, memory operations: three arguments. */
static CUresult exec_node_set(const struct preload_slot *slot, const void *caller,
                              CUgraphExec executable, CUgraphNode node, const void *parameters)
{
    const struct node_change change = {.real = (set_function)wrap_real(slot), .given = parameters};

    (void)caller;
    wrap_count(slot);
    return set_node(executable, node, &change, NULL, NULL);
}

static CUresult exec_child_set_params(const struct preload_slot *slot, const void *caller,
                                      CUgraphExec executable, CUgraphNode node, CUgraph child)
{
    const struct node_change change = {.real = (set_function)wrap_real(slot), .given = child};

    (void)caller;
    wrap_count(slot);
    return set_node(executable, node, &change, child, NULL);
}

static CUresult set_with_context(const struct decide_live_call *call, CUgraphExec sibling)
{
    CUresult (*real)(CUgraphExec, CUgraphNode, const void *, CUcontext) = repeated(call)->real;

    return real(sibling, repeated(call)->node, repeated(call)->parameters, repeated(call)->context);
}

/* Copies and fills. */
static CUresult exec_memory_set_params(const struct preload_slot *slot, const void *caller,
                                       CUgraphExec executable, CUgraphNode node,
                                       const void *parameters, CUcontext context)
{
    CUresult (*real)(CUgraphExec, CUgraphNode, const void *, CUcontext) = wrap_real(slot);
    const struct repeated_call repeat = {.call.repeat = set_with_context,
                                         .real = (void *)real,
                                         .node = node,
                                         .parameters = parameters,
                                         .context = context};
    const CUresult result = real(executable, node, parameters, context);

    (void)caller;
    wrap_count(slot);
    if (result == CUDA_SUCCESS)
        changed(executable, NULL, node, NULL, &repeat);
    return result;
}

static CUresult set_enabled(const struct decide_live_call *call, CUgraphExec sibling)
{
    CUresult (*real)(CUgraphExec, CUgraphNode, unsigned) = repeated(call)->real;

    return real(sibling, repeated(call)->node, repeated(call)->enabled);
}

static CUresult node_set_enabled(const struct preload_slot *slot, const void *caller,
                                 CUgraphExec executable, CUgraphNode node, unsigned enabled)
{
    CUresult (*real)(CUgraphExec, CUgraphNode, unsigned) = wrap_real(slot);
    const struct repeated_call repeat = {
        .call.repeat = set_enabled, .real = (void *)real, .node = node, .enabled = enabled};
    const CUresult result = real(executable, node, enabled);

    (void)caller;
    wrap_count(slot);
    if (result == CUDA_SUCCESS)
        changed(executable, NULL, node, NULL, &repeat);
    return result;
}

static CUresult upload(const struct decide_live_call *call, CUgraphExec sibling)
{
    CUresult (*real)(CUgraphExec, CUstream) = repeated(call)->real;

    return real(sibling, (CUstream)(uintptr_t)repeated(call)->parameters);
}

static CUresult graph_upload(const struct preload_slot *slot, const void *caller,
                             CUgraphExec executable, CUstream stream)
{
    CUresult (*real)(CUgraphExec, CUstream) = wrap_real(slot);
    const struct repeated_call repeat = {
        .call.repeat = upload, .real = (void *)real, .parameters = stream};
    const CUresult result = real(executable, stream);

    (void)caller;
    wrap_count(slot);
    if (result == CUDA_SUCCESS)
        changed(executable, NULL, NULL, NULL, &repeat);
    return result;
}

/* To the executable of the present arm. */
static CUresult launch_live(CUresult (*real)(CUgraphExec, CUstream), CUgraphExec executable,
                            CUstream stream, bool per_thread)
{
    CUgraphExec chosen;
    CUresult result;

    if (decide_live_graph_steps)
        decide_live_begin_step();
    chosen = decide_live_graph_pick(executable, stream, per_thread);
    result = real(chosen, stream);
    if (result != CUDA_SUCCESS && chosen != executable) {
        decide_live_graph_give_up(executable, stream, per_thread);
        chosen = executable;
        result = real(executable, stream);
        if (result == CUDA_SUCCESS)
            decide_live_graph_refused(executable);
    }
    if (result == CUDA_SUCCESS) {
        decide_live_graph_launched(executable, chosen, stream, per_thread);
        decide_graph_launched(chosen);
    }
    return result;
}

static CUresult graph_launch(const struct preload_slot *slot, const void *caller,
                             CUgraphExec executable, CUstream stream)
{
    CUresult (*real)(CUgraphExec, CUstream) = wrap_real(slot);
    /* Into a stream that captures, a launch adds nodes and replays nothing. */
    const bool captured = decide_stream_is_capturing(stream, wrap_per_thread(slot));
    CUresult result;

    (void)caller;
    wrap_count(slot);
    if (__builtin_expect(decide_live_arms != 0, 0) && !captured)
        return launch_live(real, executable, stream, wrap_per_thread(slot));
    result = real(executable, stream);
    if (result == CUDA_SUCCESS && !captured)
        decide_graph_launched(executable);
    return result;
}

static CUresult graph_exec_destroy(const struct preload_slot *slot, const void *caller,
                                   CUgraphExec executable)
{
    CUresult (*real)(CUgraphExec) = wrap_real(slot);

    (void)caller;
    wrap_count(slot);
    decide_live_graph_gone(executable);
    decide_graph_executable_gone(executable);
    return real(executable);
}

#define EXECUTABLE(symbol, base, version, variant, wrapper, parameters, arguments)                 \
    WRAP_DRIVER(symbol, wrapper, parameters, arguments)
#include "preload/entries.def"
