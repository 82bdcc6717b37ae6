/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PRELOAD_PRELOAD_H
#define CUDAPOLICY_PRELOAD_PRELOAD_H

/*
 * The preload layer: how calls reach the wrappers, and how the wrappers reach the real functions.
 *
 *   entries.def      which functions are wrapped
 *   entry_*.S        exported symbols, entry stubs of launches, dlsym
 *   symbol.c         dlsym and the search for an exported function's real one
 *   resolve.c        slots, cuGetProcAddress
 *   process.c        configuration, start and end of the process, fork
 *   caller.c         which library made a call
 *   wrap_*.c         the wrappers
 *
 * No loader call (dlopen, dlsym, dladdr, dl_iterate_phdr) is made while a lock or a once of this
 * library is held: another thread may hold the loader's lock and wait for ours.
 */

/* All versions of every function are wanted under their own names: without this, cuda.h renames. */
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/layout.h"

/* The number 0 is no entry point: its counter takes what must not be counted. */
enum preload_entry {
    PRELOAD_ENTRY_NONE,
#define DRIVER(symbol, base, version, variant, wrapper, parameters, arguments) ENTRY_##symbol,
#define RUNTIME(symbol, variant, wrapper, parameters, arguments) ENTRY_##symbol,
#include "preload/entries.def"
    PRELOAD_ENTRY_COUNT
};

enum preload_variant {
    PRELOAD_PLAIN,
    PRELOAD_PTSZ,
};

struct preload_entry_info {
    const char *symbol; /* as the library exports it */
    const char *base;   /* as cuGetProcAddress is asked; NULL for functions of the runtime */
    int version;
    enum preload_variant variant;
    bool runtime;
};

extern const struct preload_entry_info preload_entry_info[PRELOAD_ENTRY_COUNT];

/* One real function of an entry point. target: where the runtime's stubs jump; the wrapper, or the
 * real function once nothing more is to be learned from watching it. */
struct preload_slot {
    void *real;
    void *target;
};

extern struct preload_slot preload_slots[PRELOAD_ENTRY_COUNT][PRELOAD_SLOTS]
    __attribute__((visibility("hidden")));

/* The function to hand out for a slot, and where the exported symbols jump: both from assembly. */
extern void *const preload_stubs[PRELOAD_ENTRY_COUNT][PRELOAD_SLOTS]
    __attribute__((visibility("hidden")));
extern void *preload_export_targets[PRELOAD_ENTRY_COUNT][PRELOAD_EXPORT_SLOT_NODES]
    __attribute__((visibility("hidden")));
extern void *const preload_exports[PRELOAD_ENTRY_COUNT][PRELOAD_EXPORT_SLOT_NODES]
    __attribute__((visibility("hidden")));

/* Where the calling thread last entered a function of the runtime: set by the runtime's stubs. */
extern _Thread_local const void *preload_runtime_caller
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* ---- entries.c --------------------------------------------------------------------------------
 */

/* The entry with this exported symbol, or PRELOAD_ENTRY_NONE. */
enum preload_entry preload_entry_by_symbol(const char *symbol);

static inline enum preload_entry preload_slot_entry(const struct preload_slot *slot)
{
    return (enum preload_entry)((size_t)(slot - &preload_slots[0][0]) / PRELOAD_SLOTS);
}

/* ---- process.c --------------------------------------------------------------------------------
 */

enum preload_state {
    PRELOAD_UNDECIDED,
    PRELOAD_PASSIVE, /* no policy and no report asked for, mode off, or a policy with errors */
    PRELOAD_ACTIVE,
};

/* Reads environment and policy at the first call of the process; afterwards one load. Ends the
 * process with status 78 where CUDAPOLICY_STRICT=1 and the policy has errors. Makes no loader call.
 */
enum preload_state preload_process_state(void);

/* Ends the process with status 78 under CUDAPOLICY_STRICT=1, else says why launches are not
 * reached. */
void preload_not_attached(const char *reason);

/* Facts about the process that need the driver or the loader, for the report: at the first launch
 * or stream, once. */
void preload_gather_facts_now(void);
extern bool preload_facts_wanted __attribute__((visibility("hidden")));
static inline void preload_gather_facts(void)
{
    if (__builtin_expect(__atomic_load_n(&preload_facts_wanted, __ATOMIC_RELAXED), 0))
        preload_gather_facts_now();
}

/* ---- symbol.c ---------------------------------------------------------------------------------
 */

/* dlsym as the next object after this library has it. Calls no allocation of its own. */
void *preload_next_symbol(void *handle, const char *name);

