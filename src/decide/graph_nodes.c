/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/graph_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "decide/handle_map.h"

struct graph;

/* What the program had where we injected; most nodes have none. Used again, never freed. */
struct injection {
    struct decide_node_injection values;
    struct injection *next_free;
};

struct node {
    struct handle_entry base;
    struct graph *graph;
    struct node *next, *previous; /* in its graph, the latest first */
    struct injection *injection;  /* NULL: none */
    const char *library;
    uint32_t cell, kernel;
};

struct graph {
    struct handle_entry base;
    struct node *first, *last;
    size_t count;
    struct graph *parent, *children, *next_sibling;
    CUgraphNode owner; /* the node of parent that holds this graph; NULL: not known */
};

static struct handle_map nodes = HANDLE_MAP_INITIALISER(struct node);
static struct handle_map graphs = HANDLE_MAP_INITIALISER(struct graph);
static struct graph orphans; /* in no map */
static struct injection *free_injections;
static atomic_bool bodies_seen;

static void lock(void)
{
    handle_map_lock(&nodes);
    handle_map_lock(&graphs);
}

static void unlock(void)
{
    handle_map_unlock(&graphs);
    handle_map_unlock(&nodes);
}

/* All below are called with the lock. */

static uint64_t handle_of(const struct handle_entry *base)
{
    return atomic_load_explicit(&base->handle, memory_order_relaxed);
}

static void link_node(struct graph *graph, struct node *node)
{
    node->graph = graph;
    node->previous = NULL;
    node->next = graph->first;
    if (graph->first)
        graph->first->previous = node;
    else
        graph->last = node;
    graph->first = node;
    graph->count++;
}

static void unlink_node(struct node *node)
{
    struct graph *graph = node->graph;
    if (node->previous)
        node->previous->next = node->next;
    else
        graph->first = node->next;
    if (node->next)
        node->next->previous = node->previous;
    else
        graph->last = node->previous;
    graph->count--;
}

static void release_injection(struct node *node)
{
    if (!node->injection)
        return;
    node->injection->next_free = free_injections;
    free_injections = node->injection;
    node->injection = NULL;
}

static void remove_node(struct node *node)
{
    release_injection(node);
    unlink_node(node);
    handle_map_remove(&nodes, handle_of(&node->base));
}

static void unlink_graph(struct graph *graph)
{
    if (!graph->parent)
        return;
    struct graph **link = &graph->parent->children;
    while (*link != graph)
        link = &(*link)->next_sibling;
    *link = graph->next_sibling;
    graph->parent = NULL;
}

/* A graph nests as deep as the program makes it: no recursion. */
static void remove_graph(struct graph *top)
{
    struct graph *graph = top;
    unlink_graph(top);
    for (;;) {
        while (graph->children)
            graph = graph->children;
        while (graph->first)
            remove_node(graph->first);
        struct graph *parent = graph->parent;
        unlink_graph(graph);
        handle_map_remove(&graphs, handle_of(&graph->base));
        if (graph == top)
            return;
        graph = parent;
    }
}

/* NULL when memory is short. */
static struct graph *graph_of(CUgraph handle)
{
    struct graph *graph = handle_map_find(&graphs, (uintptr_t)handle);
    if (graph)
        return graph;
    graph = handle_map_new(&graphs);
    if (!graph)
        return NULL;
    graph->first = graph->last = NULL;
    graph->count = 0;
    graph->parent = graph->children = graph->next_sibling = NULL;
    graph->owner = NULL;
    return handle_map_insert(&graphs, graph, (uintptr_t)handle) ? graph : NULL;
}

/* Where memory is short the injection is forgotten: it stays when the node's kernel changes. */
static void keep_injection(struct node *node, const struct decide_node_injection *values)
{
    if (values->settings == 0) {
        release_injection(node);
        return;
    }
    if (!node->injection) {
        node->injection = free_injections;
        if (node->injection)
            free_injections = node->injection->next_free;
        else
            node->injection = malloc(sizeof *node->injection);
    }
    if (node->injection)
        node->injection->values = *values;
}

static void take_facts(struct node *node, const struct decide_node_facts *facts)
{
    node->cell = facts->cell;
    node->kernel = facts->kernel;
    node->library = facts->library;
    keep_injection(node, &facts->injection);
}

static void enter(struct graph *graph, CUgraphNode handle, const struct decide_node_facts *facts)
{
    struct node *node = handle_map_find(&nodes, (uintptr_t)handle);
    if (node)
        remove_node(node);
    node = graph ? handle_map_new(&nodes) : NULL;
    if (!node)
        return;
    node->injection = NULL;
    if (!handle_map_insert(&nodes, node, (uintptr_t)handle))
        return;
    take_facts(node, facts);
    link_node(graph, node);
    if (orphans.count > DECIDE_ORPHAN_LIMIT)
        remove_node(orphans.last);
}

/* ---- Nodes -------------------------------------------------------------------------------------
 */

void decide_nodes_enter(CUgraph graph, CUgraphNode node, const struct decide_node_facts *facts)
{
    lock();
    enter(graph ? graph_of(graph) : &orphans, node, facts);
    unlock();
}

void decide_nodes_change(CUgraphNode node, const struct decide_node_facts *facts)
{
    lock();
    struct node *known = handle_map_find(&nodes, (uintptr_t)node);
    if (known)
        take_facts(known, facts);
    else
        enter(&orphans, node, facts);
    unlock();
}

bool decide_nodes_find(CUgraphNode node, struct decide_node_facts *facts)
{
    memset(facts, 0, sizeof *facts);
    lock();
    struct node *known = handle_map_find(&nodes, (uintptr_t)node);
    if (known) {
        facts->cell = known->cell;
        facts->kernel = known->kernel;
        facts->library = known->library;
        if (known->injection)
            facts->injection = known->injection->values;
    }
    unlock();
    return known != NULL;
}

