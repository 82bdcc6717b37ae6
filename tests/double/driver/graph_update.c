/* SPDX-License-Identifier: Apache-2.0 */
/* Updating an executable graph from another graph of the same shape. */
#include "driver.h"
#include <string.h>

struct update {
    CUgraphExecUpdateResult result;
    CUgraphNode node, from;
};

static size_t position(CUgraphNode node)
{
    size_t index = 0;
    for (CUgraphNode at = node->previous; at != NULL; at = at->previous)
        index++;
    return index;
}

/* Measured: another context, so a partition gained, lost or exchanged, is an unsupported change of
 * the function; domains and clusters may change. Documented: the cooperative attribute may not, and
 * the priority only if nodes are run by the stream's. */
static CUgraphExecUpdateResult compare_kernels(const struct kernel_node *old,
                                               const struct kernel_node *new,
                                               unsigned long long flags)
{
    CUlaunchAttributeValue none;
    if (old->context != new->context)
        return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    memset(&none, 0, sizeof(none));
    static const unsigned int fixed[] = {CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                         CU_LAUNCH_ATTRIBUTE_PRIORITY};
    unsigned int count = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0 ? 2 : 1;
    for (unsigned int i = 0; i < count; i++) {
        unsigned int id = fixed[i];
        int before = attribute_has(&old->attributes, id) ? old->attributes.value[id].priority : 0;
        int after = attribute_has(&new->attributes, id) ? new->attributes.value[id].priority : 0;
        if (before != after)
            return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    }
    if (kernel_node_check(new) != CUDA_SUCCESS)
        return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED; /* assumed */
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static bool compare_graphs(CUgraph old, CUgraph new, unsigned long long flags,
                           struct update *update);

static CUgraphExecUpdateResult compare_nodes(CUgraphNode old, CUgraphNode new,
                                             unsigned long long flags, struct update *update)
{
    if (old->dependencies.count != new->dependencies.count)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < old->dependencies.count; i++)
        if (position(old->dependencies.nodes[i]) != position(new->dependencies.nodes[i])) {
            update->from = new->dependencies.nodes[i];
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        }
    if (old->type != new->type)
        return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (old->type == CU_GRAPH_NODE_TYPE_KERNEL)
        return compare_kernels(&old->kernel, &new->kernel, flags);
    if (old->child != NULL && !compare_graphs(old->child, new->child, flags, update))
        return update->result;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static bool compare_graphs(CUgraph old, CUgraph new, unsigned long long flags,
                           struct update *update)
{
    if (old->count != new->count) {
        update->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        return false;
    }
    CUgraphNode other = new->first;
    for (CUgraphNode at = old->first; at != NULL; at = at->next, other = other->next) {
        update->result = compare_nodes(at, other, flags, update);
        if (update->result == CU_GRAPH_EXEC_UPDATE_SUCCESS)
            continue;
        if (update->node == NULL)
            update->node = other;
        return false;
    }
    return true;
}

/* Nodes are known by their originals, which stay those of the first graph. */
static void take_nodes(CUgraph old, CUgraph new)
{
    CUgraphNode other = new->first;
    for (CUgraphNode at = old->first; at != NULL; at = at->next, other = other->next) {
        at->transfer = other->transfer;
        at->host = other->host;
        at->host_data = other->host_data;
        at->event = other->event;
        if (at->type == CU_GRAPH_NODE_TYPE_KERNEL) {
            kernel_node_free(&at->kernel);
            at->kernel = other->kernel;
            kernel_node_copy_arguments(&at->kernel);
        }
        if (at->child != NULL)
            take_nodes(at->child, other->child);
    }
}

static CUresult update_graph(const char *name, CUgraphExec executable, CUgraph graph,
                             struct update *update)
{
    struct call call = call_begin(name);
    call_object(&call, "executable", OBJECT_EXECUTABLE, executable);
    call_object(&call, "graph", OBJECT_GRAPH, graph);
    CUresult result = call.result;
    update->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    if (result == CUDA_SUCCESS &&
        (!object_is(OBJECT_EXECUTABLE, executable) || !object_is(OBJECT_GRAPH, graph)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        update->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
        if (compare_graphs(executable->graph, graph, executable->flags, update))
            take_nodes(executable->graph, graph);
        else
            result = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
        call_add(&call, "update=%d", (int)update->result);
    }
    return call_end(&call, result);
}

CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph,
                                   CUgraphNode *hErrorNode_out,
                                   CUgraphExecUpdateResult *updateResult_out)
{
    struct update update = {.node = NULL, .from = NULL};
    CUresult result = update_graph(__func__, hGraphExec, hGraph, &update);
    if (hErrorNode_out != NULL)
        *hErrorNode_out = update.node;
    if (updateResult_out != NULL)
        *updateResult_out = update.result;
    return result;
}

CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                                      CUgraphExecUpdateResultInfo *resultInfo)
{
    struct update update = {.node = NULL, .from = NULL};
    CUresult result = update_graph(__func__, hGraphExec, hGraph, &update);
    if (resultInfo != NULL) {
        resultInfo->result = update.result;
        resultInfo->errorNode = update.node;
        resultInfo->errorFromNode = update.from;
    }
    return result;
}
