/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_FUNCTION_H
#define CUDAPOLICY_DECIDE_FUNCTION_H

/*
 * The functions of the process by handle, CUfunction and CUkernel alike: which kernel each is.
 * Names and ends of handles come in through decide.h.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"
#include "decide/handle_map.h"
#include "decide/kernel.h"

enum decide_function_kind {
    DECIDE_FUNCTION_UNKNOWN, /* only its name was told */
    DECIDE_FUNCTION_LOADED,  /* a CUfunction: lives in a context */
    DECIDE_FUNCTION_KERNEL,  /* a CUkernel: lives in a library, whatever becomes of contexts */
    DECIDE_FUNCTION_SYMBOL,  /* a host symbol, seen in the runtime layer */
};

enum {
    DECIDE_FUNCTION_ATTRIBUTES = 16, /* CU_FUNC_ATTRIBUTE_MAX of CUDA 13.0 */
};

struct decide_function {
    struct handle_entry base;
    _Atomic(struct decide_variant *) variant; /* of the first launch; NULL before it */
    /* Names this life of the handle, and these attributes of the function: a new number whenever
     * what the driver said about the function may have become wrong. Key of the cluster shapes. */
    _Atomic uint64_t serial;
    /* Under the lock. */
    char *mangled;   /* NULL: not known */
    void *container; /* CUmodule or CUlibrary; NULL: not known */
    CUcontext context;
    CUkernel kernel; /* that a CUfunction was made from; NULL: none, or not seen */
    uint8_t kind;    /* enum decide_function_kind */
    bool told;       /* its name came through decide_function_named or decide_function_of_kernel */
    bool in_module;  /* the driver says that container is the module which it was made from */
    bool shapes;     /* cluster shapes are kept under serial */
    struct {
        int value;        /* that the program set last */
        uint64_t devices; /* for which it did, bit 1 << ordinal; 0: it did not */
    } attributes[DECIDE_FUNCTION_ATTRIBUTES];
};

/* A function as a launch finds it. */
struct decide_known {
    struct decide_variant *variant; /* NULL: memory is short */
    uint64_t serial;                /* 0: nothing can be kept about the function */
};

extern struct handle_map decide_functions __attribute__((visibility("hidden")));

/* The launch path's way where decide_function_find does not do: the first sight of a function, or
 * of one of its callers. Locks, allocates, queries. */
struct decide_known decide_function_meet(void *function, const char *library, bool symbol);

/* What an entry says of the handle; variant NULL when it is not (or no longer) the entry of that
 * handle. Launch path. */
static inline struct decide_known decide_function_read(const struct decide_function *entry,
                                                       const void *function)
{
    uint32_t use = handle_entry_use(entry);
    uint64_t handle = atomic_load_explicit(&entry->base.handle, memory_order_acquire);
    struct decide_known known = {
        .variant = atomic_load_explicit(&entry->variant, memory_order_acquire),
        .serial = atomic_load_explicit(&entry->serial, memory_order_acquire),
    };
    if (handle != (uintptr_t)function || handle_entry_use(entry) != use)
        known.variant = NULL;
    return known;
}

/* The function as launched by a library. symbol: a host symbol of the runtime layer, which the
 * driver must not be asked about. Launch path: no lock, except at a first sight. */
static inline struct decide_known decide_function_find(void *function, const char *library,
                                                       bool symbol)
{
    const struct decide_function *entry = handle_map_find(&decide_functions, (uintptr_t)function);
    struct decide_known known = {0};
    if (entry)
        known = decide_function_read(entry, function);
    if (known.variant && (known.variant->any_library || known.variant->library == library))
        return known;
    return decide_function_meet(function, library, symbol);
}

/* Enters a function that is being launched in the table of prepared launches (decide.h), so that
 * its launches without attributes need not even come to decide_launch. Locks; once for a function,
 * as long as its place is free. */
void decide_function_prepare(void *function, struct decide_variant *variant);

/* Notes that cluster shapes are kept under the serial. False when it is no longer that of the
 * function: then none may be kept. Locks. */
bool decide_function_keeps_shapes(void *function, uint64_t serial);

/* The CUfunction to ask the driver about, in the current context; NULL when there is none. Queries.
 */
CUfunction decide_function_to_ask(void *function);

/* The CUkernel of a function handle: itself, or the one that it was made from; NULL: none is known.
 * Locks. */
CUkernel decide_function_kernel_of(void *function);

/* decide_context_gone for functions. */
void decide_function_context_gone(CUcontext context);

/* The next launch of each function is decided anew, after other rules were put in force. Locks. */
void decide_function_forget_decisions(void);

/* Forgets all functions. No other thread may exist. */
void decide_function_start(void);

#endif
