/* SPDX-License-Identifier: Apache-2.0 */
#include "decision.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

static unsigned groups_of(const struct policy_rule *rule)
{
    unsigned groups = 0;

    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        if (rule->settings[setting].action != POLICY_ACTION_ABSENT) {
            groups |= 1U << policy_setting_group((enum policy_setting)setting);
        }
    }
    return groups;
}

static void take_groups(struct decision *decision, const struct policy_rule *rule, unsigned groups,
                        bool from_stream)
{
    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        const struct policy_setting_value *value = &rule->settings[setting];

        if ((groups & 1U << policy_setting_group((enum policy_setting)setting)) == 0) {
            continue;
        }
        decision->sources[setting] = (struct decision_source){
            .rule = rule,
            .value = value->action != POLICY_ACTION_ABSENT ? value : NULL,
            .from_stream = from_stream,
        };
    }
}

/* On the launch's stream, the rule's settings hold where no kernel rule has that setting. */
static void add_stream_rule(struct decision *decision, const struct policy *policy,
                            const char *name, enum policy_layer layer)
{
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct policy_rule *rule = &policy->rules[i];

        if (rule->section != POLICY_SECTION_STREAM || strcmp(rule->name, name) != 0 ||
            !policy_layers_share_file(rule->layer, layer)) {
            continue;
        }
        for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
            struct decision_source *source = &decision->sources[setting];

            if (source->value == NULL && rule->settings[setting].action != POLICY_ACTION_ABSENT) {
                *source = (struct decision_source){
                    .rule = rule, .value = &rule->settings[setting], .from_stream = true};
            }
        }
    }
}

void decision_make(const struct policy *policy, const struct match_facts *facts,
                   struct decision *decision)
{
    unsigned open = (1U << POLICY_GROUP_COUNT) - 1;
    bool ended = false;

    *decision = (struct decision){
        .rules = memory_allocate(policy->rule_count, sizeof(struct decision_rule))};
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct policy_rule *rule = &policy->rules[i];
        struct decision_rule *row = &decision->rules[decision->rule_count];

        if (rule->section != POLICY_SECTION_KERNEL) {
            continue;
        }
        decision->rule_count++;
        row->rule = rule;
        row->reached = !ended;
        match_rule(rule, facts, &row->verdict);
        if (ended || row->verdict.answer == MATCH_NO) {
            continue;
        }
        if (row->verdict.answer == MATCH_PERHAPS) {
            row->perhaps = groups_of(rule) & open;
            row->may_end = rule->final;
            continue;
        }
        take_groups(decision, rule, groups_of(rule) & open, false);
        open &= ~groups_of(rule);
        ended = rule->final;
    }
    if (facts->stream_rule != NULL) {
        add_stream_rule(decision, policy, facts->stream_rule, facts->stream_layer);
    }
}

void decision_release(struct decision *decision)
{
    free(decision->rules);
    *decision = (struct decision){0};
}
