/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to single nodes of an executable graph that are no kernels. */
#include "driver.h"

/* Judges the call about a node of this type; the answer is success when it can be done. */
static struct call typed_call(const char *name, CUgraphExec executable, CUgraphNode original,
                              int type, bool given, CUgraphNode *node)
{
    struct call call = graph_counterpart_call(name, executable, original, node);
    if (call.result == CUDA_SUCCESS && ((int)(*node)->type != type || !given))
        call.result = CUDA_ERROR_INVALID_VALUE;
    return call;
}

/* Documented: what is there is replaced for later launches. */
CUresult CUDAAPI cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                              const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    CUgraphNode node;
    struct call call =
        typed_call(__func__, hGraphExec, hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams != NULL, &node);
    if (call.result == CUDA_SUCCESS) {
        node->host = nodeParams->fn;
        node->host_data = nodeParams->userData;
    }
    return call_end(&call, call.result);
}

static CUresult set_event(const char *name, CUgraphExec executable, CUgraphNode original, int type,
                          CUevent event)
{
    CUgraphNode node;
    struct call call =
        typed_call(name, executable, original, type, object_is(OBJECT_EVENT, event), &node);
    if (call.result == CUDA_SUCCESS)
        node->event = event;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                    CUevent event)
{
    return set_event(__func__, hGraphExec, hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult CUDAAPI cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                  CUevent event)
{
    return set_event(__func__, hGraphExec, hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

/* Simplified: nothing is compared, the new graph takes the place of the old one. */
CUresult CUDAAPI cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                    CUgraph childGraph)
{
    CUgraphNode node;
    struct call call = typed_call(__func__, hGraphExec, hNode, CU_GRAPH_NODE_TYPE_GRAPH,
                                  object_is(OBJECT_GRAPH, childGraph), &node);
    if (call.result == CUDA_SUCCESS) {
        CUgraph copy = graph_clone(childGraph);
        if (copy == NULL) {
            call.result = CUDA_ERROR_OUT_OF_MEMORY;
        } else {
            graph_free(node->child);
            node->child = copy;
        }
    }
    return call_end(&call, call.result);
}

/* Simplified: the new copy or fill is not made. */
CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    CUgraphNode node;
    struct call call = typed_call(__func__, hGraphExec, hNode, CU_GRAPH_NODE_TYPE_MEMCPY,
                                  copyParams != NULL && ctx != NULL, &node);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                const CUDA_MEMSET_NODE_PARAMS *memsetParams,
                                                CUcontext ctx)
{
    CUgraphNode node;
    struct call call = typed_call(__func__, hGraphExec, hNode, CU_GRAPH_NODE_TYPE_MEMSET,
                                  memsetParams != NULL && ctx != NULL, &node);
    return call_end(&call, call.result);
}

/* No graph here has a node of these kinds. */
static CUresult no_such_node(const char *name, CUgraphExec executable, CUgraphNode original)
{
    CUgraphNode node;
    struct call call = typed_call(name, executable, original, -1, true, &node);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuGraphExecExternalSemaphoresSignalNodeSetParams(
    CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *nodeParams)
{
    (void)nodeParams;
    return no_such_node(__func__, hGraphExec, hNode);
}

CUresult CUDAAPI cuGraphExecExternalSemaphoresWaitNodeSetParams(
    CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_EXT_SEM_WAIT_NODE_PARAMS *nodeParams)
{
    (void)nodeParams;
    return no_such_node(__func__, hGraphExec, hNode);
}

CUresult CUDAAPI cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                    const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    (void)nodeParams;
    return no_such_node(__func__, hGraphExec, hNode);
}
