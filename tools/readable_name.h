/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_READABLE_NAME_H
#define CUDAPOLICY_TOOLS_READABLE_NAME_H

/* Kernel names as people type or paste them: mangled, or as a profiler prints them. */

#include "match.h"

/*
 * Fills in facts->name, and which of its forms are known:
 * - a mangled name gives all three;
 * - a signature, void f<float>(float*), gives itself and the name in it;
 * - a name alone, ns::f or f, gives itself; of an extern "C" kernel it is all three, which cannot
 * be seen from here. To be released with kernel_name_release. False when there is no memory.
 */
bool readable_name_fill(const char *text, struct match_facts *facts);

/* The name inside a signature: no return type, template arguments or parameters. To be freed. */
char *readable_name_of_signature(const char *signature);

#endif
