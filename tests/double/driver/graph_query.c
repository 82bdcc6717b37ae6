/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about graphs and their nodes. */
#include "driver.h"

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
    struct call call = graph_node_call(__func__, hNode, -1);
    if (call.result == CUDA_SUCCESS && type == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        *type = hNode->type;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
    struct call call = graph_node_call(__func__, hNode, CU_GRAPH_NODE_TYPE_GRAPH);
    if (call.result == CUDA_SUCCESS && phGraph == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        *phGraph = hNode->child;
    return call_end(&call, call.result);
}

/*
 * Documented for all these lists: with a null array only the count is given; a longer array is
 * filled up with null and the count written is the true one.
 */
struct output {
    CUgraphNode *first, *second;
    size_t room, found;
};

static void put(struct output *output, CUgraphNode first, CUgraphNode second)
{
    if (output->first != NULL && output->found < output->room)
        output->first[output->found] = first;
    if (output->second != NULL && output->found < output->room)
        output->second[output->found] = second;
    output->found++;
}

static void close_output(struct output *output, size_t *count)
{
    if (output->first == NULL) {
        *count = output->found;
        return;
    }
    for (size_t i = output->found; i < output->room; i++) {
        output->first[i] = NULL;
        if (output->second != NULL)
            output->second[i] = NULL;
    }
    *count = output->found < output->room ? output->found : output->room;
}

static struct call list_call(const char *name, CUgraph graph, const size_t *count)
{
    struct call call = call_begin(name);
    call_object(&call, "graph", OBJECT_GRAPH, graph);
    if (call.result == CUDA_SUCCESS && (!object_is(OBJECT_GRAPH, graph) || count == NULL))
        call.result = CUDA_ERROR_INVALID_VALUE;
    return call;
}

static CUresult list_nodes(const char *name, CUgraph graph, CUgraphNode *nodes, size_t *count,
                           bool roots)
{
    struct call call = list_call(name, graph, count);
    if (call.result == CUDA_SUCCESS) {
        struct output output = {.first = nodes, .room = *count};
        for (CUgraphNode at = graph->first; at != NULL; at = at->next)
            if (!roots || at->dependencies.count == 0)
                put(&output, at, NULL);
        close_output(&output, count);
        call_add(&call, "nodes=%zu", *count);
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
    return list_nodes(__func__, hGraph, nodes, numNodes, false);
}

CUresult CUDAAPI cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
    return list_nodes(__func__, hGraph, rootNodes, numRootNodes, true);
}

static CUresult list_edges(const char *name, CUgraph graph, CUgraphNode *from, CUgraphNode *to,
                           size_t *count)
{
    struct call call = list_call(name, graph, count);
    if (call.result == CUDA_SUCCESS) {
        struct output output = {.first = from, .second = to, .room = *count};
        for (CUgraphNode at = graph->first; at != NULL; at = at->next)
            for (size_t i = 0; i < at->dependencies.count; i++)
                put(&output, at->dependencies.nodes[i], at);
        close_output(&output, count);
        call_add(&call, "edges=%zu", *count);
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
                                 size_t *numEdges)
{
    return list_edges(__func__, hGraph, from, to, numEdges);
}

CUresult CUDAAPI cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
                                    CUgraphEdgeData *edgeData, size_t *numEdges)
{
    (void)edgeData;
    return list_edges(__func__, hGraph, from, to, numEdges);
}

static CUresult list_dependencies(const char *name, CUgraphNode node, CUgraphNode *nodes,
                                  size_t *count)
{
    struct call call = graph_node_call(name, node, -1);
    if (call.result == CUDA_SUCCESS && count == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        struct output output = {.first = nodes, .room = *count};
        for (size_t i = 0; i < node->dependencies.count; i++)
            put(&output, node->dependencies.nodes[i], NULL);
        close_output(&output, count);
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies,
                                            size_t *numDependencies)
{
    return list_dependencies(__func__, hNode, dependencies, numDependencies);
}

CUresult CUDAAPI cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies,
                                               CUgraphEdgeData *edgeData, size_t *numDependencies)
{
    (void)edgeData;
    return list_dependencies(__func__, hNode, dependencies, numDependencies);
}

static bool depends_on(CUgraphNode node, CUgraphNode other)
{
    for (size_t i = 0; i < node->dependencies.count; i++)
        if (node->dependencies.nodes[i] == other)
            return true;
    return false;
}

static CUresult list_dependents(const char *name, CUgraphNode node, CUgraphNode *nodes,
                                size_t *count)
{
    struct call call = graph_node_call(name, node, -1);
    if (call.result == CUDA_SUCCESS && count == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        struct output output = {.first = nodes, .room = *count};
        for (CUgraphNode at = node->graph->first; at != NULL; at = at->next)
            if (depends_on(at, node))
                put(&output, at, NULL);
        close_output(&output, count);
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                              size_t *numDependentNodes)
{
    return list_dependents(__func__, hNode, dependentNodes, numDependentNodes);
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                                 CUgraphEdgeData *edgeData,
                                                 size_t *numDependentNodes)
{
    (void)edgeData;
    return list_dependents(__func__, hNode, dependentNodes, numDependentNodes);
}
