/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as lists of nodes: making, copying and freeing them. */
#include "driver.h"
#include <stdlib.h>
#include <string.h>

CUgraph graph_new(void)
{
    return object_new(OBJECT_GRAPH);
}

static void node_free(CUgraphNode node)
{
    node_list_clear(&node->dependencies);
    kernel_node_free(&node->kernel);
    if (node->child != NULL)
        graph_free(node->child);
    for (size_t i = 0; i < NODE_BODIES && node->bodies[i] != NULL; i++)
        graph_free(node->bodies[i]);
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

static void forget(struct node_list *list, CUgraphNode node)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->nodes[i] == node) {
            list->nodes[i] = list->nodes[--list->count];
            return;
        }
}

void graph_remove(CUgraphNode node)
{
    CUgraph graph = node->graph;
    for (CUgraphNode at = graph->first; at != NULL; at = at->next)
        forget(&at->dependencies, node);
    if (node->previous == NULL)
        graph->first = node->next;
    else
        node->previous->next = node->next;
    if (node->next == NULL)
        graph->last = node->previous;
    else
        node->next->previous = node->previous;
    graph->count--;
    node_free(node);
}

CUgraphNode graph_find_clone(CUgraph clone, CUgraphNode original)
{
    /* The ordinal too: another node may live at the address of one that was destroyed. */
    for (CUgraphNode at = clone->first; at != NULL; at = at->next) {
        if (at->original == original && at->original_ordinal == original->object.ordinal)
            return at;
        if (at->child != NULL) {
            CUgraphNode found = graph_find_clone(at->child, original);
            if (found != NULL)
                return found;
        }
    }
    return NULL;
}

static bool clone_node(CUgraph clone, CUgraphNode from)
{
    CUgraphNode to = graph_add(clone, from->type, NULL, 0);
    if (to == NULL)
        return false;
    to->original = from;
    to->original_ordinal = from->object.ordinal;
    to->disabled = from->disabled;
    to->transfer = from->transfer;
    to->host = from->host;
    to->host_data = from->host_data;
    to->event = from->event;
    to->kernel = from->kernel;
    to->kernel.storage = NULL;
    if (from->type == CU_GRAPH_NODE_TYPE_KERNEL)
        kernel_node_copy_arguments(&to->kernel);
    if (from->child != NULL) {
        to->child = graph_clone(from->child);
        if (to->child == NULL)
            return false;
        to->child->owner = to;
    }
    for (size_t i = 0; i < NODE_BODIES && from->bodies[i] != NULL; i++) {
        to->bodies[i] = graph_clone(from->bodies[i]);
        if (to->bodies[i] == NULL)
            return false;
        to->bodies[i]->owner = to;
    }
    return true;
}

CUgraph graph_clone(CUgraph graph)
{
    CUgraph clone = graph_new();
    if (clone == NULL)
        return NULL;
    /* Edges may run against the order of creation, so all nodes are made before any edge. */
    for (CUgraphNode at = graph->first; at != NULL; at = at->next)
        if (!clone_node(clone, at)) {
            graph_free(clone);
            return NULL;
        }
    CUgraphNode to = clone->first;
    for (CUgraphNode at = graph->first; at != NULL; at = at->next, to = to->next) {
        node_list_clear(&to->dependencies);
        for (size_t i = 0; i < at->dependencies.count; i++)
            node_list_add(&to->dependencies, graph_find_clone(clone, at->dependencies.nodes[i]));
    }
    return clone;
}

bool graph_has_all(CUgraph graph, const CUgraphNode *nodes, size_t count)
{
    if (count != 0 && nodes == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!object_is(OBJECT_NODE, nodes[i]) || nodes[i]->graph != graph)
            return false;
    return true;
}
