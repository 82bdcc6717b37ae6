/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "report/json.h"

uint64_t report_launch_sum(const uint64_t launches[REPORT_LAUNCH_KIND_COUNT])
{
    uint64_t sum = 0;
    for (size_t kind = 0; kind < REPORT_LAUNCH_KIND_COUNT; kind++)
        sum += launches[kind];
    return sum;
}

json_t *report_json_kinds(const uint64_t launches[REPORT_LAUNCH_KIND_COUNT])
{
    return json_pack("{s:o, s:o, s:o, s:o}", "eager",
                     report_json_count(launches[REPORT_LAUNCH_EAGER]), "captured",
                     report_json_count(launches[REPORT_LAUNCH_CAPTURED]), "node",
                     report_json_count(launches[REPORT_LAUNCH_NODE]), "replayed",
                     report_json_count(launches[REPORT_LAUNCH_REPLAYED]));
}

static int compare(uint64_t one, uint64_t other)
{
    return (one > other) - (one < other);
}

static int compare_sums(const void *one_sum, const void *other_sum)
{
    const struct report_setting_sum *one = one_sum, *other = other_sum;
    int order = compare(one->kernel, other->kernel);
    if (order == 0)
        order = compare(one->setting, other->setting);
    if (order == 0)
        order = compare(one->rule, other->rule);
    if (order == 0)
        order = compare(one->outcome, other->outcome);
    if (order == 0)
        order = compare(one->reason, other->reason);
    if (order == 0)
        order = compare(one->detail, other->detail);
    return order;
}

static bool decided(const struct report_result *result)
{
    return result->outcome != REPORT_OUTCOME_NONE || result->rule != REPORT_RULE_NONE;
}

static void add_launches(uint64_t *sum, const uint64_t *launches)
{
    for (size_t kind = 0; kind < REPORT_LAUNCH_KIND_COUNT; kind++)
        sum[kind] += launches[kind];
}

static size_t merge_equal(struct report_setting_sum *sums, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && compare_sums(&sums[kept - 1], &sums[i]) == 0)
            add_launches(sums[kept - 1].launches, sums[i].launches);
        else
            sums[kept++] = sums[i];
    }
    return kept;
}

struct report_setting_sum *report_setting_sums(const struct report_view *view, size_t *count)
{
    const struct report_counts *counts = &view->header.counts;
    size_t total = 0;
    struct report_setting_sum *sums =
        calloc((size_t)counts->cells * REPORT_SETTING_LIMIT + 1, sizeof *sums);
    if (sums == NULL)
        return NULL;
    for (uint32_t cell = 0; cell < counts->cells; cell++) {
        const struct report_cell_row *row = &view->cells[cell];
        if (report_launch_sum(view->launches[cell]) == 0)
            continue;
        for (uint16_t setting = 0; setting < counts->settings; setting++) {
            const struct report_result *result = &row->results[setting];
            if (!decided(result))
                continue;
            struct report_setting_sum *sum = &sums[total++];
            sum->kernel = row->kernel < counts->kernels ? row->kernel : 0;
            sum->setting = setting;
            sum->rule = result->rule < counts->rules ? result->rule : REPORT_RULE_NONE;
            sum->outcome = result->outcome;
            sum->reason = result->reason;
            sum->detail = result->reason == REPORT_REASON_REFUSED_BY_DRIVER ? row->detail : 0;
            add_launches(sum->launches, view->launches[cell]);
        }
    }
    qsort(sums, total, sizeof *sums, compare_sums);
    *count = merge_equal(sums, total);
    return sums;
}

bool report_json_add_result(json_t *object, const struct report_view *view, size_t setting,
                            const struct report_result *result)
{
    const struct report_rule_row *rule =
        result->rule < view->header.counts.rules ? &view->rules[result->rule] : NULL;
    int failed = json_object_set_new(
        object, "setting",
        report_json_text(report_view_text(view, view->header.setting_names[setting])));
    failed |= json_object_set_new(
        object, "rule_section",
        rule == NULL ? json_null() : report_json_text(report_view_text(view, rule->section)));
    failed |= json_object_set_new(
        object, "rule",
        rule == NULL ? json_null() : report_json_text(report_view_text(view, rule->name)));
    failed |=
        json_object_set_new(object, "outcome", json_string(report_outcome_text(result->outcome)));
    failed |=
        json_object_set_new(object, "reason", json_string(report_reason_text(result->reason)));
    return failed == 0;
}

/* What became of launches that a rule decided on. */
struct rule_sum {
    uint64_t launches[REPORT_LAUNCH_KIND_COUNT];
    uint64_t outcomes[REPORT_OUTCOME_COUNT];
    uint64_t reasons[REPORT_REASON_COUNT]; /* of refusals */
    uint64_t streams, kernels;
    uint32_t last_kernel; /* counted already, plus one */
};

