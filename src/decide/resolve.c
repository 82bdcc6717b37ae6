/* SPDX-License-Identifier: Apache-2.0 */
/* Which rule each group of settings of a launch comes from. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "decide/device.h"
#include "decide/launch_stream.h"
#include "decide/rules.h"
#include "decide/setting.h"

enum {
    BUCKETS = 1024, /* a power of two */
};

static _Atomic(struct decide_resolution *) buckets[BUCKETS];
static struct decide_resolution *earlier; /* of earlier starts: somebody may still hold them */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Serves when memory is short. */
static const struct decide_resolution nothing = {
    .picks = {REPORT_RULE_NONE, REPORT_RULE_NONE, REPORT_RULE_NONE, REPORT_RULE_NONE,
              REPORT_RULE_NONE, REPORT_RULE_NONE, REPORT_RULE_NONE},
};
_Static_assert(POLICY_GROUP_COUNT == 7, "nothing is picked for any group");

const struct decide_resolution *decide_resolution_none(void)
{
    return &nothing;
}

void decide_resolve_start(void)
{
    pthread_mutex_init(&mutex, NULL);
    for (size_t i = 0; i < BUCKETS; i++) {
        struct decide_resolution *resolution =
            atomic_exchange_explicit(&buckets[i], NULL, memory_order_relaxed);
        while (resolution) {
            struct decide_resolution *next = resolution->next;
            resolution->next = earlier;
            earlier = resolution;
            resolution = next;
        }
    }
}

/* ---- Selectors that ask about the launch --------------------------------------------------------
 */

static bool device_holds(struct decide_rule *rule, int device)
{
    if (!atomic_load_explicit(&rule->devices_known, memory_order_acquire)) {
        atomic_store_explicit(&rule->devices, decide_device_mask(&rule->rule->selectors.device),
                              memory_order_relaxed);
        atomic_store_explicit(&rule->devices_known, decide_device_count() > 0,
                              memory_order_release);
    }
    return device >= 0 && device < DECIDE_DEVICE_LIMIT &&
           (atomic_load_explicit(&rule->devices, memory_order_relaxed) >> device & 1);
}

static bool stream_holds(const struct decide_rule *rule, const struct decide_stream *stream)
{
    for (uint16_t i = 0; i < rule->stream_count; i++)
        if (decide_stream_matched(stream, rule->streams[i]))
            return true;
    return false;
}

static bool holds(struct decide_rule *rule, const struct decide_asked *asked)
{
    const struct policy_selectors *selectors = &rule->rule->selectors;
    if ((rule->needs & DECIDE_NEED_SHAPE) &&
        !(policy_ranges_hold(&selectors->grid_blocks, (int64_t)asked->grid_blocks) &&
          policy_ranges_hold(&selectors->block_threads, asked->block_threads) &&
          policy_ranges_hold(&selectors->shared_memory, asked->shared_memory)))
        return false;
    if ((rule->needs & DECIDE_NEED_CAPTURED) &&
        asked->captured != (selectors->captured == POLICY_CHOICE_YES))
        return false;
    if ((rule->needs & DECIDE_NEED_ARM) && !policy_ranges_hold(&selectors->arm, asked->arm))
        return false;
    if ((rule->needs & DECIDE_NEED_DEVICE) && !device_holds(rule, asked->device))
        return false;
    if (!(rule->needs & (DECIDE_NEED_STREAM | DECIDE_NEED_ORDER)))
        return true;
    if (!asked->stream)
        return false;
    if ((rule->needs & DECIDE_NEED_STREAM) && !stream_holds(rule, asked->stream))
        return false;
    /* Last, since a stream is counted only if the rule holds otherwise. */
    return !(rule->needs & DECIDE_NEED_ORDER) ||
           policy_ranges_hold(
               &selectors->launch_stream,
               decide_launch_stream_order(rule->rule->index, asked->device, asked->stream->serial));
}

static void pick(const struct decide_plan *plan, const struct decide_asked *asked,
                 uint16_t picks[POLICY_GROUP_COUNT])
{
    const unsigned all = (1u << POLICY_GROUP_COUNT) - 1;
    unsigned settled = 0;
    for (unsigned group = 0; group < POLICY_GROUP_COUNT; group++)
        picks[group] = REPORT_RULE_NONE;
    for (uint16_t i = 0; i < plan->count && settled != all; i++) {
        struct decide_rule *rule = plan->rules[i];
        unsigned fresh = rule->groups & ~settled;
        if ((!fresh && !rule->rule->final) || !holds(rule, asked))
            continue;
        for (settled |= fresh; fresh; fresh &= fresh - 1)
            picks[__builtin_ctz(fresh)] = rule->rule->index;
        if (rule->rule->final)
            break;
    }
}

/* ---- Resolutions --------------------------------------------------------------------------------
 */

