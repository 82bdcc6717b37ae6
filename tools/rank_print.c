/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "printable.h"
#include "ranks.h"
#include "table.h"

enum {
    FINDINGS_SHOWN = 10, /* of a kind, unless everything is asked for */
};

static const char *const kind_words[RANK_FINDING_KINDS] = {
    [RANK_FINDING_DUPLICATE] = "duplicate rank",
    [RANK_FINDING_WORLD_SIZE] = "number of ranks",
    [RANK_FINDING_FACT] = "fact",
    [RANK_FINDING_RULE_SOME] = "rule on some ranks",
    [RANK_FINDING_RULE_FAR] = "rule far",
    [RANK_FINDING_KERNEL_SOME] = "kernel on some ranks",
    [RANK_FINDING_KERNEL_FAR] = "kernel far",
};

/* ---- Text ---------------------------------------------------------------------------------------
 */

static void print_head(const struct rank_comparison *comparison, int64_t world_size, FILE *stream)
{
    fprintf(stream, "reports of %lld", (long long)comparison->reported.size);
    if (world_size > 0) {
        fprintf(stream, " of %lld", (long long)world_size);
    }
    fprintf(stream, " rank%s on %zu host%s\n",
            comparison->reported.size == 1 && world_size <= 1 ? "" : "s", comparison->hosts,
            comparison->hosts == 1 ? "" : "s");
}

static void range_cell(struct table *table, int64_t least, int64_t most)
{
    struct printable_count one, other;

    if (least == most) {
        table_count(table, least);
    } else {
        table_cell(table, "%s..%s", printable_count(&one, least), printable_count(&other, most));
    }
}

static int most_first(const void *one_place, const void *other_place)
{
    const struct rank_row *one = *(const struct rank_row *const *)one_place;
    const struct rank_row *other = *(const struct rank_row *const *)other_place;
    int64_t launches = one->kernel->launches.total, other_launches = other->kernel->launches.total;

    if (launches != other_launches) {
        return launches < other_launches ? 1 : -1;
    }
    return strcmp(one->kernel->mangled, other->kernel->mangled);
}

static void add_cells(struct table *table, const struct rank_row *row)
{
    if (row->rule != NULL) {
        char *title = results_rule_title(row->rule);

        table_cell(table, "%s", title);
        free(title);
    } else {
        table_cell(table, "%s", row->kernel->name);
    }
    table_count(table, row->ranks.size);
    table_count(table, row->least);
    table_count(table, row->median);
    table_count(table, row->most);
    if (row->rule != NULL) {
        range_cell(table, row->applied_least, row->applied_most);
    }
}

static void print_rows(const struct rank_comparison *comparison, bool of_rules, bool wide,
                       FILE *stream)
{
    struct table *table = table_new();
    const struct rank_row **rows = memory_allocate(comparison->row_count + 1, sizeof *rows);
    size_t count = 0;

    table_column(table, of_rules ? "over ranks: rule" : "over ranks: kernel", TABLE_LEFT, true);
    table_column(table, "ranks", TABLE_RIGHT, false);
    table_column(table, "least", TABLE_RIGHT, false);
    table_column(table, "median", TABLE_RIGHT, false);
    table_column(table, "most", TABLE_RIGHT, false);
    if (of_rules) {
        table_column(table, "applied", TABLE_RIGHT, false);
    }
    for (size_t i = 0; i < comparison->row_count; i++) {
        if ((comparison->rows[i].rule != NULL) == of_rules) {
            rows[count++] = &comparison->rows[i];
        }
    }
    if (!of_rules) {
        qsort(rows, count, sizeof *rows, most_first);
    }
    for (size_t i = 0; i < count; i++) {
        add_cells(table, rows[i]);
    }
    if (count > 0) {
        table_print(table, stream, wide, "");
    }
    free(rows);
    table_free(table);
}

