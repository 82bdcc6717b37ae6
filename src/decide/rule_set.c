/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/rule_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decide/function.h"
#include "decide/rules.h"
#include "decide/stream_rules.h"
#include "policy/print.h"

/* In force before the start, and where memory is short. */
static const struct decide_rule_set no_rules;

_Atomic(const struct decide_rule_set *) decide_rule_set_current = &no_rules;
_Atomic(const struct decide_rule_set *) decide_rule_set_streams = &no_rules;

/* Written before a set that names the number is in force. */
static _Atomic(const struct policy_rule *) numbered[REPORT_RULE_NONE];
static atomic_size_t number_count;

const struct policy_rule *decide_rule_numbered(uint16_t number)
{
    return atomic_load_explicit(&numbered[number], memory_order_acquire);
}

size_t decide_rule_numbers(void)
{
    return atomic_load_explicit(&number_count, memory_order_acquire);
}

/* ---- Numbers -----------------------------------------------------------------------------------
 */

/* A rule in the policy language; NULL when memory is short. */
static char *text_of(const struct policy_rule *rule)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    policy_rule_print(stream, rule);
    bool whole = !ferror(stream);
    if (fclose(stream) == 0 && whole)
        return text;
    free(text);
    return NULL;
}

static bool say_the_same(const struct policy_rule *one, const struct policy_rule *other)
{
    if (!one || one->section != other->section || one->layer != other->layer ||
        strcmp(one->name, other->name) != 0)
        return false;
    char *left = text_of(one), *right = text_of(other);
    bool same = left && right && strcmp(left, right) == 0;
    free(left);
    free(right);
    return same;
}

/* The latest: rules come back. count: of the numbers that may be its. */
static size_t find_same(const struct policy_rule *rule, size_t count)
{
    size_t number = count;
    while (number > 0 && !say_the_same(decide_rule_numbered((uint16_t)(number - 1)), rule))
        number--;
    return number > 0 ? number - 1 : SIZE_MAX;
}

struct report_rule_name decide_rule_name(const struct policy *policy,
                                         const struct policy_rule *rule)
{
    return (struct report_rule_name){
        .section = rule->section == POLICY_SECTION_STREAM ? "stream" : "kernel",
        .name = rule->name,
        .line = rule->place.line,
        .layer = rule->layer != POLICY_LAYER_JOB ? policy_layer_name(rule->layer) : NULL,
        .file = policy_layer_path(policy, rule->layer),
    };
}

static bool enter_new(const struct policy *policy, struct policy_rule *rule)
{
    const struct report_rule_name name = decide_rule_name(policy, rule);
    size_t number = decide_rule_numbers();
    if (number >= POLICY_RULE_LIMIT || !report_rule((uint32_t)number, &name))
        return false;
    rule->index = (uint16_t)number;
    atomic_store_explicit(&numbered[number], rule, memory_order_release);
    atomic_store_explicit(&number_count, number + 1, memory_order_release);
    return true;
}

/* The policy is still this caller's alone; its rules become constant when they are in force. */
bool decide_rule_set_number(struct policy *policy)
{
    struct policy_rule *rules = (struct policy_rule *)(uintptr_t)policy->rules;
    const size_t before = decide_rule_numbers();
    for (size_t i = 0; i < policy->rule_count; i++) {
        size_t number = find_same(&rules[i], before);
        if (number != SIZE_MAX)
            rules[i].index = (uint16_t)number;
        else if (!enter_new(policy, &rules[i]))
            return false;
    }
    return true;
}

/* ---- Sets --------------------------------------------------------------------------------------
 */

struct decide_rule_set *decide_rule_set_make(const struct policy *policy,
                                             const struct decide_process *process,
                                             enum policy_mode mode)
{
    struct decide_rule_set *set = calloc(1, sizeof *set);
    if (set && decide_rules_make(set, policy, process) &&
        decide_stream_rules_make(set, policy, process, mode))
        return set;
    /* The rules of half a set are not freed: this is not worth the code. */
    free(set);
    return NULL;
}

void decide_rule_set_enforce(struct decide_rule_set *set)
{
    set->earlier = decide_rule_set_now();
    set->places = set->needs.partitions || set->earlier->places;
    atomic_store_explicit(&decide_rule_set_current, set, memory_order_release);
    decide_function_forget_decisions();
    atomic_store_explicit(&decide_rule_set_streams, set, memory_order_release);
}

void decide_rule_set_start(const struct policy *policy, const struct decide_process *process,
                           enum policy_mode mode)
{
    size_t count = decide_rule_numbers();
    /* What was decided by earlier rules is forgotten, and the streams that they were about are no
     * more; but their numbers stay theirs in the report. */
    for (size_t number = 0; number < count; number++)
        atomic_store_explicit(&numbered[number], NULL, memory_order_relaxed);
    for (size_t i = 0; policy && i < policy->rule_count; i++) {
        const struct policy_rule *rule = &policy->rules[i];
        atomic_store_explicit(&numbered[rule->index], rule, memory_order_release);
        if (count <= rule->index)
            count = (size_t)rule->index + 1;
    }
    atomic_store_explicit(&number_count, count, memory_order_release);

    struct decide_rule_set *set = decide_rule_set_make(policy, process, mode);
    if (set) {
        set->earlier = decide_rule_set_now();
        set->places = set->needs.partitions; /* no stream is left that was made before */
    } else {
        report_note("error", "the rules of the policy are not applied: out of memory");
    }
    atomic_store_explicit(&decide_rule_set_current, set ? set : &no_rules, memory_order_release);
    atomic_store_explicit(&decide_rule_set_streams, set ? set : &no_rules, memory_order_release);
}
