/* SPDX-License-Identifier: Apache-2.0 */
#include "report/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "report/json_parts.h"
#include "report/process.h"
#include "report/steps.h"

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

static json_t *running_json(const struct report_process *process)
{
    bool known = true;
    bool running = process->end_time == 0 && report_process_running(process, &known);
    return known ? json_boolean(running) : json_null();
}

static json_t *process_json(struct report_view *view)
{
    const struct report_process *process = &view->header.process;
    return json_pack("{s:o, s:I, s:o, s:I, s:I, s:o, s:o, s:o}", "host",
                     report_json_view_text(view, process->host), "pid", (json_int_t)process->pid,
                     "argv0", report_json_view_text(view, process->argv0), "start_ticks",
                     (json_int_t)process->start_ticks, "image", (json_int_t)process->image, "start",
                     time_json(process->start_time), "end", time_json(process->end_time), "running",
                     running_json(process));
}

static json_t *mode_json(struct report_view *view)
{
    char number[8];
    unsigned mode = view->header.control.part.mode;
    if (mode < view->header.counts.modes && view->header.mode_names[mode] != 0)
        return report_json_view_text(view, view->header.mode_names[mode]);
    snprintf(number, sizeof number, "%u", mode);
    return json_string(number);
}

/* The object of one section of facts, made when it is not there yet; borrowed. */
static json_t *fact_section(json_t *facts, struct report_view *view, uint32_t name_offset)
{
    json_t *name = report_json_view_text(view, name_offset);
    json_t *section = name == NULL ? NULL : json_object_get(facts, json_string_value(name));
    if (name != NULL && section == NULL) {
        section = json_object();
        if (json_object_set_new(facts, json_string_value(name), section) != 0)
            section = NULL;
    }
    json_decref(name);
    return section;
}

static json_t *facts_json(struct report_view *view)
{
    json_t *facts = json_object();
    int failed = facts == NULL;
    for (uint32_t i = 0; i < view->header.counts.facts && !failed; i++) {
        const struct report_fact_row *row = &view->facts[i];
        json_t *section = fact_section(facts, view, row->section);
        json_t *key = report_json_view_text(view, row->key);
        failed = json_object_set_new(section, json_string_value(key),
                                     report_json_view_text(view, row->value));
        json_decref(key);
    }
    if (!failed)
        return facts;
    json_decref(facts);
    return NULL;
}

static json_t *routes_json(struct report_view *view)
{
    json_t *routes = json_array();
    for (uint32_t entry = 0; entry < view->header.counts.entries && routes != NULL; entry++) {
        /* One without a name takes the calls that are none of an entry point. */
        if (view->entry_calls[entry] == 0 || view->header.entry_names[entry] == 0)
            continue;
        routes = report_json_append(
            routes, json_pack("{s:o, s:o}", "entry",
                              report_json_view_text(view, view->header.entry_names[entry]), "calls",
                              report_json_count(view->entry_calls[entry])));
    }
    return routes;
}

static json_t *stream_settings_json(struct report_view *view, const struct report_stream_row *row)
{
    json_t *settings = json_array();
    for (uint32_t i = 0; i < view->header.counts.settings && settings != NULL; i++) {
        if (report_result_decided(&row->results[i]))
            settings = report_json_append(settings, report_json_result(view, i, &row->results[i]));
    }
    return settings;
}

static json_t *streams_json(struct report_view *view)
{
    json_t *streams = json_array();
    for (uint32_t i = 0; i < view->header.counts.streams && streams != NULL; i++) {
        const struct report_stream_row *row = &view->streams[i];
        json_t *rule = row->rule < view->header.counts.rules
                           ? report_json_view_text(view, view->rules[row->rule].name)
                           : json_null();
        json_t *stream =
            json_pack("{s:o, s:o, s:i, s:I, s:i, s:o, s:o, s:o}", "library",
                      report_json_view_text(view, row->library), "kind",
                      report_json_view_text(view, row->kind), "device", (int)row->device, "flags",
                      (json_int_t)row->flags, "priority", (int)row->priority, "rule", rule, "count",
                      report_json_count(row->count), "settings", stream_settings_json(view, row));
        if (row->rule < view->header.counts.rules)
            stream = report_json_add_layer(stream, view, "rule_layer", &view->rules[row->rule]);
        streams = report_json_append(streams, stream);
    }
    return streams;
}

static json_t *notes_json(struct report_view *view)
{
    json_t *notes = json_array();
    for (uint32_t i = 0; i < view->header.counts.notes && notes != NULL; i++) {
        const struct report_note_row *row = &view->notes[i];
        notes = report_json_append(notes, json_pack("{s:o, s:o, s:o, s:o}", "severity",
                                                    report_json_view_text(view, row->severity),
                                                    "text", report_json_view_text(view, row->text),
                                                    "time", time_json(row->time), "count",
                                                    report_json_count(row->count)));
    }
    return notes;
}

