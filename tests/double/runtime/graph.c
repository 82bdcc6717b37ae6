/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs. Measured: kernel nodes get the CUfunction of cuKernelGetFunction, not the CUkernel. */
#include "runtime.h"
#include <string.h>

cudaError_t CUDARTAPI cudaGraphCreate(cudaGraph_t *pGraph, unsigned int flags)
{
    FORWARD(cuGraphCreate, pGraph, flags);
}

cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t graph)
{
    FORWARD(cuGraphDestroy, graph);
}

cudaError_t CUDARTAPI cudaGraphClone(cudaGraph_t *pGraphClone, cudaGraph_t originalGraph)
{
    FORWARD(cuGraphClone, pGraphClone, originalGraph);
}

cudaError_t CUDARTAPI cudaGraphNodeFindInClone(cudaGraphNode_t *pNode, cudaGraphNode_t originalNode,
                                               cudaGraph_t clonedGraph)
{
    FORWARD(cuGraphNodeFindInClone, pNode, originalNode, clonedGraph);
}

/* --- kernel nodes ---------------------------------------------------------------------------- */

static cudaError_t convert(const struct cudaKernelNodeParams *from, CUDA_KERNEL_NODE_PARAMS_v2 *to)
{
    CUkernel kernel;
    memset(to, 0, sizeof(*to));
    if (from == NULL)
        return cudaErrorInvalidValue;
    cudaError_t error = registry_kernel(from->func, &kernel);
    if (error == cudaSuccess)
        error = CALL(cuKernelGetFunction, &to->func, kernel);
    to->gridDimX = from->gridDim.x;
    to->gridDimY = from->gridDim.y;
    to->gridDimZ = from->gridDim.z;
    to->blockDimX = from->blockDim.x;
    to->blockDimY = from->blockDim.y;
    to->blockDimZ = from->blockDim.z;
    to->sharedMemBytes = from->sharedMemBytes;
    to->kernelParams = from->kernelParams;
    to->extra = from->extra;
    return error;
}

cudaError_t CUDARTAPI cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                             const cudaGraphNode_t *pDependencies,
                                             size_t numDependencies,
                                             const struct cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess)
        error = convert(pNodeParams, &params);
    if (error == cudaSuccess)
        error =
            CALL(cuGraphAddKernelNode, pGraphNode, graph, pDependencies, numDependencies, &params);
    return runtime_end(error);
}

/* The host function that belongs to a node's function: found by its name. */
static void *host_function(const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    const char *name = NULL;
    if (params->func == NULL)
        return (void *)(uintptr_t)registry_host(params->kern, NULL);
    if (driver.cuFuncGetName == NULL || driver.cuFuncGetName(&name, params->func) != CUDA_SUCCESS)
        return NULL;
    return (void *)(uintptr_t)registry_host(NULL, name);
}

cudaError_t CUDARTAPI cudaGraphKernelNodeGetParams(cudaGraphNode_t node,
                                                   struct cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess && pNodeParams == NULL)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = CALL(cuGraphKernelNodeGetParams, node, &params);
    if (error == cudaSuccess) {
        memset(pNodeParams, 0, sizeof(*pNodeParams));
        pNodeParams->func = host_function(&params);
        pNodeParams->gridDim.x = params.gridDimX;
        pNodeParams->gridDim.y = params.gridDimY;
        pNodeParams->gridDim.z = params.gridDimZ;
        pNodeParams->blockDim.x = params.blockDimX;
        pNodeParams->blockDim.y = params.blockDimY;
        pNodeParams->blockDim.z = params.blockDimZ;
        pNodeParams->sharedMemBytes = params.sharedMemBytes;
        pNodeParams->kernelParams = params.kernelParams;
        pNodeParams->extra = params.extra;
    }
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                                   const struct cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess)
        error = convert(pNodeParams, &params);
    if (error == cudaSuccess)
        error = CALL(cuGraphKernelNodeSetParams, node, &params);
    return runtime_end(error);
}

