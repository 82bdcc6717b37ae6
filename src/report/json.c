/* SPDX-License-Identifier: Apache-2.0 */
#include "report/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report/process.h"

static json_t *view_text(const struct report_view *view, uint32_t offset)
{
    return report_json_text(report_view_text(view, offset));
}

static json_t *time_json(int64_t nanoseconds)
{
    time_t seconds = (time_t)(nanoseconds / 1000000000);
    struct tm utc;
    char text[64], whole[32];
    if (nanoseconds <= 0 || gmtime_r(&seconds, &utc) == NULL ||
        strftime(whole, sizeof whole, "%Y-%m-%dT%H:%M:%S", &utc) == 0)
        return json_null();
    snprintf(text, sizeof text, "%s.%03dZ", whole, (int)(nanoseconds / 1000000 % 1000));
    return json_string(text);
}

static json_t *process_json(const struct report_view *view)
{
    const struct report_process *process = &view->header.process;
    bool known = false;
    bool running = process->end_time == 0 && report_process_running(process, &known);
    return json_pack("{s:o, s:I, s:o, s:o, s:o, s:o}", "host", view_text(view, process->host),
                     "pid", (json_int_t)process->pid, "argv0", view_text(view, process->argv0),
                     "start", time_json(process->start_time), "end", time_json(process->end_time),
                     "running",
                     process->end_time != 0 ? json_false()
                     : known                ? json_boolean(running)
                                            : json_null());
}

static json_t *facts_json(const struct report_view *view)
{
    json_t *facts = json_object();
    int failed = facts == NULL;
    for (uint32_t i = 0; i < view->header.counts.facts && !failed; i++) {
        const struct report_fact_row *row = &view->facts[i];
        json_t *name = view_text(view, row->section), *key = view_text(view, row->key);
        json_t *section = json_object_get(facts, json_string_value(name));
        failed = name == NULL || key == NULL;
        if (!failed && section == NULL) {
            section = json_object();
            failed = json_object_set_new(facts, json_string_value(name), section);
        }
        if (!failed)
            failed =
                json_object_set_new(section, json_string_value(key), view_text(view, row->value));
        json_decref(name);
        json_decref(key);
    }
    if (!failed)
        return facts;
    json_decref(facts);
    return NULL;
}

static json_t *mode_json(const struct report_view *view)
{
    char number[8];
    unsigned mode = view->header.control.part.mode;
    const char *name = mode < view->header.counts.modes
                           ? report_view_text(view, view->header.mode_names[mode])
                           : "";
    snprintf(number, sizeof number, "%u", mode);
    return report_json_text(name[0] != '\0' ? name : number);
}

static json_t *routes_json(const struct report_view *view)
{
    json_t *routes = json_array();
    int failed = routes == NULL;
    for (uint32_t entry = 0; entry < view->header.counts.entries && !failed; entry++) {
        if (view->entry_calls[entry] == 0)
            continue;
        failed = json_array_append_new(
            routes,
            json_pack("{s:o, s:o}", "entry", view_text(view, view->header.entry_names[entry]),
                      "calls", report_json_count(view->entry_calls[entry])));
    }
    if (!failed)
        return routes;
    json_decref(routes);
    return NULL;
}

/* A kernel with its launches, for sorting; cells without any decision apart. */
struct kernel_sum {
    uint32_t kernel;
    uint64_t total, unmatched;
    uint64_t launches[REPORT_LAUNCH_KIND_COUNT];
};

static bool cell_decided(const struct report_cell_row *row, uint32_t settings)
{
    for (uint32_t setting = 0; setting < settings; setting++) {
        if (row->results[setting].outcome != REPORT_OUTCOME_NONE ||
            row->results[setting].rule != REPORT_RULE_NONE)
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
        for (size_t kind = 0; kind < REPORT_LAUNCH_KIND_COUNT; kind++)
            sum->launches[kind] += view->launches[cell][kind];
        sum->total += total;
        if (!cell_decided(row, counts->settings))
            sum->unmatched += total;
    }
    return sums;
}

static int most_unmatched_first(const void *one_sum, const void *other_sum)
{
    const struct kernel_sum *one = one_sum, *other = other_sum;
    if (one->unmatched != other->unmatched)
        return one->unmatched < other->unmatched ? 1 : -1;
    return one->kernel < other->kernel ? -1 : 1;
}

