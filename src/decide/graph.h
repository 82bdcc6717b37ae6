/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_GRAPH_H
#define CUDAPOLICY_DECIDE_GRAPH_H

/*
 * Graphs: settings of explicit kernel nodes, which cell of the report a node belongs to, and how
 * many launches of which cells one launch of an executable graph makes. The calls are in decide.h.
 */

#include "decide/decide.h"

enum {
    DECIDE_GRAPH_DEPTH_LIMIT = 16, /* of graphs in graphs that are looked into */
};

/* The nodes of a graph, to be freed by the caller; NULL when there are none or they are not told.
 * Queries, as the next two: what kind of node it is; the graph inside a child-graph node. */
CUgraphNode *decide_graph_nodes(CUgraph graph, size_t *count);
bool decide_graph_node_type(CUgraphNode node, CUgraphNodeType *type);
bool decide_graph_inside(CUgraphNode node, CUgraph *graph);

/* Forgets every graph: called by decide_start, also in the child after fork, when no other thread
 * exists. */
void decide_graph_start(void);

/* Before a context ends. Graphs belong to no context, so only NULL (all contexts end) does
 * something. */
void decide_graph_context_gone(CUcontext context);

#endif
