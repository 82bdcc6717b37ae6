/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_FUNCTION_QUERY_H
#define CUDAPOLICY_DECIDE_FUNCTION_QUERY_H

/*
 * What the driver says about a function handle. All calls are plain look-ups, legal at any time,
 * also while the thread's streams capture. No lock may be held around them.
 */

#include "decide/function.h"

struct decide_answer {
    char *mangled; /* allocated; NULL: not known */
    enum decide_function_kind kind;
    void *container;   /* CUmodule or CUlibrary; NULL: not known */
    CUcontext context; /* current, for what lives in a context; NULL: not known */
};

/* Fills what the driver says; a name that is there already stays where the driver does not say one.
 */
void decide_function_ask(void *function, struct decide_answer *answer);

/* The current context, NULL when there is none or the driver does not say. */
CUcontext decide_function_ask_context(void);

/* The CUfunction behind a handle of that kind on the current context, or NULL. */
CUfunction decide_function_resolve(void *function, enum decide_function_kind kind);

#endif
