/* SPDX-License-Identifier: Apache-2.0 */
/* Building graphs by hand: graphs, nodes, edges. */
#include "driver.h"
#include "newer.h"
#include <string.h>

static struct call graph_call(const char *name, CUgraph graph)
{
    struct call call = call_begin(name);
    call_object(&call, "graph", OBJECT_GRAPH, graph);
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_GRAPH, graph))
        call.result = CUDA_ERROR_INVALID_VALUE;
    return call;
}

struct call graph_node_call(const char *name, CUgraphNode node, int type)
{
    struct call call = call_begin(name);
    call_object(&call, "node", OBJECT_NODE, node);
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_NODE, node))
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS && type >= 0 && (int)node->type != type)
        call.result = CUDA_ERROR_INVALID_VALUE;
    return call;
}

CUresult CUDAAPI cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    struct call call = call_begin(__func__);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && (phGraph == NULL || flags != 0))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *phGraph = graph_new();
        result = *phGraph == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
        call_object(&call, "graph", OBJECT_GRAPH, *phGraph);
    }
    return call_end(&call, result);
}

CUresult CUDAAPI cuGraphDestroy(CUgraph hGraph)
{
    struct call call = graph_call(__func__, hGraph);
    if (call.result == CUDA_SUCCESS)
        graph_free(hGraph);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
    struct call call = graph_call(__func__, originalGraph);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && phGraphClone == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *phGraphClone = graph_clone(originalGraph);
        result = *phGraphClone == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
        call_object(&call, "clone", OBJECT_GRAPH, *phGraphClone);
    }
    return call_end(&call, result);
}

CUresult CUDAAPI cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode,
                                        CUgraph hClonedGraph)
{
    struct call call = graph_node_call(__func__, hOriginalNode, -1);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && (phNode == NULL || !object_is(OBJECT_GRAPH, hClonedGraph)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *phNode = graph_find_clone(hClonedGraph, hOriginalNode);
        result = *phNode == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    }
    return call_end(&call, result);
}

/* --- adding nodes ---------------------------------------------------------------------------- */

/* What a new node is made of. */
struct addition {
    CUgraphNodeType type;
    const CUDA_KERNEL_NODE_PARAMS_v2 *kernel;
    CUgraph child;
    CUhostFn host;
    void *host_data;
    CUevent event;
    unsigned int bodies; /* of a conditional node */
};

static CUresult fill_bodies(CUgraphNode node, unsigned int count)
{
    if (count == 0 || count > NODE_BODIES)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; i++) {
        node->bodies[i] = graph_new();
        if (node->bodies[i] == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        node->bodies[i]->owner = node;
    }
    return CUDA_SUCCESS;
}

static CUresult fill_node(struct call *call, CUgraphNode node, const struct addition *addition)
{
    CUresult result = CUDA_SUCCESS;
    switch ((int)addition->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        result = kernel_node_set(&node->kernel, addition->kernel);
        if (result == CUDA_SUCCESS)
            call_kernel_node(call, &node->kernel);
        break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        /* Documented: the graph is cloned into the node. */
        if (!object_is(OBJECT_GRAPH, addition->child))
            return CUDA_ERROR_INVALID_VALUE;
        node->child = graph_clone(addition->child);
        if (node->child == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        node->child->owner = node;
        break;
    case CU_GRAPH_NODE_TYPE_HOST:
        if (addition->host == NULL)
            return CUDA_ERROR_INVALID_VALUE;
        node->host = addition->host;
        node->host_data = addition->host_data;
        break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        if (!object_is(OBJECT_EVENT, addition->event))
            return CUDA_ERROR_INVALID_VALUE;
        node->event = addition->event;
        break;
    case CU_GRAPH_NODE_TYPE_EMPTY:
        break;
    case NODE_CONDITIONAL:
        result = fill_bodies(node, addition->bodies);
        break;
    default:
        return CUDA_ERROR_NOT_SUPPORTED; /* kinds that no test needs */
    }
    return result;
}

static CUresult add(const char *name, CUgraphNode *out, CUgraph graph,
                    const CUgraphNode *dependencies, size_t count, const struct addition *addition)
{
    struct call call = graph_call(name, graph);
    call_add(&call, "type=%d dependencies=%zu", (int)addition->type, count);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && (out == NULL || !graph_has_all(graph, dependencies, count)))
        result = CUDA_ERROR_INVALID_VALUE;
    CUgraphNode node = NULL;
    if (result == CUDA_SUCCESS) {
        node = graph_add(graph, addition->type, dependencies, count);
        result = node == NULL ? CUDA_ERROR_OUT_OF_MEMORY : fill_node(&call, node, addition);
    }
    if (result == CUDA_SUCCESS) {
        *out = node;
        call_object(&call, "node", OBJECT_NODE, node);
    } else if (node != NULL) {
        graph_remove(node);
    }
    return call_end(&call, result);
}

static CUresult add_kernel(const char *name, CUgraphNode *out, CUgraph graph,
                           const CUgraphNode *dependencies, size_t count,
                           const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    struct addition addition = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = params};
    return add(name, out, graph, dependencies, count, &addition);
}

CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                      const CUgraphNode *dependencies, size_t numDependencies,
                                      const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    memset(&params, 0, sizeof(params));
    if (nodeParams != NULL)
        memcpy(&params, nodeParams, sizeof(*nodeParams));
    return add_kernel(__func__, phGraphNode, hGraph, dependencies, numDependencies, &params);
}

CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                                         const CUgraphNode *dependencies, size_t numDependencies,
                                         const CUDA_KERNEL_NODE_PARAMS_v2 *nodeParams)
{
    static const CUDA_KERNEL_NODE_PARAMS_v2 nothing;
    return add_kernel(__func__, phGraphNode, hGraph, dependencies, numDependencies,
                      nodeParams == NULL ? &nothing : nodeParams);
}