/* [number, arm, first step, steps, seconds or null] */
static json_t *slices_json(const struct report_slice *slices, size_t count)
{
    json_t *array = json_array();
    if (count > REPORT_JSON_SLICE_LIMIT)
        count = REPORT_JSON_SLICE_LIMIT;
    for (size_t i = 0; i < count && array != NULL; i++) {
        json_t *seconds = isnan(slices[i].seconds) ? json_null() : json_real(slices[i].seconds);
        array = report_json_append(array, json_pack("[I, i, I, I, o]", (json_int_t)slices[i].number,
                                                    (int)slices[i].arm, (json_int_t)slices[i].first,
                                                    (json_int_t)slices[i].steps, seconds));
    }
    return array;
}

/* Steps of each arm; those of the warm-up apart. */
static json_t *arm_steps_json(const struct report_view *view, uint64_t *warm_up)
{
    uint64_t steps[REPORT_ARM_LIMIT] = {0};
    uint32_t arms = view->header.live.arms;
    json_t *array = json_array();
    for (size_t i = 0; i < view->step_count; i++) {
        const struct report_step_row *row = &view->steps[i];
        if (row->time != 0 && row->slice == REPORT_SLICE_NONE)
            ++*warm_up;
        else if (row->time != 0 && row->arm < REPORT_ARM_LIMIT)
            steps[row->arm]++;
    }
    for (uint32_t arm = 0; arm < arms && arm < REPORT_ARM_LIMIT && array != NULL; arm++)
        array = report_json_append(array, report_json_count(steps[arm]));
    return array;
}

/* When the first and the last step that were entered began; null without any. */
static json_t *span_json(const struct report_view *view)
{
    int64_t first = 0, last = 0;
    for (size_t i = 0; i < view->step_count; i++) {
        const int64_t time = view->steps[i].time;
        if (time == 0)
            continue;
        if (first == 0 || time < first)
            first = time;
        if (time > last)
            last = time;
    }
    if (last == 0)
        return json_null();
    const int64_t clock = view->header.live.clock;
    return json_pack("[I, I]", (json_int_t)(first + clock), (json_int_t)(last + clock));
}

static json_t *live_json(const struct report_view *view)
{
    const struct report_live *live = &view->header.live;
    size_t count;
    uint64_t warm_up = 0;
    struct report_slice *slices = report_slices(live, view->steps, view->step_count, &count);
    json_t *arm_steps = arm_steps_json(view, &warm_up);
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)live->seed);
    json_t *made = json_pack(
        "{s:I, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "arms",
        (json_int_t)live->arms, "seed", seed, "slice", (json_int_t)live->slice, "drop",
        (json_int_t)live->drop, "warm_up", (json_int_t)live->warm_up, "steps",
        report_json_count(view->header.steps), "not_entered",
        report_json_count(view->header.steps - view->step_count), "warm_up_steps",
        report_json_count(warm_up), "arm_steps", arm_steps, "slices", slices_json(slices, count),
        "slices_left_out",
        (json_int_t)(count > REPORT_JSON_SLICE_LIMIT ? count - REPORT_JSON_SLICE_LIMIT : 0), "span",
        span_json(view));
    free(slices);
    return made;
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

static bool add_members(json_t *report, struct report_view *view,
                        const struct report_setting_sum *sums, size_t count)
{
    bool ended = view->header.process.end_time != 0;
    bool complete = ended && !view->partial && !view->truncated;
    int failed = json_object_set_new(report, "format", json_string("cudapolicy report"));
    failed |= json_object_set_new(report, "schema", json_integer(REPORT_JSON_SCHEMA));
    failed |= json_object_set_new(report, "complete", json_boolean(complete));
    failed |= json_object_set_new(report, "partial", json_boolean(view->partial));
    failed |= json_object_set_new(report, "process", process_json(view));
    failed |= json_object_set_new(report, "mode", mode_json(view));
    failed |= json_object_set_new(report, "facts", facts_json(view));
    failed |= json_object_set_new(report, "routes", routes_json(view));
    failed |= json_object_set_new(report, "launches", report_json_count(report_view_total(view)));
    failed |= json_object_set_new(report, "rules", report_json_rules(view, sums, count));
    failed |= !report_json_add_kernels(report, view, sums, count);
    failed |= json_object_set_new(report, "streams", streams_json(view));
    failed |= json_object_set_new(report, "notes", notes_json(view));
    failed |= json_object_set_new(report, "overflow", overflow_json(view));
    if (view->header.live.arms != 0)
        failed |= json_object_set_new(report, "live", live_json(view));
    /* Reading the texts may have shown that the file is not whole. */
    if (view->truncated) {
        failed |= json_object_set_new(report, "complete", json_false());
        failed |= json_object_set_new(report, "partial", json_true());
    }
    return failed == 0;
}

json_t *report_json(struct report_view *view)
{
    size_t count = 0;
    json_t *report = json_object();
    struct report_setting_sum *sums = report_setting_sums(view, &count);
    if (report == NULL || sums == NULL || !add_members(report, view, sums, count)) {
        json_decref(report);
        report = NULL;
    }
    free(sums);
    return report;
}
