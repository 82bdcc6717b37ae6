/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_POLICY_ARENA_H
#define CUDAPOLICY_POLICY_ARENA_H

/* Memory of one policy: allocated piece by piece while it is read, given back all at once. Not for
 * the launch path; one thread at a time. */

#include <stddef.h>

struct policy_arena_block;

/* Zeroed memory is an empty arena. */
struct policy_arena {
    struct policy_arena_block *newest;
    size_t used, size; /* of the newest block */
};

/* Zeroed memory, aligned for any type; NULL when there is none left. */
void *policy_arena_allocate(struct policy_arena *arena, size_t size);

/* A terminated copy of length bytes; NULL when there is no memory left. */
char *policy_arena_copy(struct policy_arena *arena, const char *text, size_t length);

/* The array with room for one more item: the array itself, or a larger copy whenever count is a
 * power of two (or 0). NULL when there is no memory left; the old array stays valid. Items of the
 * old array are not freed before the arena is. */
void *policy_arena_grow(struct policy_arena *arena, const void *array, size_t count,
                        size_t item_size);

void policy_arena_release(struct policy_arena *arena);

#endif
