/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/stream.h"

#include <string.h>

#include "decide/capture.h"
#include "decide/device.h"
#include "decide/graph_live.h"
#include "decide/placement.h"
#include "decide/rules.h"
#include "decide/setting.h"
#include "decide/stream_default.h"
#include "decide/stream_registry.h"
#include "decide/stream_rules.h"
#include "decide/stream_settings.h"

struct handle_map decide_streams = HANDLE_MAP_INITIALISER(struct decide_stream);

static _Atomic uint64_t serials = DECIDE_STREAM_FIRST_SERIAL;

/* Where an unknown stream cannot be entered. */
static const struct decide_stream unknown_stream = {
    .profile = &decide_stream_no_profile,
    .kind = DECIDE_STREAM_UNKNOWN,
    .serial = DECIDE_STREAM_FIRST_SERIAL - 1,
    .device = -1,
    .index = -1,
};

static uint64_t next_serial(void)
{
    return atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed);
}

/* ---- Order of creation -------------------------------------------------------------------------
 */

/*
 * A stream's index may decide its priority, which has to be known before the stream is made. So the
 * index is drawn by decide_stream_priority and kept by its thread until the creation succeeded, or
 * for its next attempt on that device.
 */
static _Atomic int64_t created[DECIDE_DEVICE_LIMIT];
static _Thread_local struct {
    int64_t index;
    int device;
    bool drawn;
} drawn_index __attribute__((tls_model("initial-exec")));

static int64_t draw_index(int device)
{
    if (device < 0 || device >= DECIDE_DEVICE_LIMIT)
        return -1;
    if (!drawn_index.drawn || drawn_index.device != device) {
        drawn_index.index = atomic_fetch_add_explicit(&created[device], 1, memory_order_relaxed);
        drawn_index.device = device;
        drawn_index.drawn = true;
    }
    return drawn_index.index;
}

static int64_t take_index(int device)
{
    int64_t index = draw_index(device);
    drawn_index.drawn = false;
    return index;
}

/* ---- Creation and end --------------------------------------------------------------------------
 */

static struct decide_stream_facts facts_of(const struct decide_stream_request *request, int device,
                                           int64_t index)
{
    return (struct decide_stream_facts){
        .kind = DECIDE_STREAM_CREATED,
        .flags = request->flags,
        .priority = request->priority_given ? request->priority : 0,
        .library = request->library,
        .device = device,
        .index = index,
    };
}

static const struct decide_rule_set *set_of(const struct decide_stream_request *request)
{
    return request->rules ? request->rules : decide_rule_set_for_streams();
}

int decide_stream_priority(const struct decide_stream_request *request)
{
    const struct decide_rule_set *set = set_of(request);
    if (!set->needs.priority || decide_stream_mode() != POLICY_MODE_ENFORCE)
        return request->priority;
    int device = decide_device_current();
    struct decide_stream_facts facts = facts_of(request, device, draw_index(device));
    const struct policy_setting_value *value =
        decide_stream_rules_match(set, &facts)->settings[POLICY_SETTING_PRIORITY].value;
    if (!value || (request->priority_given && value->when_set == POLICY_WHEN_SET_KEEP))
        return request->priority;
    return value->value.priority;
}

/* ---- Partitions --------------------------------------------------------------------------------
 */

