/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/node_place.h"

#include <stdlib.h>
#include <string.h>

#include "decide/function.h"
#include "decide/graph.h"
#include "decide/graph_nodes.h"
#include "decide/node.h"

/* The parameters as the driver has to get them; false when the function's kernel is not known. */
static bool on_partition(const struct cuda_kernel_node_params *given,
                         const struct place_partition *partition,
                         struct cuda_kernel_node_params *changed)
{
    CUkernel kernel =
        given->kernel ? given->kernel : decide_function_kernel_of((void *)given->function);
    if (!kernel)
        return false;
    *changed = *given;
    changed->function = NULL;
    changed->kernel = kernel;
    changed->context = partition->context;
    return true;
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
    if (read_parameters(node, &before) != CUDA_SUCCESS)
        return REPORT_REASON_QUERY_FAILED;
    if (!on_partition(parameters, partition, &changed))
        return REPORT_REASON_NO_KERNEL_HANDLE;
    if (cuda_driver.cuGraphKernelNodeSetParams(node, &changed) != CUDA_SUCCESS)
        return REPORT_REASON_REFUSED_BY_DRIVER;
    *place = (struct decide_node_place){.partition = partition,
                                        .function = before.function,
                                        .kernel = before.kernel,
                                        .context = before.context};
    return REPORT_REASON_NONE;
}

bool decide_node_place_take_back(CUgraphNode node, struct decide_node_place *place)
{
    struct cuda_kernel_node_params parameters;
    if (read_parameters(node, &parameters) != CUDA_SUCCESS)
        return false;
    /* With a function the node would go to the context that is current (measured). */
    if (parameters.kernel)
        parameters.function = NULL;
    else
        parameters.function = place->function;
    parameters.context = place->context;
    if (cuda_driver.cuGraphKernelNodeSetParams(node, &parameters) != CUDA_SUCCESS)
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
                        struct cuda_kernel_node_params *changed)
{
    struct decide_node_facts facts;
    return place_wanted() && decide_nodes_find(node, &facts) && facts.injection.place.partition &&
           on_partition(given, facts.injection.place.partition, changed);
}

static void take_back(CUgraphNode node)
{
    struct decide_node_facts facts;
    if (!decide_nodes_find(node, &facts) || !facts.injection.place.partition ||
        !decide_node_place_take_back(node, &facts.injection.place))
        return;
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