/* The real function behind an exported symbol, from the scope of the object that holds caller; NULL
 * when no other object has it. Makes loader calls. */
void *preload_real_of_export(enum preload_entry entry, unsigned node, const void *caller);

/* The library that holds function stays loaded from now on: a slot or an exported symbol leads
 * there for good, and a program may close a library and load it again at another place. Makes
 * loader calls. */
void preload_keep_loaded(const void *function);

/* True when function is one of the symbols that this library exports. */
bool preload_is_export(const void *function);

struct preload_symbol_answer {
    void *jump; /* NULL: give back result; else go on to this dlsym as if it had been called */
    void *result;
};
struct preload_symbol_answer preload_symbol(void *handle, const char *name, const void *caller)
    __attribute__((visibility("hidden")));
void *preload_resolve_export(unsigned index, const void *caller)
    __attribute__((visibility("hidden")));

/* ---- resolve.c --------------------------------------------------------------------------------
 */

/* Learns the driver's functions from the libcuda that handle stands for; from any loaded one when
 * handle has none. Idempotent. False when there is no driver to learn from. Makes loader calls. */
bool preload_learn_driver(void *handle);

/* In the child after fork. */
void preload_resolve_after_fork(void);

/* The wrapper that calls real, as entry; real itself when none can. */
void *preload_wrap(enum preload_entry entry, void *real);

/* What cuGetProcAddress answered for base: the wrapper of the variant whose very pointer it is,
 * else the pointer as it is. */
void *preload_wrap_answer(const char *base, int version, cuuint64_t flags, void *real);

/* The driver's own pointer for an entry, from its cuGetProcAddress; NULL when it has none. */
void *preload_canonical(enum preload_entry entry);

/* ---- caller.c ---------------------------------------------------------------------------------
 */

/* An object that made calls. Interned and never freed: reports and rules point to the names. */
struct preload_library {
    struct preload_library *next;
    bool is_runtime; /* a shared libcudart */
    bool is_driver;
    char name[]; /* base name; the executable's own for the main program; "": no object */
};

/* A call site that was seen: found by its address, never freed. */
struct preload_caller {
    struct preload_caller *next;
    const void *address;
    const struct preload_library *library; /* atomic */
    uint64_t unloads; /* atomic: of preload_unloads when library was found out */
};

#define PRELOAD_CALLER_BITS 11
extern struct preload_caller *preload_callers[1 << PRELOAD_CALLER_BITS]
    __attribute__((visibility("hidden")));

/* How many objects had been unloaded when this was last looked at. */
extern uint64_t preload_unloads __attribute__((visibility("hidden")));

static inline struct preload_caller **preload_callers_at(const void *address)
{
    return &preload_callers[((uint64_t)(uintptr_t)address * PRELOAD_PASS_MULTIPLIER) >>
                            (64 - PRELOAD_CALLER_BITS)];
}

const struct preload_library *preload_library_search(const void *address)
    __attribute__((visibility("hidden")));

/* Which object holds an address. First sight of an address: loader call and allocation; afterwards
 * a look-up, on the launch path too. */
static inline const struct preload_library *preload_library_at(const void *address)
{
    const struct preload_caller *caller =
        __atomic_load_n(preload_callers_at(address), __ATOMIC_ACQUIRE);

    if (__builtin_expect(caller != NULL && caller->address == address &&
                             __atomic_load_n(&caller->unloads, __ATOMIC_ACQUIRE) ==
                                 __atomic_load_n(&preload_unloads, __ATOMIC_RELAXED),
                         1))
        return __atomic_load_n(&caller->library, __ATOMIC_RELAXED);
    return preload_library_search(address);
}

/* Looks whether an object was unloaded since, so that the addresses of its callers may belong to
 * another one. Called where a program that has loaded new code comes by before it launches: when a
 * function is looked up. Takes no lock that is held while constructors run. */
void preload_look_for_unloads(void);

/* The first caller outside libcudart of a wrapper that was called from caller. */
static inline const char *preload_library(const void *caller)
{
    const struct preload_library *library = preload_library_at(caller);

    if (library->is_runtime && preload_runtime_caller != NULL)
        library = preload_library_at(preload_runtime_caller);
    return library->name;
}

/* ---- wrap_*.c ---------------------------------------------------------------------------------
 */

struct preload_dim3 {
    unsigned x, y, z;
};

/* Raised by the driver's launch and stream wrappers in C: how the runtime's wrappers learn whether
 * the call that they passed on was seen below. */
extern _Thread_local unsigned preload_driver_calls
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

#endif