/* A launch counts once for each outcome that one of the rule's settings had at it. */
static void add_cell(struct rule_sum *sum, const struct report_cell_row *row, uint32_t settings,
                     uint16_t rule, const uint64_t *launches)
{
    bool outcomes[REPORT_OUTCOME_COUNT] = {false}, reasons[REPORT_REASON_COUNT] = {false};
    uint64_t total = report_launch_sum(launches);
    for (uint32_t setting = 0; setting < settings; setting++) {
        const struct report_result *result = &row->results[setting];
        if (result->rule != rule || result->outcome >= REPORT_OUTCOME_COUNT)
            continue;
        outcomes[result->outcome] = true;
        if (result->outcome == REPORT_OUTCOME_REFUSED && result->reason < REPORT_REASON_COUNT)
            reasons[result->reason] = true;
    }
    for (size_t i = 0; i < REPORT_OUTCOME_COUNT; i++)
        sum->outcomes[i] += outcomes[i] ? total : 0;
    for (size_t i = 0; i < REPORT_REASON_COUNT; i++)
        sum->reasons[i] += reasons[i] ? total : 0;
    add_launches(sum->launches, launches);
}

static bool named_before(const struct report_cell_row *row, uint32_t setting)
{
    for (uint32_t before = 0; before < setting; before++) {
        if (row->results[before].rule == row->results[setting].rule)
            return true;
    }
    return false;
}

static void add_cells(struct rule_sum *rule_sums, const struct report_view *view)
{
    const struct report_counts *counts = &view->header.counts;
    for (uint32_t cell = 0; cell < counts->cells; cell++) {
        const struct report_cell_row *row = &view->cells[cell];
        if (report_launch_sum(view->launches[cell]) == 0)
            continue;
        for (uint32_t setting = 0; setting < counts->settings; setting++) {
            uint16_t rule = row->results[setting].rule;
            if (rule < counts->rules && !named_before(row, setting))
                add_cell(&rule_sums[rule], row, counts->settings, rule, view->launches[cell]);
        }
    }
}

/* Streams count for the rule that matched them and for those whose settings they had. */
static void add_streams(struct rule_sum *rule_sums, const struct report_view *view)
{
    const struct report_counts *counts = &view->header.counts;
    for (uint32_t i = 0; i < counts->streams; i++) {
        uint32_t rule = view->streams[i].rule;
        if (rule < counts->rules)
            rule_sums[rule].streams += view->streams[i].count;
    }
}

static json_t *refusals(const struct rule_sum *sum)
{
    json_t *object = json_object();
    int failed = object == NULL;
    for (unsigned reason = 0; reason < REPORT_REASON_COUNT && !failed; reason++) {
        if (sum->reasons[reason] != 0)
            failed = json_object_set_new(object, report_reason_text(reason),
                                         report_json_count(sum->reasons[reason]));
    }
    if (!failed)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *rule_json(const struct report_view *view, const struct report_rule_row *row,
                         const struct rule_sum *sum)
{
    return json_pack(
        "{s:o, s:o, s:I, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "section",
        report_json_text(report_view_text(view, row->section)), "name",
        report_json_text(report_view_text(view, row->name)), "line", (json_int_t)row->line,
        "matched", sum->streams != 0 || report_launch_sum(sum->launches) != 0, "kernels",
        report_json_count(sum->kernels), "streams", report_json_count(sum->streams), "launches",
        report_json_count(report_launch_sum(sum->launches)), "launches_by_kind",
        report_json_kinds(sum->launches), "applied",
        report_json_count(sum->outcomes[REPORT_OUTCOME_APPLIED]), "already_so",
        report_json_count(sum->outcomes[REPORT_OUTCOME_ALREADY_SO]), "kept",
        report_json_count(sum->outcomes[REPORT_OUTCOME_KEPT]), "refused", refusals(sum));
}

json_t *report_json_rules(const struct report_view *view, const struct report_setting_sum *sums,
                          size_t count)
{
    uint32_t rules = view->header.counts.rules;
    json_t *array = json_array();
    struct rule_sum *rule_sums = calloc(rules + 1u, sizeof *rule_sums);
    int failed = array == NULL || rule_sums == NULL;
    if (!failed) {
        add_cells(rule_sums, view);
        add_streams(rule_sums, view);
        for (size_t i = 0; i < count; i++) {
            if (sums[i].rule >= rules || rule_sums[sums[i].rule].last_kernel == sums[i].kernel + 1)
                continue;
            rule_sums[sums[i].rule].last_kernel = sums[i].kernel + 1;
            rule_sums[sums[i].rule].kernels++;
        }
        for (uint32_t rule = 0; rule < rules && !failed; rule++)
            failed =
                json_array_append_new(array, rule_json(view, &view->rules[rule], &rule_sums[rule]));
    }
    free(rule_sums);
    if (!failed)
        return array;
    json_decref(array);
    return NULL;
}
