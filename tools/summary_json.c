/* SPDX-License-Identifier: Apache-2.0 */

/* The summary as JSON; docs/report-format.md says what the report of each process holds. */

#include <stdlib.h>
#include <string.h>

#include "json_output.h"
#include "summary.h"
#include "unmatched.h"

static json_t *launches_json(const struct results_launches *launches)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "eager", (json_int_t)launches->kinds[RESULTS_EAGER],
                     "captured", (json_int_t)launches->kinds[RESULTS_CAPTURED], "node",
                     (json_int_t)launches->kinds[RESULTS_NODE], "replayed",
                     (json_int_t)launches->kinds[RESULTS_REPLAYED]);
}

json_t *summary_outcomes_json(const struct results_outcomes *outcomes)
{
    json_t *refused = json_object();

    for (size_t i = 0; i < outcomes->refused.count; i++) {
        json_object_set_new(refused, outcomes->refused.items[i].reason,
                            json_integer((json_int_t)outcomes->refused.items[i].times));
    }
    return json_pack("{s:I, s:I, s:I, s:o}", "applied", (json_int_t)outcomes->applied, "already_so",
                     (json_int_t)outcomes->already_so, "kept", (json_int_t)outcomes->kept,
                     "refused", refused);
}

static json_t *rule_json(const struct results_rule *rule)
{
    json_t *object = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:I, s:o}", "section", rule->section, "name",
        rule->name, "line", (json_int_t)rule->line, "kernels", (json_int_t)rule->kernel_count,
        "launches", (json_int_t)rule->launches.total, "launches_by_kind",
        launches_json(&rule->launches), "launch_outcomes",
        summary_outcomes_json(&rule->launch_outcomes), "streams", (json_int_t)rule->streams,
        "stream_outcomes", summary_outcomes_json(&rule->stream_outcomes));

    if (rule->layer[0] != '\0') {
        json_object_set_new(object, "layer", json_string(rule->layer));
    }
    return object;
}

static json_t *extent_json(const struct results_kernel *kernel, const struct results_extent *extent)
{
    if (!kernel->shapes_known) {
        return json_null();
    }
    return json_pack("[I, I]", (json_int_t)extent->least, (json_int_t)extent->most);
}

static json_t *kernel_json(const struct results_kernel *kernel)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o}", "name", kernel->name,
                     "signature", kernel->signature, "mangled", kernel->mangled, "library",
                     kernel->library, "launches", (json_int_t)kernel->launches.total,
                     "launches_by_kind", launches_json(&kernel->launches), "grid_blocks",
                     extent_json(kernel, &kernel->grid_blocks), "block_threads",
                     extent_json(kernel, &kernel->block_threads), "shared_memory",
                     extent_json(kernel, &kernel->shared_memory));
}

json_t *summary_kernels_json(const struct results *results)
{
    const struct results_kernel **sorted = summary_sorted_kernels(results);
    json_t *array = json_array();

    for (size_t i = 0; i < results->kernel_count; i++) {
        json_array_append_new(array, kernel_json(sorted[i]));
    }
    free(sorted);
    return array;
}

static json_t *nearest_json(const struct unmatched *unmatched)
{
    json_t *array = json_array();

    for (size_t i = 0; i < unmatched->nearest_count; i++) {
        const struct unmatched_kernel *kernel = &unmatched->nearest[i];

        json_array_append_new(array,
                              json_pack("{s:o, s:s, s:b, s:s}", "text",
                                        json_output_string(kernel->text), "form", kernel->form,
                                        "matches", kernel->matches, "library", kernel->library));
    }
    return array;
}

static json_t *unmatched_json(const struct results *results, const struct policy *policy)
{
    json_t *array = json_array();

    for (size_t i = 0; i < results->rule_count; i++) {
        const struct results_rule *rule = &results->rules[i];
        struct unmatched unmatched;

        if (summary_has_matched(rule) || rule->layer[0] != '\0') {
            continue;
        }
        unmatched_explain(summary_policy_rule(policy, rule), results,
                          json_array_size(array) < UNMATCHED_RULES, &unmatched);
        json_array_append_new(array,
                              json_pack("{s:s, s:s, s:I, s:o, s:o}", "section", rule->section,
                                        "name", rule->name, "line", (json_int_t)rule->line,
                                        "reason", json_output_string(unmatched.reason), "nearest",
                                        nearest_json(&unmatched)));
        unmatched_release(&unmatched);
    }
    return array;
}

