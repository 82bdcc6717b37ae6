/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_LAUNCH_H
#define CUDAPOLICY_DECIDE_LAUNCH_H

/* Deciding a kernel node of a graph: the same engine as for a launch. */

#include "decide/decide.h"

/*
 * Decides an explicit kernel node, described as the launch that it would be: config with the node's
 * grid, block, shared memory and, as attributes, what the program set on the node
 * (CU_LAUNCH_ATTRIBUTE_ ids with values; defaults left out); stream NULL. The rules of a graph
 * hold: memory-sync settings, and programmatic serialization taken away; the others only where the
 * rule says graph_nodes, a cluster only in a shape accepted by an earlier launch. Selectors:
 * captured counts as yes; stream and launch_stream never match, stream rules are not merged; device
 * is that of the current context.
 *
 * arm: of a live comparison, DECIDE_ARM_NONE outside of one and for the graph as the program has
 * it: rules with an arm then never match.
 *
 * verdict->change: the node is to get the attributes of verdict->config that differ from its own,
 * and to lose those that are missing there. verdict->kind is REPORT_LAUNCH_NODE. Afterwards call
 * decide_launch_refused or decide_launch_accepted as for a launch. May query, may lock.
 */
void decide_node(const struct decide_launch *launch, struct decide_verdict *verdict, int arm);

/* decide_launch without the short way. Launch path. */
void decide_launch_in_full(const struct decide_launch *launch, struct decide_verdict *verdict);

#endif
