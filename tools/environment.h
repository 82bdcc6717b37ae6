/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_ENVIRONMENT_H
#define CUDAPOLICY_TOOLS_ENVIRONMENT_H

/* The environment of a child. Ours stays as it is: what the child is to preload, we are not. */

#include <stddef.h>

struct environment {
    size_t count, capacity;
    char **variables; /* NAME=VALUE, ended by NULL */
};

/* A copy of our own environment. */
void environment_copy(struct environment *environment);

/* The variable's value; NULL: it is not set. Valid until the next change. */
const char *environment_get(const struct environment *environment, const char *name);

/* Sets a variable, replacing every earlier one of that name. */
void environment_set(struct environment *environment, const char *name, const char *value);

/* Takes a variable away; all whose names begin with prefix. */
void environment_unset(struct environment *environment, const char *name);
void environment_unset_all(struct environment *environment, const char *prefix);

void environment_release(struct environment *environment);

#endif
