/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROUTES_SCOPE_H
#define ROUTES_SCOPE_H

/* Functions of scope_library.c: dlsym, called from there. */
void *scope_next(const char *name) __attribute__((visibility("default")));
void *scope_default(const char *name) __attribute__((visibility("default")));

/* Of the library that scope_library.c needs. */
int scope_needed(void) __attribute__((visibility("default")));

/* What both that library and one that it needs define. */
int tool_start(void) __attribute__((visibility("default")));

#endif