static json_t *untouched_json(const struct results *results)
{
    json_t *array = json_array();

    for (size_t i = 0; i < results->unmatched_count; i++) {
        const struct results_unmatched *unmatched = &results->unmatched[i];

        json_array_append_new(array, json_pack("{s:s, s:s, s:I}", "name", unmatched->name,
                                               "library", unmatched->library, "launches",
                                               (json_int_t)unmatched->launches));
    }
    return array;
}

json_t *summary_streams_json(const struct results *results)
{
    json_t *array = json_array();

    for (size_t i = 0; i < results->stream_count; i++) {
        const struct results_stream *stream = &results->streams[i];

        json_array_append_new(
            array, json_pack("{s:s, s:s, s:I, s:I, s:I, s:s?, s:I}", "library", stream->library,
                             "kind", stream->kind, "device", (json_int_t)stream->device, "flags",
                             (json_int_t)stream->flags, "priority", (json_int_t)stream->priority,
                             "rule", stream->rule[0] != '\0' ? stream->rule : NULL, "count",
                             (json_int_t)stream->count));
    }
    return array;
}

static json_t *notes_json(const struct results *results)
{
    json_t *array = json_array();

    for (size_t i = 0; i < results->note_count; i++) {
        const struct results_note *note = &results->notes[i];

        json_array_append_new(array,
                              json_pack("{s:s, s:s, s:I}", "severity", note->severity, "text",
                                        note->text, "count", (json_int_t)note->count));
    }
    return array;
}

static json_t *processes_json(const struct results *results)
{
    json_t *array = json_array();

    for (size_t i = 0; i < results->process_count; i++) {
        const struct results_process *process = &results->processes[i];
        bool replaced = results_was_replaced(results, process);

        json_array_append_new(
            array, json_pack("{s:s, s:I, s:I, s:s, s:s, s:b, s:b, s:b, s:b}", "host", process->host,
                             "pid", (json_int_t)process->pid, "image", (json_int_t)process->image,
                             "argv0", process->argv0, "mode", process->mode, "complete",
                             process->complete, "partial", process->partial, "replaced", replaced,
                             "running", process->running && !replaced));
    }
    return array;
}

static json_t *overflow_json(const struct results *results)
{
    json_t *object = json_object();

    for (int table = 0; table < RESULTS_TABLE_COUNT; table++) {
        json_object_set_new(object, results_table_keys[table],
                            json_integer((json_int_t)results->overflow[table]));
    }
    return object;
}

json_t *summary_json(const struct results *results, const struct policy *policy)
{
    json_t *rules = json_array();

    for (size_t i = 0; i < results->rule_count; i++) {
        json_array_append_new(rules, rule_json(&results->rules[i]));
    }
    return json_pack("{s:s, s:i, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "format",
                     "cudapolicy summary", "schema", SUMMARY_SCHEMA, "processes",
                     processes_json(results), "launches", (json_int_t)results->launches.total,
                     "launches_by_kind", launches_json(&results->launches), "rules", rules,
                     "unmatched_rules", unmatched_json(results, policy), "kernels",
                     summary_kernels_json(results), "unmatched_kernels", untouched_json(results),
                     "streams", summary_streams_json(results), "notes", notes_json(results),
                     "overflow", overflow_json(results));
}

json_t *summary_job_json(const struct results *results, const struct policy *policy)
{
    json_t *processes = json_array();

    for (size_t i = 0; i < results->process_count; i++) {
        json_array_append(processes, results->processes[i].document);
    }
    return json_pack("{s:s, s:i, s:o, s:o}", "format", "cudapolicy job", "schema", SUMMARY_SCHEMA,
                     "summary", summary_json(results, policy), "processes", processes);
}
