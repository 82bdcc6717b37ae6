/* SPDX-License-Identifier: Apache-2.0 */
#include "report_diff.h"

#include <stdlib.h>
#include <string.h>

#include "json_output.h"
#include "memory.h"
#include "printable.h"
#include "summary.h"

enum {
    DIFF_SCHEMA = 1,
    NAME_WIDTH = 90,
    KERNELS_SHOWN = 20, /* of a kind, unless everything is asked for */
    NAMES_SHOWN = 5,    /* in one line */
};

static const char *const change_words[] = {
    [DIFF_SAME] = "kernels gone", [DIFF_STOPPED] = "stopped", [DIFF_BEGAN] = "began",
    [DIFF_REMOVED] = "removed",   [DIFF_ADDED] = "added",     [DIFF_CHANGED] = "changed",
};

/* ---- Text ---------------------------------------------------------------------------------------
 */

/* The name, or all that tells it from another of that name; to be freed. */
static char *shown(const struct results_kernel *kernel, bool whole, bool wide)
{
    char *text = printable_copy(whole ? kernel->signature : kernel->name);
    char *shorter = wide ? NULL : printable_shorten(text, NAME_WIDTH);

    if (shorter != NULL) {
        free(text);
        return shorter;
    }
    return text;
}

static void print_kernel(const char *sign, const struct results_kernel *kernel, bool whole,
                         bool wide, FILE *stream)
{
    struct printable_count count;
    char *name = shown(kernel, whole, wide), *library = printable_copy(kernel->library);

    fprintf(stream, "%s kernel %s (%s, %s launch%s)\n", sign, name,
            library[0] != '\0' ? library : "?", printable_count(&count, kernel->launches.total),
            kernel->launches.total == 1 ? "" : "es");
    free(name);
    free(library);
}

static void print_more(size_t count, size_t limit, const char *what, FILE *stream)
{
    if (count > limit) {
        fprintf(stream, "%zu more kernels that are %s: see --wide\n", count - limit, what);
    }
}

static void print_vanished(const struct report_diff *diff, bool wide, FILE *stream)
{
    size_t limit = wide ? SIZE_MAX : KERNELS_SHOWN;

    for (size_t i = 0; i < diff->vanished_count && i < limit; i++) {
        const struct diff_vanished *vanished = &diff->vanished[i];
        bool whole = vanished->nearest_count > 0 && vanished->nearest[0].how == NEAREST_ARGUMENTS;

        print_kernel("-", vanished->kernel, whole, wide, stream);
        for (size_t near = 0; near < vanished->nearest_count; near++) {
            char *name = shown(vanished->nearest[near].kernel, whole, wide);

            fprintf(stream, "    near: %s (%s)\n", name,
                    nearest_how_text(vanished->nearest[near].how));
            free(name);
        }
    }
    print_more(diff->vanished_count, limit, "gone", stream);
}

static void print_kernels(const struct report_diff *diff, bool wide, FILE *stream)
{
    size_t limit = wide ? SIZE_MAX : KERNELS_SHOWN;

    print_vanished(diff, wide, stream);
    for (size_t i = 0; i < diff->appeared.count && i < limit; i++) {
        print_kernel("+", diff->appeared.kernels[i], false, wide, stream);
    }
    print_more(diff->appeared.count, limit, "new", stream);
    for (size_t i = 0; i < diff->moved_count && i < limit; i++) {
        const struct diff_moved *moved = &diff->moved[i];
        char *name = shown(moved->kernel, false, wide);
        char *library = printable_copy(moved->kernel->library);
        char *other = printable_copy(moved->other->library);

        fprintf(stream, "kernel %s: launched by %s before, by %s now\n", name, library, other);
        free(name);
        free(library);
        free(other);
    }
    print_more(diff->moved_count, limit, "launched by another library", stream);
}

