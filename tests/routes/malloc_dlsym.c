/* SPDX-License-Identifier: Apache-2.0 */
/* A preloaded allocator that looks its successor up by dlsym inside malloc, as many do. While that
 * goes on, memory comes from a small arena. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static _Alignas(16) char arena[1 << 16];
static size_t used;
static _Thread_local int inside;

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);

static void *from_arena(size_t size)
{
    const size_t at = __atomic_fetch_add(&used, (size + 15) & ~(size_t)15, __ATOMIC_RELAXED);

    return at + size <= sizeof arena ? arena + at : NULL;
}

static int in_arena(const void *memory)
{
    return (const char *)memory >= arena && (const char *)memory < arena + sizeof arena;
}

static void *look_up(const char *name)
{
    void *found;

    inside++;
    found = dlsym(RTLD_NEXT, name);
    inside--;
    return found;
}

EXPORTED void *malloc(size_t size)
{
    if (inside > 0)
        return from_arena(size);
    if (next_malloc == NULL)
        *(void **)&next_malloc = look_up("malloc");
    return next_malloc(size);
}

EXPORTED void *calloc(size_t count, size_t size)
{
    if (inside > 0)
        return from_arena(count * size); /* zeroed, and used once */
    if (next_calloc == NULL)
        *(void **)&next_calloc = look_up("calloc");
    return next_calloc(count, size);
}

EXPORTED void *realloc(void *memory, size_t size)
{
    if (next_realloc == NULL && inside == 0)
        *(void **)&next_realloc = look_up("realloc");
    if (in_arena(memory) || next_realloc == NULL) {
        void *more = malloc(size);

        if (more != NULL && memory != NULL)
            memcpy(more, memory, size);
        return more;
    }
    return next_realloc(memory, size);
}

EXPORTED void free(void *memory)
{
    if (memory == NULL || in_arena(memory))
        return;
    if (next_free == NULL)
        *(void **)&next_free = look_up("free");
    next_free(memory);
}
