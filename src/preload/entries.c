/* SPDX-License-Identifier: Apache-2.0 */
/* The table of entry points as data, and the proof that the assembly's numbers are the types' own.
 */
#include "preload/preload.h"

#include <string.h>

#include "decide/decide.h"

const struct preload_entry_info preload_entry_info[PRELOAD_ENTRY_COUNT] = {
    [PRELOAD_ENTRY_NONE] = {.symbol = ""},
#define DRIVER(symbol_, base_, version_, variant_, wrapper, parameters, arguments)                 \
    [ENTRY_##symbol_] = {.symbol = #symbol_,                                                       \
                         .base = (base_),                                                          \
                         .version = (version_),                                                    \
                         .variant = PRELOAD_##variant_},
#define RUNTIME(symbol_, variant_, wrapper, parameters, arguments)                                 \
    [ENTRY_##symbol_] = {.symbol = #symbol_, .variant = PRELOAD_##variant_, .runtime = true},
#include "preload/entries.def"
};

/* The stubs of the runtime's functions lead to the wrappers until one of them finds that it need
 * not watch any longer. */
#define RUNTIME(symbol, variant, wrapper, parameters, arguments)                                   \
    int symbol##_slot0 parameters;                                                                 \
    int symbol##_slot1 parameters;                                                                 \
    int symbol##_slot2 parameters;                                                                 \
    int symbol##_slot3 parameters;                                                                 \
    int symbol##_slot4 parameters;                                                                 \
    int symbol##_slot5 parameters;
#include "preload/entries.def"

struct preload_slot preload_slots[PRELOAD_ENTRY_COUNT][PRELOAD_SLOTS] = {
#define RUNTIME(symbol, variant, wrapper, parameters, arguments)                                   \
    [ENTRY_##symbol] = {{.target = (void *)symbol##_slot0}, {.target = (void *)symbol##_slot1},    \
                        {.target = (void *)symbol##_slot2}, {.target = (void *)symbol##_slot3},    \
                        {.target = (void *)symbol##_slot4}, {.target = (void *)symbol##_slot5}},
#include "preload/entries.def"
};

_Thread_local const void *preload_runtime_caller;

_Static_assert(sizeof(struct preload_slot) == PRELOAD_SLOT_SIZE, "slot size");
_Static_assert(offsetof(struct preload_slot, real) == 0, "real");
_Static_assert(offsetof(struct preload_slot, target) == PRELOAD_SLOT_TARGET, "target");
_Static_assert(DECIDE_PASS_BITS == PRELOAD_PASS_BITS, "bits");
_Static_assert(DECIDE_PASS_MULTIPLIER == PRELOAD_PASS_MULTIPLIER, "multiplier");
_Static_assert(sizeof(struct decide_pass_entry) == 1 << PRELOAD_PASS_ENTRY_SHIFT, "pass entry");
_Static_assert(offsetof(struct decide_pass_entry, handle) == 0, "handle");
_Static_assert(offsetof(struct decide_pass_entry, count_offset) == PRELOAD_PASS_COUNT, "count");
_Static_assert(offsetof(struct report_shard, entry_calls) == 0, "entry calls");
_Static_assert((int)PRELOAD_ENTRY_COUNT <= (int)REPORT_ENTRY_LIMIT, "entries");
_Static_assert(PRELOAD_EXPORT_SLOT + PRELOAD_EXPORT_SLOT_NODES == PRELOAD_SLOTS, "slots");

/* Called for every dlsym of a name that could be one of ours, so the common case ends early. */
enum preload_entry preload_entry_by_symbol(const char *symbol)
{
    for (unsigned entry = 1; entry < PRELOAD_ENTRY_COUNT; entry++)
        if (strcmp(preload_entry_info[entry].symbol, symbol) == 0)
            return (enum preload_entry)entry;
    return PRELOAD_ENTRY_NONE;
}
