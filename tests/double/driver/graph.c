/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as lists of nodes. */
#include "driver.h"
#include <string.h>

CUgraph graph_new(void)
{
    return object_new(OBJECT_GRAPH);
}

static void node_free(CUgraphNode node)
{
    node_list_clear(&node->dependencies);
    if (node->child != NULL)
        graph_free(node->child);
    object_free(OBJECT_NODE, node);
}

void graph_free(CUgraph graph)
{
    while (graph->first != NULL) {
        CUgraphNode next = graph->first->next;
        node_free(graph->first);
        graph->first = next;
    }
    object_free(OBJECT_GRAPH, graph);
}

CUgraphNode graph_add(CUgraph graph, CUgraphNodeType type, const CUgraphNode *dependencies,
                      size_t count)
{
    CUgraphNode node = object_new(OBJECT_NODE);
    if (node == NULL)
        return NULL;
    node->graph = graph;
    node->type = type;
    for (size_t i = 0; i < count; i++)
        node_list_add(&node->dependencies, dependencies[i]);
    node->previous = graph->last;
    if (graph->last == NULL)
        graph->first = node;
    else
        graph->last->next = node;
    graph->last = node;
    graph->count++;
    return node;
}
