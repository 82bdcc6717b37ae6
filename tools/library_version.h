/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_LIBRARY_VERSION_H
#define CUDAPOLICY_TOOLS_LIBRARY_VERSION_H

/*
 * What a file of libcudapolicy.so says of itself, "cudapolicy 1.2.3 (...)", to be freed. Read from
 * the file: loading it would attach it to the command. NULL: it cannot be read, or says nothing.
 */
char *library_version_read(const char *path);

#endif
