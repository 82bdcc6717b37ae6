/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels, rules and settings in the report: all that is made from cells and their launches. */
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

/* Rules of the job's own policy have none. */
json_t *report_json_add_layer(json_t *object, struct report_view *view, const char *key,
                              const struct report_rule_row *row)
{
    if (row->layer == 0 || object == NULL ||
        json_object_set_new(object, key, report_json_view_text(view, row->layer)) == 0)
        return object;
    json_decref(object);
    return NULL;
}

json_t *report_json_result(struct report_view *view, size_t setting,
                           const struct report_result *result)
{
    bool ruled = result->rule < view->header.counts.rules;
    const struct report_rule_row *rule = ruled ? &view->rules[result->rule] : NULL;
    json_t *object = json_pack(
        "{s:o, s:o, s:o, s:s, s:s}", "setting",
        report_json_view_text(view, view->header.setting_names[setting]), "rule_section",
        ruled ? report_json_view_text(view, rule->section) : json_null(), "rule",
        ruled ? report_json_view_text(view, rule->name) : json_null(), "outcome",
        report_outcome_text(result->outcome), "reason", report_reason_text(result->reason));
    return !ruled ? object : report_json_add_layer(object, view, "rule_layer", rule);
}

/* Rules. */

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
    failed |= json_object_set_new(object, "refused_total",
                                  report_json_count(fates->outcomes[REPORT_OUTCOME_REFUSED]));
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
    if (row->file != 0)
        json_object_set_new(object, "file", report_json_view_text(view, row->file));
    object = report_json_add_layer(object, view, "layer", row);
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

/* Kernels. */

struct kernel_sum {
    uint32_t kernel;
    uint64_t total;
    uint64_t unmatched; /* launches that no rule decided on */
    uint64_t launches[REPORT_LAUNCH_KIND_COUNT];
};

static bool cell_decided(const struct report_cell_row *row, uint32_t settings)
{
    for (uint32_t setting = 0; setting < settings; setting++) {
        if (report_result_decided(&row->results[setting]))
            return true;
    }
    return false;
}

static struct kernel_sum *kernel_sums(const struct report_view *view)
{
    const struct report_counts *counts = &view->header.counts;
    struct kernel_sum *sums = calloc(counts->kernels + 1u, sizeof *sums);
    if (sums == NULL)
        return NULL;
    for (uint32_t kernel = 0; kernel < counts->kernels; kernel++)
        sums[kernel].kernel = kernel;
    for (uint32_t cell = 0; cell < counts->cells; cell++) {
        const struct report_cell_row *row = &view->cells[cell];
        struct kernel_sum *sum = &sums[row->kernel < counts->kernels ? row->kernel : 0];
        uint64_t total = report_launch_sum(view->launches[cell]);
        report_launch_add(sum->launches, view->launches[cell]);
        sum->total += total;
        if (!cell_decided(row, counts->settings))
            sum->unmatched += total;
    }
    return sums;
}

static int most_first(uint64_t one, uint64_t other, uint32_t one_kernel, uint32_t other_kernel)
{
    if (one != other)
        return one < other ? 1 : -1;
    return one_kernel < other_kernel ? -1 : one_kernel > other_kernel;
}

static int most_launched_first(const void *one_sum, const void *other_sum)
{
    const struct kernel_sum *one = one_sum, *other = other_sum;
    return most_first(one->total, other->total, one->kernel, other->kernel);
}

static int most_unmatched_first(const void *one_sum, const void *other_sum)
{
    const struct kernel_sum *one = one_sum, *other = other_sum;
    return most_first(one->unmatched, other->unmatched, one->kernel, other->kernel);
}

static json_t *range_json(uint64_t least, uint64_t most)
{
    return json_pack("[o, o]", report_json_count(least), report_json_count(most));
}

