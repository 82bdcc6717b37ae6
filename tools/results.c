/* SPDX-License-Identifier: Apache-2.0 */
#include "results.h"

#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "memory.h"
#include "report/json.h"

static const char *const kind_keys[RESULTS_KIND_COUNT] = {
    [RESULTS_EAGER] = "eager",
    [RESULTS_CAPTURED] = "captured",
    [RESULTS_NODE] = "node",
    [RESULTS_REPLAYED] = "replayed",
};

const char *const results_table_keys[RESULTS_TABLE_COUNT] = {
    [RESULTS_TABLE_KERNELS] = "kernels", [RESULTS_TABLE_CELLS] = "cells",
    [RESULTS_TABLE_STREAMS] = "streams", [RESULTS_TABLE_FACTS] = "facts",
    [RESULTS_TABLE_NOTES] = "notes",
};

const char *results_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

int64_t results_number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

const char *results_keep(struct results *results, const char *text)
{
    void *place;

    if (results->texts == NULL) {
        results->texts = json_object();
    }
    place = json_object_iter_at(results->texts, text);
    if (place == NULL) {
        json_object_set_new_nocheck(results->texts, text, json_null());
        place = json_object_iter_at(results->texts, text);
    }
    return json_object_iter_key(place);
}

static const char *kept_text(struct results *results, const json_t *object, const char *key)
{
    return results_keep(results, results_text(object, key));
}

/* The key of something in a table, made of some texts; to be freed. */
static char *key_of(const char *table, const char *const *texts, size_t count)
{
    static const size_t digits = 24;
    size_t lengths[4], size = strlen(table) + 1;
    char *key, *end;

    for (size_t i = 0; i < count; i++) {
        lengths[i] = strlen(texts[i]);
        size += lengths[i] + digits;
    }
    key = memory_allocate(size, 1);
    end = stpcpy(key, table);
    for (size_t i = 0; i < count; i++) {
        /* The length keeps "a", "bc" apart from "ab", "c". */
        end += snprintf(end, digits, "|%zu:", lengths[i]);
        memcpy(end, texts[i], lengths[i] + 1);
        end += lengths[i];
    }
    return key;
}

/* The place of something with this key; next, now taken, when it is new. */
static size_t place_of(struct results *results, const char *table, const char *const *texts,
                       size_t count, size_t next)
{
    char *key = key_of(table, texts, count);
    json_t *place;

    if (results->index == NULL) {
        results->index = json_object();
    }
    place = json_object_get(results->index, key);
    if (place == NULL) {
        json_object_set_new_nocheck(results->index, key, json_integer((json_int_t)next));
    } else {
        next = (size_t)json_integer_value(place);
    }
    free(key);
    return next;
}

static size_t find(const struct results *results, const char *table, const char *const *texts,
                   size_t count)
{
    char *key = key_of(table, texts, count);
    const json_t *place = json_object_get(results->index, key);

    free(key);
    return place != NULL ? (size_t)json_integer_value(place) : SIZE_MAX;
}

size_t results_find_kernel(const struct results *results, const char *mangled, const char *library)
{
    const char *texts[] = {mangled, library};

    return find(results, "kernel", texts, 2);
}

size_t results_find_rule(const struct results *results, const char *section, const char *name,
                         const char *layer)
{
    const char *texts[] = {section, name, layer};

    return find(results, "rule", texts, 3);
}

char *results_rule_title(const struct results_rule *rule)
{
    return rule->layer[0] != '\0'
               ? memory_format("%s %s (%s)", rule->section, rule->name, rule->layer)
               : memory_format("%s %s", rule->section, rule->name);
}

void results_add_count(int64_t *sum, int64_t count)
{
    count = count < 0 ? 0 : count > RESULTS_COUNT_LIMIT ? RESULTS_COUNT_LIMIT : count;
    *sum = *sum > RESULTS_COUNT_LIMIT - count ? RESULTS_COUNT_LIMIT : *sum + count;
}

static void add_launches(struct results_launches *sum, const json_t *object)
{
    const json_t *kinds = json_object_get(object, "launches_by_kind");

    results_add_count(&sum->total, results_number(object, "launches"));
    for (int kind = 0; kind < RESULTS_KIND_COUNT; kind++) {
        results_add_count(&sum->kinds[kind], results_number(kinds, kind_keys[kind]));
    }
}

