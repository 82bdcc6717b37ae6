/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles. Every kind of object has one range of addresses, so that any pointer a program passes
 * can be judged without following it, and a dead handle stays recognisable as dead.
 */
#include "driver.h"
#include <string.h>
#include <sys/mman.h>

struct arena {
    const char *name;
    size_t size;     /* bytes of one object */
    size_t capacity; /* objects; only those used cost memory */
    char *base;
    _Atomic size_t used; /* objects handed out at least once */
    struct object *free;
    unsigned int last_ordinal;
    size_t live;
};

static struct arena arenas[OBJECT_KINDS] = {
    [OBJECT_CONTEXT] = {.name = "context", .size = sizeof(struct CUctx_st), .capacity = 4096},
    [OBJECT_MODULE] = {.name = "module", .size = sizeof(struct CUmod_st), .capacity = 1 << 17},
    [OBJECT_LIBRARY] = {.name = "library", .size = sizeof(struct CUlib_st), .capacity = 1 << 17},
    [OBJECT_KERNEL] = {.name = "kernel", .size = sizeof(struct CUkern_st), .capacity = 1 << 17},
    [OBJECT_FUNCTION] = {.name = "function", .size = sizeof(struct CUfunc_st), .capacity = 1 << 18},
    [OBJECT_STREAM] = {.name = "stream", .size = sizeof(struct CUstream_st), .capacity = 1 << 14},
    [OBJECT_DEFAULT_STREAM] = {.name = "default_stream",
                               .size = sizeof(struct CUstream_st),
                               .capacity = 1 << 13},
    [OBJECT_EVENT] = {.name = "event", .size = sizeof(struct CUevent_st), .capacity = 1 << 18},
    [OBJECT_GRAPH] = {.name = "graph", .size = sizeof(struct CUgraph_st), .capacity = 1 << 16},
    [OBJECT_NODE] = {.name = "node", .size = sizeof(struct CUgraphNode_st), .capacity = 1 << 17},
    [OBJECT_EXECUTABLE] = {.name = "executable",
                           .size = sizeof(struct CUgraphExec_st),
                           .capacity = 1 << 16},
    [OBJECT_GREEN_CONTEXT] = {.name = "green_context",
                              .size = sizeof(struct CUgreenCtx_st),
                              .capacity = 4096},
    [OBJECT_DESCRIPTION] = {.name = "description",
                            .size = sizeof(struct CUdevResourceDesc_st),
                            .capacity = 4096},
};

/* With a leak checker in the process: objects point to memory that only they know. */
extern void __lsan_register_root_region(const void *start, size_t size) __attribute__((weak));

static bool arena_map(struct arena *arena)
{
    void *base = mmap(NULL, arena->size * arena->capacity, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return false;
    arena->base = base;
    if (__lsan_register_root_region != NULL)
        __lsan_register_root_region(base, arena->size * arena->capacity);
    return true;
}

void *object_new(enum object_kind kind)
{
    struct arena *arena = &arenas[kind];
    struct object *object = arena->free;
    if (object != NULL) {
        arena->free = object->free_next;
    } else {
        if (arena->base == NULL && !arena_map(arena))
            return NULL;
        size_t used = atomic_load_explicit(&arena->used, memory_order_relaxed);
        if (used == arena->capacity)
            return NULL;
        object = (struct object *)(void *)(arena->base + used * arena->size);
        /* Published after `base`, for object_is in threads that hold no lock. */
        atomic_store_explicit(&arena->used, used + 1, memory_order_release);
    }
    memset(object, 0, arena->size);
    object->live = true;
    object->ordinal = ++arena->last_ordinal;
    arena->live++;
    return object;
}

void object_free(enum object_kind kind, void *handle)
{
    struct object *object = handle;
    object->live = false;
    object->free_next = arenas[kind].free;
    arenas[kind].free = object;
    arenas[kind].live--;
}

/* The object, dead or alive, at that address; NULL when there never was one. */
static const struct object *object_at(enum object_kind kind, const void *handle)
{
    const struct arena *arena = &arenas[kind];
    size_t used = atomic_load_explicit(&arena->used, memory_order_acquire);
    if (used == 0 || (uintptr_t)handle < (uintptr_t)arena->base)
        return NULL;
    size_t offset = (uintptr_t)handle - (uintptr_t)arena->base;
    if (offset >= used * arena->size || offset % arena->size != 0)
        return NULL;
    return handle;
}

bool object_is(enum object_kind kind, const void *handle)
{
    const struct object *object = object_at(kind, handle);
    return object != NULL && object->live;
}

bool object_was(enum object_kind kind, const void *handle)
{
    return object_at(kind, handle) != NULL;
}

void *object_next(enum object_kind kind, const void *previous)
{
    struct arena *arena = &arenas[kind];
    size_t used = atomic_load_explicit(&arena->used, memory_order_relaxed);
    size_t index = 0;
    if (previous != NULL)
        index = ((uintptr_t)previous - (uintptr_t)arena->base) / arena->size + 1;
    for (; index < used; index++) {
        struct object *object = (struct object *)(void *)(arena->base + index * arena->size);
        if (object->live)
            return object;
    }
    return NULL;
}

size_t object_live(enum object_kind kind)
{
    return arenas[kind].live;
}

const char *object_kind_name(enum object_kind kind)
{
    return arenas[kind].name;
}

void object_reset(void)
{
    for (int kind = 0; kind < OBJECT_KINDS; kind++) {
        struct arena *arena = &arenas[kind];
        for (void *object = object_next(kind, NULL); object != NULL;
             object = object_next(kind, object))
            ((struct object *)object)->live = false;
        atomic_store_explicit(&arena->used, 0, memory_order_relaxed);
        arena->free = NULL;
        arena->last_ordinal = 0;
        arena->live = 0;
    }
}
