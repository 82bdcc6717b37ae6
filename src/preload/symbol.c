/* SPDX-License-Identifier: Apache-2.0 */
/* dlsym, and the search for the real function behind an exported symbol. */
#include "preload/preload.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "report/log.h"

#if defined(__x86_64__)
#define FIRST_GLIBC_VERSION "GLIBC_2.2.5"
#else
#define FIRST_GLIBC_VERSION "GLIBC_2.17"
#endif

typedef void *(*symbol_function)(void *handle, const char *name);

static void *next_dlsym; /* atomic; the same value whoever finds it */

static bool is_c_library(const void *function)
{
    Dl_info information;
    const char *slash;

    if (dladdr(function, &information) == 0)
        return false;
    slash = strrchr(information.dli_fname, '/');
    slash = slash != NULL ? slash + 1 : information.dli_fname;
    return strncmp(slash, "libc.so", 7) == 0 || strncmp(slash, "libdl.so", 8) == 0;
}

/*
 * The oldest version of dlsym is there on every release of the C library, so dlvsym finds one and
 * never takes the failing path, which allocates. What it finds is the C library's, which then finds
 * the next object after this one that has a dlsym of any version, be it another interposer or the C
 * library itself. Or it is already that of an interposer behind this object that exports the same
 * versions; asking that one would pass it over.
 */
static symbol_function find_next_dlsym(void)
{
    void *next = __atomic_load_n(&next_dlsym, __ATOMIC_ACQUIRE);

    if (next == NULL) {
        void *oldest = dlvsym(RTLD_NEXT, "dlsym", FIRST_GLIBC_VERSION);

        if (oldest == NULL)
            abort(); /* no C library that this object can have been linked to */
        next = is_c_library(oldest) ? ((symbol_function)oldest)(RTLD_NEXT, "dlsym") : oldest;
        if (next == NULL)
            next = oldest;
        __atomic_store_n(&next_dlsym, next, __ATOMIC_RELEASE);
    }
    return (symbol_function)next;
}

void *preload_next_symbol(void *handle, const char *name)
{
    /* Not a tail call: for RTLD_NEXT the return address must lie in this object. */
    void *volatile found = find_next_dlsym()(handle, name);

    return found;
}