/* Kernels of one short name, as a template has them, are one entry with their number. */
static void print_names(const char *rule, const struct diff_names *names, const char *text,
                        bool wide, FILE *stream)
{
    char **texts = memory_allocate(names->count + 1, sizeof *texts);
    size_t limit = wide ? SIZE_MAX : NAMES_SHOWN, entries = 0, printed = 0;

    for (size_t i = 0; i < names->count; i++) {
        texts[i] = shown(names->kernels[i], false, wide);
    }
    if (names->count > 0) {
        fprintf(stream, "rule %s %s", rule, text);
    }
    for (size_t i = 0; i < names->count && entries < limit; i++) {
        size_t same = 1;

        while (i + same < names->count && strcmp(texts[i], texts[i + same]) == 0) {
            same++;
        }
        fprintf(stream, "%s %s", entries++ > 0 ? "," : "", texts[i]);
        if (same > 1) {
            fprintf(stream, " (%zu kernels of that name)", same);
        }
        printed += same;
        i += same - 1;
    }
    if (names->count > printed) {
        fprintf(stream, " and %zu more", names->count - printed);
    }
    if (names->count > 0) {
        fputc('\n', stream);
    }
    for (size_t i = 0; i < names->count; i++) {
        free(texts[i]);
    }
    free(texts);
}

static const struct results_rule *either(const struct diff_rule *rule)
{
    return rule->old != NULL ? rule->old : rule->new;
}

static char *rule_name(const struct diff_rule *rule)
{
    char *text = results_rule_title(either(rule));
    char *name = printable_copy(text);

    free(text);
    return name;
}

static void print_change(const char *name, enum diff_change change, FILE *stream)
{
    switch (change) {
    case DIFF_STOPPED:
        fprintf(stream, "- rule %s matched before, and nothing now\n", name);
        break;
    case DIFF_BEGAN:
        fprintf(stream, "+ rule %s matched nothing before, and does now\n", name);
        break;
    case DIFF_REMOVED:
        fprintf(stream, "- rule %s is not in the new policy\n", name);
        break;
    case DIFF_ADDED:
        fprintf(stream, "+ rule %s is not in the old policy\n", name);
        break;
    case DIFF_SAME:
    case DIFF_CHANGED:
        break;
    }
}

static void print_rule(const struct diff_rule *rule, bool wide, FILE *stream)
{
    char *name = rule_name(rule);

    print_change(name, rule->change, stream);
    for (size_t i = 0; i < rule->line_count; i++) {
        char *line = printable_copy(rule->lines[i]);

        fprintf(stream, "rule %s: %s\n", name, line);
        free(line);
    }
    if (rule->old != NULL && rule->new != NULL) {
        print_names(name, &rule->lost, "no longer decides on", wide, stream);
        print_names(name, &rule->gained, "now decides on", wide, stream);
    }
    print_names(name, &rule->missing, "decided on kernels that are gone:", wide, stream);
    free(name);
}

/* Last, and with nothing in front of its lines: to be copied. */
static void print_suggestions(const struct report_diff *diff, FILE *stream)
{
    for (size_t i = 0; i < diff->rule_count; i++) {
        if (diff->rules[i].suggestion != NULL) {
            char *name = rule_name(&diff->rules[i]);

            fprintf(stream, "\n# for what is near the kernels that rule %s lost%s:\n%s", name,
                    either(&diff->rules[i])->layer[0] != '\0' ? ", in the site's file" : "",
                    diff->rules[i].suggestion);
            free(name);
        }
    }
}

void report_diff_print(const struct report_diff *diff, bool wide, FILE *stream)
{
    for (size_t i = 0; i < diff->fact_count; i++) {
        const struct diff_fact *fact = &diff->facts[i];
        char *text = memory_format("%s: %s before, %s now", fact->key,
                                   fact->old[0] != '\0' ? fact->old : "none",
                                   fact->new[0] != '\0' ? fact->new : "none");
        char *line = printable_copy(text);

        fprintf(stream, "%s\n", line);
        free(line);
        free(text);
    }
    print_kernels(diff, wide, stream);
    for (size_t i = 0; i < diff->rule_count; i++) {
        print_rule(&diff->rules[i], wide, stream);
    }
    print_suggestions(diff, stream);
}

/* ---- JSON ---------------------------------------------------------------------------------------
 */

