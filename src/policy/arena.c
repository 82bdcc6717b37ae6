/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    ARENA_BLOCK_SIZE = 16 * 1024,
};

struct policy_arena_block {
    struct policy_arena_block *older;
    alignas(max_align_t) unsigned char bytes[];
};

void *policy_arena_allocate(struct policy_arena *arena, size_t size)
{
    const size_t alignment = alignof(max_align_t);

    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    size = (size + alignment - 1) / alignment * alignment;
    if (arena->newest == NULL || size > arena->size - arena->used) {
        size_t block_size = size > ARENA_BLOCK_SIZE ? size : ARENA_BLOCK_SIZE;
        struct policy_arena_block *block = calloc(1, sizeof *block + block_size);

        if (block == NULL) {
            return NULL;
        }
        block->older = arena->newest;
        arena->newest = block;
        arena->size = block_size;
        arena->used = 0;
    }
    void *memory = arena->newest->bytes + arena->used;
    arena->used += size;
    return memory;
}

char *policy_arena_copy(struct policy_arena *arena, const char *text, size_t length)
{
    char *copy = policy_arena_allocate(arena, length + 1);

    if (copy != NULL) {
        memcpy(copy, text, length);
    }
    return copy;
}

void *policy_arena_grow(struct policy_arena *arena, const void *array, size_t count,
                        size_t item_size)
{
    if (count != 0 && (count & (count - 1)) != 0) {
        /* The capacity is the next power of two, so there is room. The caller's own array is
         * writable; it is const here only because the public structures show it as such. */
        return (void *)(uintptr_t)array;
    }
    size_t capacity = count == 0 ? 1 : count * 2;
    if (capacity > SIZE_MAX / 4 / item_size) {
        return NULL;
    }
    void *larger = policy_arena_allocate(arena, capacity * item_size);
    if (larger != NULL && count != 0) {
        memcpy(larger, array, count * item_size);
    }
    return larger;
}

void policy_arena_release(struct policy_arena *arena)
{
    while (arena->newest != NULL) {
        struct policy_arena_block *older = arena->newest->older;

        free(arena->newest);
        arena->newest = older;
    }
    *arena = (struct policy_arena){0};
}
