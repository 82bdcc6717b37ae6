/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/launch_stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * A hash table that only grows: keys say rule, device and stream exactly, so nothing is ever taken
 * out. A slot's order is written before its key. When half of it is used, no more is entered.
 */
enum {
    BITS = 14,
    SIZE = 1 << BITS,
    SERIAL_BITS = 40,
};

struct slot {
    _Atomic uint64_t key; /* 0: empty */
    int64_t order;
};

static struct slot slots[SIZE];
static size_t used;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static uint64_t key_of(uint16_t rule, int device, uint64_t serial)
{
    return (uint64_t)rule << 48 | (uint64_t)((device + 2) & 0xff) << SERIAL_BITS |
           (serial & ((UINT64_C(1) << SERIAL_BITS) - 1));
}

static size_t home_of(uint64_t key)
{
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - BITS));
}

/* The slot of the key, or the empty one where it would be. */
static struct slot *slot_of(uint64_t key)
{
    size_t i = home_of(key);
    for (;;) {
        uint64_t found = atomic_load_explicit(&slots[i].key, memory_order_acquire);
        if (found == key || found == 0)
            return &slots[i];
        i = (i + 1) & (SIZE - 1);
    }
}

static int64_t count_of(uint64_t rule_and_device)
{
    int64_t count = 0;
    for (size_t i = 0; i < SIZE; i++) {
        uint64_t key = atomic_load_explicit(&slots[i].key, memory_order_relaxed);
        count += key != 0 && key >> SERIAL_BITS == rule_and_device;
    }
    return count;
}

static int64_t enter(uint64_t key)
{
    int64_t order = INT64_MAX;
    pthread_mutex_lock(&mutex);
    struct slot *slot = slot_of(key);
    if (atomic_load_explicit(&slot->key, memory_order_relaxed) == key) {
        order = slot->order;
    } else if (used < SIZE / 2) {
        int64_t count = count_of(key >> SERIAL_BITS);
        slot->order = order = count < DECIDE_LAUNCH_STREAM_LIMIT ? count : INT64_MAX;
        atomic_store_explicit(&slot->key, key, memory_order_release);
        used++;
    }
    pthread_mutex_unlock(&mutex);
    return order;
}

void decide_launch_stream_start(void)
{
    pthread_mutex_init(&mutex, NULL);
    for (size_t i = 0; i < SIZE; i++)
        atomic_store_explicit(&slots[i].key, 0, memory_order_relaxed);
    used = 0;
}

int64_t decide_launch_stream_order(uint16_t rule, int device, uint64_t serial)
{
    uint64_t key = key_of(rule, device, serial);
    struct slot *slot = slot_of(key);
    if (atomic_load_explicit(&slot->key, memory_order_acquire) == key)
        return slot->order;
    return enter(key);
}
