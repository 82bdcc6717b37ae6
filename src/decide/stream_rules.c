/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/stream_rules.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "decide/device.h"
#include "decide/selectors.h"
#include "decide/setting.h"

const struct decide_stream_profile decide_stream_no_profile = {
    .settings = {[0 ... POLICY_SETTING_COUNT - 1] = {.result = {.rule = REPORT_RULE_NONE}}},
};

_Static_assert((int)DECIDE_STREAM_KINDS == (int)DECIDE_STREAM_UNKNOWN, "kinds that rules know");

/* All profiles ever made. They stay, also over a new start: a reader may hold one. */
static pthread_mutex_t profiles_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct decide_stream_profile *profiles;
static uint32_t profile_numbers;

/* ---- The start ---------------------------------------------------------------------------------
 */

static unsigned kind_bit(enum decide_stream_kind kind)
{
    switch (kind) {
    case DECIDE_STREAM_CREATED:
        return POLICY_STREAM_KIND_CREATED;
    case DECIDE_STREAM_LEGACY:
        return POLICY_STREAM_KIND_LEGACY;
    case DECIDE_STREAM_PER_THREAD:
        return POLICY_STREAM_KIND_PER_THREAD;
    case DECIDE_STREAM_UNKNOWN:
        break;
    }
    return 0;
}

static unsigned rule_kinds(const struct policy_rule *rule)
{
    return rule->selectors.kinds ? rule->selectors.kinds : POLICY_STREAM_KIND_CREATED;
}

/* Whether what the rule does to a stream differs between devices: its match, the number of domains
 * there, and for `keep` what the program set on that device's default stream. */
static bool depends_on_device(const struct policy_rule *rule)
{
    if (rule->selectors.device.count)
        return true;
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        if (rule->settings[setting].action != POLICY_ACTION_SET)
            continue;
        if (policy_setting_group(setting) == POLICY_GROUP_MEM_SYNC ||
            setting == POLICY_SETTING_PARTITION ||
            rule->settings[setting].when_set == POLICY_WHEN_SET_KEEP)
            return true;
    }
    return false;
}

static void note_needs(struct decide_stream_needs *needs, const struct policy_rule *rule)
{
    bool sets = false;
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
        if (rule->settings[setting].action == POLICY_ACTION_SET &&
            decide_settings[setting].on_streams)
            sets = true;
    unsigned kinds = rule_kinds(rule);
    for (enum decide_stream_kind kind = 0; kind < DECIDE_STREAM_UNKNOWN; kind++) {
        if (!(kinds & kind_bit(kind)))
            continue;
        needs->kind[kind].ruled = true;
        needs->kind[kind].device |= depends_on_device(rule);
        needs->kind[kind].library |=
            rule->selectors.library.count || rule->selectors.not_library.count;
    }
    needs->merges |= sets && (kinds & ~(unsigned)POLICY_STREAM_KIND_CREATED);
    needs->priority |= (kinds & POLICY_STREAM_KIND_CREATED) &&
                       rule->settings[POLICY_SETTING_PRIORITY].action == POLICY_ACTION_SET;
    needs->partitions |= (kinds & POLICY_STREAM_KIND_CREATED) &&
                         rule->settings[POLICY_SETTING_PARTITION].action == POLICY_ACTION_SET;
}

void decide_stream_rules_start(void)
{
    pthread_mutex_init(&profiles_mutex, NULL);
}

bool decide_stream_rules_make(struct decide_rule_set *set, const struct policy *policy,
                              const struct decide_process *process, enum policy_mode mode)
{
    size_t limit = policy && mode != POLICY_MODE_OFF ? policy->rule_count : 0;
    set->stream_rules = calloc(limit + 1, sizeof *set->stream_rules);
    for (size_t i = 0; set->stream_rules && i < limit; i++) {
        const struct policy_rule *rule = &policy->rules[i];
        if (rule->section != POLICY_SECTION_STREAM ||
            !decide_selectors_hold_here(&rule->selectors, process))
            continue;
        set->stream_rules[set->stream_rule_count++] = rule;
        note_needs(&set->needs, rule);
    }
    return set->stream_rules != NULL;
}