static int most_launched_first(const void *one_sum, const void *other_sum)
{
    const struct kernel_sum *one = one_sum, *other = other_sum;
    if (one->total != other->total)
        return one->total < other->total ? 1 : -1;
    return one->kernel < other->kernel ? -1 : 1;
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

static json_t *setting_json(const struct report_view *view, const struct report_setting_sum *sum)
{
    json_t *object = json_object();
    const struct report_result result = {
        .outcome = sum->outcome, .reason = sum->reason, .rule = sum->rule};
    if (object != NULL && report_json_add_result(object, view, sum->setting, &result) &&
        json_object_set_new(object, "detail", json_integer(sum->detail)) == 0 &&
        json_object_set_new(object, "launches",
                            report_json_count(report_launch_sum(sum->launches))) == 0 &&
        json_object_set_new(object, "launches_by_kind", report_json_kinds(sum->launches)) == 0)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *settings_json(const struct report_view *view, uint32_t kernel,
                             const struct report_setting_sum *sums, size_t count)
{
    json_t *settings = json_array();
    int failed = settings == NULL;
    size_t low = 0, high = count;
    while (low < high) { /* the first sum of this kernel */
        size_t middle = low + (high - low) / 2;
        if (sums[middle].kernel < kernel)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i < count && sums[i].kernel == kernel && !failed; i++)
        failed = json_array_append_new(settings, setting_json(view, &sums[i]));
    if (!failed)
        return settings;
    json_decref(settings);
    return NULL;
}

static json_t *kernel_json(const struct report_view *view, const struct kernel_sum *kernel,
                           const struct report_setting_sum *sums, size_t count)
{
    const struct report_kernel_row *row = &view->kernels[kernel->kernel];
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "name", view_text(view, row->name),
        "signature", view_text(view, row->signature), "mangled", view_text(view, row->mangled),
        "library", view_text(view, row->library), "demangled", row->demangled != 0, "launches",
        report_json_count(kernel->total), "launches_by_kind", report_json_kinds(kernel->launches),
        "shapes", shapes_json(row), "settings", settings_json(view, kernel->kernel, sums, count));
}

static json_t *kernels_json(const struct report_view *view, struct kernel_sum *kernels,
                            const struct report_setting_sum *sums, size_t count)
{
    json_t *array = json_array();
    int failed = array == NULL;
    uint32_t total = view->header.counts.kernels;
    qsort(kernels, total, sizeof *kernels, most_launched_first);
    for (uint32_t i = 0; i < total && kernels[i].total != 0 && !failed; i++)
        failed = json_array_append_new(array, kernel_json(view, &kernels[i], sums, count));
    if (!failed)
        return array;
    json_decref(array);
    return NULL;
}

static json_t *unmatched_json(const struct report_view *view, struct kernel_sum *kernels)
{
    json_t *array = json_array();
    int failed = array == NULL;
    uint32_t total = view->header.counts.kernels;
    qsort(kernels, total, sizeof *kernels, most_unmatched_first);
    for (uint32_t i = 0; i < total && kernels[i].unmatched != 0 && !failed; i++) {
        const struct report_kernel_row *row = &view->kernels[kernels[i].kernel];
        failed = json_array_append_new(array, json_pack("{s:o, s:o, s:o}", "name",
                                                        view_text(view, row->name), "library",
                                                        view_text(view, row->library), "launches",
                                                        report_json_count(kernels[i].unmatched)));
    }
    if (!failed)
        return array;
    json_decref(array);
    return NULL;
}

static json_t *stream_settings_json(const struct report_view *view,
                                    const struct report_stream_row *row)
{
    json_t *settings = json_array();
    int failed = settings == NULL;
    for (uint32_t setting = 0; setting < view->header.counts.settings && !failed; setting++) {
        if (row->results[setting].outcome == REPORT_OUTCOME_NONE)
            continue;
        json_t *object = json_object();
        failed = object == NULL ||
                 !report_json_add_result(object, view, setting, &row->results[setting]) ||
                 json_array_append(settings, object) != 0;
        json_decref(object);
    }
    if (!failed)
        return settings;
    json_decref(settings);
    return NULL;
}

static json_t *streams_json(const struct report_view *view)
{
    json_t *streams = json_array();
    int failed = streams == NULL;
    for (uint32_t i = 0; i < view->header.counts.streams && !failed; i++) {
        const struct report_stream_row *row = &view->streams[i];
        json_t *rule = row->rule < view->header.counts.rules
                           ? view_text(view, view->rules[row->rule].name)
                           : json_null();
        failed = json_array_append_new(
            streams,
            json_pack("{s:o, s:o, s:i, s:I, s:i, s:o, s:o, s:o}", "library",
                      view_text(view, row->library), "kind", view_text(view, row->kind), "device",
                      (int)row->device, "flags", (json_int_t)row->flags, "priority",
                      (int)row->priority, "rule", rule, "count", report_json_count(row->count),
                      "settings", stream_settings_json(view, row)));
    }
    if (!failed)
        return streams;
    json_decref(streams);
    return NULL;
}

static json_t *notes_json(const struct report_view *view)
{
    json_t *notes = json_array();
    int failed = notes == NULL;
    for (uint32_t i = 0; i < view->header.counts.notes && !failed; i++) {
        const struct report_note_row *row = &view->notes[i];
        failed = json_array_append_new(
            notes, json_pack("{s:o, s:o, s:o, s:o}", "severity", view_text(view, row->severity),
                             "text", view_text(view, row->text), "time", time_json(row->time),
                             "count", report_json_count(row->count)));
    }
    if (!failed)
        return notes;
    json_decref(notes);
    return NULL;
}

static json_t *overflow_json(const struct report_view *view)
{
    const uint32_t *overflow = view->header.counts.overflow;
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "kernels",
                     (json_int_t)overflow[REPORT_TABLE_KERNELS], "cells",
                     (json_int_t)overflow[REPORT_TABLE_CELLS], "streams",
                     (json_int_t)overflow[REPORT_TABLE_STREAMS], "facts",
                     (json_int_t)overflow[REPORT_TABLE_FACTS], "notes",
                     (json_int_t)overflow[REPORT_TABLE_NOTES]);
}

