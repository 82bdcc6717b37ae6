/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "report/json_parts.h"

/* What became of launches, or streams, that a rule decided on. */
struct fates {
    uint64_t total;
    uint64_t outcomes[REPORT_OUTCOME_COUNT];
    uint64_t reasons[REPORT_REASON_COUNT]; /* of refusals */
};

struct rule_sum {
    struct fates at_launches, on_streams;
    uint64_t launches[REPORT_LAUNCH_KIND_COUNT];
    uint64_t kernels;
    uint32_t last_kernel; /* the last one counted, plus one */
};

/* A launch or stream counts once for each outcome, and each reason, that one of the rule's settings
 * had at it: no number exceeds the total. */
static void add_fates(struct fates *fates, const struct report_result *results, uint32_t settings,
                      uint16_t rule, uint64_t count)
{
    bool outcomes[REPORT_OUTCOME_COUNT] = {false}, reasons[REPORT_REASON_COUNT] = {false};
    for (uint32_t setting = 0; setting < settings; setting++) {
        const struct report_result *result = &results[setting];
        if (result->rule != rule || result->outcome >= REPORT_OUTCOME_COUNT)
            continue;
        outcomes[result->outcome] = true;
        if (result->outcome == REPORT_OUTCOME_REFUSED && result->reason < REPORT_REASON_COUNT)
            reasons[result->reason] = true;
    }
    for (size_t i = 0; i < REPORT_OUTCOME_COUNT; i++)
        fates->outcomes[i] += outcomes[i] ? count : 0;
    for (size_t i = 0; i < REPORT_REASON_COUNT; i++)
        fates->reasons[i] += reasons[i] ? count : 0;
    fates->total += count;
}

static bool named_before(const struct report_result *results, uint32_t setting)
{
    for (uint32_t before = 0; before < setting; before++) {
        if (results[before].rule == results[setting].rule)
            return true;
    }
    return false;
}

static void add_cells(struct rule_sum *rule_sums, const struct report_view *view)
{
    const struct report_counts *counts = &view->header.counts;
    for (uint32_t cell = 0; cell < counts->cells; cell++) {
        const struct report_result *results = view->cells[cell].results;
        uint64_t total = report_launch_sum(view->launches[cell]);
        for (uint32_t setting = 0; setting < counts->settings && total != 0; setting++) {
            uint16_t rule = results[setting].rule;
            if (rule >= counts->rules || named_before(results, setting))
                continue;
            add_fates(&rule_sums[rule].at_launches, results, counts->settings, rule, total);
            report_launch_add(rule_sums[rule].launches, view->launches[cell]);
        }
    }
}

static void add_streams(struct rule_sum *rule_sums, const struct report_view *view)
{
    const struct report_counts *counts = &view->header.counts;
    for (uint32_t i = 0; i < counts->streams; i++) {
        const struct report_stream_row *row = &view->streams[i];
        bool matched = false; /* the rule that the stream matched stands among its settings' */
        for (uint32_t setting = 0; setting < counts->settings; setting++) {
            uint16_t rule = row->results[setting].rule;
            if (rule >= counts->rules || named_before(row->results, setting))
                continue;
            matched = matched || rule == row->rule;
            add_fates(&rule_sums[rule].on_streams, row->results, counts->settings, rule,
                      row->count);
        }
        if (!matched && row->rule < counts->rules)
            rule_sums[row->rule].on_streams.total += row->count;
    }
}

/* Sums are ordered by kernel, so a rule meets a kernel's sums one after the other. */
static void add_kernels(struct rule_sum *rule_sums, uint32_t rules,
                        const struct report_setting_sum *sums, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (sums[i].rule >= rules)
            continue;
        struct rule_sum *rule = &rule_sums[sums[i].rule];
        if (rule->last_kernel != sums[i].kernel + 1)
            rule->kernels++;
        rule->last_kernel = sums[i].kernel + 1;
    }
}

static bool add_fates_json(json_t *object, const struct fates *fates)
{
    json_t *refused = json_object();
    int failed = json_object_set_new(object, "applied",
                                     report_json_count(fates->outcomes[REPORT_OUTCOME_APPLIED]));
    failed |= json_object_set_new(object, "already_so",
                                  report_json_count(fates->outcomes[REPORT_OUTCOME_ALREADY_SO]));
    failed |= json_object_set_new(object, "kept",
                                  report_json_count(fates->outcomes[REPORT_OUTCOME_KEPT]));
    for (unsigned reason = 0; reason < REPORT_REASON_COUNT; reason++) {
        if (fates->reasons[reason] != 0)
            failed |= json_object_set_new(refused, report_reason_text(reason),
                                          report_json_count(fates->reasons[reason]));
    }
    failed |= json_object_set_new(object, "refused", refused);
    return failed == 0;
}

static json_t *streams_json(const struct fates *fates)
{
    json_t *object = json_pack("{s:o}", "streams", report_json_count(fates->total));
    if (object != NULL && add_fates_json(object, fates))
        return object;
    json_decref(object);
    return NULL;
}

static json_t *rule_json(struct report_view *view, const struct report_rule_row *row,
                         const struct rule_sum *sum)
{
    bool matched = sum->on_streams.total != 0 || sum->at_launches.total != 0;
    json_t *object = json_pack(
        "{s:o, s:o, s:I, s:b, s:o, s:o, s:o}", "section", report_json_view_text(view, row->section),
        "name", report_json_view_text(view, row->name), "line", (json_int_t)row->line, "matched",
        matched, "kernels", report_json_count(sum->kernels), "launches",
        report_json_count(sum->at_launches.total), "launches_by_kind",
        report_json_kinds(sum->launches));
    if (object != NULL && add_fates_json(object, &sum->at_launches) &&
        json_object_set_new(object, "on_streams", streams_json(&sum->on_streams)) == 0)
        return object;
    json_decref(object);
    return NULL;
}

json_t *report_json_rules(struct report_view *view, const struct report_setting_sum *sums,
                          size_t count)
{
    uint32_t rules = view->header.counts.rules;
    struct rule_sum *rule_sums = calloc(rules + 1u, sizeof *rule_sums);
    if (rule_sums == NULL)
        return NULL;
    add_cells(rule_sums, view);
    add_streams(rule_sums, view);
    add_kernels(rule_sums, rules, sums, count);
    json_t *array = json_array();
    for (uint32_t rule = 0; rule < rules && array != NULL; rule++)
        array = report_json_append(array, rule_json(view, &view->rules[rule], &rule_sums[rule]));
    free(rule_sums);
    return array;
}
