/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_GRAPH_NODES_H
#define CUDAPOLICY_DECIDE_GRAPH_NODES_H

/*
 * The registry of kernel nodes, by handle and by graph. All functions lock; none calls the driver;
 * none is for the launch path.
 *
 * A node of whose graph we do not know (its parameters were set, but its creation was not seen) is
 * kept too; of these only the latest DECIDE_ORPHAN_LIMIT, as nobody tells when they end.
 */

#include <stdbool.h>
#include <stdint.h>

#include "decide/decide.h"
#include "decide/node_attributes.h"

enum {
    DECIDE_ORPHAN_LIMIT = 4096,
};

struct decide_node_facts {
    uint32_t cell;       /* of the report: its launches are counted there */
    uint32_t kernel;     /* number of the kernel in the report */
    const char *library; /* of the call that made the node; NULL: not known */
    struct decide_node_injection injection;
};

/* Enters a node, in place of what its handle stood for before. graph NULL: not known. */
void decide_nodes_enter(CUgraph graph, CUgraphNode node, const struct decide_node_facts *facts);

/* Changes the facts of a node, which stays in its graph; enters an unknown one without a graph. */
void decide_nodes_change(CUgraphNode node, const struct decide_node_facts *facts);

bool decide_nodes_find(CUgraphNode node, struct decide_node_facts *facts);

/* The cell and the kernel only; false when the node is not known. */
bool decide_nodes_cell(CUgraphNode node, uint32_t *cell, uint32_t *kernel);

/* Forgets a node, or the graph inside a child-graph node. */
void decide_nodes_forget(CUgraphNode node);

/* Forgets a graph with its nodes and the graphs inside it. */
void decide_nodes_forget_graph(CUgraph graph);

/* graph is inside parent, in its node owner (NULL: not known), and ends with it. */
void decide_nodes_nest(CUgraph graph, CUgraph parent, CUgraphNode owner);

/* All nodes that are on a partition of the device; a copy for the caller to free, NULL when there
 * are none. */
CUgraphNode *decide_nodes_placed(int device, size_t *count);

/* The graph of a node; NULL: not known. */
CUgraph decide_nodes_graph_of(CUgraphNode node);

/* Whether the program has ever had a conditional node. */
bool decide_nodes_bodies_exist(void);

/* True when the graph is the body of a conditional node, or inside one. */
bool decide_nodes_in_body(CUgraph graph);

/* The nodes of a graph that are known, or with nested the owners of the graphs inside it; a copy
 * for the caller to free, NULL when there are none. */
CUgraphNode *decide_nodes_of(CUgraph graph, bool nested, size_t *count);

void decide_nodes_forget_all(void);

/* Forgets all; in the child after fork too. No other thread may exist. */
void decide_nodes_start(void);

/* Nodes and graphs known, for tests. */
void decide_nodes_count(size_t *nodes, size_t *graphs);

#endif