/* ---- Matching ----------------------------------------------------------------------------------
 */

static bool flags_hold(enum policy_stream_flags wanted, unsigned flags)
{
    if (wanted == POLICY_STREAM_FLAGS_ANY)
        return true;
    return (wanted == POLICY_STREAM_FLAGS_NON_BLOCKING) == !!(flags & CU_STREAM_NON_BLOCKING);
}

/* An index that is not known is in no range. */
static bool index_holds(const struct policy_ranges *ranges, int64_t index)
{
    return ranges->count == 0 || (index >= 0 && policy_ranges_hold(ranges, index));
}

static bool rule_holds(const struct policy_rule *rule, const struct decide_stream_facts *facts)
{
    const struct policy_selectors *selectors = &rule->selectors;
    return (rule_kinds(rule) & kind_bit(facts->kind)) &&
           flags_hold(selectors->flags, facts->flags) &&
           policy_ranges_hold(&selectors->created_priority, facts->priority) &&
           index_holds(&selectors->index, facts->index) &&
           decide_selectors_hold_library(selectors, facts->library) &&
           (selectors->device.count == 0 ||
            (facts->device >= 0 && decide_device_is(&selectors->device, facts->device)));
}

static bool rule_has_group(const struct policy_rule *rule, enum policy_group group)
{
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
        if (policy_setting_group(setting) == group &&
            rule->settings[setting].action != POLICY_ACTION_ABSENT)
            return true;
    return false;
}

/* Why the value cannot hold on any stream of the device. A driver that does not tell its version
 * will refuse for itself. */
static enum report_reason static_reason(enum policy_setting setting,
                                        const struct policy_setting_value *value, int device)
{
    int version = cuda_driver_version();
    if (version > 0 && version < decide_settings[setting].driver_version)
        return REPORT_REASON_DRIVER_TOO_OLD;
    if (!decide_settings[setting].mem_sync)
        return REPORT_REASON_NONE;
    if (device < 0)
        return REPORT_REASON_DEVICE_UNKNOWN;
    int domains = decide_device_domains(device);
    if (domains < 0)
        return REPORT_REASON_QUERY_FAILED;
    if (domains <= 1)
        return REPORT_REASON_ONE_DOMAIN;
    if (setting == POLICY_SETTING_MEM_SYNC_DOMAIN_MAP &&
        (value->value.mem_sync_domain_map.default_domain >= domains ||
         value->value.mem_sync_domain_map.remote_domain >= domains))
        return REPORT_REASON_NO_SUCH_DOMAIN;
    return REPORT_REASON_NONE;
}

static void take_setting(struct decide_stream_setting *setting, const struct policy_rule *rule,
                         enum policy_setting which, int device)
{
    const struct policy_setting_value *value = &rule->settings[which];
    if (value->action == POLICY_ACTION_ABSENT ||
        (!decide_settings[which].on_streams && which != POLICY_SETTING_PARTITION))
        return;
    setting->result.rule = rule->index;
    if (value->action != POLICY_ACTION_SET) {
        setting->result.outcome = REPORT_OUTCOME_KEPT;
        return;
    }
    setting->result.reason = (uint8_t)static_reason(which, value, device);
    if (setting->result.reason != REPORT_REASON_NONE) {
        setting->result.outcome = REPORT_OUTCOME_REFUSED;
        return;
    }
    setting->result.outcome = REPORT_OUTCOME_APPLIED;
    setting->value = value;
}