static enum report_reason place_for(const struct decide_stream_request *request,
                                    const struct policy_setting_value *value,
                                    const struct policy_rule *rule, int device,
                                    const struct place_partition **partition)
{
    CUcontext context;
    enum report_reason reason;
    if (request->layer == DECIDE_LAYER_RUNTIME)
        return REPORT_REASON_RUNTIME_LAYER;
    if (decide_settings_too_new() >> POLICY_SETTING_PARTITION & 1)
        return REPORT_REASON_DRIVER_TOO_OLD;
    if (request->green) /* a place of the program's own */
        return REPORT_REASON_OTHER_CONTEXT;
    if (request->flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return REPORT_REASON_REFUSED_BY_DRIVER; /* no stream on a partition has them */
    if (!(request->flags & CU_STREAM_NON_BLOCKING) && !rule->allow_blocking)
        return REPORT_REASON_BLOCKING_STREAM;
    reason = decide_placement_partition(device, value, partition);
    if (reason != REPORT_REASON_NONE)
        return reason;
    if (!cuda_driver.cuCtxGetCurrent || cuda_driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS ||
        context != place_primary_context(device))
        return REPORT_REASON_OTHER_CONTEXT;
    return REPORT_REASON_NONE;
}

struct decide_stream_place decide_stream_place(const struct decide_stream_request *request)
{
    const struct decide_rule_set *set = set_of(request);
    struct decide_stream_place place = {0};
    if (!set->needs.partitions || decide_stream_mode() == POLICY_MODE_OFF)
        return place;
    int device = decide_device_current();
    struct decide_stream_facts facts = facts_of(request, device, draw_index(device));
    const struct decide_stream_profile *profile = decide_stream_rules_match(set, &facts);
    const struct decide_stream_setting *setting = &profile->settings[POLICY_SETTING_PARTITION];
    if (!setting->value)
        return place;
    place.reason = place_for(request, setting->value, decide_rule_numbered(setting->result.rule),
                             device, &place.partition);
    if (place.reason != REPORT_REASON_NONE || decide_stream_mode() != POLICY_MODE_ENFORCE)
        place.partition = NULL;
    return place;
}

static void judge_place(const struct decide_stream_request *request, struct report_result *result)
{
    const struct decide_stream_place *place = &request->place;
    if (result->outcome != REPORT_OUTCOME_APPLIED || place->partition)
        return;
    if (place->reason != REPORT_REASON_NONE) {
        result->outcome = REPORT_OUTCOME_REFUSED;
        result->reason = (uint8_t)place->reason;
    } else {
        result->reason = REPORT_REASON_OBSERVE;
    }
}

const struct place_partition *decide_stream_partition(CUstream stream)
{
    const struct decide_stream *entry = handle_map_find(&decide_streams, decide_stream_key(stream));
    return entry ? entry->partition : NULL;
}

bool decide_stream_asked(CUstream stream, CUcontext *context, unsigned *flags, int *device)
{
    const struct decide_stream *entry;
    if (!decide_rule_set_for_streams()->places)
        return false;
    entry = handle_map_find(&decide_streams, decide_stream_key(stream));
    if (!entry || !entry->partition)
        return false;
    if (context)
        *context = entry->context;
    if (flags)
        *flags = entry->flags;
    if (device)
        *device = entry->device;
    return true;
}

/* A green context's stream need not be on the current device. */
static int device_of_new(CUstream stream, const struct decide_stream_request *request)
{
    CUdevice device;
    if (request->green && cuda_driver.cuStreamGetDevice &&
        cuda_driver.cuStreamGetDevice(stream, &device) == CUDA_SUCCESS)
        return device;
    return decide_device_current();
}

static CUcontext context_of_new(const struct decide_stream_request *request)
{
    CUcontext context = NULL;
    if (request->green || !cuda_driver.cuCtxGetCurrent ||
        cuda_driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS)
        return NULL;
    return context;
}

static void report_created(const struct decide_stream *stream,
                           const struct decide_stream_profile *profile,
                           const struct report_result *results)
{
    report_stream(&(struct report_stream_info){
        .library = stream->library ? stream->library : "",
        .kind = stream->kind == DECIDE_STREAM_UNKNOWN ? "unknown" : "created",
        .device = stream->device,
        .flags = stream->flags,
        .priority = stream->priority,
        .rule = profile->rule_count ? profile->rules[0] : REPORT_RULE_NONE,
        .results = results,
    });
}

/* Copies the members behind the map's own part of an entry, and makes the entry visible. */
static const struct decide_stream *enter(const struct decide_stream *values, CUstream handle)
{
    const size_t head = sizeof values->base;
    handle_map_lock(&decide_streams);
    struct decide_stream *entry = handle_map_new(&decide_streams);
    if (entry) {
        memcpy((char *)entry + head, (const char *)values + head, sizeof *values - head);
        if (!handle_map_insert(&decide_streams, entry, decide_stream_key(handle)))
            entry = NULL;
    }
    handle_map_unlock(&decide_streams);
    return entry;
}

void decide_stream_created(CUstream stream, const struct decide_stream_request *request)
{
    struct report_result results[POLICY_SETTING_COUNT];
    struct decide_stream values = {.kind = DECIDE_STREAM_CREATED};
    values.device = request->place.partition ? request->place.partition->device
                                             : device_of_new(stream, request);
    values.index = take_index(values.device);
    struct decide_stream_facts facts = facts_of(request, values.device, values.index);
    values.profile = decide_stream_mode() == POLICY_MODE_OFF
                         ? &decide_stream_no_profile
                         : decide_stream_rules_match(set_of(request), &facts);
    values.serial = next_serial();
    values.context =
        request->place.partition ? place_primary_context(values.device) : context_of_new(request);
    values.library = request->library;
    values.flags = request->flags;
    values.priority = facts.priority;
    values.priority_given = request->priority_given;
    values.own = request->priority_given ? 1u << CU_LAUNCH_ATTRIBUTE_PRIORITY : 0;
    for (enum decide_stream_slot slot = 0; slot < DECIDE_STREAM_SLOTS; slot++)
        values.program[slot] = decide_stream_default_word(slot);
    values.program[DECIDE_STREAM_SLOT_PRIORITY] = (uint32_t)values.priority;
    values.injected = decide_stream_settings_make(stream, values.profile, request, results);
    values.partition = request->place.partition;
    judge_place(request, &results[POLICY_SETTING_PARTITION]);
    enter(&values, stream);
    report_created(&values, values.profile, results);
}

void decide_stream_gone(CUstream stream)
{
    struct decide_stream *entry = handle_map_find(&decide_streams, decide_stream_key(stream));
    decide_capture_stream_gone(stream);
    if (stream)
        decide_live_stream_gone(stream);
    if (entry)
        place_sides_end(&entry->sides);
    handle_map_lock(&decide_streams);
    handle_map_remove(&decide_streams, decide_stream_key(stream));
    handle_map_unlock(&decide_streams);
}

static CUstream next_on_partition(int device)
{
    CUstream found = NULL;
    size_t position = 0;
    struct decide_stream *entry;
    handle_map_lock(&decide_streams);
    while (!found && (entry = handle_map_next(&decide_streams, &position)))
        if (entry->partition && entry->device == device)
            found = (CUstream)(uintptr_t)atomic_load_explicit(&entry->base.handle,
                                                              memory_order_relaxed);
    handle_map_unlock(&decide_streams);
    return found;
}

void decide_stream_ending(int device)
{
    CUstream stream;
    while ((stream = next_on_partition(device))) {
        decide_stream_gone(stream);
        if (cuda_driver.cuStreamDestroy)
            cuda_driver.cuStreamDestroy(stream);
    }
}

/* Takes the side streams of one of the context's streams; false when none has any. */
static bool take_sides(CUcontext context, struct place_sides *sides)
{
    size_t position = 0;
    struct decide_stream *entry;
    struct place_side *first = NULL;
    handle_map_lock(&decide_streams);
    while (!first && (entry = handle_map_next(&decide_streams, &position)))
        if (!context || entry->context == context)
            first = atomic_exchange(&entry->sides.first, NULL);
    handle_map_unlock(&decide_streams);
    atomic_store(&sides->first, first);
    return first != NULL;
}

void decide_stream_context_gone(CUcontext context)
{
    struct place_sides sides;
    decide_capture_context_gone(context);
    /* The driver is not called with the registry's lock held. */
    while (place_wanted() && take_sides(context, &sides))
        place_sides_end(&sides);
    handle_map_lock(&decide_streams);
    size_t position = 0;
    struct decide_stream *entry;
    while ((entry = handle_map_next(&decide_streams, &position)))
        if (!context || entry->context == context)
            handle_map_remove(&decide_streams,
                              atomic_load_explicit(&entry->base.handle, memory_order_relaxed));
    handle_map_unlock(&decide_streams);
}

void decide_stream_start(void)
{
    handle_map_after_fork(&decide_streams);
    size_t position = 0;
    struct decide_stream *entry;
    while ((entry = handle_map_next(&decide_streams, &position)))
        handle_map_remove(&decide_streams,
                          atomic_load_explicit(&entry->base.handle, memory_order_relaxed));
    for (int device = 0; device < DECIDE_DEVICE_LIMIT; device++)
        atomic_store(&created[device], 0);
    drawn_index.drawn = false;
    decide_capture_start();
    decide_stream_default_start();
    decide_stream_rules_start();
}

/* ---- Launch path -------------------------------------------------------------------------------
 */

/*
 * The device of a stream that we did not see being created. cuStreamGetCtx is illegal while the
 * stream captures, and of captures only the first stream is known: no question while any is going
 * on.
 */
static bool ask_device(CUstream stream, int *device, CUcontext *context)
{
    *device = -1;
    *context = NULL;
    if (decide_device_count() == 1) {
        *device = 0;
        return true;
    }
    if (decide_captures_exist())
        return false;
    CUcontext current;
    if (cuda_driver.cuStreamGetCtx && cuda_driver.cuCtxGetCurrent &&
        cuda_driver.cuStreamGetCtx(stream, context) == CUDA_SUCCESS &&
        cuda_driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == *context)
        *device = decide_device_current();
    return true;
}

static const struct decide_stream *first_sight(CUstream stream)
{
    struct report_result results[POLICY_SETTING_COUNT];
    struct decide_stream values = unknown_stream;
    if (!ask_device(stream, &values.device, &values.context))
        return &unknown_stream;
    values.serial = next_serial();
    const struct decide_stream *entered = enter(&values, stream);
    if (!entered)
        return &unknown_stream;
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
        results[setting] = (struct report_result){.rule = REPORT_RULE_NONE};
    report_created(&values, values.profile, results);
    return entered;
}

const struct decide_stream *decide_stream_find_by(const struct decide_rule_set *set,
                                                  CUstream stream, bool per_thread_default,
                                                  const char *library)
{
    enum decide_stream_kind kind = decide_stream_default_kind(stream, per_thread_default);
    if (kind != DECIDE_STREAM_CREATED)
        return decide_stream_default_find(set, kind, library);
    const struct decide_stream *entry = handle_map_find(&decide_streams, decide_stream_key(stream));
    return entry ? entry : first_sight(stream);
}

const struct decide_stream *decide_stream_find(CUstream stream, bool per_thread_default,
                                               const char *library)
{
    return decide_stream_find_by(decide_rule_set_now(), stream, per_thread_default, library);
}

uint32_t decide_stream_own(const struct decide_stream *stream)
{
    if (stream->kind == DECIDE_STREAM_LEGACY || stream->kind == DECIDE_STREAM_PER_THREAD)
        return decide_stream_default_own(stream);
    return atomic_load_explicit(&stream->own, memory_order_relaxed);
}

const struct policy_rule *decide_stream_placing_rule(const struct decide_stream *stream)
{
    const struct decide_stream_setting *setting =
        &stream->profile->settings[POLICY_SETTING_PARTITION];
    return stream->partition ? decide_rule_numbered(setting->result.rule) : NULL;
}

bool decide_stream_merges_exist(void)
{
    return decide_rule_set_now()->needs.merges;
}
