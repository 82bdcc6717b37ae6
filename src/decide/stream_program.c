/* SPDX-License-Identifier: Apache-2.0 */
/* What the program itself does to the attributes of streams that rules speak about. */
#include <string.h>

#include "decide/placement.h"
#include "decide/stream.h"
#include "decide/stream_default.h"
#include "decide/stream_registry.h"
#include "decide/stream_rules.h"
#include "decide/stream_settings.h"
#include "report/log.h"

static uint32_t attribute_bit(int attribute)
{
    return attribute >= 0 && attribute < 32 ? 1u << attribute : 0;
}

static bool has_bit(unsigned bits, enum decide_stream_slot slot)
{
    return bits & 1u << slot;
}

/* Remembers that the driver holds a rule's value. */
static void note_injected(CUstream stream, enum decide_stream_slot slot)
{
    handle_map_lock(&decide_streams);
    struct decide_stream *entry = handle_map_find(&decide_streams, decide_stream_key(stream));
    if (entry)
        entry->injected |= (uint8_t)(1u << slot);
    handle_map_unlock(&decide_streams);
}

static void write_rule(CUstream stream, enum decide_stream_slot slot, uint32_t word)
{
    if (!decide_stream_write(stream, slot, word)) {
        report_log_once(REPORT_LOG_WARN,
                        "%s of a stream could not be set again after the program set it",
                        policy_setting_key(decide_stream_slot_setting(slot)));
        return;
    }
    note_injected(stream, slot);
}

/* True with the rule's word when a rule's value is to hold although, or unless, the program has its
 * own (owns). */
static bool rule_prevails(const struct decide_stream_profile *profile, enum decide_stream_slot slot,
                          bool owns, uint32_t *word)
{
    const struct policy_setting_value *value =
        profile->settings[decide_stream_slot_setting(slot)].value;
    if (!value || decide_stream_mode() != POLICY_MODE_ENFORCE ||
        (owns && value->when_set == POLICY_WHEN_SET_KEEP))
        return false;
    *word = decide_stream_word(slot, &value->value);
    return true;
}

/* ---- Copies ------------------------------------------------------------------------------------
 */

/* A stream's attributes as the program sees them. */
struct view {
    bool known;
    uint32_t own;
    uint8_t injected;
    uint32_t program[DECIDE_STREAM_SLOTS]; /* where injected has the slot's bit */
    uint32_t rule[DECIDE_STREAM_SLOTS];    /* the value that the driver holds there instead */
    const struct decide_stream_profile *profile;
};

static void view_stream(CUstream stream, bool per_thread_default, struct view *view)
{
    enum decide_stream_kind kind = decide_stream_default_kind(stream, per_thread_default);
    memset(view, 0, sizeof *view);
    view->profile = &decide_stream_no_profile;
    if (kind != DECIDE_STREAM_CREATED) {
        view->known = true;
        view->own = decide_stream_default_current_own(kind);
        return;
    }
    handle_map_lock(&decide_streams);
    struct decide_stream *entry = handle_map_find(&decide_streams, decide_stream_key(stream));
    if (entry && entry->kind == DECIDE_STREAM_CREATED) {
        view->known = true;
        view->own = atomic_load_explicit(&entry->own, memory_order_relaxed);
        view->injected = entry->injected;
        view->profile = entry->profile;
        memcpy(view->program, entry->program, sizeof view->program);
    }
    handle_map_unlock(&decide_streams);
    for (enum decide_stream_slot slot = 0; slot < DECIDE_STREAM_SLOTS; slot++)
        if (has_bit(view->injected, slot))
            view->rule[slot] = decide_stream_word(
                slot, &view->profile->settings[decide_stream_slot_setting(slot)].value->value);
}

bool decide_stream_words(CUstream stream, bool per_thread_default,
                         uint32_t words[DECIDE_STREAM_SLOTS])
{
    struct view view;
    if (decide_stream_default_kind(stream, per_thread_default) != DECIDE_STREAM_CREATED)
        return false;
    view_stream(stream, per_thread_default, &view);
    for (enum decide_stream_slot slot = 0; slot < DECIDE_STREAM_SLOTS; slot++)
        words[slot] = has_bit(view.injected, slot) ? view.rule[slot] : view.program[slot];
    return view.known;
}

static void note_copied(CUstream stream, enum decide_stream_kind kind, enum decide_stream_slot slot,
                        uint32_t word, bool owns)
{
    uint32_t bit = attribute_bit(decide_stream_slot_attribute(slot));
    if (kind != DECIDE_STREAM_CREATED) {
        decide_stream_default_note(kind, bit, owns);
        return;
    }
    handle_map_lock(&decide_streams);
    struct decide_stream *entry = handle_map_find(&decide_streams, decide_stream_key(stream));
    if (entry) {
        if (owns)
            atomic_fetch_or_explicit(&entry->own, bit, memory_order_relaxed);
        else
            atomic_fetch_and_explicit(&entry->own, ~bit, memory_order_relaxed);
        entry->program[slot] = word;
        entry->injected &= (uint8_t) ~(1u << slot);
    }
    handle_map_unlock(&decide_streams);
}

