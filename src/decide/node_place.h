/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_NODE_PLACE_H
#define CUDAPOLICY_DECIDE_NODE_PLACE_H

/*
 * Kernel nodes on partitions. The driver looks at the context of a node's parameters only when they
 * name the kernel and no function (measured on driver 580), so a placed node has parameters of that
 * form, and a program that asks is told its own. A function of which no kernel is
 * known goes to the context that is current, if that is a green one (measured). Calls the driver;
 * not for the launch path.
 */

#include "decide/decide.h"

/* Where a node is, and of a placed one what the program reads in its parameters. */
struct decide_node_place {
    const struct place_partition *partition; /* NULL: not placed */
    /* That of the stream from which the node was captured, where it belongs when no kernel rule
     * sends it elsewhere; NULL: none. */
    const struct place_partition *stream;
    bool unsafe_residency; /* as the stream's rule has it */
    CUfunction function;
    CUkernel kernel;
    CUcontext context;
};

/* Moves a node to the partition. parameters: as the program gave them, or as the node has them.
 * NONE, or why it stays where it is. */
enum report_reason decide_node_place_make(CUgraphNode node,
                                          const struct cuda_kernel_node_params *parameters,
                                          const struct place_partition *partition,
                                          struct decide_node_place *place);

/* Back to where the program had it. False: the driver refused, and it stays. */
bool decide_node_place_take_back(CUgraphNode node, struct decide_node_place *place);

/* Before the partitions of a device go: all nodes leave them. For place_ending. */
void decide_node_place_ending(int device);

#endif
