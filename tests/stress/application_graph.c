/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs made node by node, changed, copied, updated and run. */
#include "application.h"

#include <stddef.h>
#include <string.h>

static CUDA_KERNEL_NODE_PARAMS_v2 parameters_of(CUfunction function, unsigned blocks)
{
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    memset(&parameters, 0, sizeof parameters);
    parameters.func = function;
    parameters.gridDimX = blocks;
    parameters.gridDimY = parameters.gridDimZ = 1;
    parameters.blockDimX = 64;
    parameters.blockDimY = parameters.blockDimZ = 1;
    return parameters;
}

static CUgraphNode add(CUgraph graph, CUfunction function, unsigned blocks)
{
    CUgraphNode node = NULL;
    CUDA_KERNEL_NODE_PARAMS_v2 parameters = parameters_of(function, blocks);
    CALL(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &parameters);
    return node;
}

/* In the first version of the parameters, and by the generic functions. */
static CUgraphNode add_in_other_ways(struct application *application, CUgraph graph)
{
    CUgraphNode node = NULL;
    CUDA_KERNEL_NODE_PARAMS_v2 parameters = parameters_of(application->functions[BETA], 8);
    CUDA_KERNEL_NODE_PARAMS_v1 first;
    CUgraphNodeParams generic;
    memcpy(&first, &parameters, sizeof first);
    CALL(cuGraphAddKernelNode, &node, graph, NULL, 0, &first);
    parameters.func = NULL;
    parameters.kern = application->kernels[0];
    memset(&generic, 0, sizeof generic);
    generic.type = CU_GRAPH_NODE_TYPE_KERNEL;
    memcpy(&generic.kernel, &parameters, sizeof parameters);
    CALL(cuGraphAddNode, &node, graph, &node, 1, &generic);
    CALL(cuGraphAddNode_v2, &node, graph, &node, NULL, 1, &generic);
    parameters.gridDimX = 0;
    CALL(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &parameters);
    return node;
}

static void set(CUgraphNode node, CUlaunchAttributeID id, int number)
{
    CUlaunchAttributeValue value;
    memset(&value, 0, sizeof value);
    value.priority = number;
    CALL(cuGraphKernelNodeSetAttribute, node, id, &value);
}

static void tell_parameters(CUgraphNode node)
{
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    memset(&parameters, 0, sizeof parameters);
    CALL(cuGraphKernelNodeGetParams_v2, node, &parameters);
    calls_tell("blocks %u", parameters.gridDimX);
}

static void change(struct application *application, CUgraphNode node, CUgraphNode other)
{
    CUDA_KERNEL_NODE_PARAMS_v2 parameters = parameters_of(application->functions[ZETA], 7);
    CUgraphNodeParams generic;
    CALL(cuGraphKernelNodeSetParams_v2, node, &parameters);
    tell_parameters(node);
    set(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 1);
    set(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, -3);
    set(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 0);
    set(node, (CUlaunchAttributeID)77, 1);
    CALL(cuGraphKernelNodeCopyAttributes, other, node);
    parameters = parameters_of(application->functions[ALPHA], 8);
    memset(&generic, 0, sizeof generic);
    generic.type = CU_GRAPH_NODE_TYPE_KERNEL;
    memcpy(&generic.kernel, &parameters, sizeof parameters);
    CALL(cuGraphNodeSetParams, other, &generic);
    parameters.gridDimX = 0;
    CALL(cuGraphKernelNodeSetParams_v2, other, &parameters);
    tell_parameters(other);
}