void preload_keep_loaded(const void *function)
{
    Dl_info information;
    struct link_map *map = NULL;

    /* The handle is kept, too. A program itself, which has no name here, stays anyway. */
    if (dladdr1(function, &information, (void **)&map, RTLD_DL_LINKMAP) != 0 && map != NULL &&
        map->l_name[0] != '\0')
        dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

bool preload_is_export(const void *function)
{
    for (unsigned entry = 1; entry < PRELOAD_ENTRY_COUNT; entry++)
        for (unsigned node = 0; node < PRELOAD_EXPORT_SLOT_NODES; node++)
            if (function == preload_exports[entry][node] && function != NULL)
                return true;
    return false;
}

static void *unless_own(void *function)
{
    return preload_is_export(function) ? NULL : function;
}

/* The symbol as the scope of the object around an address has it, which may be our own. When there
 * is none, dlerror says so as it would without this library. */
static void *symbol_in_scope_of(const void *address, const char *name, const char *version)
{
    Dl_info information;
    struct link_map *map = NULL;
    void *found, *handle;

    if (dladdr1(address, &information, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL)
        return NULL;
    handle = dlopen(map->l_name[0] != '\0' ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL)
        return NULL;
    /* The handle outlives dlclose, which would take the error back: the object around the address
     * is running, so somebody else holds it. */
    dlclose(handle);
    found = version != NULL ? dlvsym(handle, name, version) : NULL;
    return found != NULL ? found : preload_next_symbol(handle, name);
}

static void *symbol_in_loaded(const char *soname, const char *name)
{
    void *handle = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
    void *found;

    if (handle == NULL)
        return NULL;
    found = unless_own(preload_next_symbol(handle, name));
    dlclose(handle);
    return found;
}

/* The order is the loader's own: the global scope behind this object, then the caller's scope. The
 * loaded soname is for callers that got the symbol in a way no scope explains. */
void *preload_real_of_export(enum preload_entry entry, unsigned node, const void *caller)
{
    static const char *const nodes[] = {"libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"};
    const struct preload_entry_info *info = &preload_entry_info[entry];
    const char *version = info->runtime ? nodes[node] : NULL;
    void *found = NULL;

    if (version != NULL)
        found = unless_own(dlvsym(RTLD_NEXT, info->symbol, version));
    else
        found = unless_own(preload_next_symbol(RTLD_NEXT, info->symbol));
    if (found == NULL)
        found = unless_own(symbol_in_scope_of(caller, info->symbol, version));
    if (found == NULL)
        found = symbol_in_loaded(info->runtime ? nodes[node] : "libcuda.so.1", info->symbol);
    return found;
}

static CUresult symbol_missing(void)
{
    return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND; /* cudaErrorSharedObjectSymbolNotFound too */
}

void *preload_resolve_export(unsigned index, const void *caller)
{
    const enum preload_entry entry = (enum preload_entry)(index / PRELOAD_EXPORT_SLOT_NODES);
    const unsigned node = index % PRELOAD_EXPORT_SLOT_NODES;
    const enum preload_state state = preload_process_state();
    void *real = preload_real_of_export(entry, node, caller);
    void *target;

    if (real == NULL) {
        /* Not remembered: the library may be loaded later. */
        report_log_once(REPORT_LOG_WARN, "%s was called, but no loaded library has it",
                        preload_entry_info[entry].symbol);
        return (void *)symbol_missing;
    }
    preload_keep_loaded(real);
    if (state == PRELOAD_ACTIVE && !preload_entry_info[entry].runtime &&
        !preload_learn_driver(NULL))
        preload_not_attached("the driver's functions cannot be looked up");
    if (state == PRELOAD_ACTIVE) {
        __atomic_store_n(&preload_slots[entry][PRELOAD_EXPORT_SLOT + node].real, real,
                         __ATOMIC_RELEASE);
        target = preload_stubs[entry][PRELOAD_EXPORT_SLOT + node];
    } else {
        target = real;
    }
    __atomic_store_n(&preload_export_targets[entry][node], target, __ATOMIC_RELEASE);
    return target;
}

/* A name that could be in the table. Cheap, since every dlsym of a process comes by. */
static bool may_be_entry(const char *name)
{
    return (name[0] == 'c' && name[1] == 'u') ||
           (name[0] == '_' && strncmp(name, "__cuda", 6) == 0);
}

/* A definition of our own must not show where there was none: look behind it, then where the caller
 * itself would look. */
static void *behind_own_definition(const char *name, const void *caller)
{
    void *found = unless_own(preload_next_symbol(RTLD_NEXT, name));

    if (found != NULL)
        return found;
    found = symbol_in_scope_of(caller, name, NULL);
    /* The main program's scope has ours and so no error to tell; the program expects one. */
    return preload_is_export(found) ? preload_next_symbol(RTLD_NEXT, name) : found;
}

/* A function that some library, or the program, has under the name of CUDA's. */
static bool is_others(const void *function)
{
    const struct preload_library *library = preload_library_at(function);

    return !library->is_driver && !library->is_runtime;
}

struct preload_symbol_answer preload_symbol(void *handle, const char *name, const void *caller)
{
    struct preload_symbol_answer answer = {.jump = (void *)find_next_dlsym()};
    enum preload_entry entry;
    void *real;

    if (handle == RTLD_NEXT || name == NULL || !may_be_entry(name))
        return answer;
    entry = preload_entry_by_symbol(name);
    if (entry == PRELOAD_ENTRY_NONE || preload_library_at(caller)->is_driver)
        return answer;

    real = preload_next_symbol(handle, name);
    if (preload_is_export(real))
        real = behind_own_definition(name, caller);
    else if (handle == RTLD_DEFAULT && real != NULL && is_others(real))
        return answer; /* in front of ours, so what it passes on comes to ours */
    answer.jump = NULL;
    answer.result = real;
    if (real == NULL || preload_process_state() != PRELOAD_ACTIVE)
        return answer;
    preload_look_for_unloads();
    if (!preload_entry_info[entry].runtime &&
        !preload_learn_driver(handle == RTLD_DEFAULT ? NULL : handle)) {
        /* Else a function of the program's own under a driver function's name. */
        if (preload_library_at(real)->is_driver)
            preload_not_attached("the driver's functions cannot be looked up");
        return answer;
    }
    answer.result = preload_wrap(entry, real);
    return answer;
}
