/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/handle_map.h"

#include <stdlib.h>

/*
 * Linear probing with tombstones. A slot's entry is written before its handle, and an entry says
 * itself which handle it stands for: a reader that saw a slot change under its eyes (removed, used
 * for another handle, and back) finds that the entry does not answer to the handle and looks again.
 *
 * When a table fills up with entries, a larger one takes its place; the old one stays, since
 * readers may be in it. When it fills up with tombstones, its twin of the same size takes its
 * place, and later the two change places again: churn never costs memory. A reader in a table that
 * is refilled may miss an entry; the count of rebuilds tells it to look again.
 */

enum {
    FIRST_SIZE = 64,
    POOL_BLOCK_ENTRIES = 32,
};

static size_t slot_of(const struct handle_table *table, uint64_t handle)
{
    return (size_t)(handle * HANDLE_MAP_MULTIPLIER >> table->shift);
}

static size_t after(const struct handle_table *table, size_t slot)
{
    return (slot + 1) & (table->size - 1);
}

static bool is_key(uint64_t handle)
{
    return handle != 0 && handle != HANDLE_MAP_TOMBSTONE;
}

static struct handle_entry *search_table(const struct handle_table *table, uint64_t handle)
{
    size_t slot = slot_of(table, handle);
    for (size_t step = 0; step < table->size; step++, slot = after(table, slot)) {
        uint64_t found = atomic_load_explicit(&table->slots[slot].handle, memory_order_acquire);
        if (found == 0)
            return NULL;
        if (found != handle)
            continue;
        struct handle_entry *entry =
            atomic_load_explicit(&table->slots[slot].entry, memory_order_acquire);
        if (atomic_load_explicit(&entry->handle, memory_order_acquire) == handle)
            return entry;
    }
    return NULL;
}

void *handle_map_search(const struct handle_map *map, uint64_t handle)
{
    if (!is_key(handle))
        return NULL;
    for (;;) {
        uint64_t rebuilds = atomic_load_explicit(&map->rebuilds, memory_order_acquire);
        const struct handle_table *table = atomic_load_explicit(&map->table, memory_order_acquire);
        if (!table)
            return NULL;
        struct handle_entry *entry = search_table(table, handle);
        if (entry || atomic_load_explicit(&map->rebuilds, memory_order_acquire) == rebuilds)
            return entry;
    }
}

void handle_map_lock(struct handle_map *map)
{
    pthread_mutex_lock(&map->mutex);
}

void handle_map_unlock(struct handle_map *map)
{
    pthread_mutex_unlock(&map->mutex);
}

void handle_map_after_fork(struct handle_map *map)
{
    struct handle_table *table = atomic_load_explicit(&map->table, memory_order_relaxed);
    pthread_mutex_init(&map->mutex, NULL);
    for (size_t i = 0; table && i < table->size; i++)
        atomic_store_explicit(&table->slots[i].handle, 0, memory_order_relaxed);
    map->live = map->buried = 0;
    map->free = NULL; /* the list may be torn: the entries are given up */
}

size_t handle_map_count(const struct handle_map *map)
{
    return map->live;
}

/* ---- The pool ---- */

static bool pool_grow(struct handle_map *map)
{
    /* One entry's room in front holds the link, and keeps the entries aligned. */
    char *block = calloc(POOL_BLOCK_ENTRIES + 1, map->entry_size);
    if (!block)
        return false;
    *(void **)(void *)block = map->blocks;
    map->blocks = block;
    for (size_t i = POOL_BLOCK_ENTRIES; i > 0; i--) {
        struct handle_entry *entry = (void *)(block + i * map->entry_size);
        entry->next_free = map->free;
        map->free = entry;
    }
    return true;
}

/* Word by word and atomically: a reader that came late may still look at the entry. */
static void clear_members(struct handle_entry *entry, size_t entry_size)
{
    typedef uint64_t __attribute__((may_alias)) word;
    word *members = (word *)(void *)(entry + 1);
    for (size_t i = 0; i < (entry_size - sizeof *entry) / sizeof *members; i++)
        __atomic_store_n(&members[i], 0, __ATOMIC_RELEASE);
}

void *handle_map_new(struct handle_map *map)
{
    if (!map->free && !pool_grow(map))
        return NULL;
    struct handle_entry *entry = map->free;
    map->free = entry->next_free;
    entry->next_free = NULL;
    clear_members(entry, map->entry_size);
    return entry;
}

static void pool_return(struct handle_map *map, struct handle_entry *entry)
{
    entry->next_free = map->free;
    map->free = entry;
}

/* ---- The table ---- */

static struct handle_table *table_new(size_t size)
{
    struct handle_table *table = calloc(1, sizeof *table + size * sizeof table->slots[0]);
    if (!table)
        return NULL;
    table->size = size;
    table->shift = 64 - (unsigned)__builtin_ctzll(size);
    return table;
}

static void slot_write(struct handle_slot *slot, struct handle_entry *entry, uint64_t handle)
{
    atomic_store_explicit(&slot->entry, entry, memory_order_release);
    atomic_store_explicit(&slot->handle, handle, memory_order_release);
}

