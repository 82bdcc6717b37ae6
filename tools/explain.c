/* SPDX-License-Identifier: Apache-2.0 */
#include "explain.h"

#include <stdlib.h>

#include "decision.h"
#include "json_output.h"
#include "memory.h"
#include "printable.h"
#include "table.h"

enum {
    EXPLAIN_LINE =
        160, /* a setting as a line of the policy language: a name has 100 bytes at most */
};

static const char *answer_word(const struct decision_rule *row)
{
    if (!row->reached) {
        return "not reached";
    }
    switch (row->verdict.answer) {
    case MATCH_NO:
        return "no";
    case MATCH_PERHAPS:
        return "perhaps";
    case MATCH_YES:
        return "yes";
    }
    return "?";
}

static const char *section_word(const struct policy_rule *rule)
{
    return rule->section == POLICY_SECTION_STREAM ? "stream" : "kernel";
}

/* Why a rule does not match for certain. */
static char *why(const struct decision_rule *row)
{
    if (!row->reached) {
        return memory_copy("an earlier rule that matches is final");
    }
    if (row->verdict.answer == MATCH_YES) {
        return memory_copy("");
    }
    return memory_format("%s: %s", row->verdict.key, row->verdict.detail);
}

/* ---- Text ---------------------------------------------------------------------------------------
 */

static void print_extent(const char *label, const struct match_extent *extent, FILE *stream)
{
    struct printable_count least, most;

    if (!extent->known) {
        return;
    }
    if (extent->least == extent->most) {
        fprintf(stream, ", %s %s", label, printable_count(&least, extent->least));
    } else {
        fprintf(stream, ", %s %s..%s", label, printable_count(&least, extent->least),
                printable_count(&most, extent->most));
    }
}

static void print_kernel(const struct match_facts *facts, bool wide, FILE *stream)
{
    char *name = printable_copy(facts->name.name);
    char *library = printable_copy(
        facts->library != NULL && facts->library[0] != '\0' ? facts->library : "not known");
    char *shown = wide ? memory_copy(name)
                       : printable_shorten(name, table_terminal_width(stream) - sizeof "kernel ");

    fprintf(stream, "kernel %s\n  library %s", shown, library);
    print_extent("grid_blocks", &facts->grid_blocks, stream);
    print_extent("block_threads", &facts->block_threads, stream);
    print_extent("shared_memory", &facts->shared_memory, stream);
    if (facts->shapes_unnoted) {
        fputs("; shapes not noted (observe mode and record note them)", stream);
    }
    fputc('\n', stream);
    free(name);
    free(library);
    free(shown);
}

/* "12"; of a rule of the site "site locked:12". */
static void add_line(struct table *table, const struct policy_rule *rule)
{
    table_cell(table, "%s%s%u",
               rule->layer != POLICY_LAYER_JOB ? policy_layer_name(rule->layer) : "",
               rule->layer != POLICY_LAYER_JOB ? ":" : "", (unsigned)rule->place.line);
}

static void print_rules(const struct policy *policy, const struct decision *decision, bool wide,
                        FILE *stream)
{
    struct table *table = table_new();

    table_column(table, "rule", TABLE_LEFT, true);
    table_column(table, "line", TABLE_RIGHT, false);
    table_column(table, "matches", TABLE_LEFT, false);
    table_column(table, "why not", TABLE_LEFT, true);
    for (size_t i = 0; i < decision->rule_count; i++) {
        char *reason = why(&decision->rules[i]);

        table_cell(table, "%s", decision->rules[i].rule->name);
        add_line(table, decision->rules[i].rule);
        table_cell(table, "%s", answer_word(&decision->rules[i]));
        table_cell(table, "%s", reason);
        free(reason);
    }
    if (table_rows(table) > 0) {
        table_print(table, stream, wide, "  ");
    } else {
        fprintf(stream, "  %s has no kernel rule\n", policy->path);
    }
    table_free(table);
}

/* How a value meets one that the program set itself. */
static const char *meets_own(const struct policy_setting_value *value)
{
    switch (value->action) {
    case POLICY_ACTION_SET:
        return value->when_set == POLICY_WHEN_SET_KEEP ? "kept where the program set its own"
                                                       : "replaces the program's own";
    case POLICY_ACTION_UNSET:
        return "the program's own is taken away";
    case POLICY_ACTION_LEAVE:
        return "the program's own stays";
    case POLICY_ACTION_ABSENT:
        break;
    }
    return "";
}

/* The partition that the setting names, NULL when it names none. */
static const struct policy_partition *partition_of(const struct policy *policy,
                                                   const struct policy_setting_value *value,
                                                   enum policy_setting setting)
{
    return setting == POLICY_SETTING_PARTITION && value->action == POLICY_ACTION_SET
               ? &policy->partitions[value->value.partition]
               : NULL;
}

static void add_source(struct table *table, const struct policy *policy,
                       const struct decision_source *source, enum policy_setting setting)
{
    const struct policy_partition *partition = partition_of(policy, source->value, setting);
    char text[EXPLAIN_LINE];

    table_cell(table, "%s", policy_setting_line(setting, source->value, text, sizeof text));
    table_cell(table, "%s:%u", policy_layer_path(policy, source->rule->layer),
               (unsigned)source->value->place.line);
    table_cell(table, "[%s %s]", section_word(source->rule), source->rule->name);
    table_cell(table, "%s%s", source->from_stream ? "on the stream; " : "",
               partition == NULL  ? meets_own(source->value)
               : partition->named ? policy_partition_line(partition, text, sizeof text)
                                  : "an unnamed partition");
}

