/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_REACH_H
#define CUDAPOLICY_TOOLS_REACH_H

/* Why a preloaded library may not have reached a program. */

/* One sentence on the likeliest reason for which a program that ran under the preload, found as
 * argv[0] in PATH, left no report: it cannot be preloaded, there is no driver or no GPU, or it
 * launched no kernel that a preload can see. To be freed. Never NULL. */
char *reach_explain(const char *program);

/* The file that execvp would run; NULL when there is none. To be freed. */
char *reach_find_program(const char *program);

#endif
