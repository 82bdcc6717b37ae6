/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/pass.h"

#include <stddef.h>

#include "decide/decide.h"

struct decide_pass_entry decide_pass_table[DECIDE_PASS_SIZE];

/* The function that a place was taken from by decide_pass_suspend; 0: none. */
static uint64_t suspended[DECIDE_PASS_SIZE];

static struct decide_pass_entry *entry_of(uint64_t handle)
{
    return &decide_pass_table[handle * DECIDE_PASS_MULTIPLIER >> (64 - DECIDE_PASS_BITS)];
}

void decide_pass_enter(void *function, uint32_t cell)
{
    uint64_t handle = (uintptr_t)function;
    struct decide_pass_entry *entry = entry_of(handle);
    const uint64_t owner = suspended[entry - decide_pass_table];
    if (handle == 0 || __atomic_load_n(&entry->handle, __ATOMIC_RELAXED) != 0 ||
        (owner != 0 && owner != handle))
        return;
    uint64_t offset =
        offsetof(struct report_shard, launches) +
        ((uint64_t)cell * REPORT_LAUNCH_KIND_COUNT + REPORT_LAUNCH_EAGER) * sizeof(uint64_t);
    __atomic_store_n(&entry->count_offset, offset, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->handle, handle, __ATOMIC_RELEASE);
}

void decide_pass_suspend(void *function)
{
    uint64_t handle = (uintptr_t)function;
    struct decide_pass_entry *entry = entry_of(handle);
    if (handle == 0 || __atomic_load_n(&entry->handle, __ATOMIC_RELAXED) != handle)
        return;
    suspended[entry - decide_pass_table] = handle;
    __atomic_store_n(&entry->handle, 0, __ATOMIC_RELEASE);
}

void decide_pass_leave(void *function)
{
    uint64_t handle = (uintptr_t)function;
    struct decide_pass_entry *entry = entry_of(handle);
    if (suspended[entry - decide_pass_table] == handle)
        suspended[entry - decide_pass_table] = 0;
    if (handle != 0 && __atomic_load_n(&entry->handle, __ATOMIC_RELAXED) == handle)
        __atomic_store_n(&entry->handle, 0, __ATOMIC_RELEASE);
}

void decide_pass_start(void)
{
    for (size_t i = 0; i < DECIDE_PASS_SIZE; i++) {
        suspended[i] = 0;
        __atomic_store_n(&decide_pass_table[i].handle, 0, __ATOMIC_RELEASE);
    }
}
