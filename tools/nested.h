/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_NESTED_H
#define CUDAPOLICY_TOOLS_NESTED_H

/* A run inside of another: the inner one's policy holds, and its processes report to it. It leaves
 * a word of that in the folder of the outer one, which would look for their reports in vain. */

#include <stdbool.h>

/* Told by the inner one, before it starts its program: does nothing when there is no outer one. */
void nested_tell(void);

/* Whether an inner run told of itself in this folder; the word is taken away. */
bool nested_was_told(const char *folder);

#endif
