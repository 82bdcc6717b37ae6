/* SPDX-License-Identifier: Apache-2.0 */
/* Graph nodes and executable graphs. The decision engine is told after a call that succeeded, or
 * before one that ends a handle. */
#include "preload/wrap.h"

#include <string.h>

#include "decide/capture.h"
#include "decide/decide.h"
#include "preload/control.h"

/* CUDA_KERNEL_NODE_PARAMS_v1 (CUDA 10.0) is version 2 without the last two members. */
static struct cuda_kernel_node_params from_first_version(const void *parameters)
{
    struct cuda_kernel_node_params all = {0};

    memcpy(&all, parameters, offsetof(struct cuda_kernel_node_params, kernel));
    return all;
}

/* The kernel of generic node parameters, or NULL for a node of another kind. */
static const struct cuda_kernel_node_params *kernel_of(const void *parameters)
{
    const struct cuda_graph_node_params *node = parameters;

    return node != NULL && node->type == CU_GRAPH_NODE_TYPE_KERNEL ? &node->node.kernel : NULL;
}

/* First of all, so that what follows is by the policy that others may have asked for. */
static void count(const struct preload_slot *slot)
{
    report_count_entry(preload_slot_entry(slot));
    preload_control_look();
}

static CUresult node_added(const void *caller, CUresult result, CUgraph graph,
                           const CUgraphNode *node, const struct cuda_kernel_node_params *kernel)
{
    if (result == CUDA_SUCCESS && kernel != NULL && node != NULL)
        decide_node_added(graph, *node, kernel, preload_library(caller));
    return result;
}

static CUresult add_kernel_node_v1(const struct preload_slot *slot, const void *caller,
                                   CUgraphNode *node, CUgraph graph,
                                   const CUgraphNode *dependencies, size_t dependency_count,
                                   const void *parameters)
{
    CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const void *) =
        wrap_real(slot);
    const CUresult result = real(node, graph, dependencies, dependency_count, parameters);
    struct cuda_kernel_node_params kernel;

    count(slot);
    if (result != CUDA_SUCCESS)
        return result;
    kernel = from_first_version(parameters);
    return node_added(caller, result, graph, node, &kernel);
}

static CUresult add_kernel_node_v2(const struct preload_slot *slot, const void *caller,
                                   CUgraphNode *node, CUgraph graph,
                                   const CUgraphNode *dependencies, size_t dependency_count,
                                   const void *parameters)
{
    CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const void *) =
        wrap_real(slot);

    count(slot);
    return node_added(caller, real(node, graph, dependencies, dependency_count, parameters), graph,
                      node, parameters);
}

static CUresult add_child_graph_node(const struct preload_slot *slot, const void *caller,
                                     CUgraphNode *node, CUgraph graph,
                                     const CUgraphNode *dependencies, size_t dependency_count,
                                     CUgraph child)
{
    CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph) =
        wrap_real(slot);
    const CUresult result = real(node, graph, dependencies, dependency_count, child);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS)
        decide_child_graph_added(graph, *node, child);
    return result;
}

/* A node of any kind was added. child: what the parameters held before the call. */
static CUresult any_node_added(const void *caller, CUresult result, CUgraph graph,
                               const CUgraphNode *node, const struct cuda_graph_node_params *added,
                               CUgraph child)
{
    if (result != CUDA_SUCCESS)
        return result;
    if (added->type == CU_GRAPH_NODE_TYPE_KERNEL)
        decide_node_added(graph, *node, &added->node.kernel, preload_library(caller));
    else if (added->type == CU_GRAPH_NODE_TYPE_GRAPH)
        decide_child_graph_added(graph, *node, child);
    else if (added->type == CUDA_GRAPH_NODE_CONDITIONAL)
        for (uint32_t i = 0; i < added->node.conditional.size; i++)
            decide_graph_owned(added->node.conditional.graphs[i], graph);
    return result;
}

static CUgraph child_of(const struct cuda_graph_node_params *node)
{
    return node != NULL && node->type == CU_GRAPH_NODE_TYPE_GRAPH ? node->node.child : NULL;
}