static void add_refusal(struct results *results, struct results_refusals *refused,
                        const char *reason, int64_t times)
{
    size_t i = 0;

    while (i < refused->count && strcmp(refused->items[i].reason, reason) != 0) {
        i++;
    }
    if (i == refused->count) {
        refused->items =
            memory_grow(refused->items, refused->count, &refused->capacity, sizeof *refused->items);
        refused->items[refused->count].reason = results_keep(results, reason);
        refused->items[refused->count++].times = 0;
    }
    results_add_count(&refused->items[i].times, times);
}

/* ---- Kernels ------------------------------------------------------------------------------------
 */

static struct results_kernel *find_kernel(struct results *results, const json_t *object)
{
    const char *texts[] = {results_text(object, "mangled"), results_text(object, "library")};
    size_t place = place_of(results, "kernel", texts, 2, results->kernel_count);

    if (place == results->kernel_count) {
        results->kernels = memory_grow(results->kernels, results->kernel_count,
                                       &results->kernel_capacity, sizeof *results->kernels);
        results->kernels[results->kernel_count++] = (struct results_kernel){
            .mangled = results_keep(results, texts[0]),
            .name = kept_text(results, object, "name"),
            .signature = kept_text(results, object, "signature"),
            .library = results_keep(results, texts[1]),
            .demangled = json_is_true(json_object_get(object, "demangled")),
            .forms = memory_allocate(1, sizeof(struct kernel_name)),
        };
    }
    return &results->kernels[place];
}

const struct kernel_name *results_kernel_name(const struct results_kernel *kernel)
{
    if (kernel->forms->mangled == NULL && !kernel_name_make(kernel->mangled, kernel->forms)) {
        command_error("out of memory");
        exit(memory_failure_status);
    }
    return kernel->forms;
}

static void widen(struct results_extent *extent, const json_t *shapes, const char *key, bool first)
{
    const json_t *range = json_object_get(shapes, key);
    int64_t least = json_integer_value(json_array_get(range, 0));
    int64_t most = json_integer_value(json_array_get(range, 1));

    if (first || least < extent->least) {
        extent->least = least;
    }
    if (first || most > extent->most) {
        extent->most = most;
    }
}

static void add_shapes(struct results_kernel *kernel, const json_t *object)
{
    const json_t *shapes = json_object_get(object, "shapes");
    bool first = !kernel->shapes_known;

    if (!json_is_object(shapes)) {
        return;
    }
    widen(&kernel->grid_blocks, shapes, "grid_blocks", first);
    widen(&kernel->block_threads, shapes, "block_threads", first);
    widen(&kernel->shared_memory, shapes, "shared_memory", first);
    kernel->shapes_known = true;
}

/* ---- Rules --------------------------------------------------------------------------------------
 */

static struct results_rule *find_rule(struct results *results, const char *section,
                                      const char *name, const char *layer)
{
    const char *texts[] = {section, name, layer};
    size_t place = place_of(results, "rule", texts, 3, results->rule_count);

    if (place == results->rule_count) {
        results->rules = memory_grow(results->rules, results->rule_count, &results->rule_capacity,
                                     sizeof *results->rules);
        results->rules[results->rule_count++] =
            (struct results_rule){.section = results_keep(results, section),
                                  .name = results_keep(results, name),
                                  .layer = results_keep(results, layer)};
    }
    return &results->rules[place];
}

static void add_outcomes(struct results *results, struct results_outcomes *outcomes,
                         const json_t *object)
{
    const char *reason;
    json_t *times;

    results_add_count(&outcomes->applied, results_number(object, "applied"));
    results_add_count(&outcomes->already_so, results_number(object, "already_so"));
    results_add_count(&outcomes->kept, results_number(object, "kept"));
    json_object_foreach(json_object_get(object, "refused"), reason, times)
    {
        add_refusal(results, &outcomes->refused, reason, json_integer_value(times));
    }
}

static void add_rule(struct results *results, const json_t *object)
{
    const json_t *streams = json_object_get(object, "on_streams");
    struct results_rule *rule =
        find_rule(results, results_text(object, "section"), results_text(object, "name"),
                  results_text(object, "layer"));

    rule->line = results_number(object, "line");
    add_launches(&rule->launches, object);
    add_outcomes(results, &rule->launch_outcomes, object);
    results_add_count(&rule->streams, results_number(streams, "streams"));
    add_outcomes(results, &rule->stream_outcomes, streams);
}

