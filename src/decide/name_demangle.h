/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readable forms of one mangled name. Maps memory and switches stacks: runs on a thread with
 * little stack left, but not on the launch path.
 */
#ifndef CUDAPOLICY_DECIDE_NAME_DEMANGLE_H
#define CUDAPOLICY_DECIDE_NAME_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    NAME_DEMANGLE_LENGTH_LIMIT = 64 * 1024, /* longer names are not demangled */
    NAME_DEMANGLE_TEXT_LIMIT = 1024 * 1024, /* nor are those of whose forms one is longer */
};

struct name_demangled {
    /* Ended by zero bytes; NULL if not known. They live until name_demangle_release(). */
    const char *name;
    const char *signature;
    size_t last_component; /* where the last component of `name` begins */
    void *memory;
};

/*
 * Demangles `mangled`, which begins with _Z. A form that cannot be had is NULL in *out; the name
 * may be known where the signature is not. False only if there is no memory for a stack.
 */
bool name_demangle(const char *mangled, struct name_demangled *out);

void name_demangle_release(struct name_demangled *demangled);

#endif