static CUresult add_node_v1(const struct preload_slot *slot, const void *caller, CUgraphNode *node,
                            CUgraph graph, const CUgraphNode *dependencies, size_t dependency_count,
                            void *parameters)
{
    CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, void *) = wrap_real(slot);
    CUgraph child = child_of(parameters);
    const CUresult result = real(node, graph, dependencies, dependency_count, parameters);

    count(slot);
    return any_node_added(caller, result, graph, node, parameters, child);
}

static CUresult add_node_v2(const struct preload_slot *slot, const void *caller, CUgraphNode *node,
                            CUgraph graph, const CUgraphNode *dependencies, const void *edges,
                            size_t dependency_count, void *parameters)
{
    CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *, const void *, size_t, void *) =
        wrap_real(slot);
    CUgraph child = child_of(parameters);
    const CUresult result = real(node, graph, dependencies, edges, dependency_count, parameters);

    count(slot);
    return any_node_added(caller, result, graph, node, parameters, child);
}

/* With a rule's cluster on the node the driver refuses grids that are right without it: then the
 * call is made again without. */
static CUresult set_params(CUresult (*real)(CUgraphNode, const void *), CUgraphNode node,
                           const void *parameters)
{
    CUresult result = real(node, parameters);

    if (result != CUDA_SUCCESS && decide_node_give_back(node, result)) {
        result = real(node, parameters);
        if (result != CUDA_SUCCESS)
            decide_node_decide_again(node);
    }
    return result;
}

/* Version 1 of the parameters has the function alone. */
static CUresult kernel_node_get_params_v1(const struct preload_slot *slot, const void *caller,
                                          CUgraphNode node, void *parameters)
{
    CUresult (*real)(CUgraphNode, void *) = wrap_real(slot);
    const CUresult result = real(node, parameters);
    struct cuda_kernel_node_params told;

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS && decide_node_told(node, &told))
        memcpy(parameters, &told.function, sizeof told.function);
    return result;
}

static CUresult kernel_node_get_params_v2(const struct preload_slot *slot, const void *caller,
                                          CUgraphNode node, void *parameters)
{
    CUresult (*real)(CUgraphNode, void *) = wrap_real(slot);
    const CUresult result = real(node, parameters);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS)
        decide_node_told(node, parameters);
    return result;
}

static CUresult node_get_params(const struct preload_slot *slot, const void *caller,
                                CUgraphNode node, void *parameters)
{
    CUresult (*real)(CUgraphNode, void *) = wrap_real(slot);
    const CUresult result = real(node, parameters);
    struct cuda_graph_node_params *all = parameters;

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS && all->type == CU_GRAPH_NODE_TYPE_KERNEL)
        decide_node_told(node, &all->node.kernel);
    return result;
}

static CUresult kernel_node_set_params_v1(const struct preload_slot *slot, const void *caller,
                                          CUgraphNode node, const void *parameters)
{
    const CUresult result = set_params(wrap_real(slot), node, parameters);

    count(slot);
    if (result == CUDA_SUCCESS) {
        const struct cuda_kernel_node_params kernel = from_first_version(parameters);
        decide_node_changed(node, &kernel, preload_library(caller));
    }
    return result;
}

static CUresult kernel_node_set_params_v2(const struct preload_slot *slot, const void *caller,
                                          CUgraphNode node, const void *parameters)
{
    const CUresult result = set_params(wrap_real(slot), node, parameters);

    count(slot);
    if (result == CUDA_SUCCESS)
        decide_node_changed(node, parameters, preload_library(caller));
    return result;
}

static CUresult node_set_params(const struct preload_slot *slot, const void *caller,
                                CUgraphNode node, void *parameters)
{
    const CUresult result = set_params(wrap_real(slot), node, parameters);
    const struct cuda_kernel_node_params *kernel = kernel_of(parameters);

    count(slot);
    if (result == CUDA_SUCCESS && kernel != NULL)
        decide_node_changed(node, kernel, preload_library(caller));
    return result;
}