static void add_kernel_to_rule(struct results *results, struct results_rule *rule, size_t kernel)
{
    char *pair = memory_format("%zu %zu", (size_t)(rule - results->rules), kernel);
    const char *texts[] = {pair};
    size_t place = place_of(results, "pair", texts, 1, rule->kernel_count);

    if (place == rule->kernel_count) {
        rule->kernels =
            memory_grow(rule->kernels, rule->kernel_count, &rule->kernel_capacity, sizeof(size_t));
        rule->kernels[rule->kernel_count++] = kernel;
    }
    free(pair);
}

static void add_kernel(struct results *results, const json_t *object)
{
    struct results_kernel *kernel = find_kernel(results, object);
    size_t place = (size_t)(kernel - results->kernels), i;
    json_t *setting;

    results->last_kernels = memory_grow(results->last_kernels, results->last_count,
                                        &results->last_capacity, sizeof *results->last_kernels);
    results->last_kernels[results->last_count++] = place;
    add_launches(&kernel->launches, object);
    add_shapes(kernel, object);
    json_array_foreach(json_object_get(object, "settings"), i, setting)
    {
        if (json_is_string(json_object_get(setting, "rule"))) {
            add_kernel_to_rule(results,
                               find_rule(results, results_text(setting, "rule_section"),
                                         results_text(setting, "rule"),
                                         results_text(setting, "rule_layer")),
                               place);
        }
    }
}

static void add_unmatched(struct results *results, const json_t *object)
{
    const char *texts[] = {results_text(object, "name"), results_text(object, "library")};
    size_t place = place_of(results, "unmatched", texts, 2, results->unmatched_count);

    if (place == results->unmatched_count) {
        results->unmatched = memory_grow(results->unmatched, results->unmatched_count,
                                         &results->unmatched_capacity, sizeof *results->unmatched);
        results->unmatched[results->unmatched_count++] = (struct results_unmatched){
            .name = results_keep(results, texts[0]), .library = results_keep(results, texts[1])};
    }
    results_add_count(&results->unmatched[place].launches, results_number(object, "launches"));
}

/* ---- Streams and notes --------------------------------------------------------------------------
 */

static void add_stream(struct results *results, const json_t *object)
{
    char *numbers = memory_format("%lld %lld %lld", (long long)results_number(object, "device"),
                                  (long long)results_number(object, "flags"),
                                  (long long)results_number(object, "priority"));
    const char *texts[] = {results_text(object, "library"), results_text(object, "kind"),
                           results_text(object, "rule"), numbers};
    size_t place = place_of(results, "stream", texts, 4, results->stream_count);

    if (place == results->stream_count) {
        results->streams = memory_grow(results->streams, results->stream_count,
                                       &results->stream_capacity, sizeof *results->streams);
        results->streams[results->stream_count++] = (struct results_stream){
            .library = results_keep(results, texts[0]),
            .kind = results_keep(results, texts[1]),
            .rule = results_keep(results, texts[2]),
            .device = results_number(object, "device"),
            .flags = results_number(object, "flags"),
            .priority = results_number(object, "priority"),
        };
    }
    results_add_count(&results->streams[place].count, results_number(object, "count"));
    free(numbers);
}

static void add_note(struct results *results, const json_t *object)
{
    const char *texts[] = {results_text(object, "severity"), results_text(object, "text")};
    size_t place = place_of(results, "note", texts, 2, results->note_count);

    if (place == results->note_count) {
        results->notes = memory_grow(results->notes, results->note_count, &results->note_capacity,
                                     sizeof *results->notes);
        results->notes[results->note_count++] = (struct results_note){
            .severity = results_keep(results, texts[0]), .text = results_keep(results, texts[1])};
    }
    results_add_count(&results->notes[place].count, results_number(object, "count"));
}

/* ---- Processes ----------------------------------------------------------------------------------
 */

static const char *fault_of(const json_t *document)
{
    if (!json_is_object(document) ||
        strcmp(results_text(document, "format"), "cudapolicy report") != 0) {
        return "not a report of cudapolicy";
    }
    if (results_number(document, "schema") != REPORT_JSON_SCHEMA) {
        return "a report of another version of cudapolicy";
    }
    return NULL;
}

bool results_was_replaced(const struct results *results, const struct results_process *process)
{
    return process->image < results->newest_images[process->number];
}

/* Gives the process its number, and remembers its newest image. The start as a time is computed
 * anew by each image and may differ in its last digit, so it only serves where ticks are missing.
 */