static void print_settings(const struct policy *policy, const struct decision *decision, bool wide,
                           FILE *stream)
{
    struct table *table = table_new();

    table_column(table, "setting", TABLE_LEFT, false);
    table_column(table, "from", TABLE_LEFT, true);
    table_column(table, "rule", TABLE_LEFT, true);
    table_column(table, "", TABLE_LEFT, false);
    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        if (decision->sources[setting].value != NULL) {
            add_source(table, policy, &decision->sources[setting], (enum policy_setting)setting);
        }
    }
    if (table_rows(table) > 0) {
        table_print(table, stream, wide, "  ");
    } else {
        fputs("  no setting for certain: launches go through as the program makes them\n", stream);
    }
    table_free(table);
}

/* Rules that decide first if they match after all. */
static void print_alternatives(const struct policy *policy, const struct decision *decision,
                               FILE *stream)
{
    for (size_t i = 0; i < decision->rule_count; i++) {
        const struct decision_rule *row = &decision->rules[i];

        if (row->may_end) {
            fprintf(stream, "  if [kernel %s] matches: later rules are not looked at (final)\n",
                    row->rule->name);
        }
        for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
            const struct policy_setting_value *value = &row->rule->settings[setting];
            unsigned group = 1U << policy_setting_group((enum policy_setting)setting);
            char text[EXPLAIN_LINE];

            if (value->action != POLICY_ACTION_ABSENT && (row->perhaps & group) != 0) {
                fprintf(stream, "  if [kernel %s] matches: %s (%s:%u)\n", row->rule->name,
                        policy_setting_line((enum policy_setting)setting, value, text, sizeof text),
                        policy_layer_path(policy, row->rule->layer), (unsigned)value->place.line);
            }
        }
    }
}

void explain_print(const struct policy *policy, const struct match_facts *facts, bool wide,
                   FILE *stream)
{
    struct decision decision;

    decision_make(policy, facts, &decision);
    print_kernel(facts, wide, stream);
    print_rules(policy, &decision, wide, stream);
    print_settings(policy, &decision, wide, stream);
    print_alternatives(policy, &decision, stream);
    fputc('\n', stream);
    decision_release(&decision);
}

/* ---- JSON ---------------------------------------------------------------------------------------
 */

/* What stands in the site's file says so. */
static void add_layer(json_t *object, const struct policy *policy, enum policy_layer layer)
{
    if (layer != POLICY_LAYER_JOB) {
        json_object_set_new(object, "layer", json_string(policy_layer_name(layer)));
        json_object_set_new(object, "file", json_output_string(policy_layer_path(policy, layer)));
    }
}

static json_t *setting_json(const struct policy *policy, const struct policy_rule *rule,
                            enum policy_setting setting)
{
    const struct policy_setting_value *value = &rule->settings[setting];
    const struct policy_partition *partition = partition_of(policy, value, setting);
    char text[EXPLAIN_LINE];
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:o, s:I, s:I}", "setting", policy_setting_key(setting), "value",
                  policy_setting_text(setting, value, text, sizeof text), "section",
                  section_word(rule), "rule", json_output_string(rule->name), "line",
                  (json_int_t)value->place.line, "column", (json_int_t)value->place.column);

    add_layer(object, policy, rule->layer);
    if (partition != NULL) {
        json_object_set_new(object, "partition",
                            json_pack("{s:s, s:b, s:s, s:I}", "name", partition->name, "named",
                                      partition->named, "asks_for",
                                      policy_partition_line(partition, text, sizeof text), "line",
                                      (json_int_t)partition->place.line));
    }
    return object;
}

static json_t *settings_json(const struct policy *policy, const struct decision *decision)
{
    json_t *array = json_array();

    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        const struct decision_source *source = &decision->sources[setting];

        if (source->value != NULL) {
            json_t *object = setting_json(policy, source->rule, (enum policy_setting)setting);

            json_object_set_new(
                object, "when_set",
                json_string(source->value->when_set == POLICY_WHEN_SET_KEEP ? "keep" : "replace"));
            json_array_append_new(array, object);
        }
    }
    return array;
}

static json_t *alternatives_json(const struct policy *policy, const struct decision *decision)
{
    json_t *array = json_array();

    for (size_t i = 0; i < decision->rule_count; i++) {
        const struct decision_rule *row = &decision->rules[i];

        for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
            unsigned group = 1U << policy_setting_group((enum policy_setting)setting);

            if (row->rule->settings[setting].action != POLICY_ACTION_ABSENT &&
                (row->perhaps & group) != 0) {
                json_array_append_new(
                    array, setting_json(policy, row->rule, (enum policy_setting)setting));
            }
        }
    }
    return array;
}

static json_t *rules_json(const struct policy *policy, const struct decision *decision)
{
    json_t *array = json_array();

    for (size_t i = 0; i < decision->rule_count; i++) {
        const struct decision_rule *row = &decision->rules[i];
        char *reason = why(row);
        json_t *object = json_pack(
            "{s:o, s:I, s:b, s:s, s:s?, s:o}", "rule", json_output_string(row->rule->name), "line",
            (json_int_t)row->rule->place.line, "final", row->rule->final, "matches",
            answer_word(row), "selector", row->reached ? row->verdict.key : NULL, "why",
            json_output_string(reason));

        add_layer(object, policy, row->rule->layer);
        json_array_append_new(array, object);
        free(reason);
    }
    return array;
}

json_t *explain_json(const struct policy *policy, const struct match_facts *facts)
{
    struct decision decision;
    json_t *document;

    decision_make(policy, facts, &decision);
    document = json_pack(
        "{s:o, s:o, s:o, s:o, s:o}", "name", json_output_string(facts->name.name), "library",
        facts->library != NULL ? json_output_string(facts->library) : json_null(), "rules",
        rules_json(policy, &decision), "settings", settings_json(policy, &decision), "if",
        alternatives_json(policy, &decision));
    decision_release(&decision);
    return document;
}
