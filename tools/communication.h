/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_COMMUNICATION_H
#define CUDAPOLICY_TOOLS_COMMUNICATION_H

/* Which kernels move data between GPUs? Their names say so, as far as anything does. */

#include <stdbool.h>

bool communication_named(const char *name);

/* A pattern of the policy language that matches the kernel of this name; for families of kernels
 * with one beginning, such as NCCL's, all of the family. To be freed. */
char *communication_pattern(const char *name);

/* The name as a pattern that matches it alone: what would be a wildcard gets a backslash. To be
 * freed. */
char *communication_escape(const char *name);

#endif
