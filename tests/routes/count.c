/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preload that counts what the library under test asks of the C library: each function below,
 * when it is called from libcudapolicy.so. It prints "count: NAME N" for those that were: between
 * count_from_here() and count_to_here(), or from the start to the end of the process.
 */
/* Both forms of a function are defined here, under their own names. */
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

#define COUNTED(NAME)                                                                              \
    NAME(open)                                                                                     \
    NAME(open64)                                                                                   \
    NAME(openat)                                                                                   \
    NAME(fopen)                                                                                    \
    NAME(fopen64)                                                                                  \
    NAME(readlink)                                                                                 \
    NAME(getenv)                                                                                   \
    NAME(secure_getenv)                                                                            \
    NAME(gethostname)                                                                              \
    NAME(mmap)                                                                                     \
    NAME(mmap64)                                                                                   \
    NAME(malloc)                                                                                   \
    NAME(calloc)                                                                                   \
    NAME(realloc)                                                                                  \
    NAME(pthread_create)                                                                           \
    NAME(pthread_mutex_lock)                                                                       \
    NAME(__register_atfork)                                                                        \
    NAME(dlopen)                                                                                   \
    NAME(dladdr1)                                                                                  \
    NAME(flock)                                                                                    \
    NAME(lockf)                                                                                    \
    NAME(lockf64)                                                                                  \
    NAME(dl_iterate_phdr)

enum counted {
#define NAME(name) COUNT_##name,
    COUNTED(NAME)
#undef NAME
        COUNT_COUNT
};

static const char *const names[] = {
#define NAME(name) #name,
    COUNTED(NAME)
#undef NAME
};
static unsigned counts[COUNT_COUNT];

/* Where the library under test lies: found without any function above. */
static struct {
    uintptr_t start, end;
} library;

static void find_library(void)
{
    for (struct link_map *map = _r_debug.r_map; map != NULL && library.end == 0;
         map = map->l_next) {
        const ElfW(Ehdr) * header;
        const ElfW(Phdr) * segments;

        if (strstr(map->l_name, "libcudapolicy.so") == NULL)
            continue;
        header = (const ElfW(Ehdr) *)map->l_addr;
        segments = (const ElfW(Phdr) *)(map->l_addr + header->e_phoff);
        library.start = map->l_addr;
        for (unsigned i = 0; i < header->e_phnum; i++)
            if (segments[i].p_type == PT_LOAD &&
                map->l_addr + segments[i].p_vaddr + segments[i].p_memsz > library.end)
                library.end = map->l_addr + segments[i].p_vaddr + segments[i].p_memsz;
    }
}

static void count(enum counted what, const void *caller)
{
    if (library.end == 0)
        find_library();
    if ((uintptr_t)caller >= library.start && (uintptr_t)caller < library.end)
        __atomic_fetch_add(&counts[what], 1, __ATOMIC_RELAXED);
}

/* A real function is looked up by the C library's own means, from before the first call of any. */
static void *real_function(const char *name)
{
    static void *(*next)(void *, const char *);

    if (next == NULL) {
        *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
        if (next == NULL)
            *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
        if (next == NULL)
            *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
    }
    return next(RTLD_NEXT, name);
}

#define WRAP(result, name, parameters, arguments)                                                  \
    EXPORTED result name parameters;                                                               \
    result name parameters                                                                         \
    {                                                                                              \
        static result(*real) parameters;                                                           \
        count(COUNT_##name, __builtin_return_address(0));                                          \
        if (real == NULL)                                                                          \
            *(void **)&real = real_function(#name);                                                \
        return real arguments;                                                                     \
    }

#define WRAP_OPEN(name)                                                                            \
    EXPORTED int name(const char *path, int flags, ...);                                           \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        static int (*real)(const char *, int, mode_t);                                             \
        mode_t mode;                                                                               \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        mode = (mode_t)va_arg(more, int);                                                          \
        va_end(more);                                                                              \
        count(COUNT_##name, __builtin_return_address(0));                                          \
        if (real == NULL)                                                                          \
            *(void **)&real = real_function(#name);                                                \
        return real(path, flags, mode);                                                            \
    }

WRAP_OPEN(open)
WRAP_OPEN(open64)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode))
WRAP(FILE *, fopen64, (const char *path, const char *mode), (path, mode))
WRAP(ssize_t, readlink, (const char *path, char *target, size_t size), (path, target, size))
WRAP(char *, getenv, (const char *name), (name))
WRAP(char *, secure_getenv, (const char *name), (name))
WRAP(int, gethostname, (char *name, size_t size), (name, size))
WRAP(void *, mmap, (void *at, size_t size, int how, int flags, int file, off_t offset),
     (at, size, how, flags, file, offset))
WRAP(void *, mmap64, (void *at, size_t size, int how, int flags, int file, off64_t offset),
     (at, size, how, flags, file, offset))
WRAP(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *how, void *(*run)(void *), void *data),
     (thread, how, run, data))
WRAP(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
WRAP(int, __register_atfork,
     (void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object),
     (prepare, parent, child, object))
WRAP(void *, dlopen, (const char *name, int flags), (name, flags))
WRAP(int, dladdr1, (const void *address, Dl_info *information, void **extra, int flags),
     (address, information, extra, flags))
WRAP(int, dl_iterate_phdr, (int (*callback)(struct dl_phdr_info *, size_t, void *), void *data),
     (callback, data))

WRAP(int, flock, (int file, int how), (file, how))
WRAP(int, lockf, (int file, int how, off_t size), (file, how, size))
WRAP(int, lockf64, (int file, int how, off64_t size), (file, how, size))

EXPORTED int openat(int folder, const char *path, int flags, ...)
{
    static int (*real)(int, const char *, int, mode_t);
    mode_t mode;
    va_list more;

    va_start(more, flags);
    mode = (mode_t)va_arg(more, int);
    va_end(more);
    count(COUNT_openat, __builtin_return_address(0));
    if (real == NULL)
        *(void **)&real = real_function("openat");
    return real(folder, path, flags, mode);
}

/* Allocation cannot wait for a look-up that might allocate. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

EXPORTED void *malloc(size_t size)
{
    count(COUNT_malloc, __builtin_return_address(0));
    return __libc_malloc(size);
}

EXPORTED void *calloc(size_t number, size_t size)
{
    count(COUNT_calloc, __builtin_return_address(0));
    return __libc_calloc(number, size);
}

EXPORTED void *realloc(void *memory, size_t size)
{
    count(COUNT_realloc, __builtin_return_address(0));
    return __libc_realloc(memory, size);
}

EXPORTED void count_from_here(void);
EXPORTED void count_to_here(void);

static void print(void)
{
    unsigned now[COUNT_COUNT];

    memcpy(now, counts, sizeof now);
    for (unsigned i = 0; i < COUNT_COUNT; i++)
        if (now[i] > 0)
            fprintf(stderr, "count: %s %u\n", names[i], now[i]);
}

void count_from_here(void)
{
    memset(counts, 0, sizeof counts);
}

/* What follows, up to the end of the process, is not of interest. */
static int stopped;

void count_to_here(void)
{
    print();
    stopped = 1;
}

static __attribute__((destructor)) void say(void)
{
    if (!stopped)
        print();
}