bool decide_nodes_cell(CUgraphNode node, uint32_t *cell, uint32_t *kernel)
{
    lock();
    struct node *known = handle_map_find(&nodes, (uintptr_t)node);
    if (known) {
        *cell = known->cell;
        *kernel = known->kernel;
    }
    unlock();
    return known != NULL;
}

/* The graph that a node holds; NULL when it holds none that is known. */
static struct graph *graph_in(CUgraphNode owner)
{
    size_t position = 0;
    struct graph *graph;
    while ((graph = handle_map_next(&graphs, &position)))
        if (graph->parent && graph->owner == owner)
            return graph;
    return NULL;
}

void decide_nodes_forget(CUgraphNode node)
{
    lock();
    struct node *known = handle_map_find(&nodes, (uintptr_t)node);
    struct graph *inside = known ? NULL : graph_in(node);
    if (known)
        remove_node(known);
    else if (inside)
        remove_graph(inside);
    unlock();
}

/* ---- Graphs ------------------------------------------------------------------------------------
 */

void decide_nodes_forget_graph(CUgraph graph)
{
    lock();
    struct graph *known = handle_map_find(&graphs, (uintptr_t)graph);
    if (known)
        remove_graph(known);
    unlock();
}

static bool is_placed(const struct node *node, int device)
{
    const struct place_partition *partition =
        node->injection ? node->injection->values.place.partition : NULL;
    return partition && partition->device == device;
}

CUgraphNode *decide_nodes_placed(int device, size_t *count)
{
    CUgraphNode *result = NULL;
    const struct node *node;
    size_t position = 0, room = 0;
    *count = 0;
    lock();
    while ((node = handle_map_next(&nodes, &position)))
        room += is_placed(node, device);
    if (room)
        result = malloc(room * sizeof *result);
    for (position = 0; result && (node = handle_map_next(&nodes, &position));)
        if (is_placed(node, device))
            result[(*count)++] = (CUgraphNode)(uintptr_t)handle_of(&node->base);
    unlock();
    return result;
}

CUgraph decide_nodes_graph_of(CUgraphNode node)
{
    CUgraph graph = NULL;
    lock();
    const struct node *known = handle_map_find(&nodes, (uintptr_t)node);
    if (known && known->graph != &orphans)
        graph = (CUgraph)(uintptr_t)handle_of(&known->graph->base);
    unlock();
    return graph;
}

/* Bodies, and they alone, are inside another graph and not in a node of it that is known. */
bool decide_nodes_bodies_exist(void)
{
    return atomic_load_explicit(&bodies_seen, memory_order_relaxed);
}

bool decide_nodes_in_body(CUgraph graph)
{
    bool body = false;
    if (!decide_nodes_bodies_exist())
        return false;
    lock();
    const struct graph *inner = handle_map_find(&graphs, (uintptr_t)graph);
    for (; inner && inner->parent && !body; inner = inner->parent)
        body = inner->owner == NULL;
    unlock();
    return body;
}

void decide_nodes_nest(CUgraph graph, CUgraph parent, CUgraphNode owner)
{
    if (graph == parent)
        return;
    if (!owner)
        atomic_store_explicit(&bodies_seen, true, memory_order_relaxed);
    lock();
    struct graph *inner = graph_of(graph);
    struct graph *outer = graph_of(parent);
    if (inner && outer) {
        /* A stale entry must not make a ring of parents. */
        bool ring = false;
        for (struct graph *above = outer; above; above = above->parent)
            ring |= above == inner;
        if (!ring) {
            unlink_graph(inner);
            inner->parent = outer;
            inner->owner = owner;
            inner->next_sibling = outer->children;
            outer->children = inner;
        }
    }
    unlock();
}

static size_t count_owners(const struct graph *graph)
{
    size_t count = 0;
    for (const struct graph *child = graph->children; child; child = child->next_sibling)
        count += child->owner != NULL;
    return count;
}

CUgraphNode *decide_nodes_of(CUgraph graph, bool nested, size_t *count)
{
    CUgraphNode *list = NULL;
    *count = 0;
    lock();
    const struct graph *known = handle_map_find(&graphs, (uintptr_t)graph);
    size_t room = !known ? 0 : nested ? count_owners(known) : known->count;
    if (room && (list = malloc(room * sizeof *list))) {
        if (nested) {
            for (const struct graph *child = known->children; child; child = child->next_sibling)
                if (child->owner)
                    list[(*count)++] = child->owner;
        } else {
            for (const struct node *node = known->first; node; node = node->next)
                list[(*count)++] = (CUgraphNode)(uintptr_t)handle_of(&node->base);
        }
    }
    unlock();
    return list;
}

/* ---- All ---------------------------------------------------------------------------------------
 */

static void clear(struct handle_map *map)
{
    size_t position = 0;
    struct handle_entry *entry;
    while ((entry = handle_map_next(map, &position)))
        handle_map_remove(map, handle_of(entry));
}

void decide_nodes_forget_all(void)
{
    lock();
    size_t position = 0;
    struct node *node;
    while ((node = handle_map_next(&nodes, &position)))
        release_injection(node);
    clear(&nodes);
    clear(&graphs);
    memset(&orphans, 0, sizeof orphans);
    unlock();
}

void decide_nodes_start(void)
{
    handle_map_after_fork(&nodes);
    handle_map_after_fork(&graphs);
    decide_nodes_forget_all();
}

void decide_nodes_count(size_t *node_count, size_t *graph_count)
{
    lock();
    *node_count = handle_map_count(&nodes);
    *graph_count = handle_map_count(&graphs);
    unlock();
}