static CUresult kernel_node_set_attribute(const struct preload_slot *slot, const void *caller,
                                          CUgraphNode node, CUkernelNodeAttrID attribute,
                                          const CUkernelNodeAttrValue *value)
{
    CUresult (*real)(CUgraphNode, CUkernelNodeAttrID, const CUkernelNodeAttrValue *) =
        wrap_real(slot);
    CUresult result = real(node, attribute, value);
    bool again = result != CUDA_SUCCESS && decide_node_give_back(node, result);

    (void)caller;
    count(slot);
    if (again)
        result = real(node, attribute, value);
    if (result == CUDA_SUCCESS)
        decide_node_attribute_set(node, (int)attribute);
    else if (again)
        decide_node_decide_again(node);
    return result;
}

static CUresult kernel_node_copy_attributes(const struct preload_slot *slot, const void *caller,
                                            CUgraphNode to, CUgraphNode from)
{
    CUresult (*real)(CUgraphNode, CUgraphNode) = wrap_real(slot);
    CUresult result = real(to, from);
    /* The source's cluster, where a rule gave it, need not fit the other grid. */
    bool again = result != CUDA_SUCCESS && decide_node_give_back(from, result);

    (void)caller;
    count(slot);
    if (again)
        result = real(to, from);
    if (result == CUDA_SUCCESS)
        decide_node_attributes_copied(to, from);
    if (again)
        decide_node_decide_again(from);
    return result;
}

static CUresult destroy_node(const struct preload_slot *slot, const void *caller, CUgraphNode node)
{
    CUresult (*real)(CUgraphNode) = wrap_real(slot);

    (void)caller;
    count(slot);
    decide_node_gone(node);
    return real(node);
}

static CUresult graph_destroy(const struct preload_slot *slot, const void *caller, CUgraph graph)
{
    CUresult (*real)(CUgraph) = wrap_real(slot);

    (void)caller;
    count(slot);
    decide_graph_gone(graph);
    return real(graph);
}

static CUresult graph_clone(const struct preload_slot *slot, const void *caller, CUgraph *clone,
                            CUgraph original)
{
    CUresult (*real)(CUgraph *, CUgraph) = wrap_real(slot);
    const CUresult result = real(clone, original);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS)
        decide_graph_cloned(*clone, original);
    return result;
}

static void before_instantiation(CUgraph graph, unsigned long long flags)
{
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0)
        decide_graph_for_device(graph);
}

static CUresult instantiated(const struct preload_slot *slot, CUresult result,
                             const CUgraphExec *executable, CUgraph graph)
{
    count(slot);
    if (result == CUDA_SUCCESS && executable != NULL)
        decide_graph_instantiated(*executable, graph);
    return result;
}

static CUresult graph_instantiate_with_log(const struct preload_slot *slot, const void *caller,
                                           CUgraphExec *executable, CUgraph graph,
                                           CUgraphNode *error_node, char *log, size_t size)
{
    CUresult (*real)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t) = wrap_real(slot);

    (void)caller;
    return instantiated(slot, real(executable, graph, error_node, log, size), executable, graph);
}

static CUresult graph_instantiate_with_flags(const struct preload_slot *slot, const void *caller,
                                             CUgraphExec *executable, CUgraph graph,
                                             unsigned long long flags)
{
    CUresult (*real)(CUgraphExec *, CUgraph, unsigned long long) = wrap_real(slot);

    (void)caller;
    before_instantiation(graph, flags);
    return instantiated(slot, real(executable, graph, flags), executable, graph);
}

static CUresult graph_instantiate_with_params(const struct preload_slot *slot, const void *caller,
                                              CUgraphExec *executable, CUgraph graph,
                                              void *parameters)
{
    CUresult (*real)(CUgraphExec *, CUgraph, void *) = wrap_real(slot);

    (void)caller;
    /* The flags are the first member. */
    if (parameters != NULL)
        before_instantiation(graph, *(const cuuint64_t *)parameters);
    return instantiated(slot, real(executable, graph, parameters), executable, graph);
}

static CUresult graph_exec_update_v1(const struct preload_slot *slot, const void *caller,
                                     CUgraphExec executable, CUgraph graph, CUgraphNode *error_node,
                                     void *update_result)
{
    CUresult (*real)(CUgraphExec, CUgraph, CUgraphNode *, void *) = wrap_real(slot);
    const CUresult result = real(executable, graph, error_node, update_result);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS)
        decide_graph_updated(executable, graph);
    return result;
}

