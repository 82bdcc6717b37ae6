/* SPDX-License-Identifier: Apache-2.0 */
/* Which object of the process a call came from. */
#include "preload/preload.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CACHE_BITS = 11,
};

struct library {
    struct library *next;
    bool is_runtime, is_driver;
    char name[];
};

/* Direct-mapped: written library first, address last; read address, library, address. */
struct cached {
    const void *address;
    const struct library *library;
};
static struct cached cache[1 << CACHE_BITS];

static struct library *libraries; /* never freed: reports and rules point to the names */
static pthread_mutex_t libraries_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t cache_index(const void *address)
{
    return (size_t)(((uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15)) >>
                    (64 - CACHE_BITS));
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Outside every loader call. */
static const struct library *intern(const char *name)
{
    struct library *library;

    pthread_mutex_lock(&libraries_lock);
    for (library = libraries; library != NULL; library = library->next)
        if (strcmp(library->name, name) == 0)
            break;
    if (library == NULL) {
        library = calloc(1, sizeof *library + strlen(name) + 1);
        if (library != NULL) {
            strcpy(library->name, name);
            library->is_runtime = starts_with(name, "libcudart.so");
            library->is_driver = starts_with(name, "libcuda.so");
            library->next = libraries;
            libraries = library;
        }
    }
    pthread_mutex_unlock(&libraries_lock);
    return library;
}

/* The main program is known to the loader by its argv[0], which a program may choose freely. */
static const struct library *find(const void *address)
{
    char path[PATH_MAX];
    Dl_info information;
    struct link_map *map = NULL;
    ssize_t length;

    if (dladdr1(address, &information, (void **)&map, RTLD_DL_LINKMAP) == 0)
        return intern(""); /* generated code: no object */
    if (map != NULL && map->l_name[0] != '\0')
        return intern(base_name(map->l_name));
    length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return intern(base_name(information.dli_fname));
    path[length] = '\0';
    return intern(base_name(path));
}

struct preload_caller preload_caller_of(const void *address)
{
    struct cached *cached = &cache[cache_index(address)];
    const struct library *library = NULL;

    if (__atomic_load_n(&cached->address, __ATOMIC_ACQUIRE) == address) {
        library = __atomic_load_n(&cached->library, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&cached->address, __ATOMIC_RELAXED) != address)
            library = NULL;
    }
    if (library == NULL) {
        library = find(address);
        if (library == NULL)
            return (struct preload_caller){.library = ""};
        __atomic_store_n(&cached->address, NULL, __ATOMIC_RELEASE);
        __atomic_store_n(&cached->library, library, __ATOMIC_RELEASE);
        __atomic_store_n(&cached->address, address, __ATOMIC_RELEASE);
    }
    return (struct preload_caller){
        .library = library->name,
        .is_runtime = library->is_runtime,
        .is_driver = library->is_driver,
    };
}

const char *preload_library(const void *caller)
{
    struct preload_caller found = preload_caller_of(caller);

    if (found.is_runtime && preload_runtime_caller != NULL)
        found = preload_caller_of(preload_runtime_caller);
    return found.library;
}