static void choose(struct decide_choice *choice, enum policy_setting setting,
                   const struct policy_rule *rule, const struct policy_setting_value *value)
{
    choice->value = value;
    choice->rule = rule->index;
    choice->graph_nodes = rule->graph_nodes;
    choice->unsafe_cluster = rule->unsafe_cluster;
    choice->unsafe_residency = rule->unsafe_residency;
    choice->allow_legacy = rule->allow_legacy;
    if (value->action == POLICY_ACTION_SET)
        choice->attribute = decide_setting_attribute(setting, &value->value);
}

static void fill_setting(struct decide_resolution *resolution, enum policy_setting setting)
{
    uint16_t picked = resolution->picks[policy_setting_group(setting)];
    struct decide_choice *choice = &resolution->choices[setting];
    struct decide_choice *stream_choice = &resolution->stream_choices[setting];
    choice->rule = stream_choice->rule = REPORT_RULE_NONE;
    if (picked != REPORT_RULE_NONE) {
        const struct policy_rule *rule = decide_rule_numbered(picked);
        const struct policy_setting_value *value = &rule->settings[setting];
        if (value->action != POLICY_ACTION_ABSENT) {
            choose(choice, setting, rule, value);
            resolution->kernel_settings |= 1u << setting;
            if (value->action == POLICY_ACTION_SET) {
                resolution->places |= setting == POLICY_SETTING_PARTITION;
                resolution->keeps |=
                    value->when_set == POLICY_WHEN_SET_KEEP && decide_settings[setting].on_streams;
                resolution->by_device |= decide_settings[setting].by_device;
            }
        }
    }
    if (!resolution->profile ||
        resolution->profile->settings[setting].result.rule == REPORT_RULE_NONE)
        return;
    const struct decide_stream_setting *merged = &resolution->profile->settings[setting];
    const struct policy_rule *rule = decide_rule_numbered(merged->result.rule);
    choose(stream_choice, setting, rule, &rule->settings[setting]);
    resolution->stream_settings |= 1u << setting;
    resolution->keeps |= stream_choice->value->when_set == POLICY_WHEN_SET_KEEP;
}

static size_t bucket_of(const uint16_t picks[POLICY_GROUP_COUNT],
                        const struct decide_stream_profile *profile)
{
    uint64_t hash = profile ? profile->number : 0;
    for (unsigned group = 0; group < POLICY_GROUP_COUNT; group++)
        hash = (hash ^ picks[group]) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(hash >> 40) & (BUCKETS - 1);
}

static bool is(const struct decide_resolution *resolution, const uint16_t picks[POLICY_GROUP_COUNT],
               const struct decide_stream_profile *profile)
{
    return resolution->profile == profile &&
           memcmp(resolution->picks, picks, sizeof resolution->picks) == 0;
}

static const struct decide_resolution *search(const struct decide_resolution *from,
                                              const uint16_t picks[POLICY_GROUP_COUNT],
                                              const struct decide_stream_profile *profile)
{
    for (; from; from = from->next)
        if (is(from, picks, profile))
            return from;
    return NULL;
}

static const struct decide_resolution *make(const uint16_t picks[POLICY_GROUP_COUNT],
                                            const struct decide_stream_profile *profile,
                                            size_t bucket)
{
    const struct decide_resolution *found;
    pthread_mutex_lock(&mutex);
    struct decide_resolution *first = atomic_load_explicit(&buckets[bucket], memory_order_relaxed);
    found = search(first, picks, profile);
    struct decide_resolution *fresh = found ? NULL : calloc(1, sizeof *fresh);
    if (fresh) {
        memcpy(fresh->picks, picks, sizeof fresh->picks);
        fresh->profile = profile;
        for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
            fill_setting(fresh, setting);
        fresh->next = first;
        atomic_store_explicit(&buckets[bucket], fresh, memory_order_release);
        found = fresh;
    }
    pthread_mutex_unlock(&mutex);
    return found ? found : &nothing;
}

const struct decide_resolution *decide_resolve(struct decide_plan *plan,
                                               const struct decide_asked *asked,
                                               const struct decide_stream_profile *profile)
{
    const struct decide_resolution *recent =
        atomic_load_explicit(&plan->recent, memory_order_acquire);
    if (recent && plan->needs == 0 && recent->profile == profile)
        return recent;
    uint16_t picks[POLICY_GROUP_COUNT];
    pick(plan, asked, picks);
    if (recent && is(recent, picks, profile))
        return recent;
    size_t bucket = bucket_of(picks, profile);
    const struct decide_resolution *found =
        search(atomic_load_explicit(&buckets[bucket], memory_order_acquire), picks, profile);
    if (!found)
        found = make(picks, profile, bucket);
    if (found != &nothing)
        atomic_store_explicit(&plan->recent, found, memory_order_release);
    return found;
}