static json_t *kernel_json(const struct results_kernel *kernel)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:I}", "name", kernel->name, "signature",
                     kernel->signature, "mangled", kernel->mangled, "library", kernel->library,
                     "launches", (json_int_t)kernel->launches.total);
}

static json_t *names_json(const struct diff_names *names)
{
    json_t *array = json_array();

    for (size_t i = 0; i < names->count; i++) {
        json_array_append_new(array, kernel_json(names->kernels[i]));
    }
    return array;
}

static json_t *vanished_json(const struct report_diff *diff)
{
    json_t *array = json_array();

    for (size_t i = 0; i < diff->vanished_count; i++) {
        const struct diff_vanished *vanished = &diff->vanished[i];
        json_t *kernel = kernel_json(vanished->kernel), *nearest = json_array();

        for (size_t near = 0; near < vanished->nearest_count; near++) {
            json_t *one = kernel_json(vanished->nearest[near].kernel);

            json_object_set_new(one, "how",
                                json_string(nearest_how_text(vanished->nearest[near].how)));
            json_array_append_new(nearest, one);
        }
        json_object_set_new(kernel, "nearest", nearest);
        json_array_append_new(array, kernel);
    }
    return array;
}

static json_t *moved_json(const struct report_diff *diff)
{
    json_t *array = json_array();

    for (size_t i = 0; i < diff->moved_count; i++) {
        json_array_append_new(array,
                              json_pack("{s:s, s:s, s:s, s:s}", "name", diff->moved[i].kernel->name,
                                        "mangled", diff->moved[i].kernel->mangled, "old_library",
                                        diff->moved[i].kernel->library, "new_library",
                                        diff->moved[i].other->library));
    }
    return array;
}

static json_t *run_json(const struct results_rule *rule)
{
    if (rule == NULL) {
        return json_null();
    }
    return json_pack("{s:I, s:o, s:I, s:o}", "launches", (json_int_t)rule->launches.total,
                     "launch_outcomes", summary_outcomes_json(&rule->launch_outcomes), "streams",
                     (json_int_t)rule->streams, "stream_outcomes",
                     summary_outcomes_json(&rule->stream_outcomes));
}

static json_t *lines_json(const struct diff_rule *rule)
{
    json_t *array = json_array();

    for (size_t i = 0; i < rule->line_count; i++) {
        json_array_append_new(array, json_output_string(rule->lines[i]));
    }
    return array;
}

static json_t *rules_json(const struct report_diff *diff)
{
    json_t *array = json_array();

    for (size_t i = 0; i < diff->rule_count; i++) {
        const struct diff_rule *rule = &diff->rules[i];
        json_t *text =
            rule->suggestion != NULL ? json_output_string(rule->suggestion) : json_null();
        json_t *object = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "section",
                                   either(rule)->section, "name", either(rule)->name, "change",
                                   change_words[rule->change], "old", run_json(rule->old), "new",
                                   run_json(rule->new), "texts", lines_json(rule), "lost",
                                   names_json(&rule->lost), "gained", names_json(&rule->gained),
                                   "missing", names_json(&rule->missing), "suggestion", text);

        if (either(rule)->layer[0] != '\0') {
            json_object_set_new(object, "layer", json_string(either(rule)->layer));
        }
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *facts_json(const struct report_diff *diff)
{
    json_t *array = json_array();

    for (size_t i = 0; i < diff->fact_count; i++) {
        json_array_append_new(array, json_pack("{s:s, s:o, s:o}", "key", diff->facts[i].key, "old",
                                               json_output_string(diff->facts[i].old), "new",
                                               json_output_string(diff->facts[i].new)));
    }
    return array;
}

json_t *report_diff_json(const struct report_diff *diff)
{
    return json_pack("{s:s, s:i, s:b, s:o, s:o, s:o, s:o, s:o}", "format", "cudapolicy diff",
                     "schema", DIFF_SCHEMA, "same", diff->same, "vanished", vanished_json(diff),
                     "appeared", names_json(&diff->appeared), "moved", moved_json(diff), "rules",
                     rules_json(diff), "facts", facts_json(diff));
}
