/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/graph_counts.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
    CLASSES = 32, /* by the logarithm of the room */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct decide_counts *free_blocks[CLASSES];

static unsigned class_of(size_t count)
{
    unsigned class = 0;
    while (((size_t)1 << class) < count)
        class ++;
    return class;
}

static struct decide_counts *block_new(size_t count)
{
    unsigned class = class_of(count);
    if (class >= CLASSES)
        return NULL;
    pthread_mutex_lock(&mutex);
    struct decide_counts *block = free_blocks[class];
    if (block)
        free_blocks[class] = block->next_free;
    pthread_mutex_unlock(&mutex);
    if (!block) {
        block = calloc(1, sizeof *block + ((size_t)1 << class) * sizeof block->items[0]);
        if (block)
            block->room = 1u << class;
    }
    return block;
}

void decide_counts_release(struct decide_counts *counts)
{
    if (!counts)
        return;
    unsigned class = class_of(counts->room);
    pthread_mutex_lock(&mutex);
    counts->next_free = free_blocks[class];
    free_blocks[class] = counts;
    pthread_mutex_unlock(&mutex);
}

void decide_counts_start(void)
{
    pthread_mutex_init(&mutex, NULL);
}

static void put(struct decide_counts *counts, uint32_t position, uint32_t cell, uint32_t launches)
{
    atomic_store_explicit(&counts->items[position].cell, cell, memory_order_relaxed);
    atomic_store_explicit(&counts->items[position].launches, launches, memory_order_relaxed);
}

static int by_number(const void *a, const void *b)
{
    uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    return (one > other) - (one < other);
}

struct decide_counts *decide_counts_of(uint32_t *cells, size_t count)
{
    if (count == 0)
        return NULL;
    qsort(cells, count, sizeof *cells, by_number);
    size_t different = 1;
    for (size_t i = 1; i < count; i++)
        different += cells[i] != cells[i - 1];
    struct decide_counts *counts = block_new(different);
    if (!counts)
        return NULL;
    uint32_t position = 0;
    for (size_t i = 0, start = 0; i < count; i++) {
        if (i + 1 < count && cells[i + 1] == cells[i])
            continue;
        put(counts, position++, cells[i], (uint32_t)(i + 1 - start));
        start = i + 1;
    }
    atomic_store_explicit(&counts->count, position, memory_order_release);
    return counts;
}

struct decide_counts *decide_counts_changed(const struct decide_counts *counts, uint32_t from,
                                            uint32_t to)
{
    uint32_t count = atomic_load_explicit(&counts->count, memory_order_relaxed);
    struct decide_counts *changed = block_new((size_t)count + 1);
    if (!changed)
        return NULL;
    uint32_t position = 0;
    bool found = false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t cell = atomic_load_explicit(&counts->items[i].cell, memory_order_relaxed);
        uint32_t launches = atomic_load_explicit(&counts->items[i].launches, memory_order_relaxed);
        launches -= cell == from && launches > 0;
        launches += cell == to;
        found |= cell == to;
        if (launches)
            put(changed, position++, cell, launches);
    }
    if (!found)
        put(changed, position++, to, 1);
    atomic_store_explicit(&changed->count, position, memory_order_release);
    return changed;
}
