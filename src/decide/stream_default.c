/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/stream_default.h"

#include <pthread.h>
#include <stdlib.h>

#include "decide/device.h"
#include "decide/stream_rules.h"

enum {
    KINDS = 2,                        /* legacy, per thread */
    PLACES = DECIDE_DEVICE_LIMIT + 1, /* by device + 1; 0 where the device does not matter */
};

_Static_assert(KINDS *PLACES < DECIDE_STREAM_FIRST_SERIAL, "serial numbers of default streams");

struct default_entry {
    struct decide_stream stream;
    const struct decide_rule_set *set; /* whose rules gave the profile */
    struct default_entry *next;
};

/* Readers walk the lists without a lock; entries are put in front, never taken out. */
static _Atomic(struct default_entry *) heads[KINDS][PLACES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct default_entry *unused;

/* What the program set itself. A per-thread stream is its thread's alone, so is its mask; that one
 * thread sets different attributes on the per-thread streams of several devices is not told apart.
 */
static _Atomic uint32_t legacy_own[PLACES];
static _Thread_local uint32_t per_thread_own __attribute__((tls_model("initial-exec")));

/* For a kind that no rule names, and where memory is short. */
static const struct decide_stream plain[KINDS] = {
    {.profile = &decide_stream_no_profile, .kind = DECIDE_STREAM_LEGACY, .device = -1, .index = -1},
    {.profile = &decide_stream_no_profile,
     .kind = DECIDE_STREAM_PER_THREAD,
     .device = -1,
     .index = -1,
     .serial = PLACES},
};

static unsigned row_of(enum decide_stream_kind kind)
{
    return kind == DECIDE_STREAM_PER_THREAD;
}

/* The device as far as rules about the kind depend on it; else -1. */
static int device_of(const struct decide_rule_set *set, enum decide_stream_kind kind)
{
    if (!set->needs.kind[kind].device)
        return -1;
    int device = decide_device_current();
    return device < DECIDE_DEVICE_LIMIT ? device : -1;
}

static struct default_entry *search(const struct decide_rule_set *set, enum decide_stream_kind kind,
                                    int device, const char *library)
{
    struct default_entry *entry =
        atomic_load_explicit(&heads[row_of(kind)][device + 1], memory_order_acquire);
    while (entry && (entry->set != set || entry->stream.library != library))
        entry = entry->next;
    return entry;
}

static void report_default(const struct decide_stream *stream)
{
    struct report_result results[POLICY_SETTING_COUNT];
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        results[setting] = stream->profile->settings[setting].result;
        if (decide_stream_mode() != POLICY_MODE_ENFORCE &&
            results[setting].outcome == REPORT_OUTCOME_APPLIED)
            results[setting].reason = REPORT_REASON_OBSERVE;
    }
    report_stream(&(struct report_stream_info){
        .library = stream->library ? stream->library : "",
        .kind = stream->kind == DECIDE_STREAM_LEGACY ? "legacy" : "per_thread",
        .device = stream->device,
        .rule = stream->profile->rule_count ? stream->profile->rules[0] : REPORT_RULE_NONE,
        .results = results,
    });
}

/* Locked. */
static struct default_entry *new_entry(void)
{
    struct default_entry *entry = unused;
    if (!entry)
        return calloc(1, sizeof *entry);
    unused = entry->next;
    return entry;
}

/* Enters what a launch saw first, unless another thread was faster. */
static const struct decide_stream *enter(const struct decide_rule_set *set,
                                         enum decide_stream_kind kind, int device,
                                         const char *library)
{
    const struct decide_stream_profile *profile = decide_stream_rules_match(
        set, &(struct decide_stream_facts){
                 .kind = kind, .device = device, .library = library, .index = -1});
    _Atomic(struct default_entry *) *head = &heads[row_of(kind)][device + 1];
    bool entered = false;
    pthread_mutex_lock(&mutex);
    struct default_entry *entry = search(set, kind, device, library);
    if (!entry && (entry = new_entry())) {
        entry->set = set;
        entry->stream.profile = profile;
        entry->stream.kind = (uint8_t)kind;
        entry->stream.device = device;
        entry->stream.index = -1;
        entry->stream.library = library;
        entry->stream.serial = row_of(kind) * PLACES + (unsigned)(device + 1);
        entry->next = atomic_load_explicit(head, memory_order_relaxed);
        atomic_store_explicit(head, entry, memory_order_release);
        entered = true;
    }
    pthread_mutex_unlock(&mutex);
    if (entered)
        report_default(&entry->stream);
    return entry ? &entry->stream : &plain[row_of(kind)];
}

const struct decide_stream *decide_stream_default_find(const struct decide_rule_set *set,
                                                       enum decide_stream_kind kind,
                                                       const char *library)
{
    if (!set->needs.kind[kind].ruled)
        return &plain[row_of(kind)];
    int device = device_of(set, kind);
    const char *caller = set->needs.kind[kind].library ? library : NULL;
    struct default_entry *entry = search(set, kind, device, caller);
    return entry ? &entry->stream : enter(set, kind, device, caller);
}

uint32_t decide_stream_default_own(const struct decide_stream *stream)
{
    if (stream->kind == DECIDE_STREAM_PER_THREAD)
        return per_thread_own;
    /* Place 0: noted while the device did not matter, under another policy. */
    return atomic_load_explicit(&legacy_own[stream->device + 1], memory_order_relaxed) |
           atomic_load_explicit(&legacy_own[0], memory_order_relaxed);
}

uint32_t decide_stream_default_current_own(enum decide_stream_kind kind)
{
    if (kind == DECIDE_STREAM_PER_THREAD)
        return per_thread_own;
    return atomic_load_explicit(&legacy_own[device_of(decide_rule_set_now(), kind) + 1],
                                memory_order_relaxed);
}

void decide_stream_default_note(enum decide_stream_kind kind, uint32_t attributes, bool set)
{
    if (kind == DECIDE_STREAM_PER_THREAD) {
        per_thread_own = set ? per_thread_own | attributes : per_thread_own & ~attributes;
        return;
    }
    _Atomic uint32_t *own = &legacy_own[device_of(decide_rule_set_now(), kind) + 1];
    if (set)
        atomic_fetch_or_explicit(own, attributes, memory_order_relaxed);
    else
        atomic_fetch_and_explicit(own, ~attributes, memory_order_relaxed);
}

void decide_stream_default_start(void)
{
    pthread_mutex_init(&mutex, NULL);
    for (unsigned row = 0; row < KINDS; row++) {
        for (unsigned place = 0; place < PLACES; place++) {
            struct default_entry *entry = atomic_exchange(&heads[row][place], NULL);
            while (entry) {
                struct default_entry *next = entry->next;
                entry->next = unused;
                unused = entry;
                entry = next;
            }
        }
    }
    for (unsigned place = 0; place < PLACES; place++)
        atomic_store(&legacy_own[place], 0);
    per_thread_own = 0;
}
