/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_NODE_H
#define CUDAPOLICY_DECIDE_NODE_H

/* Kernels as the report counts them, for nodes that nothing was decided about. Locks, may query. */

#include <stdint.h>

#include "decide/decide.h"
#include "decide/graph_nodes.h"

/* The report's number of a function's kernel. */
uint32_t decide_node_kernel(void *function, const char *library);

/* The cell of a kernel for launches in which no rule has a part. */
uint32_t decide_node_plain_cell(uint32_t kernel);

/* Gives the node the attributes that it has in an arm of a live comparison, and changes facts to
 * what is so then. What is known of the node is not touched, nor is its partition. */
void decide_node_in_arm(CUgraphNode node, const struct cuda_kernel_node_params *parameters,
                        struct decide_node_facts *facts, int arm);

/* The function that node parameters name: a CUkernel where they have one. */
static inline void *decide_node_function(const struct cuda_kernel_node_params *parameters)
{
    return parameters->kernel ? (void *)parameters->kernel : (void *)parameters->function;
}

#endif
