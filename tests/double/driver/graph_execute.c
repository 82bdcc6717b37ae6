/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs: instantiation, launch, and changes to single nodes. */
#include "driver.h"
#include <stdlib.h>
#include <string.h>

/* The first node that could not run, and why. */
static CUresult check_graph(CUgraph graph, CUgraphNode *bad)
{
    for (CUgraphNode at = graph->first; at != NULL; at = at->next) {
        CUresult result = CUDA_SUCCESS;
        if (at->type == CU_GRAPH_NODE_TYPE_KERNEL) {
            result = kernel_node_check(&at->kernel);
            *bad = at;
        } else if (at->child != NULL) {
            result = check_graph(at->child, bad);
        }
        if (result != CUDA_SUCCESS)
            return result;
    }
    *bad = NULL;
    return CUDA_SUCCESS;
}

static CUresult instantiate(const char *name, CUgraphExec *out, CUgraph graph,
                            unsigned long long flags, CUgraphNode *bad)
{
    struct call call = call_begin(name);
    call_object(&call, "graph", OBJECT_GRAPH, graph);
    call_add(&call, "flags=%llu", flags);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && (out == NULL || !object_is(OBJECT_GRAPH, graph)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = check_graph(graph, bad);
    if (result == CUDA_SUCCESS) {
        CUgraphExec executable = object_new(OBJECT_EXECUTABLE);
        if (executable == NULL || (executable->graph = graph_clone(graph)) == NULL) {
            result = CUDA_ERROR_OUT_OF_MEMORY;
        } else {
            executable->flags = flags;
            *out = executable;
            call_object(&call, "executable", OBJECT_EXECUTABLE, executable);
        }
    }
    return call_end(&call, result);
}

static CUresult instantiate_old(const char *name, CUgraphExec *out, CUgraph graph,
                                CUgraphNode *error_node, char *log, size_t size)
{
    CUgraphNode bad = NULL;
    CUresult result = instantiate(name, out, graph, 0, &bad);
    if (error_node != NULL)
        *error_node = bad;
    if (log != NULL && size != 0)
        log[0] = '\0';
    return result;
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph,
                                    CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    return instantiate_old(__func__, phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph,
                                       CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    return instantiate_old(__func__, phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                             unsigned long long flags)
{
    CUgraphNode bad;
    return instantiate(__func__, phGraphExec, hGraph, flags, &bad);
}

static CUresult instantiate_with(const char *name, CUgraphExec *out, CUgraph graph,
                                 CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    CUgraphNode bad = NULL;
    CUresult result = instantiate(name, out, graph, params == NULL ? 0 : params->flags, &bad);
    if (params != NULL) {
        params->hErrNode_out = bad;
        params->result_out =
            result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    }
    return result;
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    return instantiate_with(__func__, phGraphExec, hGraph, instantiateParams);
}

CUresult CUDAAPI cuGraphInstantiateWithParams_ptsz(CUgraphExec *phGraphExec, CUgraph hGraph,
                                                   CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    return instantiate_with(__func__, phGraphExec, hGraph, instantiateParams);
}

static struct call executable_call(const char *name, CUgraphExec executable)
{
    struct call call = call_begin(name);
    call_object(&call, "executable", OBJECT_EXECUTABLE, executable);
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_EXECUTABLE, executable))
        call.result = CUDA_ERROR_INVALID_VALUE;
    return call;
}

CUresult CUDAAPI cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
    struct call call = executable_call(__func__, hGraphExec);
    if (call.result == CUDA_SUCCESS && flags == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        *flags = hGraphExec->flags;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    struct call call = executable_call(__func__, hGraphExec);
    if (call.result == CUDA_SUCCESS) {
        graph_free(hGraphExec->graph);
        object_free(OBJECT_EXECUTABLE, hGraphExec);
    }
    return call_end(&call, call.result);
}

/* --- launch ---------------------------------------------------------------------------------- */

/* Host functions to call when the lock is given back. */
struct host_work {
    CUhostFn *functions;
    void **data;
    size_t count;
};

static void host_work_add(struct host_work *work, CUgraphNode node)
{
    work->functions = realloc(work->functions, (work->count + 1) * sizeof(CUhostFn));
    work->data = realloc(work->data, (work->count + 1) * sizeof(void *));
    if (work->functions == NULL || work->data == NULL)
        abort();
    work->functions[work->count] = node->host;
    work->data[work->count++] = node->host_data;
}

static unsigned int run_graph(struct call *call, CUgraphExec executable, CUgraph graph,
                              struct host_work *work)
{
    unsigned int kernels = 0;
    for (CUgraphNode at = graph->first; at != NULL; at = at->next) {
        if (at->disabled)
            continue;
        if (at->type == CU_GRAPH_NODE_TYPE_KERNEL) {
            call_node(call, executable, at);
            kernels++;
        } else if (at->type == CU_GRAPH_NODE_TYPE_MEMCPY || at->type == CU_GRAPH_NODE_TYPE_MEMSET) {
            transfer_run(&at->transfer);
        } else if (at->type == CU_GRAPH_NODE_TYPE_HOST) {
            host_work_add(work, at);
        } else if (at->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD &&
                   object_is(OBJECT_EVENT, at->event)) {
            at->event->recorded++;
        } else if (at->child != NULL) {
            kernels += run_graph(call, executable, at->child, work);
        }
    }
    return kernels;
}

/* Measured: a launch into a capturing stream is refused with 900. Assumed: that invalidates the
 * capture, as the other calls do that a capture does not permit. */
static CUresult launch(const char *name, CUgraphExec executable, CUstream handle, CUstream standard,
                       bool run)
{
    struct host_work work = {NULL, NULL, 0};
    struct call call = executable_call(name, executable);
    CUstream stream = stream_of(handle, standard, true);
    call_stream(&call, handle, stream);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && stream == NULL && context_current() == NULL)
        result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && stream == NULL)
        result = stream_refusal(handle);
    if (result == CUDA_SUCCESS)
        result = run ? capture_check_idle(stream) : capture_check(stream);
    if (result == CUDA_SUCCESS && run)
        call_add(&call, "kernels=%u", run_graph(&call, executable, executable->graph, &work));
    result = call_end(&call, result);
    for (size_t i = 0; i < work.count; i++)
        work.functions[i](work.data[i]);
    free(work.functions);
    free(work.data);
    return result;
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
    return launch(__func__, hGraphExec, hStream, CU_STREAM_LEGACY, true);
}

