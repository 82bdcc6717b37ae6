/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_REACH_H
#define CUDAPOLICY_TOOLS_REACH_H

/* Why a preloaded library may not reach a program, or have reached it. */

#include <stdbool.h>

#include "opened.h"

/* Before a program, found as argv[0] in PATH, is started under the preload: false, with a message,
 * when it could not even start, since its loader fails with our library (musl's). Of one into
 * which nothing will be preloaded it is said, unless quiet, and the program may run all the same:
 * it may be a launcher. */
bool reach_check(const char *program, bool quiet);

/* One sentence on the likeliest reason for which a program that ran under the preload left no
 * report: it cannot be preloaded, LD_PRELOAD was lost on the way to its children, there is no
 * driver or no GPU, or no kernel was launched that a preload can see. opened: what was opened while
 * it ran, or NULL. To be freed. Never NULL. */
char *reach_explain(const char *program, const struct opened *opened);

#endif