/* Fills a profile but for its number; rules has room for every stream rule. */
static void evaluate(const struct decide_rule_set *set, const struct decide_stream_facts *facts,
                     struct decide_stream_profile *profile, uint16_t *rules)
{
    unsigned groups = 0;
    memset(profile, 0, sizeof *profile);
    profile->rules = rules;
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
        profile->settings[setting].result.rule = REPORT_RULE_NONE;
    for (size_t i = 0; i < set->stream_rule_count; i++) {
        const struct policy_rule *rule = set->stream_rules[i];
        if (!rule_holds(rule, facts))
            continue;
        rules[profile->rule_count++] = rule->index;
        for (unsigned group = 0; group < POLICY_GROUP_COUNT; group++) {
            if ((groups & 1u << group) || !rule_has_group(rule, group))
                continue;
            groups |= 1u << group;
            for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
                if (policy_setting_group(setting) == group)
                    take_setting(&profile->settings[setting], rule, setting, facts->device);
        }
        if (rule->final)
            break;
    }
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
        if (facts->kind != DECIDE_STREAM_CREATED && profile->settings[setting].value)
            profile->merges = true;
}

/* ---- Profiles ----------------------------------------------------------------------------------
 */

static bool same_profile(const struct decide_stream_profile *a,
                         const struct decide_stream_profile *b)
{
    if (a->merges != b->merges || a->rule_count != b->rule_count ||
        memcmp(a->rules, b->rules, a->rule_count * sizeof *a->rules) != 0)
        return false;
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        const struct decide_stream_setting *one = &a->settings[setting];
        const struct decide_stream_setting *other = &b->settings[setting];
        if (one->value != other->value || one->result.outcome != other->result.outcome ||
            one->result.reason != other->result.reason || one->result.rule != other->result.rule)
            return false;
    }
    return true;
}

/* Locked. NULL when memory is short. */
static const struct decide_stream_profile *placement_of(const struct decide_stream_profile *profile)
{
    struct decide_stream_profile *placement = malloc(sizeof *placement);
    if (!placement)
        return NULL;
    *placement = decide_stream_no_profile;
    placement->number = ++profile_numbers;
    placement->settings[POLICY_SETTING_PARTITION] = profile->settings[POLICY_SETTING_PARTITION];
    return placement;
}

/* The profile like this one, made when it is the first. Locked. */
static const struct decide_stream_profile *intern(const struct decide_stream_profile *profile)
{
    for (struct decide_stream_profile *known = profiles; known; known = known->next)
        if (same_profile(known, profile))
            return known;
    size_t rules_size = profile->rule_count * sizeof *profile->rules;
    struct decide_stream_profile *kept = malloc(sizeof *kept + rules_size);
    if (!kept)
        return &decide_stream_no_profile;
    uint16_t *rules = memcpy(kept + 1, profile->rules, rules_size);
    *kept = *profile;
    kept->rules = rules;
    kept->number = ++profile_numbers;
    kept->next = profiles;
    kept->placement = profile->settings[POLICY_SETTING_PARTITION].value ? placement_of(kept) : NULL;
    profiles = kept;
    return kept;
}

const struct decide_stream_profile *
decide_stream_rules_match(const struct decide_rule_set *set,
                          const struct decide_stream_facts *facts)
{
    const size_t count = set->stream_rule_count;
    if (count == 0 || facts->kind == DECIDE_STREAM_UNKNOWN)
        return &decide_stream_no_profile;
    uint16_t few[64];
    uint16_t *rules = few;
    if (count > sizeof few / sizeof *few && !(rules = malloc(count * sizeof *rules)))
        return &decide_stream_no_profile;
    struct decide_stream_profile profile;
    evaluate(set, facts, &profile, rules);
    const struct decide_stream_profile *found = &decide_stream_no_profile;
    if (profile.rule_count) {
        pthread_mutex_lock(&profiles_mutex);
        found = intern(&profile);
        pthread_mutex_unlock(&profiles_mutex);
    }
    if (rules != few)
        free(rules);
    return found;
}
