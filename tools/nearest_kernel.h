/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_NEAREST_KERNEL_H
#define CUDAPOLICY_TOOLS_NEAREST_KERNEL_H

/* Which kernels may have taken the place of one that is gone? */

#include <stddef.h>

#include "results.h"

/* From the most telling one on. */
enum nearest_how {
    NEAREST_ARGUMENTS, /* the name is the same; template arguments or parameters are others */
    NEAREST_VERSION,   /* the name is the same but for its numbers */
    NEAREST_NAMESPACE, /* the last component is the same, perhaps but for its numbers */
    NEAREST_SPELLING,  /* few edits lie between the names */
};

struct nearest_kernel {
    const struct results_kernel *kernel;
    enum nearest_how how;
    size_t distance; /* edits, as far as they were measured */
};

enum {
    NEAREST_KERNELS = 3,
};

/* Work that is left for measuring edits: zeroed at first, shared by all calls of one comparison. */
struct nearest_effort {
    size_t spent;
};

/* The nearest of the candidates, in order; returns how many. */
size_t nearest_kernels(const struct results_kernel *kernel,
                       const struct results_kernel *const *candidates, size_t count,
                       struct nearest_effort *effort, struct nearest_kernel *nearest);

/* "other template arguments or parameters", "another number in the name", ... */
const char *nearest_how_text(enum nearest_how how);

#endif
