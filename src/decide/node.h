/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_NODE_H
#define CUDAPOLICY_DECIDE_NODE_H

/* Kernels as the report counts them, for nodes that nothing was decided about. Locks, may query. */

#include <stdint.h>

#include "decide/decide.h"

/* The report's number of a function's kernel. */
uint32_t decide_node_kernel(void *function, const char *library);

/* The cell of a kernel for launches in which no rule has a part. */
uint32_t decide_node_plain_cell(uint32_t kernel);

/* The function that node parameters name: a CUkernel where they have one. */
static inline void *decide_node_function(const struct cuda_kernel_node_params *parameters)
{
    return parameters->kernel ? (void *)parameters->kernel : (void *)parameters->function;
}

#endif
