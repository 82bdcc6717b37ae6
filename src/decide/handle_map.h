/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_HANDLE_MAP_H
#define CUDAPOLICY_DECIDE_HANDLE_MAP_H

/*
 * From a driver's handle to what is known of it.
 *
 * Readers take no lock and never wait; writers hold the map's mutex. Entries come from the map's
 * own pool and are type-stable: a removed entry is used again for another handle, its memory is
 * never freed, so a reader that is overtaken by a writer reads old values and never a dead pointer.
 *
 * An entry type begins with struct handle_entry:
 *
 *     struct stream { struct handle_entry base; … };
 *     static struct handle_map streams = HANDLE_MAP_INITIALISER(struct stream);
 *
 *     handle_map_lock(&streams);
 *     struct stream *stream = handle_map_new(&streams);     zeroed behind base
 *     … fill it …
 *     handle_map_insert(&streams, stream, handle);          readers see it from here on
 *     handle_map_unlock(&streams);
 *
 * What a reader takes out of an entry while others may remove it must be atomic in itself. A reader
 * that needs several members to belong together reads them with acquire (they are written with
 * release) and compares handle_entry_use() before and after: the number changes whenever the entry
 * is removed or used again.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct handle_entry {
    _Atomic uint64_t handle; /* 0 while the entry is not in the map */
    _Atomic uint32_t use;
    struct handle_entry *next_free; /* of the pool */
};

struct handle_slot {
    _Atomic uint64_t handle;
    _Atomic(struct handle_entry *) entry;
};

struct handle_table {
    struct handle_table *previous; /* a smaller one: readers may still be in it */
    struct handle_table *spare;    /* of the same size: the two are used in turn */
    size_t size;                   /* a power of two */
    unsigned shift;                /* 64 - log2(size) */
    struct handle_slot slots[];
};

struct handle_map {
    pthread_mutex_t mutex;
    size_t entry_size;
    _Atomic(struct handle_table *) table;
    _Atomic uint64_t rebuilds;
    size_t live, buried; /* entries, tombstones */
    struct handle_entry *free;
    void *blocks; /* of the pool, linked by their first word */
};

#define HANDLE_MAP_INITIALISER(type)                                                               \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .entry_size = sizeof(type)                             \
    }

/* Handles that cannot be keys: 0 and this one. */
#define HANDLE_MAP_TOMBSTONE UINT64_MAX

#define HANDLE_MAP_MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)

/* The rest of handle_map_find, where the first slot did not settle it. */
void *handle_map_search(const struct handle_map *map, uint64_t handle);

/* The entry of a handle, or NULL. Launch path: no lock, no allocation. Also under the lock. */
static inline void *handle_map_find(const struct handle_map *map, uint64_t handle)
{
    const struct handle_table *table = atomic_load_explicit(&map->table, memory_order_acquire);
    if (!table || handle == 0) /* empty slots say 0 */
        return NULL;
    const struct handle_slot *slot = &table->slots[handle * HANDLE_MAP_MULTIPLIER >> table->shift];
    if (atomic_load_explicit(&slot->handle, memory_order_acquire) == handle) {
        struct handle_entry *entry = atomic_load_explicit(&slot->entry, memory_order_acquire);
        if (atomic_load_explicit(&entry->handle, memory_order_acquire) == handle)
            return entry;
    }
    return handle_map_search(map, handle);
}

/*
 * A guess for the entry of a handle: what the first slot holds. NULL when that is another handle's or
 * nothing. It is up to the caller to find out, by handle_entry_use and the entry's own handle, that the
 * entry belongs to the handle, and else to call handle_map_find. Launch path.
 */
static inline void *handle_map_guess(const struct handle_map *map, uint64_t handle)
{
    const struct handle_table *table = atomic_load_explicit(&map->table, memory_order_acquire);
    if (!table || handle == 0)
        return NULL;
    const struct handle_slot *slot = &table->slots[handle * HANDLE_MAP_MULTIPLIER >> table->shift];
    if (atomic_load_explicit(&slot->handle, memory_order_acquire) != handle)
        return NULL;
    return atomic_load_explicit(&slot->entry, memory_order_acquire);
}

/* Changes when the entry is removed, and again when it is used for another handle. Launch path. */
static inline uint32_t handle_entry_use(const void *entry)
{
    return atomic_load_explicit(&((const struct handle_entry *)entry)->use, memory_order_acquire);
}

void handle_map_lock(struct handle_map *map);
void handle_map_unlock(struct handle_map *map);

/* A new entry, all zero behind struct handle_entry; NULL when memory is short. Locked. */
void *handle_map_new(struct handle_map *map);

/* Makes an entry of handle_map_new visible. An entry that the handle had before is removed and goes
 * back to the pool. False when memory is short or the handle cannot be a key: the entry is back in
 * the pool. Locked. */
bool handle_map_insert(struct handle_map *map, void *entry, uint64_t handle);

/* Takes the entry of a handle out of the map and back into the pool; false when there is none. What
 * the entry owns has to be given up before (look it up first). Locked. */
bool handle_map_remove(struct handle_map *map, uint64_t handle);

/* The entries one after another: start with *position 0; NULL at the end. The entry returned last
 * may be removed on the way; nothing may be inserted. Locked. */
void *handle_map_next(const struct handle_map *map, size_t *position);

/* Number of entries. Locked. */
size_t handle_map_count(const struct handle_map *map);

/* In the child after fork, before it has threads: an empty map with a new mutex. A driver's handles
 * do not live on in a child, and a thread that is gone may have held the mutex amid a change. */
void handle_map_after_fork(struct handle_map *map);

#endif