static void table_fill(struct handle_table *table, const struct handle_table *from)
{
    for (size_t i = 0; i < table->size; i++)
        atomic_store_explicit(&table->slots[i].handle, 0, memory_order_release);
    for (size_t i = 0; i < from->size; i++) {
        uint64_t handle = atomic_load_explicit(&from->slots[i].handle, memory_order_relaxed);
        if (!is_key(handle))
            continue;
        size_t slot = slot_of(table, handle);
        while (atomic_load_explicit(&table->slots[slot].handle, memory_order_relaxed) != 0)
            slot = after(table, slot);
        slot_write(&table->slots[slot],
                   atomic_load_explicit(&from->slots[i].entry, memory_order_relaxed), handle);
    }
}

/* The table that takes the place of the present one: larger, or its twin. */
static struct handle_table *table_next(struct handle_map *map, struct handle_table *table)
{
    struct handle_table *next;
    if (map->live * 2 >= table->size) {
        next = table_new(table->size * 2);
        if (next)
            next->previous = table;
        return next;
    }
    if (table->spare)
        return table->spare;
    next = table_new(table->size);
    if (next) {
        next->previous = table->previous;
        next->spare = table;
        table->spare = next;
    }
    return next;
}

/* Makes room for one more entry. */
static bool table_reserve(struct handle_map *map)
{
    struct handle_table *table = atomic_load_explicit(&map->table, memory_order_relaxed);
    if (!table) {
        table = table_new(FIRST_SIZE);
        if (!table)
            return false;
        atomic_store_explicit(&map->table, table, memory_order_release);
    }
    if ((map->live + map->buried + 1) * 4 <= table->size * 3)
        return true;
    struct handle_table *next = table_next(map, table);
    if (!next)
        return map->live + map->buried + 1 < table->size;
    atomic_fetch_add_explicit(&map->rebuilds, 1, memory_order_acq_rel);
    table_fill(next, table);
    map->buried = 0;
    atomic_store_explicit(&map->table, next, memory_order_release);
    return true;
}

bool handle_map_insert(struct handle_map *map, void *entry, uint64_t handle)
{
    struct handle_entry *base = entry;
    if (!is_key(handle) || !table_reserve(map)) {
        pool_return(map, base);
        return false;
    }
    handle_map_remove(map, handle);
    struct handle_table *table = atomic_load_explicit(&map->table, memory_order_relaxed);
    size_t slot = slot_of(table, handle);
    uint64_t found;
    while (is_key(found = atomic_load_explicit(&table->slots[slot].handle, memory_order_relaxed)))
        slot = after(table, slot);
    if (found == HANDLE_MAP_TOMBSTONE)
        map->buried--;
    atomic_fetch_add_explicit(&base->use, 1, memory_order_acq_rel);
    atomic_store_explicit(&base->handle, handle, memory_order_release);
    slot_write(&table->slots[slot], base, handle);
    map->live++;
    return true;
}

/* Tombstones before an empty slot hold nobody's way open: they become empty again. */
static void bury(struct handle_map *map, struct handle_table *table, size_t slot)
{
    atomic_store_explicit(&table->slots[slot].handle, HANDLE_MAP_TOMBSTONE, memory_order_release);
    map->buried++;
    if (atomic_load_explicit(&table->slots[after(table, slot)].handle, memory_order_relaxed) != 0)
        return;
    while (atomic_load_explicit(&table->slots[slot].handle, memory_order_relaxed) ==
           HANDLE_MAP_TOMBSTONE) {
        atomic_store_explicit(&table->slots[slot].handle, 0, memory_order_release);
        map->buried--;
        slot = (slot - 1) & (table->size - 1);
    }
}

bool handle_map_remove(struct handle_map *map, uint64_t handle)
{
    struct handle_table *table = atomic_load_explicit(&map->table, memory_order_relaxed);
    if (!table || !is_key(handle))
        return false;
    size_t slot = slot_of(table, handle);
    uint64_t found;
    while ((found = atomic_load_explicit(&table->slots[slot].handle, memory_order_relaxed)) !=
           handle) {
        if (found == 0)
            return false;
        slot = after(table, slot);
    }
    struct handle_entry *entry =
        atomic_load_explicit(&table->slots[slot].entry, memory_order_relaxed);
    atomic_store_explicit(&entry->handle, 0, memory_order_release);
    atomic_fetch_add_explicit(&entry->use, 1, memory_order_acq_rel);
    bury(map, table, slot);
    map->live--;
    pool_return(map, entry);
    return true;
}

void *handle_map_next(const struct handle_map *map, size_t *position)
{
    const struct handle_table *table = atomic_load_explicit(&map->table, memory_order_relaxed);
    if (!table)
        return NULL;
    while (*position < table->size) {
        const struct handle_slot *slot = &table->slots[(*position)++];
        if (is_key(atomic_load_explicit(&slot->handle, memory_order_relaxed)))
            return atomic_load_explicit(&slot->entry, memory_order_relaxed);
    }
    return NULL;
}
