/* SPDX-License-Identifier: Apache-2.0 */
#include "report_merge.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "memory.h"
#include "recorded_policy.h"
#include "report/files.h"
#include "report/template.h"
#include "results.h"
#include "summary.h"

/* A file that is being written, beside its place. */
struct output {
    const char *host; /* "": of all */
    char *path;       /* where it will be */
    char temporary[PATH_MAX];
    FILE *stream; /* NULL: it could not be made */
    bool failed;
    struct results results;
};

struct merging {
    const struct report_merge *merge;
    size_t count, capacity;
    struct output **outputs;
    size_t source_count, source_capacity;
    char **sources; /* files that are in the outputs and may go */
    size_t reports;
};

static char *path_of(const struct report_merge *merge, const char *host)
{
    const struct report_template_values values = {.host = host, .pid = 1};
    char name[PATH_MAX], error[64];

    if (merge->file != NULL) {
        return memory_copy(merge->file);
    }
    if (!report_expand_template("%h.json", &values, name, sizeof name, error, sizeof error)) {
        return memory_format("%s/host.json", merge->folder);
    }
    return memory_format("%s/%s", merge->folder, name);
}

static void fail(struct output *output)
{
    if (!output->failed) {
        command_error("cannot write '%s': %s", output->path, strerror(errno));
    }
    output->failed = true;
}

/* A name with ".json.part" in it is passed over by who reads the folder meanwhile. */
static void open_output(struct output *output)
{
    size_t length = strlen(output->path);
    bool json = length >= 5 && strcmp(output->path + length - 5, ".json") == 0;
    char *wanted = memory_format("%s%s.part", output->path, json ? "" : ".json");
    int descriptor = report_file_create(wanted, output->temporary, sizeof output->temporary);

    free(wanted);
    output->stream = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (output->stream == NULL) {
        fail(output);
        if (descriptor >= 0) {
            close(descriptor);
            unlink(output->temporary);
        }
        return;
    }
    fprintf(output->stream, "{\"format\": \"cudapolicy job\", \"schema\": %d,\n \"processes\": [",
            SUMMARY_SCHEMA);
}

static struct output *output_for(struct merging *merging, const char *host)
{
    struct output *output;

    for (size_t i = 0; i < merging->count; i++) {
        if (strcmp(merging->outputs[i]->host, host) == 0) {
            return merging->outputs[i];
        }
    }
    output = memory_allocate(1, sizeof *output);
    output->host = results_keep(&output->results, host);
    output->path = path_of(merging->merge, host);
    merging->outputs =
        memory_grow(merging->outputs, merging->count, &merging->capacity, sizeof(struct output *));
    merging->outputs[merging->count++] = output;
    return output;
}

static bool add(void *data, json_t *document, const char **error)
{
    struct merging *merging = data;
    const char *host = results_text(json_object_get(document, "process"), "host");
    struct output *output = output_for(merging, merging->merge->file != NULL ? "" : host);
    size_t before = output->results.process_count;

    if (!results_add(&output->results, document, error)) {
        return false;
    }
    if (output->results.process_count == before) {
        return true;
    }
    merging->reports++;
    if (before == 0) {
        open_output(output);
    }
    if (output->stream == NULL) {
        return true;
    }
    fputs(before > 0 ? ",\n  " : "\n  ", output->stream);
    if (json_dumpf(document, output->stream, JSON_COMPACT) != 0) {
        fail(output);
    }
    return true;
}

static void note_source(void *data, const json_t *document, const char *path)
{
    struct merging *merging = data;

    if (json_is_true(json_object_get(json_object_get(document, "process"), "running")) ||
        (merging->source_count > 0 &&
         strcmp(merging->sources[merging->source_count - 1], path) == 0)) {
        return;
    }
    merging->sources = memory_grow(merging->sources, merging->source_count,
                                   &merging->source_capacity, sizeof(char *));
    merging->sources[merging->source_count++] = memory_copy(path);
}

static bool finish_text(struct output *output)
{
    struct policy *policy = recorded_policy(&output->results);
    json_t *summary = summary_json(&output->results, policy);

    fputs("\n ],\n \"summary\": ", output->stream);
    if (json_dumpf(summary, output->stream, JSON_COMPACT) != 0) {
        fail(output);
    }
    fputs("}\n", output->stream);
    json_decref(summary);
    policy_free(policy);
    /* The reports go once it is on the disk, not before. */
    if (fflush(output->stream) != 0 || ferror(output->stream) ||
        (fsync(fileno(output->stream)) != 0 && errno != EINVAL && errno != ENOTSUP)) {
        fail(output);
    }
    if (fclose(output->stream) != 0) {
        fail(output);
    }
    output->stream = NULL;
    return !output->failed;
}

static void finish(struct output *output)
{
    char made[PATH_MAX];

    if (output->stream == NULL) {
        return;
    }
    if (!finish_text(output)) {
        unlink(output->temporary);
        return;
    }
    if (!report_file_publish(output->temporary, output->path, made, sizeof made)) {
        fail(output);
        unlink(output->temporary);
    } else if (strcmp(made, output->path) != 0) {
        command_error("'%s' is there already: the reports are in '%s'", output->path, made);
    }
}

static void remove_sources(const struct merging *merging, char *const *paths, size_t count)
{
    for (size_t i = 0; i < merging->source_count; i++) {
        unlink(merging->sources[i]);
    }
    for (size_t i = 0; i < count; i++) {
        rmdir(paths[i]); /* refused where it is no folder, or not empty */
    }
}

static void release(struct merging *merging)
{
    for (size_t i = 0; i < merging->count; i++) {
        results_release(&merging->outputs[i]->results);
        free(merging->outputs[i]->path);
        free(merging->outputs[i]);
    }
    for (size_t i = 0; i < merging->source_count; i++) {
        free(merging->sources[i]);
    }
    free(merging->outputs);
    free(merging->sources);
}

bool report_merge(const struct report_merge *merge, char *const *paths, size_t count,
                  size_t *reports)
{
    struct merging merging = {.merge = merge};
    const struct results_sink sink = {.add = add, .added = note_source, .data = &merging};
    bool merged = true;

    for (size_t i = 0; i < count; i++) {
        merged = results_load_into(&sink, paths[i]) && merged;
    }
    for (size_t i = 0; i < merging.count; i++) {
        finish(merging.outputs[i]);
        merged = merged && !merging.outputs[i]->failed;
    }
    *reports = merging.reports;
    if (merge->remove && merged) {
        remove_sources(&merging, paths, count);
    }
    release(&merging);
    return merged;
}
