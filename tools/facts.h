/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_FACTS_H
#define CUDAPOLICY_TOOLS_FACTS_H

/* What recorded results say of a kernel's launches, as rules ask for it. */

#include "match.h"
#include "results.h"

/* False for what a report puts in the place of a name: of kernels beyond its limit, or without one.
 */
bool facts_has_name(const struct results_kernel *kernel);

/* All launches of a recorded kernel together. The name belongs to the kernel. */
void facts_of_kernel(const struct results_kernel *kernel, struct match_facts *facts);

#endif