/* The beginning of CUgraphNodeParams of a conditional node, which came with 12.3. */
struct conditional {
    int type;
    int reserved[3];
    unsigned long long handle; /* not looked at: bodies do not run here */
    int kind;
    unsigned int size;
    CUgraph *bodies; /* out */
};

/* The generic structure carries the same kernel parameters under another name. */
static CUresult add_any(const char *name, CUgraphNode *out, CUgraph graph,
                        const CUgraphNode *dependencies, size_t count, CUgraphNodeParams *params)
{
    struct conditional conditional = {.type = -1};
    CUDA_KERNEL_NODE_PARAMS_v2 kernel;
    struct addition addition = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = &kernel};
    memset(&kernel, 0, sizeof(kernel));
    if (params != NULL) {
        addition.type = params->type;
        if (params->type == CU_GRAPH_NODE_TYPE_KERNEL)
            memcpy(&kernel, &params->kernel, sizeof(kernel));
        else if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
            addition.child = params->graph.graph;
        else if (params->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
            addition.event = params->eventWait.event;
        else if (params->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
            addition.event = params->eventRecord.event;
        else if (params->type == CU_GRAPH_NODE_TYPE_HOST) {
            addition.host = params->host.fn;
            addition.host_data = params->host.userData;
        }
        memcpy(&conditional, params, sizeof(conditional));
        addition.bodies = conditional.size;
    }
    CUresult result = add(name, out, graph, dependencies, count, &addition);
    if (result == CUDA_SUCCESS && conditional.type == NODE_CONDITIONAL) {
        conditional.bodies = (*out)->bodies;
        memcpy(params, &conditional, sizeof(conditional));
    }
    return result;
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                const CUgraphNode *dependencies, size_t numDependencies,
                                CUgraphNodeParams *nodeParams)
{
    return add_any(__func__, phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies,
                                   const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                   CUgraphNodeParams *nodeParams)
{
    (void)dependencyData;
    return add_any(__func__, phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

/* Documented for 13.4: as the version before. */
CUresult CUDAAPI cuGraphAddNode_v3(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies,
                                   const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                   CUgraphNodeParams *nodeParams)
{
    (void)dependencyData;
    return add_any(__func__, phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                     const CUgraphNode *dependencies, size_t numDependencies)
{
    struct addition addition = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return add(__func__, phGraphNode, hGraph, dependencies, numDependencies, &addition);
}

CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                          const CUgraphNode *dependencies, size_t numDependencies,
                                          CUgraph childGraph)
{
    struct addition addition = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = childGraph};
    return add(__func__, phGraphNode, hGraph, dependencies, numDependencies, &addition);
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                    const CUgraphNode *dependencies, size_t numDependencies,
                                    const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    struct addition addition = {.type = CU_GRAPH_NODE_TYPE_HOST};
    if (nodeParams != NULL) {
        addition.host = nodeParams->fn;
        addition.host_data = nodeParams->userData;
    }
    return add(__func__, phGraphNode, hGraph, dependencies, numDependencies, &addition);
}

CUresult CUDAAPI cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                           const CUgraphNode *dependencies, size_t numDependencies,
                                           CUevent event)
{
    struct addition addition = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .event = event};
    return add(__func__, phGraphNode, hGraph, dependencies, numDependencies, &addition);
}

CUresult CUDAAPI cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                         const CUgraphNode *dependencies, size_t numDependencies,
                                         CUevent event)
{
    struct addition addition = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .event = event};
    return add(__func__, phGraphNode, hGraph, dependencies, numDependencies, &addition);
}

static CUresult set_any(const char *name, CUgraphNode hNode, const CUgraphNodeParams *nodeParams)
{
    struct call call = graph_node_call(name, hNode, -1);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && (nodeParams == NULL || nodeParams->type != hNode->type))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && hNode->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        CUDA_KERNEL_NODE_PARAMS_v2 params;
        memcpy(&params, &nodeParams->kernel, sizeof(params));
        result = kernel_node_set(&hNode->kernel, &params);
        if (result == CUDA_SUCCESS)
            call_kernel_node(&call, &hNode->kernel);
    }
    return call_end(&call, result);
}

CUresult CUDAAPI cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    return set_any(__func__, hNode, nodeParams);
}

CUresult CUDAAPI cuGraphNodeSetParams_v2(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    return set_any(__func__, hNode, nodeParams);
}

CUresult CUDAAPI cuGraphDestroyNode(CUgraphNode hNode)
{
    struct call call = graph_node_call(__func__, hNode, -1);
    if (call.result == CUDA_SUCCESS)
        graph_remove(hNode);
    return call_end(&call, call.result);
}

/* --- edges ----------------------------------------------------------------------------------- */

static CUresult add_edges(const char *name, CUgraph graph, const CUgraphNode *from,
                          const CUgraphNode *to, size_t count)
{
    struct call call = graph_call(name, graph);
    call_add(&call, "edges=%zu", count);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS &&
        (!graph_has_all(graph, from, count) || !graph_has_all(graph, to, count)))
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        node_list_add(&to[i]->dependencies, from[i]);
    return call_end(&call, result);
}

CUresult CUDAAPI cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from,
                                        const CUgraphNode *to, size_t numDependencies)
{
    return add_edges(__func__, hGraph, from, to, numDependencies);
}

CUresult CUDAAPI cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
                                           const CUgraphNode *to, const CUgraphEdgeData *edgeData,
                                           size_t numDependencies)
{
    (void)edgeData;
    return add_edges(__func__, hGraph, from, to, numDependencies);
}
