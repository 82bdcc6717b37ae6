/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/rules.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "decide/live.h"
#include "decide/selectors.h"

static pthread_mutex_t plans_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct decide_plan *plans; /* of earlier sets too: their rules are others */

/* Serves when memory is short. */
static struct decide_plan no_plan;

/* ---- The start ---------------------------------------------------------------------------------
 */

static unsigned needs_of(const struct policy_selectors *selectors)
{
    unsigned needs = 0;
    if (selectors->grid_blocks.count || selectors->block_threads.count ||
        selectors->shared_memory.count)
        needs |= DECIDE_NEED_SHAPE;
    if (selectors->captured != POLICY_CHOICE_ANY)
        needs |= DECIDE_NEED_CAPTURED;
    if (selectors->device.count)
        needs |= DECIDE_NEED_DEVICE;
    if (selectors->stream.count)
        needs |= DECIDE_NEED_STREAM;
    if (selectors->launch_stream.count)
        needs |= DECIDE_NEED_ORDER;
    if (selectors->arm.count)
        needs |= DECIDE_NEED_ARM;
    return needs;
}

static unsigned groups_of(const struct policy_rule *rule)
{
    unsigned groups = 0;
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
        if (rule->settings[setting].action != POLICY_ACTION_ABSENT)
            groups |= 1u << policy_setting_group(setting);
    return groups;
}

/*
 * The numbers of the stream rules that a kernel rule names. A name stands for the rules of that
 * name in earlier policies too: streams that were made under those are still there. False when
 * memory is short.
 */
static bool find_streams(struct decide_rule *rule)
{
    const struct policy_globs *names = &rule->rule->selectors.stream;
    size_t limit = names->count ? decide_rule_numbers() : 0;
    uint16_t *streams = limit ? calloc(limit, sizeof *streams) : NULL;
    if (limit && !streams)
        return false;
    rule->streams = streams;
    for (size_t number = 0; number < limit; number++) {
        const struct policy_rule *other = decide_rule_numbered((uint16_t)number);
        if (!other || other->section != POLICY_SECTION_STREAM ||
            !policy_layers_share_file(other->layer, rule->rule->layer))
            continue;
        for (size_t i = 0; i < names->count; i++)
            if (strcmp(other->name, names->patterns[i]) == 0) {
                streams[rule->stream_count++] = (uint16_t)number;
                break;
            }
    }
    return true;
}

static void prepare(struct decide_rule *prepared, const struct policy_rule *rule)
{
    prepared->rule = rule;
    prepared->needs = needs_of(&rule->selectors);
    prepared->groups = groups_of(rule);
    prepared->by_library = rule->selectors.library.count || rule->selectors.not_library.count;
}

void decide_rules_start(void)
{
    pthread_mutex_init(&plans_mutex, NULL);
}

bool decide_rules_make(struct decide_rule_set *set, const struct policy *policy,
                       const struct decide_process *process)
{
    size_t limit = policy ? policy->rule_count : 0;
    set->rules = calloc(limit + 1, sizeof *set->rules);
    for (size_t i = 0; set->rules && i < limit; i++) {
        const struct policy_rule *rule = &policy->rules[i];
        if (rule->section != POLICY_SECTION_KERNEL ||
            !decide_selectors_hold_here(&rule->selectors, process) ||
            (rule->selectors.arm.count && !decide_live_arms))
            continue;
        struct decide_rule *prepared = &set->rules[set->rule_count++];
        prepare(prepared, rule);
        if (!find_streams(prepared))
            return false;
    }
    return set->rules != NULL;
}

/* ---- Plans -------------------------------------------------------------------------------------
 */

/*
 * Copies the rules that can come to anything: a rule that asks nothing about the launch settles its
 * groups for all launches, so later rules for these groups cannot win. Returns their number.
 */
static size_t reachable(struct decide_rule *const *from, size_t count, struct decide_rule **to)
{
    unsigned settled = 0;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct decide_rule *rule = from[i];
        if ((rule->groups & ~settled) || (rule->rule->final && rule->needs))
            to[kept++] = rule;
        if (rule->needs)
            continue;
        settled |= rule->groups;
        if (rule->rule->final || settled == (1u << POLICY_GROUP_COUNT) - 1)
            break;
    }
    return kept;
}

static struct decide_plan *plan_new(struct decide_rule *const *rules, size_t count)
{
    struct decide_plan *plan = calloc(1, sizeof *plan + count * sizeof plan->rules[0]);
    if (!plan)
        return NULL;
    plan->count = (uint16_t)count;
    for (size_t i = 0; i < count; i++) {
        plan->rules[i] = rules[i];
        plan->needs |= rules[i]->needs;
    }
    return plan;
}

static struct decide_plan *plan_intern(struct decide_rule *const *rules, size_t count)
{
    struct decide_plan *plan;
    pthread_mutex_lock(&plans_mutex);
    for (plan = plans; plan; plan = plan->next)
        if (plan->count == count &&
            (count == 0 || memcmp(plan->rules, rules, count * sizeof *rules) == 0))
            break;
    if (!plan && (plan = plan_new(rules, count))) {
        plan->next = plans;
        plans = plan;
    }
    pthread_mutex_unlock(&plans_mutex);
    return plan ? plan : &no_plan;
}

struct decide_plan *decide_plan_of(struct decide_rule *const *rules, size_t count)
{
    struct decide_rule *few[32];
    struct decide_rule **kept = few;
    if (count > sizeof few / sizeof *few && !(kept = malloc(count * sizeof *kept)))
        return &no_plan;
    struct decide_plan *plan = plan_intern(kept, reachable(rules, count, kept));
    if (kept != few)
        free(kept);
    return plan;
}