static void change_executable(struct application *application, CUgraphExec executable,
                              CUgraphNode node)
{
    CUDA_KERNEL_NODE_PARAMS_v2 parameters = parameters_of(application->functions[BETA], 8);
    CUgraphNodeParams generic;
    CALL(cuGraphExecKernelNodeSetParams_v2, executable, node, &parameters);
    CALL(cuGraphLaunch, executable, application->streams[NON_BLOCKING]);
    parameters = parameters_of(application->functions[ALPHA], 8);
    memset(&generic, 0, sizeof generic);
    generic.type = CU_GRAPH_NODE_TYPE_KERNEL;
    memcpy(&generic.kernel, &parameters, sizeof parameters);
    CALL(cuGraphExecNodeSetParams, executable, node, &generic);
    parameters.gridDimX = 0;
    CALL(cuGraphExecKernelNodeSetParams_v2, executable, node, &parameters);
    CALL(cuGraphLaunch, executable, application->streams[BLOCKING]);
}

static void update(CUgraphExec executable, CUgraph graph, CUstream stream)
{
    CUgraphExecUpdateResultInfo info;
    memset(&info, 0, sizeof info);
    CALL(cuGraphExecUpdate_v2, executable, graph, &info);
    calls_tell("update %d", (int)info.result);
    CALL(cuGraphLaunch, executable, stream);
}

/* A graph in a graph, and a copy of both. */
static void nest(struct application *application, CUgraph graph)
{
    CUgraph outer = NULL, clone = NULL;
    CUgraphNode owner = NULL, found = NULL;
    CUgraphExec executable = NULL;
    CALL(cuGraphCreate, &outer, 0);
    add(outer, application->functions[EPSILON], 4);
    CALL(cuGraphAddChildGraphNode, &owner, outer, NULL, 0, graph);
    CALL(cuGraphClone, &clone, outer);
    CALL(cuGraphNodeFindInClone, &found, owner, clone);
    CALL(cuGraphInstantiateWithFlags, &executable, clone, 0);
    CALL(cuGraphLaunch, executable, application->streams[NON_BLOCKING]);
    update(executable, outer, application->streams[NON_BLOCKING]);
    CALL(cuGraphDestroyNode, owner);
    update(executable, outer, application->streams[NON_BLOCKING]);
    CALL(cuGraphExecDestroy, executable);
    CALL(cuGraphDestroy, clone);
    CALL(cuGraphDestroy, outer);
}

static void launch_into_capture(struct application *application, CUgraphExec executable)
{
    CUgraph none;
    CALL(cuStreamBeginCapture_v2, application->streams[URGENT], CU_STREAM_CAPTURE_MODE_RELAXED);
    CALL(cuGraphLaunch, executable, application->streams[URGENT]);
    CALL(cuStreamEndCapture, application->streams[URGENT], &none);
}

void application_build_graphs(struct application *application)
{
    CUgraph graph = NULL;
    CUgraphNode first, second;
    CUgraphExec executable = NULL;
    CUDA_GRAPH_INSTANTIATE_PARAMS instantiation;
    CALL(cuGraphCreate, &graph, 0);
    first = add(graph, application->functions[ALPHA], 8);
    second = add(graph, application->functions[BETA], 6);
    add(graph, application->functions[GAMMA], 8);
    add(graph, application->functions[ZETA], 8);
    add_in_other_ways(application, graph);
    CALL(cuGraphInstantiateWithFlags, &executable, graph, 0);
    CALL(cuGraphLaunch, executable, application->streams[NON_BLOCKING]);
    change_executable(application, executable, first);
    change(application, first, second);
    update(executable, graph, application->streams[NON_BLOCKING]);
    launch_into_capture(application, executable);
    nest(application, graph);
    CALL(cuGraphExecDestroy, executable);
    memset(&instantiation, 0, sizeof instantiation);
    CALL(cuGraphInstantiateWithParams, &executable, graph, &instantiation);
    CALL(cuGraphLaunch, executable, application->streams[URGENT]);
    CALL(cuGraphDestroy, graph);
    CALL(cuGraphLaunch, executable, application->streams[URGENT]);
    CALL(cuGraphExecDestroy, executable);
    CALL(cuGraphLaunch, executable, application->streams[URGENT]);
}
