/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PRELOAD_WRAP_H
#define CUDAPOLICY_PRELOAD_WRAP_H

/*
 * What every file of wrappers needs: from the rows of its category it makes one function a slot,
 * named symbol_slotN, which the assembly hands out. The function calls the row's wrapper with its
 * slot and the address it was called from.
 */

#include "preload/preload.h"

#define WRAP_LIST(...) __VA_ARGS__

#define WRAP_SLOT(symbol, result, wrapper, parameters, arguments, slot)                            \
    result symbol##_slot##slot parameters;                                                         \
    result symbol##_slot##slot parameters                                                          \
    {                                                                                              \
        return wrapper(&preload_slots[ENTRY_##symbol][slot], __builtin_return_address(0),          \
                       WRAP_LIST arguments);                                                       \
    }

/* A driver function: three looked-up pointers and the exported one. */
#define WRAP_DRIVER(symbol, wrapper, parameters, arguments)                                        \
    WRAP_SLOT(symbol, CUresult, wrapper, parameters, arguments, 0)                                 \
    WRAP_SLOT(symbol, CUresult, wrapper, parameters, arguments, 1)                                 \
    WRAP_SLOT(symbol, CUresult, wrapper, parameters, arguments, 2)                                 \
    WRAP_SLOT(symbol, CUresult, wrapper, parameters, arguments, 3)

/* The real function of a slot. */
static inline void *wrap_real(const struct preload_slot *slot)
{
    return __atomic_load_n(&slot->real, __ATOMIC_RELAXED);
}

/* Whether NULL means the per-thread default stream in the variant that was called. */
static inline bool wrap_per_thread(const struct preload_slot *slot)
{
    return preload_entry_info[preload_slot_entry(slot)].variant == PRELOAD_PTSZ;
}

#endif
