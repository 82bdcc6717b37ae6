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

struct preload_cached_caller preload_callers[1 << PRELOAD_CALLER_BITS];

static struct preload_library *libraries; /* never freed: reports and rules point to the names */
static pthread_mutex_t libraries_lock = PTHREAD_MUTEX_INITIALIZER;

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
static const struct preload_library *intern(const char *name)
{
    struct preload_library *library;

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
static const struct preload_library *find(const void *address)
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

const struct preload_library *preload_library_first_seen(const void *address)
{
    static const struct preload_library unknown;
    struct preload_cached_caller *cached = preload_cached_caller(address);
    const struct preload_library *library = find(address);

    if (library == NULL)
        return &unknown; /* out of memory */
    __atomic_store_n(&cached->address, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&cached->library, library, __ATOMIC_RELEASE);
    __atomic_store_n(&cached->address, address, __ATOMIC_RELEASE);
    return library;
}
