/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_LIBRARY_PATH_H
#define CUDAPOLICY_TOOLS_LIBRARY_PATH_H

/* Where libcudapolicy.so is, and how it gets into LD_PRELOAD. */

/*
 * The library's absolute path, to be freed; NULL with a message printed when there is none. given:
 * what the user asked for, or NULL; then CUDAPOLICY_LIBRARY of the environment, the build tree in
 * which the command stands, the folder it is installed to.
 */
char *library_path_find(const char *given);

/* The value of LD_PRELOAD for a child: what is there already, without other copies of the library,
 * then the library. To be freed. */
char *library_path_preload(const char *library, const char *present);

#endif