static void number_process(struct results *results, struct results_process *process)
{
    char *numbers =
        memory_format("%lld %lld", (long long)process->pid, (long long)process->start_ticks);
    const char *texts[] = {process->host, numbers, process->start_ticks == 0 ? process->start : ""};

    process->number = place_of(results, "started", texts, 3, results->number_count);
    if (process->number == results->number_count) {
        results->newest_images = memory_grow(results->newest_images, results->number_count,
                                             &results->number_capacity, sizeof(int64_t));
        results->newest_images[results->number_count++] = process->image;
    } else if (results->newest_images[process->number] < process->image) {
        results->newest_images[process->number] = process->image;
    }
    free(numbers);
}

/* True when the process, or this image of it, is new. */
static bool add_process(struct results *results, json_t *document)
{
    const json_t *process = json_object_get(document, "process");
    const json_t *policy = json_object_get(json_object_get(document, "facts"), "policy");
    char *pid = memory_format("%lld", (long long)results_number(process, "pid"));
    char *image = memory_format("%lld", (long long)results_number(process, "image"));
    const char *texts[] = {results_text(process, "host"), pid, results_text(process, "start"),
                           image};
    size_t place = place_of(results, "process", texts, 4, results->process_count);
    bool is_new = place == results->process_count;

    free(image);
    free(pid);
    if (!is_new) {
        return false;
    }
    results->processes = memory_grow(results->processes, results->process_count,
                                     &results->process_capacity, sizeof *results->processes);
    results->processes[results->process_count++] = (struct results_process){
        .host = results_keep(results, texts[0]),
        .argv0 = kept_text(results, process, "argv0"),
        .mode = kept_text(results, document, "mode"),
        .start = results_keep(results, texts[2]),
        .end = kept_text(results, process, "end"),
        .pid = results_number(process, "pid"),
        .start_ticks = results_number(process, "start_ticks"),
        .image = results_number(process, "image"),
        .complete = json_is_true(json_object_get(document, "complete")),
        .partial = json_is_true(json_object_get(document, "partial")),
        .ended = json_is_string(json_object_get(process, "end")),
        .running = json_is_true(json_object_get(process, "running")),
        .policy_path = kept_text(results, policy, "path"),
        .policy_sha256 = kept_text(results, policy, "sha256"),
        .document = results->keep_documents ? json_incref(document) : NULL,
    };
    number_process(results, &results->processes[results->process_count - 1]);
    return true;
}

static void add_each(struct results *results, const json_t *document, const char *key,
                     void (*add)(struct results *results, const json_t *object))
{
    json_t *object;
    size_t i;

    json_array_foreach(json_object_get(document, key), i, object)
    {
        add(results, object);
    }
}

bool results_add(struct results *results, json_t *document, const char **error)
{
    *error = fault_of(document);
    if (*error != NULL) {
        return false;
    }
    if (!add_process(results, document)) {
        return true;
    }
    results->last_count = 0;
    add_each(results, document, "rules", add_rule);
    add_each(results, document, "kernels", add_kernel);
    add_each(results, document, "unmatched", add_unmatched);
    add_each(results, document, "streams", add_stream);
    add_each(results, document, "notes", add_note);
    for (int table = 0; table < RESULTS_TABLE_COUNT; table++) {
        results->overflow[table] +=
            results_number(json_object_get(document, "overflow"), results_table_keys[table]);
    }
    results->launches = (struct results_launches){0};
    for (size_t i = 0; i < results->kernel_count; i++) {
        const struct results_launches *launches = &results->kernels[i].launches;

        results_add_count(&results->launches.total, launches->total);
        for (int kind = 0; kind < RESULTS_KIND_COUNT; kind++) {
            results_add_count(&results->launches.kinds[kind], launches->kinds[kind]);
        }
    }
    return true;
}

void results_release(struct results *results)
{
    for (size_t i = 0; i < results->kernel_count; i++) {
        kernel_name_release(results->kernels[i].forms);
        free(results->kernels[i].forms);
    }
    for (size_t i = 0; i < results->rule_count; i++) {
        free(results->rules[i].kernels);
        free(results->rules[i].launch_outcomes.refused.items);
        free(results->rules[i].stream_outcomes.refused.items);
    }
    for (size_t i = 0; i < results->process_count; i++) {
        json_decref(results->processes[i].document);
    }
    free(results->last_kernels);
    free(results->processes);
    free(results->newest_images);
    free(results->kernels);
    free(results->rules);
    free(results->streams);
    free(results->unmatched);
    free(results->notes);
    json_decref(results->index);
    json_decref(results->texts);
    *results = (struct results){0};
}