static CUresult graph_exec_update_v2(const struct preload_slot *slot, const void *caller,
                                     CUgraphExec executable, CUgraph graph, void *update_result)
{
    CUresult (*real)(CUgraphExec, CUgraph, void *) = wrap_real(slot);
    const CUresult result = real(executable, graph, update_result);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS)
        decide_graph_updated(executable, graph);
    return result;
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

static CUresult exec_kernel_node_set_params_v1(const struct preload_slot *slot, const void *caller,
                                               CUgraphExec executable, CUgraphNode node,
                                               const void *parameters)
{
    CUresult (*real)(CUgraphExec, CUgraphNode, const void *) = wrap_real(slot);
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    struct cuda_kernel_node_params kernel = {0}, changed;
    CUcontext current;

    (void)caller;
    count(slot);
    if (parameters != NULL) {
        kernel = from_first_version(parameters);
        if (decide_node_placed(node, &kernel, &changed, &current))
            result = set_placed(preload_canonical(ENTRY_cuGraphExecKernelNodeSetParams_v2),
                                executable, node, &changed, current);
    }
    if (result != CUDA_SUCCESS)
        result = real(executable, node, parameters);
    if (result == CUDA_SUCCESS)
        decide_graph_node_updated(executable, node, &kernel);
    return result;
}

static CUresult exec_kernel_node_set_params_v2(const struct preload_slot *slot, const void *caller,
                                               CUgraphExec executable, CUgraphNode node,
                                               const void *parameters)
{
    CUresult (*real)(CUgraphExec, CUgraphNode, const void *) = wrap_real(slot);
    struct cuda_kernel_node_params changed;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    CUcontext current;

    (void)caller;
    count(slot);
    if (parameters != NULL && decide_node_placed(node, parameters, &changed, &current))
        result = set_placed(real, executable, node, &changed, current);
    if (result != CUDA_SUCCESS)
        result = real(executable, node, parameters);
    if (result == CUDA_SUCCESS)
        decide_graph_node_updated(executable, node, parameters);
    return result;
}

static CUresult exec_node_set_params(const struct preload_slot *slot, const void *caller,
                                     CUgraphExec executable, CUgraphNode node, void *parameters)
{
    CUresult (*real)(CUgraphExec, CUgraphNode, const void *) = wrap_real(slot);
    const struct cuda_kernel_node_params *kernel = kernel_of(parameters);
    struct cuda_kernel_node_params placed;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    CUcontext current;

    (void)caller;
    count(slot);
    if (kernel != NULL && decide_node_placed(node, kernel, &placed, &current)) {
        struct cuda_graph_node_params changed = *(const struct cuda_graph_node_params *)parameters;

        changed.node.kernel = placed;
        result = set_placed(real, executable, node, &changed, current);
    }
    if (result != CUDA_SUCCESS)
        result = real(executable, node, parameters);
    if (result == CUDA_SUCCESS && kernel != NULL)
        decide_graph_node_updated(executable, node, kernel);
    return result;
}

static CUresult graph_launch(const struct preload_slot *slot, const void *caller,
                             CUgraphExec executable, CUstream stream)
{
    CUresult (*real)(CUgraphExec, CUstream) = wrap_real(slot);
    /* Into a stream that captures, a launch adds nodes and replays nothing. */
    const bool captured = decide_stream_is_capturing(stream, wrap_per_thread(slot));
    const CUresult result = real(executable, stream);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS && !captured)
        decide_graph_launched(executable);
    return result;
}

static CUresult graph_exec_destroy(const struct preload_slot *slot, const void *caller,
                                   CUgraphExec executable)
{
    CUresult (*real)(CUgraphExec) = wrap_real(slot);

    (void)caller;
    count(slot);
    decide_graph_executable_gone(executable);
    return real(executable);
}

#define NODE(symbol, base, version, variant, wrapper, parameters, arguments)                       \
    WRAP_DRIVER(symbol, wrapper, parameters, arguments)
#define EXECUTABLE(symbol, base, version, variant, wrapper, parameters, arguments)                 \
    WRAP_DRIVER(symbol, wrapper, parameters, arguments)
#include "preload/entries.def"
