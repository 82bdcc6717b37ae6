/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and executable graphs: who belongs to whom, and what one launch replays. */
#include "decide/graph.h"

#include <stdlib.h>
#include <string.h>

#include "decide/graph_counts.h"
#include "decide/graph_live.h"
#include "decide/graph_nodes.h"
#include "decide/handle_map.h"
#include "decide/node.h"
#include "report/log.h"

/* A node whose kernel was changed in the executable graph alone. */
struct changed_node {
    CUgraphNode node;
    uint32_t cell, kernel;
};

struct executable {
    struct handle_entry base;
    _Atomic(struct decide_counts *) counts; /* NULL: no kernel */
    /* Under the lock. */
    struct changed_node *changed;
    size_t changed_count;
};

static struct handle_map executables = HANDLE_MAP_INITIALISER(struct executable);

/* ---- Looking into a graph ----------------------------------------------------------------------
 */

struct walk {
    uint32_t *cells;
    size_t count, room;
    size_t unseen; /* kernel nodes that came by a way that we did not see */
    bool failed;
};

static void walk_add(struct walk *walk, uint32_t cell)
{
    if (walk->count == walk->room) {
        size_t room = walk->room ? walk->room * 2 : 64;
        uint32_t *larger = realloc(walk->cells, room * sizeof *larger);
        if (!larger) {
            walk->failed = true;
            return;
        }
        walk->cells = larger;
        walk->room = room;
    }
    walk->cells[walk->count++] = cell;
}

CUgraphNode *decide_graph_nodes(CUgraph graph, size_t *count)
{
    size_t room = 0;
    if (!cuda_driver.cuGraphGetNodes ||
        cuda_driver.cuGraphGetNodes(graph, NULL, &room) != CUDA_SUCCESS || room == 0)
        return NULL;
    CUgraphNode *nodes = malloc(room * sizeof *nodes);
    *count = room;
    if (nodes && cuda_driver.cuGraphGetNodes(graph, nodes, count) == CUDA_SUCCESS)
        return nodes;
    free(nodes);
    return NULL;
}

bool decide_graph_node_type(CUgraphNode node, CUgraphNodeType *type)
{
    return cuda_driver.cuGraphNodeGetType &&
           cuda_driver.cuGraphNodeGetType(node, type) == CUDA_SUCCESS;
}

bool decide_graph_inside(CUgraphNode node, CUgraph *graph)
{
    return cuda_driver.cuGraphChildGraphNodeGetGraph &&
           cuda_driver.cuGraphChildGraphNodeGetGraph(node, graph) == CUDA_SUCCESS;
}

static void walk_unseen_kernel(CUgraphNode node, struct walk *walk)
{
    struct cuda_kernel_node_params parameters;
    memset(&parameters, 0, sizeof parameters);
    if (!cuda_driver.cuGraphKernelNodeGetParams ||
        cuda_driver.cuGraphKernelNodeGetParams(node, &parameters) != CUDA_SUCCESS)
        return;
    walk->unseen++;
    walk_add(walk,
             decide_node_plain_cell(decide_node_kernel(decide_node_function(&parameters), NULL)));
}

/* The bodies of conditional nodes are left out: how often they run is decided on the device. */
static void walk_graph(CUgraph graph, struct walk *walk, unsigned depth)
{
    size_t count = 0;
    CUgraphNode *nodes = decide_graph_nodes(graph, &count);
    for (size_t i = 0; nodes && i < count; i++) {
        uint32_t cell, kernel;
        CUgraphNodeType type;
        CUgraph child;
        if (decide_nodes_cell(nodes[i], &cell, &kernel))
            walk_add(walk, cell);
        else if (!decide_graph_node_type(nodes[i], &type))
            continue;
        else if (type == CU_GRAPH_NODE_TYPE_KERNEL)
            walk_unseen_kernel(nodes[i], walk);
        else if (type == CU_GRAPH_NODE_TYPE_GRAPH && depth < DECIDE_GRAPH_DEPTH_LIMIT &&
                 decide_graph_inside(nodes[i], &child))
            walk_graph(child, walk, depth + 1);
    }
    free(nodes);
}

