/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/node_place.h"

#include <stdlib.h>
#include <string.h>

#include "decide/function.h"
#include "decide/graph.h"
#include "decide/graph_nodes.h"
#include "decide/node.h"

/* The parameters as the driver has to get them, and the context that has to be current then; NULL:
 * whichever is. */
static void on_partition(const struct cuda_kernel_node_params *given,
                         const struct place_partition *partition,
                         struct cuda_kernel_node_params *changed, CUcontext *current)
{
    CUkernel kernel =
        given->kernel ? given->kernel : decide_function_kernel_of((void *)given->function);
    *changed = *given;
    *current = NULL;
    if (!kernel) {
        *current = partition->context;
        return;
    }
    changed->function = NULL;
    changed->kernel = kernel;
    changed->context = partition->context;
}

bool decide_node_enter(CUcontext context)
{
    return !context || (cuda_driver.cuCtxPushCurrent && cuda_driver.cuCtxPopCurrent &&
                        cuda_driver.cuCtxPushCurrent(context) == CUDA_SUCCESS);
}

void decide_node_leave(CUcontext context)
{
    CUcontext popped;
    if (context)
        cuda_driver.cuCtxPopCurrent(&popped);
}

static CUresult read_parameters(CUgraphNode node, struct cuda_kernel_node_params *parameters)
{
    memset(parameters, 0, sizeof *parameters);
    if (!cuda_driver.cuGraphKernelNodeGetParams || !cuda_driver.cuGraphKernelNodeSetParams)
        return CUDA_ERROR_NOT_SUPPORTED;
    return cuda_driver.cuGraphKernelNodeGetParams(node, parameters);
}

enum report_reason decide_node_place_make(CUgraphNode node,
                                          const struct cuda_kernel_node_params *parameters,
                                          const struct place_partition *partition,
                                          struct decide_node_place *place)
{
    struct cuda_kernel_node_params before, changed;
    CUcontext current;
    if (read_parameters(node, &before) != CUDA_SUCCESS)
        return REPORT_REASON_QUERY_FAILED;
    /* The program's arguments may have been the node's own, which its last call has moved: those
     * that the node has now are used. */
    changed = before;
    changed.function = parameters->function;
    changed.kernel = parameters->kernel;
    on_partition(&changed, partition, &changed, &current);
    if (!decide_node_enter(current))
        return REPORT_REASON_NO_KERNEL_HANDLE;
    CUresult result = cuda_driver.cuGraphKernelNodeSetParams(node, &changed);
    decide_node_leave(current);
    if (result != CUDA_SUCCESS)
        return REPORT_REASON_REFUSED_BY_DRIVER;
    place->partition = partition;
    place->function = before.function;
    place->kernel = before.kernel;
    place->context = before.context;
    return REPORT_REASON_NONE;
}

bool decide_node_place_take_back(CUgraphNode node, struct decide_node_place *place)
{
    struct cuda_kernel_node_params parameters;
    if (read_parameters(node, &parameters) != CUDA_SUCCESS)
        return false;
    /* Of a node of a kernel both are told. With a function alone it goes to the context that is
     * current (measured). */
    CUcontext current = place->kernel ? NULL : place->context;
    parameters.function = place->kernel ? NULL : place->function;
    parameters.kernel = place->kernel;
    parameters.context = place->context;
    if (!decide_node_enter(current))
        return false;
    CUresult result = cuda_driver.cuGraphKernelNodeSetParams(node, &parameters);
    decide_node_leave(current);
    if (result != CUDA_SUCCESS)
        return false;
    place->partition = NULL;
    return true;
}

/* ---- What the program asks and sets ------------------------------------------------------------
 */

bool decide_node_told(CUgraphNode node, struct cuda_kernel_node_params *parameters)
{
    struct decide_node_facts facts;
    if (!place_wanted() || !decide_nodes_find(node, &facts) || !facts.injection.place.partition)
        return false;
    parameters->function = facts.injection.place.function;
    parameters->kernel = facts.injection.place.kernel;
    parameters->context = facts.injection.place.context;
    return true;
}

bool decide_node_placed(CUgraphNode node, const struct cuda_kernel_node_params *given,
                        struct cuda_kernel_node_params *changed, CUcontext *current)
{
    struct decide_node_facts facts;
    if (!place_wanted() || !decide_nodes_find(node, &facts) || !facts.injection.place.partition)
        return false;
    on_partition(given, facts.injection.place.partition, changed, current);
    return true;
}

static void take_back(CUgraphNode node)
{
    struct decide_node_facts facts;
    if (!decide_nodes_find(node, &facts) || !facts.injection.place.partition ||
        !decide_node_place_take_back(node, &facts.injection.place))
        return;
    facts.injection.place.stream = NULL;
    facts.injection.settings &= (uint16_t) ~(1u << POLICY_SETTING_PARTITION);
    decide_nodes_change(node, &facts);
}

static void take_back_all(CUgraph graph, unsigned depth);

static void take_back_nested(CUgraph graph, unsigned depth)
{
    size_t count;
    CUgraphNode *owners = decide_nodes_of(graph, true, &count);
    CUgraph inner;
    for (size_t i = 0; owners && i < count; i++)
        if (cuda_driver.cuGraphChildGraphNodeGetGraph &&
            cuda_driver.cuGraphChildGraphNodeGetGraph(owners[i], &inner) == CUDA_SUCCESS)
            take_back_all(inner, depth + 1);
    free(owners);
}

static void take_back_all(CUgraph graph, unsigned depth)
{
    size_t count;
    CUgraphNode *nodes = decide_nodes_of(graph, false, &count);
    for (size_t i = 0; nodes && i < count; i++)
        take_back(nodes[i]);
    free(nodes);
    if (depth < DECIDE_GRAPH_DEPTH_LIMIT)
        take_back_nested(graph, depth);
}

/* A driver that instantiates a graph with nodes of a green context that is gone crashes (measured).
 */
void decide_node_place_ending(int device)
{
    size_t count;
    CUgraphNode *nodes = decide_nodes_placed(device, &count);
    for (size_t i = 0; nodes && i < count; i++)
        take_back(nodes[i]);
    free(nodes);
}

void decide_graph_for_device(CUgraph graph)
{
    if (place_wanted())
        take_back_all(graph, 0);
}
