/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_GRAPH_LIVE_H
#define CUDAPOLICY_DECIDE_GRAPH_LIVE_H

/*
 * Executable graphs of a live comparison. The attributes of a node in an executable graph cannot be
 * changed, so where rules of arms are about its kernels, the program's executable graph gets
 * siblings: one for each arm that decides otherwise than no arm does, made of the same graph while
 * its nodes have the attributes of that arm. A launch goes to the one of the present arm; what the
 * program changes in its own is changed in all.
 *
 * The driver orders launches of one executable graph behind each other, in whatever streams they
 * are, and knows nothing of siblings. So a graph that is launched into another stream than before
 * stays with the executable that was launched last, and then it is in one arm for good.
 *
 * Where siblings cannot be, or no longer, the program's own executable graph serves all arms, as it
 * would in none; the report says how often and why.
 */

#include "decide/decide.h"

/* Makes one more executable of a graph, as the program made its own; or makes the program's call,
 * which its own executable took, for a sibling. */
struct decide_live_call {
    CUresult (*make)(const struct decide_live_call *call, CUgraphExec *executable, CUgraph graph);
    CUresult (*repeat)(const struct decide_live_call *call, CUgraphExec sibling);
};

/* Whether the process has executables with siblings. Launch path. */
bool decide_live_graphs_exist(void);

/* After decide_graph_instantiated. flags: of the instantiation. */
void decide_live_graph_instantiated(CUgraphExec executable, CUgraph graph, unsigned long long flags,
                                    const struct decide_live_call *call);

/*
 * The program's call about its executable succeeded: repeats it for the siblings. graph: from which
 * the executable is updated, so that its nodes have to have the attributes of the sibling's arm
 * meanwhile; NULL: none. node and parameters: whose parameters were set; NULL: none.
 */
void decide_live_graph_changed(CUgraphExec executable, CUgraph graph, CUgraphNode node,
                               const struct cuda_kernel_node_params *parameters,
                               const struct decide_live_call *call);

/*
 * A launch: which executable it goes to; that it went through, launched being the one that did; or
 * that a sibling was refused, before the program's own is tried, and after that one went through.
 * Behind each launch of a sibling an event is recorded, for which the program's own waits when it
 * has to take over. Launch path: no lock, no allocation, no query; an event is made once a graph.
 */
CUgraphExec decide_live_graph_pick(CUgraphExec executable, CUstream stream,
                                   bool per_thread_default);
void decide_live_graph_launched(CUgraphExec executable, CUgraphExec launched, CUstream stream,
                                bool per_thread_default);
void decide_live_graph_give_up(CUgraphExec executable, CUstream stream, bool per_thread_default);
void decide_live_graph_refused(CUgraphExec executable);

/* Before the program's executable is destroyed: its siblings are. */
void decide_live_graph_gone(CUgraphExec executable);

/* Before a stream is destroyed, NULL: some, not known which: its handle may be another stream's
 * afterwards. */
void decide_live_stream_gone(CUstream stream);

/* All are forgotten: their handles ended. */
void decide_live_graphs_forget(void);

/* For decide_graph_start. */
void decide_live_graphs_start(void);

#endif
