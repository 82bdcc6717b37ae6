/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_INSTALLED_H
#define CUDAPOLICY_TOOLS_INSTALLED_H

/*
 * What belongs to this command: in the build tree, or in the tree to which it was installed. It is
 * looked for from where the command itself lies, so that an installed tree can be moved. Paths are
 * to be freed; NULL: not there.
 */

/* libcudapolicy.so. */
char *installed_library(void);

/* The folder of the policies to start from. */
char *installed_policies(void);

#endif