static void print_set(const struct rank_set *set, const char *before, const char *after,
                      FILE *stream)
{
    if (set->size > 0) {
        char *list = rank_set_text(set);

        fprintf(stream, "%s%s %s%s\n", before, set->size == 1 ? "" : "s", list, after);
        free(list);
    }
}

void rank_comparison_print_findings(const struct rank_comparison *comparison, bool wide,
                                    FILE *stream)
{
    size_t of_kind[RANK_FINDING_KINDS] = {0}, more = 0;

    for (size_t i = 0; i < comparison->finding_count; i++) {
        const struct rank_finding *finding = &comparison->findings[i];
        char *text;

        if (of_kind[finding->kind]++ >= FINDINGS_SHOWN && !wide) {
            more++;
            continue;
        }
        text = printable_copy(finding->text);
        fprintf(stream, "%s%s\n", finding->kind == RANK_FINDING_DUPLICATE ? "warning: " : "", text);
        free(text);
    }
    if (more > 0) {
        fprintf(stream, "%zu more difference%s between ranks: see --wide\n", more,
                more == 1 ? "" : "s");
    }
}

void rank_comparison_print(const struct rank_comparison *comparison, int64_t world_size,
                           bool kernels, bool wide, FILE *stream)
{
    if (comparison->reported.size == 0) {
        return;
    }
    print_head(comparison, world_size, stream);
    if (comparison->reported.size > 1) {
        print_rows(comparison, true, wide, stream);
        if (kernels) {
            print_rows(comparison, false, wide, stream);
        }
    }
    print_set(&comparison->missing, "no report of rank",
              ": no kernel was launched there, or the report is elsewhere", stream);
    print_set(&comparison->incomplete, "did not end in good order: rank", "", stream);
    rank_comparison_print_findings(comparison, wide, stream);
}

/* ---- JSON ---------------------------------------------------------------------------------------
 */

static json_t *rows_json(const struct rank_comparison *comparison, bool of_rules)
{
    json_t *array = json_array();

    for (size_t i = 0; i < comparison->row_count; i++) {
        const struct rank_row *row = &comparison->rows[i];
        json_t *object;

        if ((row->rule != NULL) != of_rules) {
            continue;
        }
        object = of_rules ? json_pack("{s:s, s:s, s:[I, I]}", "section", row->rule->section, "name",
                                      row->rule->name, "applied", (json_int_t)row->applied_least,
                                      (json_int_t)row->applied_most)
                          : json_pack("{s:s, s:s, s:s}", "name", row->kernel->name, "mangled",
                                      row->kernel->mangled, "library", row->kernel->library);
        if (of_rules && row->rule->layer[0] != '\0') {
            json_object_set_new(object, "layer", json_string(row->rule->layer));
        }
        json_object_set_new(object, "ranks", rank_set_json(&row->ranks));
        json_object_set_new(object, "least", json_integer((json_int_t)row->least));
        json_object_set_new(object, "median", json_integer((json_int_t)row->median));
        json_object_set_new(object, "most", json_integer((json_int_t)row->most));
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *findings_json(const struct rank_comparison *comparison)
{
    json_t *array = json_array();

    for (size_t i = 0; i < comparison->finding_count; i++) {
        const struct rank_finding *finding = &comparison->findings[i];

        json_array_append_new(array, json_pack("{s:s, s:s, s:o}", "kind", kind_words[finding->kind],
                                               "text", finding->text, "ranks",
                                               rank_set_json(&finding->ranks)));
    }
    return array;
}

json_t *rank_comparison_json(const struct rank_comparison *comparison, int64_t world_size)
{
    json_t *size = world_size >= 0 ? json_integer((json_int_t)world_size) : json_null();

    return json_pack(
        "{s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "world_size", size, "hosts",
        (json_int_t)comparison->hosts, "reported", rank_set_json(&comparison->reported), "missing",
        rank_set_json(&comparison->missing), "incomplete", rank_set_json(&comparison->incomplete),
        "rules", rows_json(comparison, true), "kernels", rows_json(comparison, false),
        "differences", findings_json(comparison));
}
