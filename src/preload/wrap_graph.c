/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and their nodes. The decision engine is told after a call that succeeded, or before one
 * that ends a handle. */
#include "preload/wrap_graph.h"

#include "decide/decide.h"

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

    wrap_count(slot);
    if (result != CUDA_SUCCESS)
        return result;
    kernel = wrap_first_version(parameters);
    return node_added(caller, result, graph, node, &kernel);
}

static CUresult add_kernel_node_v2(const struct preload_slot *slot, const void *caller,
                                   CUgraphNode *node, CUgraph graph,
                                   const CUgraphNode *dependencies, size_t dependency_count,
                                   const void *parameters)
{
    CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const void *) =
        wrap_real(slot);

    wrap_count(slot);
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
    wrap_count(slot);
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

static CUresult add_node_v1(const struct preload_slot *slot, const void *caller, CUgraphNode *node,
                            CUgraph graph, const CUgraphNode *dependencies, size_t dependency_count,
                            void *parameters)
{
    CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, void *) = wrap_real(slot);
    CUgraph child = wrap_child_of(parameters);
    const CUresult result = real(node, graph, dependencies, dependency_count, parameters);

    wrap_count(slot);
    return any_node_added(caller, result, graph, node, parameters, child);
}

static CUresult add_node_v2(const struct preload_slot *slot, const void *caller, CUgraphNode *node,
                            CUgraph graph, const CUgraphNode *dependencies, const void *edges,
                            size_t dependency_count, void *parameters)
{
    CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *, const void *, size_t, void *) =
        wrap_real(slot);
    CUgraph child = wrap_child_of(parameters);
    const CUresult result = real(node, graph, dependencies, edges, dependency_count, parameters);

    wrap_count(slot);
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
    wrap_count(slot);
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
    wrap_count(slot);
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
    wrap_count(slot);
    if (result == CUDA_SUCCESS && all->type == CU_GRAPH_NODE_TYPE_KERNEL)
        decide_node_told(node, &all->node.kernel);
    return result;
}

static CUresult kernel_node_set_params_v1(const struct preload_slot *slot, const void *caller,
                                          CUgraphNode node, const void *parameters)
{
    const CUresult result = set_params(wrap_real(slot), node, parameters);

    wrap_count(slot);
    if (result == CUDA_SUCCESS) {
        const struct cuda_kernel_node_params kernel = wrap_first_version(parameters);
        decide_node_changed(node, &kernel, preload_library(caller));
    }
    return result;
}

static CUresult kernel_node_set_params_v2(const struct preload_slot *slot, const void *caller,
                                          CUgraphNode node, const void *parameters)
{
    const CUresult result = set_params(wrap_real(slot), node, parameters);

    wrap_count(slot);
    if (result == CUDA_SUCCESS)
        decide_node_changed(node, parameters, preload_library(caller));
    return result;
}

static CUresult node_set_params(const struct preload_slot *slot, const void *caller,
                                CUgraphNode node, void *parameters)
{
    const CUresult result = set_params(wrap_real(slot), node, parameters);
    const struct cuda_kernel_node_params *kernel = wrap_kernel_of(parameters);

    wrap_count(slot);
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
    wrap_count(slot);
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
    wrap_count(slot);
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
    wrap_count(slot);
    decide_node_gone(node);
    return real(node);
}

static CUresult graph_destroy(const struct preload_slot *slot, const void *caller, CUgraph graph)
{
    CUresult (*real)(CUgraph) = wrap_real(slot);

    (void)caller;
    wrap_count(slot);
    decide_graph_gone(graph);
    return real(graph);
}

static CUresult graph_clone(const struct preload_slot *slot, const void *caller, CUgraph *clone,
                            CUgraph original)
{
    CUresult (*real)(CUgraph *, CUgraph) = wrap_real(slot);
    const CUresult result = real(clone, original);

    (void)caller;
    wrap_count(slot);
    if (result == CUDA_SUCCESS)
        decide_graph_cloned(*clone, original);
    return result;
}

#define NODE(symbol, base, version, variant, wrapper, parameters, arguments)                       \
    WRAP_DRIVER(symbol, wrapper, parameters, arguments)
#include "preload/entries.def"
