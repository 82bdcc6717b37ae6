/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/expect.h"

#include <stdlib.h>
#include <string.h>

#include "decide/selectors.h"
#include "policy/expect.h"
#include "policy/print.h"

static int64_t number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

/* Facts are texts. -1: not known. */
static int64_t job_number(const json_t *job, const char *key)
{
    const char *value = text(job, key);
    char *end;
    long long parsed = strtoll(value, &end, 10);
    return end != value && *end == '\0' ? parsed : -1;
}

static bool is_asked(const struct policy_rule *rule, const json_t *report)
{
    const json_t *job = json_object_get(json_object_get(report, "facts"), "job");
    const char *host = text(job, "host");
    const struct decide_process process = {
        .rank = job_number(job, "rank"),
        .local_rank = job_number(job, "local_rank"),
        .world_size = job_number(job, "world_size"),
        .host = host[0] != '\0' ? host : text(json_object_get(report, "process"), "host"),
    };
    return decide_selectors_hold_here(&rule->selectors, &process);
}

/* A fate of launches, and of streams at their creation. */
static int64_t both(const json_t *row, const char *key)
{
    return number(row, key) + number(json_object_get(row, "on_streams"), key);
}

/* How much of it a row of "rules" has. */
static int64_t count_of(const json_t *row, enum policy_quantity quantity)
{
    const json_t *kinds = json_object_get(row, "launches_by_kind");
    switch (quantity) {
    case POLICY_QUANTITY_LAUNCHES:
    case POLICY_QUANTITY_KERNELS:
        return number(row, policy_quantity_text(quantity));
    case POLICY_QUANTITY_EAGER:
    case POLICY_QUANTITY_CAPTURED:
    case POLICY_QUANTITY_NODE:
    case POLICY_QUANTITY_REPLAYED:
        return number(kinds, policy_quantity_text(quantity));
    case POLICY_QUANTITY_STREAMS:
        return number(json_object_get(row, "on_streams"), policy_quantity_text(quantity));
    case POLICY_QUANTITY_APPLIED:
    case POLICY_QUANTITY_ALREADY_SO:
    case POLICY_QUANTITY_KEPT:
        return both(row, policy_quantity_text(quantity));
    case POLICY_QUANTITY_REFUSED:
        return both(row, "refused_total");
    case POLICY_QUANTITY_COUNT:
        break;
    }
    return 0;
}

struct decide_judgement decide_expect_judge(const struct policy *policy,
                                            const struct policy_expectation *expectation,
                                            const json_t *report)
{
    const struct policy_rule *rule = &policy->rules[expectation->rule];
    struct decide_judgement judgement = {.asked = is_asked(rule, report)};
    const json_t *row;
    size_t i;
    json_array_foreach(json_object_get(report, "rules"), i, row)
    {
        /* A site's rule may have the same name. */
        if (json_object_get(row, "layer") == NULL && strcmp(text(row, "name"), rule->name) == 0 &&
            strcmp(text(row, "section"), policy_section_text(rule->section)) == 0)
            judgement.count += count_of(row, expectation->quantity);
    }
    judgement.held = policy_expectation_holds(expectation, judgement.count);
    return judgement;
}

json_t *decide_expect_json(const struct policy *policy,
                           const struct policy_expectation *expectation,
                           const struct decide_judgement *judgement)
{
    const struct policy_rule *rule = &policy->rules[expectation->rule];
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:b, s:I, s:o}", "rule_section",
                     policy_section_text(rule->section), "rule", rule->name, "quantity",
                     policy_quantity_text(expectation->quantity), "comparison",
                     policy_comparison_text(expectation->comparison), "number",
                     (json_int_t)expectation->number, "line", (json_int_t)expectation->place.line,
                     "asked", judgement->asked, "count", (json_int_t)judgement->count, "held",
                     judgement->asked ? json_boolean(judgement->held) : json_null());
}