/* Each call below may give NULL: json_object_set_new says so, and report_json gives up. */
static bool add_members(json_t *report, const struct report_view *view, struct kernel_sum *kernels,
                        const struct report_setting_sum *sums, size_t count)
{
    bool complete = view->header.process.end_time != 0 && !view->truncated;
    bool partial = view->truncated || (view->header.partial != 0 && !complete);
    int failed = json_object_set_new(report, "format", json_string("cudapolicy report"));
    failed |= json_object_set_new(report, "schema", json_integer(REPORT_JSON_SCHEMA));
    failed |= json_object_set_new(report, "complete", json_boolean(complete));
    failed |= json_object_set_new(report, "partial", json_boolean(partial));
    failed |= json_object_set_new(report, "process", process_json(view));
    failed |= json_object_set_new(report, "mode", mode_json(view));
    failed |= json_object_set_new(report, "facts", facts_json(view));
    failed |= json_object_set_new(report, "routes", routes_json(view));
    failed |= json_object_set_new(report, "launches", report_json_count(report_view_total(view)));
    failed |= json_object_set_new(report, "rules", report_json_rules(view, sums, count));
    failed |= json_object_set_new(report, "kernels", kernels_json(view, kernels, sums, count));
    failed |= json_object_set_new(report, "unmatched", unmatched_json(view, kernels));
    failed |= json_object_set_new(report, "streams", streams_json(view));
    failed |= json_object_set_new(report, "notes", notes_json(view));
    failed |= json_object_set_new(report, "overflow", overflow_json(view));
    return failed == 0;
}

json_t *report_json(const struct report_view *view)
{
    size_t count = 0;
    json_t *report = json_object();
    struct kernel_sum *kernels = kernel_sums(view);
    struct report_setting_sum *sums = report_setting_sums(view, &count);
    if (report == NULL || kernels == NULL || sums == NULL ||
        !add_members(report, view, kernels, sums, count)) {
        json_decref(report);
        report = NULL;
    }
    free(kernels);
    free(sums);
    return report;
}
