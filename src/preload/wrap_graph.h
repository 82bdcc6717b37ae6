/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PRELOAD_WRAP_GRAPH_H
#define CUDAPOLICY_PRELOAD_WRAP_GRAPH_H

/* What the wrappers of graphs and of executable graphs share. */

/* First: it says that functions are meant by their own names. */
#include "preload/wrap.h"

#include <string.h>

#include "cuda/interface.h"
#include "preload/control.h"
#include "report/report.h"

/* CUDA_KERNEL_NODE_PARAMS_v1 (CUDA 10.0) is version 2 without the last two members. */
static inline struct cuda_kernel_node_params wrap_first_version(const void *parameters)
{
    struct cuda_kernel_node_params all = {0};

    memcpy(&all, parameters, offsetof(struct cuda_kernel_node_params, kernel));
    return all;
}

/* The kernel of generic node parameters, or NULL for a node of another kind. */
static inline const struct cuda_kernel_node_params *wrap_kernel_of(const void *parameters)
{
    const struct cuda_graph_node_params *node = parameters;

    return node != NULL && node->type == CU_GRAPH_NODE_TYPE_KERNEL ? &node->node.kernel : NULL;
}

/* The same for a child graph. */
static inline CUgraph wrap_child_of(const void *parameters)
{
    const struct cuda_graph_node_params *node = parameters;

    return node != NULL && node->type == CU_GRAPH_NODE_TYPE_GRAPH ? node->node.child : NULL;
}

/* What follows is by the mode and the policy that others may have asked for. */
static inline void wrap_count(const struct preload_slot *slot)
{
    report_count_entry(preload_slot_entry(slot));
    preload_control_look();
}

#endif