cudaError_t CUDARTAPI
cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                 const struct cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess)
        error = convert(pNodeParams, &params);
    if (error == cudaSuccess)
        error = CALL(cuGraphExecKernelNodeSetParams, hGraphExec, node, &params);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaGraphKernelNodeGetAttribute(cudaGraphNode_t hNode,
                                                      cudaKernelNodeAttrID attr,
                                                      cudaKernelNodeAttrValue *value_out)
{
    FORWARD(cuGraphKernelNodeGetAttribute, hNode, (CUkernelNodeAttrID)attr,
            (CUkernelNodeAttrValue *)(void *)value_out);
}

cudaError_t CUDARTAPI cudaGraphKernelNodeSetAttribute(cudaGraphNode_t hNode,
                                                      cudaKernelNodeAttrID attr,
                                                      const cudaKernelNodeAttrValue *value)
{
    FORWARD(cuGraphKernelNodeSetAttribute, hNode, (CUkernelNodeAttrID)attr,
            (const CUkernelNodeAttrValue *)(const void *)value);
}

cudaError_t CUDARTAPI cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t hDst, cudaGraphNode_t hSrc)
{
    FORWARD(cuGraphKernelNodeCopyAttributes, hDst, hSrc);
}

#if RUNTIME_MAJOR >= 13 && CUDART_VERSION >= 13000
/* A kernel's structure is converted; the others lie as the driver's do. */
static cudaError_t convert_any(const struct cudaGraphNodeParams *from, CUgraphNodeParams *to)
{
    if (from == NULL)
        return cudaErrorInvalidValue;
    memset(to, 0, sizeof(*to));
    if (from->type != cudaGraphNodeTypeKernel) {
        memcpy(to, from, sizeof(*to) < sizeof(*from) ? sizeof(*to) : sizeof(*from));
        return cudaSuccess;
    }
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    struct cudaKernelNodeParams kernel = {
        .func = from->kernel.func,
        .gridDim = from->kernel.gridDim,
        .blockDim = from->kernel.blockDim,
        .sharedMemBytes = from->kernel.sharedMemBytes,
        .kernelParams = from->kernel.kernelParams,
        .extra = from->kernel.extra,
    };
    cudaError_t error = convert(&kernel, &params);
    to->type = CU_GRAPH_NODE_TYPE_KERNEL;
    memcpy(&to->kernel, &params, sizeof(to->kernel));
    return error;
}

cudaError_t CUDARTAPI cudaGraphAddNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                       const cudaGraphNode_t *pDependencies,
                                       const cudaGraphEdgeData *dependencyData,
                                       size_t numDependencies,
                                       struct cudaGraphNodeParams *nodeParams)
{
    CUgraphNodeParams params;
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess)
        error = convert_any(nodeParams, &params);
    if (error == cudaSuccess)
        error =
            CALL(cuGraphAddNode, pGraphNode, graph, pDependencies,
                 (const CUgraphEdgeData *)(const void *)dependencyData, numDependencies, &params);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaGraphNodeSetParams(cudaGraphNode_t node,
                                             struct cudaGraphNodeParams *nodeParams)
{
    CUgraphNodeParams params;
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess)
        error = convert_any(nodeParams, &params);
    if (error == cudaSuccess)
        error = CALL(cuGraphNodeSetParams, node, &params);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaGraphExecNodeSetParams(cudaGraphExec_t graphExec, cudaGraphNode_t node,
                                                 struct cudaGraphNodeParams *nodeParams)
{
    CUgraphNodeParams params;
    cudaError_t error = runtime_begin();
    if (error == cudaSuccess)
        error = convert_any(nodeParams, &params);
    if (error == cudaSuccess)
        error = CALL(cuGraphExecNodeSetParams, graphExec, node, &params);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                               const cudaGraphNode_t *to,
                                               const cudaGraphEdgeData *edgeData,
                                               size_t numDependencies)
{
    FORWARD(cuGraphAddDependencies, graph, from, to,
            (const CUgraphEdgeData *)(const void *)edgeData, numDependencies);
}

cudaError_t CUDARTAPI cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from,
                                        cudaGraphNode_t *to, cudaGraphEdgeData *edgeData,
                                        size_t *numEdges)
{
    FORWARD(cuGraphGetEdges, graph, from, to, (CUgraphEdgeData *)(void *)edgeData, numEdges);
}
#endif

/* --- other nodes and questions --------------------------------------------------------------- */

