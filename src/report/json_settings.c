/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "report/json_parts.h"

uint64_t report_launch_sum(const uint64_t launches[REPORT_LAUNCH_KIND_COUNT])
{
    uint64_t sum = 0;
    for (size_t kind = 0; kind < REPORT_LAUNCH_KIND_COUNT; kind++)
        sum += launches[kind];
    return sum;
}

void report_launch_add(uint64_t sum[REPORT_LAUNCH_KIND_COUNT],
                       const uint64_t launches[REPORT_LAUNCH_KIND_COUNT])
{
    for (size_t kind = 0; kind < REPORT_LAUNCH_KIND_COUNT; kind++)
        sum[kind] += launches[kind];
}

json_t *report_json_kinds(const uint64_t launches[REPORT_LAUNCH_KIND_COUNT])
{
    return json_pack("{s:o, s:o, s:o, s:o}", "eager",
                     report_json_count(launches[REPORT_LAUNCH_EAGER]), "captured",
                     report_json_count(launches[REPORT_LAUNCH_CAPTURED]), "node",
                     report_json_count(launches[REPORT_LAUNCH_NODE]), "replayed",
                     report_json_count(launches[REPORT_LAUNCH_REPLAYED]));
}

bool report_result_decided(const struct report_result *result)
{
    return result->outcome != REPORT_OUTCOME_NONE || result->rule != REPORT_RULE_NONE;
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

static size_t merge_equal(struct report_setting_sum *sums, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && compare_sums(&sums[kept - 1], &sums[i]) == 0)
            report_launch_add(sums[kept - 1].launches, sums[i].launches);
        else
            sums[kept++] = sums[i];
    }
    return kept;
}

static struct report_setting_sum sum_of(const struct report_view *view, uint32_t cell,
                                        uint16_t setting)
{
    const struct report_counts *counts = &view->header.counts;
    const struct report_cell_row *row = &view->cells[cell];
    const struct report_result *result = &row->results[setting];
    struct report_setting_sum sum = {
        .kernel = row->kernel < counts->kernels ? row->kernel : 0,
        .setting = setting,
        .rule = result->rule < counts->rules ? result->rule : REPORT_RULE_NONE,
        .outcome = result->outcome,
        .reason = result->reason,
        .detail = result->reason == REPORT_REASON_REFUSED_BY_DRIVER ? row->detail : 0};
    report_launch_add(sum.launches, view->launches[cell]);
    return sum;
}

struct report_setting_sum *report_setting_sums(const struct report_view *view, size_t *count)
{
    const struct report_counts *counts = &view->header.counts;
    size_t total = 0;
    struct report_setting_sum *sums =
        malloc(((size_t)counts->cells * counts->settings + 1) * sizeof *sums);
    if (sums == NULL)
        return NULL;
    for (uint32_t cell = 0; cell < counts->cells; cell++) {
        if (report_launch_sum(view->launches[cell]) == 0)
            continue;
        for (uint16_t setting = 0; setting < counts->settings; setting++) {
            if (report_result_decided(&view->cells[cell].results[setting]))
                sums[total++] = sum_of(view, cell, setting);
        }
    }
    qsort(sums, total, sizeof *sums, compare_sums);
    *count = merge_equal(sums, total);
    return sums;
}

json_t *report_json_result(struct report_view *view, size_t setting,
                           const struct report_result *result)
{
    bool ruled = result->rule < view->header.counts.rules;
    const struct report_rule_row *rule = ruled ? &view->rules[result->rule] : NULL;
    return json_pack(
        "{s:o, s:o, s:o, s:s, s:s}", "setting",
        report_json_view_text(view, view->header.setting_names[setting]), "rule_section",
        ruled ? report_json_view_text(view, rule->section) : json_null(), "rule",
        ruled ? report_json_view_text(view, rule->name) : json_null(), "outcome",
        report_outcome_text(result->outcome), "reason", report_reason_text(result->reason));
}