CUresult CUDAAPI cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream hStream)
{
    return launch(__func__, hGraphExec, hStream, CU_STREAM_PER_THREAD, true);
}

CUresult CUDAAPI cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
    return launch(__func__, hGraphExec, hStream, CU_STREAM_LEGACY, false);
}

CUresult CUDAAPI cuGraphUpload_ptsz(CUgraphExec hGraphExec, CUstream hStream)
{
    return launch(__func__, hGraphExec, hStream, CU_STREAM_PER_THREAD, false);
}

/* --- changes to single nodes ----------------------------------------------------------------- */

struct call graph_counterpart_call(const char *name, CUgraphExec executable, CUgraphNode original,
                                   CUgraphNode *node)
{
    struct call call = executable_call(name, executable);
    call_object(&call, "node", OBJECT_NODE, original);
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_NODE, original))
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        *node = graph_find_clone(executable->graph, original);
        if (*node == NULL)
            call.result = CUDA_ERROR_INVALID_VALUE;
    }
    return call;
}

/* Measured: a cluster on the node and a grid that it does not divide: 912. The context has to stay
 * what it is (1): what names a function means the current one, and what was read names one. */
static CUresult set_kernel(const char *name, CUgraphExec executable, CUgraphNode original,
                           const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    CUgraphNode node;
    struct call call = graph_counterpart_call(name, executable, original, &node);
    if (call.result == CUDA_SUCCESS && node->type != CU_GRAPH_NODE_TYPE_KERNEL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        call.result = kernel_node_set_within(&node->kernel, params, node->kernel.context);
    if (call.result == CUDA_SUCCESS)
        call_kernel_node(&call, &node->kernel);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    memset(&params, 0, sizeof(params));
    if (nodeParams != NULL)
        memcpy(&params, nodeParams, sizeof(*nodeParams));
    return set_kernel(__func__, hGraphExec, hNode, &params);
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                   const CUDA_KERNEL_NODE_PARAMS_v2 *nodeParams)
{
    static const CUDA_KERNEL_NODE_PARAMS_v2 nothing;
    return set_kernel(__func__, hGraphExec, hNode, nodeParams == NULL ? &nothing : nodeParams);
}

CUresult CUDAAPI cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                          CUgraphNodeParams *nodeParams)
{
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    memset(&params, 0, sizeof(params));
    if (nodeParams != NULL && nodeParams->type == CU_GRAPH_NODE_TYPE_KERNEL)
        memcpy(&params, &nodeParams->kernel, sizeof(params));
    return set_kernel(__func__, hGraphExec, hNode, &params);
}

CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                       unsigned int isEnabled)
{
    CUgraphNode node;
    struct call call = graph_counterpart_call(__func__, hGraphExec, hNode, &node);
    call_add(&call, "enabled=%u", isEnabled);
    if (call.result == CUDA_SUCCESS)
        node->disabled = isEnabled == 0;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                       unsigned int *isEnabled)
{
    CUgraphNode node;
    struct call call = graph_counterpart_call(__func__, hGraphExec, hNode, &node);
    if (call.result == CUDA_SUCCESS && isEnabled == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        *isEnabled = !node->disabled;
    return call_end(&call, call.result);
}
