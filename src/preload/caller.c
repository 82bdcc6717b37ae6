/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which object of the process a call came from.
 *
 * No lock: both lists are only ever added to, so that a child after fork finds them whole whatever
 * the other threads of its parent were doing.
 */
#include "preload/preload.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CALLER_LIMIT =
        1 << 16, /* call sites kept; more, as of generated code, are looked up each time */
};

struct preload_caller *preload_callers[1 << PRELOAD_CALLER_BITS];
uint64_t preload_unloads;

static struct preload_library *libraries; /* atomic */
static unsigned caller_count;             /* atomic */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* "libcudart.so.12", and "libcudart-5a1c9e2f.so.12" as wheels for Python rename it. */
static bool is_library(const char *name, const char *stem)
{
    const size_t length = strlen(stem);

    return strncmp(name, stem, length) == 0 &&
           (strncmp(name + length, ".so", 3) == 0 || name[length] == '-');
}

/* libcuda_loader.so is the part of WSL's driver that loads the other. */
static bool is_driver(const char *name)
{
    return is_library(name, "libcuda") || is_library(name, "libcuda_loader");
}

static struct preload_library *library_named(struct preload_library *first, const char *name)
{
    while (first != NULL && strcmp(first->name, name) != 0)
        first = first->next;
    return first;
}

static const struct preload_library *intern(const char *name)
{
    struct preload_library *first = __atomic_load_n(&libraries, __ATOMIC_ACQUIRE);
    struct preload_library *library = library_named(first, name), *made;

    if (library != NULL)
        return library;
    made = calloc(1, sizeof *made + strlen(name) + 1);
    if (made == NULL)
        return NULL;
    strcpy(made->name, name);
    made->is_runtime = is_library(name, "libcudart");
    made->is_driver = is_driver(name);
    do {
        library = library_named(first, name);
        if (library != NULL) { /* another thread was faster */
            free(made);
            return library;
        }
        made->next = first;
    } while (!__atomic_compare_exchange_n(&libraries, &first, made, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return made;
}

/* The main program is known to the loader by its argv[0], which a program may choose freely. Where
 * the program was started by way of the loader, the executable is the loader itself. */
static const struct preload_library *main_program(const char *loader_name)
{
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);

    if (length <= 0)
        return intern(base_name(loader_name));
    path[length] = '\0';
    return intern(base_name(strncmp(base_name(path), "ld-linux", 8) == 0 ? loader_name : path));
}

static const struct preload_library *find(const void *address)
{
    Dl_info information;
    struct link_map *map = NULL;

    if (dladdr1(address, &information, (void **)&map, RTLD_DL_LINKMAP) == 0)
        return intern(""); /* generated code: no object */
    if (map != NULL && map->l_name[0] != '\0')
        return intern(base_name(map->l_name));
    return main_program(information.dli_fname);
}

static struct preload_caller *caller_with(struct preload_caller *first, const void *address)
{
    while (first != NULL && first->address != address)
        first = first->next;
    return first;
}

static void remember(const void *address, const struct preload_library *library, uint64_t unloads)
{
    struct preload_caller **bucket = preload_callers_at(address);
    struct preload_caller *caller;

    if (__atomic_load_n(&caller_count, __ATOMIC_RELAXED) >= CALLER_LIMIT)
        return;
    caller = calloc(1, sizeof *caller);
    if (caller == NULL)
        return;
    __atomic_fetch_add(&caller_count, 1, __ATOMIC_RELAXED);
    caller->address = address;
    caller->library = library;
    caller->unloads = unloads;
    caller->next = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
    while (!__atomic_compare_exchange_n(bucket, &caller->next, caller, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
        ;
}

const struct preload_library *preload_library_search(const void *address)
{
    static const struct preload_library unknown;
    const uint64_t unloads = __atomic_load_n(&preload_unloads, __ATOMIC_ACQUIRE);
    struct preload_caller *caller =
        caller_with(__atomic_load_n(preload_callers_at(address), __ATOMIC_ACQUIRE), address);
    const struct preload_library *library;

    if (caller != NULL && __atomic_load_n(&caller->unloads, __ATOMIC_ACQUIRE) == unloads)
        return __atomic_load_n(&caller->library, __ATOMIC_RELAXED);
    library = find(address);
    if (library == NULL)
        return &unknown; /* out of memory */
    if (caller == NULL) {
        remember(address, library, unloads);
    } else {
        __atomic_store_n(&caller->library, library, __ATOMIC_RELAXED);
        __atomic_store_n(&caller->unloads, unloads, __ATOMIC_RELEASE);
    }
    return library;
}

static int count_unloads(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size;
    *(uint64_t *)data = object->dlpi_subs;
    return 1; /* every object tells the same */
}

void preload_look_for_unloads(void)
{
    uint64_t unloads = 0;

    dl_iterate_phdr(count_unloads, &unloads);
    if (__atomic_load_n(&preload_unloads, __ATOMIC_RELAXED) != unloads)
        __atomic_store_n(&preload_unloads, unloads, __ATOMIC_RELEASE);
}
