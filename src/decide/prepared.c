/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/prepared.h"

struct decide_prepared_entry decide_prepared_table[DECIDE_PASS_SIZE];

static struct decide_prepared_entry *entry_of(uint64_t handle)
{
    return &decide_prepared_table[handle * DECIDE_PASS_MULTIPLIER >> (64 - DECIDE_PASS_BITS)];
}

void decide_prepared_enter(const void *function, const struct decide_prepared *const *where)
{
    const uint64_t handle = (uintptr_t)function;
    struct decide_prepared_entry *entry = entry_of(handle);

    if (handle == 0 || __atomic_load_n(&entry->handle, __ATOMIC_RELAXED) != 0)
        return;
    __atomic_store_n(&entry->where, where, __ATOMIC_RELEASE);
    __atomic_store_n(&entry->handle, handle, __ATOMIC_RELEASE);
}

void decide_prepared_leave(const void *function)
{
    const uint64_t handle = (uintptr_t)function;
    struct decide_prepared_entry *entry = entry_of(handle);

    if (handle != 0 && __atomic_load_n(&entry->handle, __ATOMIC_RELAXED) == handle)
        __atomic_store_n(&entry->handle, 0, __ATOMIC_RELEASE);
}

void decide_prepared_start(void)
{
    for (unsigned i = 0; i < DECIDE_PASS_SIZE; i++)
        __atomic_store_n(&decide_prepared_table[i].handle, 0, __ATOMIC_RELEASE);
}