static json_t *shapes_json(const struct report_kernel_row *row)
{
    if (row->grid_blocks_least > row->grid_blocks_most)
        return json_null();
    return json_pack("{s:o, s:o, s:o}", "grid_blocks",
                     range_json(row->grid_blocks_least, row->grid_blocks_most), "block_threads",
                     range_json(row->block_threads_least, row->block_threads_most), "shared_memory",
                     range_json(row->shared_memory_least, row->shared_memory_most));
}

static json_t *setting_json(struct report_view *view, const struct report_setting_sum *sum)
{
    const struct report_result result = {
        .outcome = sum->outcome, .reason = sum->reason, .rule = sum->rule};
    json_t *object = report_json_result(view, sum->setting, &result);
    int failed = json_object_set_new(object, "detail", json_integer(sum->detail));
    failed |= json_object_set_new(object, "launches",
                                  report_json_count(report_launch_sum(sum->launches)));
    failed |= json_object_set_new(object, "launches_by_kind", report_json_kinds(sum->launches));
    if (!failed)
        return object;
    json_decref(object);
    return NULL;
}

static size_t first_sum(uint32_t kernel, const struct report_setting_sum *sums, size_t count)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sums[middle].kernel < kernel)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static json_t *settings_json(struct report_view *view, uint32_t kernel,
                             const struct report_setting_sum *sums, size_t count)
{
    json_t *array = json_array();
    for (size_t i = first_sum(kernel, sums, count);
         i < count && sums[i].kernel == kernel && array != NULL; i++)
        array = report_json_append(array, setting_json(view, &sums[i]));
    return array;
}

static json_t *kernel_json(struct report_view *view, const struct kernel_sum *kernel,
                           const struct report_setting_sum *sums, size_t count)
{
    const struct report_kernel_row *row = &view->kernels[kernel->kernel];
    return json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "name",
                     report_json_view_text(view, row->name), "signature",
                     report_json_view_text(view, row->signature), "mangled",
                     report_json_view_text(view, row->mangled), "library",
                     report_json_view_text(view, row->library), "demangled", row->demangled != 0,
                     "launches", report_json_count(kernel->total), "launches_by_kind",
                     report_json_kinds(kernel->launches), "shapes", shapes_json(row), "settings",
                     settings_json(view, kernel->kernel, sums, count));
}

static json_t *kernels_json(struct report_view *view, struct kernel_sum *kernels,
                            const struct report_setting_sum *sums, size_t count)
{
    uint32_t total = view->header.counts.kernels;
    json_t *array = json_array();
    qsort(kernels, total, sizeof *kernels, most_launched_first);
    for (uint32_t i = 0; i < total && kernels[i].total != 0 && array != NULL; i++)
        array = report_json_append(array, kernel_json(view, &kernels[i], sums, count));
    return array;
}

static json_t *unmatched_json(struct report_view *view, struct kernel_sum *kernels)
{
    uint32_t total = view->header.counts.kernels;
    json_t *array = json_array();
    qsort(kernels, total, sizeof *kernels, most_unmatched_first);
    for (uint32_t i = 0; i < total && kernels[i].unmatched != 0 && array != NULL; i++) {
        const struct report_kernel_row *row = &view->kernels[kernels[i].kernel];
        array = report_json_append(
            array, json_pack("{s:o, s:o, s:o}", "name", report_json_view_text(view, row->name),
                             "library", report_json_view_text(view, row->library), "launches",
                             report_json_count(kernels[i].unmatched)));
    }
    return array;
}

bool report_json_add_kernels(json_t *report, struct report_view *view,
                             const struct report_setting_sum *sums, size_t count)
{
    struct kernel_sum *kernels = kernel_sums(view);
    if (kernels == NULL)
        return false;
    int failed = json_object_set_new(report, "kernels", kernels_json(view, kernels, sums, count));
    failed |= json_object_set_new(report, "unmatched", unmatched_json(view, kernels));
    free(kernels);
    return failed == 0;
}
