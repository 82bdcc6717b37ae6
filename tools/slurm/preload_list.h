/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_SLURM_PRELOAD_LIST_H
#define CUDAPOLICY_TOOLS_SLURM_PRELOAD_LIST_H

#include <stdbool.h>

/* The value of LD_PRELOAD: paths with colons or spaces between them. */

/*
 * The path of libcudapolicy.so in the list, whichever folder it is in, to be freed; NULL when it is
 * not there. list may be NULL.
 */
char *slurm_preload_find(const char *list);

/* Whether it is there. */
bool slurm_preload_has(const char *list);

/*
 * The list with library in it once: the program's own libraries first, as they are; another
 * libcudapolicy.so that stands there already stays instead, the first if there are several. To be
 * freed; NULL when memory runs out. list may be NULL.
 */
char *slurm_preload_add(const char *list, const char *library);

/* The list without any libcudapolicy.so, "" when nothing is left. To be freed; NULL: no memory. */
char *slurm_preload_remove(const char *list);

#endif