static struct decide_counts *count_graph(CUgraph graph)
{
    static bool said;
    struct walk walk = {0};
    walk_graph(graph, &walk, 0);
    if (walk.unseen && !__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        report_note("warning",
                    "%zu kernel nodes of a graph were made in a way that is not seen: not reached, "
                    "though their replays are counted",
                    walk.unseen);
    struct decide_counts *counts = decide_counts_of(walk.cells, walk.count);
    if (walk.failed || (walk.count && !counts))
        report_log_once(REPORT_LOG_WARN, "replays of a graph are not counted: out of memory");
    free(walk.cells);
    return counts;
}

/* ---- Executable graphs -------------------------------------------------------------------------
 */

/* Locked. */
static void replace_counts(struct executable *executable, struct decide_counts *counts)
{
    decide_counts_release(
        atomic_exchange_explicit(&executable->counts, counts, memory_order_acq_rel));
}

/* Locked. */
static void forget_changes(struct executable *executable)
{
    free(executable->changed);
    executable->changed = NULL;
    executable->changed_count = 0;
}

/* Locked. */
static void remove_executable(struct executable *executable)
{
    replace_counts(executable, NULL);
    forget_changes(executable);
    handle_map_remove(&executables,
                      atomic_load_explicit(&executable->base.handle, memory_order_relaxed));
}

/* Locked. NULL when memory is short. */
static struct executable *enter_executable(CUgraphExec handle)
{
    struct executable *executable = handle_map_find(&executables, (uintptr_t)handle);
    if (executable)
        return executable;
    executable = handle_map_new(&executables);
    if (!executable)
        return NULL;
    atomic_store_explicit(&executable->counts, NULL, memory_order_relaxed);
    executable->changed = NULL;
    executable->changed_count = 0;
    return handle_map_insert(&executables, executable, (uintptr_t)handle) ? executable : NULL;
}

void decide_graph_instantiated(CUgraphExec executable, CUgraph graph)
{
    struct decide_counts *counts = count_graph(graph);
    handle_map_lock(&executables);
    struct executable *entry = enter_executable(executable);
    if (entry) {
        forget_changes(entry);
        replace_counts(entry, counts);
    } else {
        decide_counts_release(counts);
    }
    handle_map_unlock(&executables);
}

void decide_graph_updated(CUgraphExec executable, CUgraph graph)
{
    decide_graph_instantiated(executable, graph);
}

/* Locked. */
static struct changed_node *find_change(struct executable *executable, CUgraphNode node)
{
    for (size_t i = 0; i < executable->changed_count; i++)
        if (executable->changed[i].node == node)
            return &executable->changed[i];
    return NULL;
}

/* Locked. False when memory is short. */
static bool note_change(struct executable *executable, const struct changed_node *change)
{
    struct changed_node *known = find_change(executable, change->node);
    if (!known) {
        struct changed_node *larger =
            realloc(executable->changed, (executable->changed_count + 1) * sizeof *larger);
        if (!larger)
            return false;
        executable->changed = larger;
        known = &larger[executable->changed_count++];
    }
    *known = *change;
    return true;
}

/*
 * Only the parameters of the node in the executable graph were changed. Its attributes, with our
 * settings among them, stay those of the kernel that it was instantiated with: the driver has no
 * call to change them. So a new kernel there is counted as one that no rule reached.
 */
void decide_graph_node_updated(CUgraphExec executable, CUgraphNode node,
                               const struct cuda_kernel_node_params *parameters)
{
    struct decide_node_facts facts;
    bool known = decide_nodes_find(node, &facts);
    struct changed_node change = {.node = node};
    change.kernel = decide_node_kernel(decide_node_function(parameters), facts.library);
    change.cell =
        known && change.kernel == facts.kernel ? facts.cell : decide_node_plain_cell(change.kernel);
    handle_map_lock(&executables);
    struct executable *entry = handle_map_find(&executables, (uintptr_t)executable);
    struct decide_counts *counts =
        entry ? atomic_load_explicit(&entry->counts, memory_order_relaxed) : NULL;
    if (counts) {
        const struct changed_node *before = find_change(entry, node);
        uint32_t from_kernel = before ? before->kernel : facts.kernel;
        uint32_t from = before ? before->cell : facts.cell;
        if ((known || before) && from_kernel != change.kernel) {
            counts = decide_counts_changed(counts, from, change.cell);
            if (counts && note_change(entry, &change))
                replace_counts(entry, counts);
            else
                decide_counts_release(counts);
        }
    }
    handle_map_unlock(&executables);
}

void decide_graph_executable_gone(CUgraphExec executable)
{
    handle_map_lock(&executables);
    struct executable *entry = handle_map_find(&executables, (uintptr_t)executable);
    if (entry)
        remove_executable(entry);
    handle_map_unlock(&executables);
}

void decide_graph_launched(CUgraphExec executable)
{
    const struct executable *entry = handle_map_find(&executables, (uintptr_t)executable);
    if (!entry) {
        report_log_once(REPORT_LOG_INFO,
                        "a graph that was instantiated before attaching is launched: not reached");
        return;
    }
    const struct decide_counts *counts = atomic_load_explicit(&entry->counts, memory_order_acquire);
    if (!counts)
        return;
    uint32_t count = atomic_load_explicit(&counts->count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++)
        report_count_launch(atomic_load_explicit(&counts->items[i].cell, memory_order_relaxed),
                            REPORT_LAUNCH_REPLAYED,
                            atomic_load_explicit(&counts->items[i].launches, memory_order_relaxed));
}

/* ---- Graphs ------------------------------------------------------------------------------------
 */

static bool find_in_clone(CUgraphNode node, CUgraph clone, CUgraphNode *found)
{
    return cuda_driver.cuGraphNodeFindInClone &&
           cuda_driver.cuGraphNodeFindInClone(found, node, clone) == CUDA_SUCCESS;
}

static void clone_nodes(CUgraph clone, CUgraph original, unsigned depth);

/* Graphs inside the original were copied with it. */
static void clone_nested(CUgraph clone, CUgraph original, unsigned depth)
{
    size_t count;
    CUgraphNode *owners = decide_nodes_of(original, true, &count);
    for (size_t i = 0; owners && i < count; i++) {
        CUgraphNode owner;
        CUgraph inner, inner_clone;
        if (!find_in_clone(owners[i], clone, &owner) || !decide_graph_inside(owners[i], &inner) ||
            !decide_graph_inside(owner, &inner_clone))
            continue;
        decide_nodes_nest(inner_clone, clone, owner);
        clone_nodes(inner_clone, inner, depth + 1);
    }
    free(owners);
}

/* The nodes of a copy have handles of their own, and all attributes of the originals. */
static void clone_nodes(CUgraph clone, CUgraph original, unsigned depth)
{
    size_t count;
    CUgraphNode *nodes = decide_nodes_of(original, false, &count);
    /* They come latest first; entered in the order in which they were made, they keep it. */
    for (size_t i = count; nodes && i > 0; i--) {
        struct decide_node_facts facts;
        CUgraphNode copy;
        if (decide_nodes_find(nodes[i - 1], &facts) && find_in_clone(nodes[i - 1], clone, &copy))
            decide_nodes_enter(clone, copy, &facts);
    }
    free(nodes);
    if (depth < DECIDE_GRAPH_DEPTH_LIMIT)
        clone_nested(clone, original, depth);
}

void decide_graph_cloned(CUgraph clone, CUgraph original)
{
    clone_nodes(clone, original, 0);
}

void decide_child_graph_added(CUgraph graph, CUgraphNode node, CUgraph original)
{
    CUgraph inner;
    if (!decide_graph_inside(node, &inner))
        return;
    decide_nodes_nest(inner, graph, node);
    /* The program may also give the graph away, and then it is no copy. cuGraphNodeFindInClone
     * answers for a child graph as for a clone (measured on driver 580). */
    if (inner != original)
        clone_nodes(inner, original, 0);
}

void decide_graph_owned(CUgraph graph, CUgraph parent)
{
    decide_nodes_nest(graph, parent, NULL);
}

void decide_graph_gone(CUgraph graph)
{
    decide_nodes_forget_graph(graph);
}

/* ---- All ---------------------------------------------------------------------------------------
 */

static void forget_executables(void)
{
    handle_map_lock(&executables);
    size_t position = 0;
    struct executable *entry;
    while ((entry = handle_map_next(&executables, &position)))
        remove_executable(entry);
    handle_map_unlock(&executables);
}

void decide_graph_context_gone(CUcontext context)
{
    if (context)
        return;
    forget_executables();
    decide_live_graphs_forget();
    decide_nodes_forget_all();
}

void decide_graph_start(void)
{
    handle_map_after_fork(&executables);
    decide_counts_start();
    forget_executables();
    decide_live_graphs_start();
    decide_nodes_start();
}