cudaError_t CUDARTAPI cudaGraphAddEmptyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                            const cudaGraphNode_t *pDependencies,
                                            size_t numDependencies)
{
    FORWARD(cuGraphAddEmptyNode, pGraphNode, graph, pDependencies, numDependencies);
}

cudaError_t CUDARTAPI cudaGraphAddChildGraphNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                                 const cudaGraphNode_t *pDependencies,
                                                 size_t numDependencies, cudaGraph_t childGraph)
{
    FORWARD(cuGraphAddChildGraphNode, pGraphNode, graph, pDependencies, numDependencies,
            childGraph);
}

cudaError_t CUDARTAPI cudaGraphAddHostNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                           const cudaGraphNode_t *pDependencies,
                                           size_t numDependencies,
                                           const struct cudaHostNodeParams *pNodeParams)
{
    FORWARD(cuGraphAddHostNode, pGraphNode, graph, pDependencies, numDependencies,
            (const CUDA_HOST_NODE_PARAMS *)(const void *)pNodeParams);
}

cudaError_t CUDARTAPI cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *numNodes)
{
    FORWARD(cuGraphGetNodes, graph, nodes, numNodes);
}

cudaError_t CUDARTAPI cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *pRootNodes,
                                            size_t *pNumRootNodes)
{
    FORWARD(cuGraphGetRootNodes, graph, pRootNodes, pNumRootNodes);
}

cudaError_t CUDARTAPI cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *pType)
{
    FORWARD(cuGraphNodeGetType, node, (CUgraphNodeType *)(void *)pType);
}

cudaError_t CUDARTAPI cudaGraphDestroyNode(cudaGraphNode_t node)
{
    FORWARD(cuGraphDestroyNode, node);
}

/* --- executable graphs ----------------------------------------------------------------------- */

cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                           unsigned long long flags)
{
    FORWARD(cuGraphInstantiateWithFlags, pGraphExec, graph, flags);
}

cudaError_t CUDARTAPI cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                                    unsigned long long flags)
{
    FORWARD(cuGraphInstantiateWithFlags, pGraphExec, graph, flags);
}

cudaError_t CUDARTAPI cudaGraphInstantiateWithParams(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                                     cudaGraphInstantiateParams *params)
{
    FORWARD(cuGraphInstantiateWithParams, pGraphExec, graph,
            (CUDA_GRAPH_INSTANTIATE_PARAMS *)(void *)params);
}

cudaError_t CUDARTAPI cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t *pGraphExec,
                                                          cudaGraph_t graph,
                                                          cudaGraphInstantiateParams *params)
{
    FORWARD(cuGraphInstantiateWithParams_ptsz, pGraphExec, graph,
            (CUDA_GRAPH_INSTANTIATE_PARAMS *)(void *)params);
}

cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
    FORWARD(cuGraphLaunch, graphExec, stream);
}

cudaError_t CUDARTAPI cudaGraphLaunch_ptsz(cudaGraphExec_t graphExec, cudaStream_t stream)
{
    FORWARD(cuGraphLaunch_ptsz, graphExec, stream);
}

cudaError_t CUDARTAPI cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream)
{
    FORWARD(cuGraphUpload, graphExec, stream);
}

cudaError_t CUDARTAPI cudaGraphUpload_ptsz(cudaGraphExec_t graphExec, cudaStream_t stream)
{
    FORWARD(cuGraphUpload_ptsz, graphExec, stream);
}

cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
    FORWARD(cuGraphExecDestroy, graphExec);
}

cudaError_t CUDARTAPI cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
                                          cudaGraphExecUpdateResultInfo *resultInfo)
{
    FORWARD(cuGraphExecUpdate, hGraphExec, hGraph,
            (CUgraphExecUpdateResultInfo *)(void *)resultInfo);
}

cudaError_t CUDARTAPI cudaGraphNodeSetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                              unsigned int isEnabled)
{
    FORWARD(cuGraphNodeSetEnabled, hGraphExec, hNode, isEnabled);
}

cudaError_t CUDARTAPI cudaGraphNodeGetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                              unsigned int *isEnabled)
{
    FORWARD(cuGraphNodeGetEnabled, hGraphExec, hNode, isEnabled);
}