/*
 * One attribute of the destination, which now has what the driver held at the source. Where that
 * was a rule's value, the copy must not carry it on: the destination gets what the program would
 * have copied, or what its own rule says.
 */
static void settle_copy(CUstream destination, enum decide_stream_kind kind,
                        const struct view *source, const struct decide_stream_profile *profile,
                        enum decide_stream_slot slot)
{
    uint32_t actual, wanted, rule_word;
    bool readable = decide_stream_read(destination, slot, &actual);
    bool leaked = has_bit(source->injected, slot) && (!readable || actual == source->rule[slot]);
    if (!leaked && !readable)
        return;
    wanted = leaked ? source->program[slot] : actual;
    bool owns = source->known ? source->own & attribute_bit(decide_stream_slot_attribute(slot))
                              : wanted != decide_stream_default_word(slot);
    note_copied(destination, kind, slot, wanted, owns);
    if (rule_prevails(profile, slot, owns, &rule_word)) {
        if (!readable || actual != rule_word)
            write_rule(destination, slot, rule_word);
        else if (leaked)
            note_injected(destination, slot);
    } else if (leaked) {
        decide_stream_write(destination, slot, wanted);
    }
}

static void settle_copies(CUstream destination, bool per_thread_default, const struct view *source)
{
    struct view view;
    enum decide_stream_kind kind = decide_stream_default_kind(destination, per_thread_default);
    if (kind != DECIDE_STREAM_CREATED)
        destination = kind == DECIDE_STREAM_LEGACY ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
    view_stream(destination, per_thread_default, &view);
    for (enum decide_stream_slot slot = 0; slot < DECIDE_STREAM_SLOTS; slot++)
        settle_copy(destination, kind, source, view.profile, slot);
}

void decide_stream_attributes_copied(CUstream destination, CUstream source, bool per_thread_default)
{
    struct view view;
    if (destination == source)
        return;
    view_stream(source, per_thread_default, &view);
    settle_copies(destination, per_thread_default, &view);
    decide_placement_mirror(destination, per_thread_default);
}

/* The context that the program has a stream in; NULL: not known. placed: it is on a partition. */
static CUcontext context_of(CUstream stream, bool per_thread_default, bool *placed)
{
    CUcontext context = NULL;
    *placed = false;
    if (decide_stream_default_kind(stream, per_thread_default) != DECIDE_STREAM_CREATED) {
        if (!cuda_driver.cuCtxGetCurrent || cuda_driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS)
            return NULL;
        return context;
    }
    handle_map_lock(&decide_streams);
    struct decide_stream *entry = handle_map_find(&decide_streams, decide_stream_key(stream));
    if (entry) {
        context = entry->context;
        *placed = entry->partition != NULL;
    }
    handle_map_unlock(&decide_streams);
    if (!context && (!cuda_driver.cuStreamGetCtx ||
                     cuda_driver.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS))
        return NULL;
    return context;
}

static CUstream named(CUstream stream, bool per_thread_default)
{
    if (stream)
        return stream;
    return per_thread_default ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

bool decide_stream_copied_by_hand(CUstream destination, CUstream source, bool per_thread_default)
{
    bool one, other;
    if (!decide_rule_set_for_streams()->places)
        return false;
    CUcontext to = context_of(destination, per_thread_default, &one);
    CUcontext from = context_of(source, per_thread_default, &other);
    if (!to || to != from || !(one || other))
        return false;
    place_attributes_copy(named(destination, per_thread_default),
                          named(source, per_thread_default));
    return true;
}

/* ---- Single attributes --------------------------------------------------------------------------
 */

static void settle_set(CUstream stream, bool per_thread_default, int attribute)
{
    enum decide_stream_kind kind = decide_stream_default_kind(stream, per_thread_default);
    if (attribute < 0) {
        static const struct view nothing_known;
        settle_copies(stream, per_thread_default, &nothing_known);
        return;
    }
    if (kind != DECIDE_STREAM_CREATED) {
        decide_stream_default_note(kind, attribute_bit(attribute), true);
        return;
    }
    int slot = decide_stream_slot_of(attribute);
    uint32_t word = 0, rule_word = 0;
    bool known = slot >= 0 && decide_stream_read(stream, (enum decide_stream_slot)slot, &word);
    bool again = false;

    handle_map_lock(&decide_streams);
    struct decide_stream *entry = handle_map_find(&decide_streams, decide_stream_key(stream));
    if (entry) {
        atomic_fetch_or_explicit(&entry->own, attribute_bit(attribute), memory_order_relaxed);
        if (slot >= 0) {
            entry->injected &= (uint8_t) ~(1u << slot);
            if (known)
                entry->program[slot] = word;
            again = rule_prevails(entry->profile, (enum decide_stream_slot)slot, true, &rule_word);
        }
    }
    handle_map_unlock(&decide_streams);

    if (again && (!known || word != rule_word))
        write_rule(stream, (enum decide_stream_slot)slot, rule_word);
}

void decide_stream_attribute_set(CUstream stream, bool per_thread_default, int attribute)
{
    settle_set(stream, per_thread_default, attribute);
    decide_placement_mirror(stream, per_thread_default);
}
