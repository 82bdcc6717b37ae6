/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "printable.h"

enum {
    /* A count is far from the others' when it is off the median by more than each of: */
    FAR_LAUNCHES = 10,  /* so many launches, */
    FAR_PERCENT = 25,   /* so much of the median, */
    FAR_DEVIATIONS = 5, /* so many median absolute deviations. */
    FAR_RANKS = 3,      /* Of fewer it cannot be said which one is off. */
    VALUES_SHOWN = 4,
};

struct rank_finding *rank_comparison_find(struct rank_comparison *comparison,
                                          enum rank_finding_kind kind, char *text)
{
    struct rank_finding *finding;

    comparison->findings = memory_grow(comparison->findings, comparison->finding_count,
                                       &comparison->finding_capacity, sizeof *finding);
    finding = &comparison->findings[comparison->finding_count++];
    *finding = (struct rank_finding){.kind = kind, .text = text};
    return finding;
}

/* ---- Ranks --------------------------------------------------------------------------------------
 */

static int by_rank(const void *one_place, const void *other_place)
{
    const struct rank_process *one = one_place, *other = other_place;

    if (one->rank != other->rank) {
        return one->rank < other->rank ? -1 : 1;
    }
    return one->process < other->process ? -1 : one->process > other->process;
}

static size_t count_hosts(const struct ranks *ranks, const struct results *results)
{
    json_t *hosts = json_object();
    size_t count;

    for (size_t i = 0; i < ranks->process_count; i++) {
        json_object_set_new_nocheck(hosts, results->processes[ranks->processes[i].process].host,
                                    json_null());
    }
    count = json_object_size(hosts);
    json_decref(hosts);
    return count;
}

static void collect_ranks(const struct ranks *ranks, const struct results *results,
                          struct rank_comparison *comparison)
{
    for (size_t i = 0; i < ranks->process_count; i++) {
        const struct results_process *process = &results->processes[ranks->processes[i].process];

        rank_set_add(&comparison->reported, ranks->processes[i].rank);
        if (!process->complete && !results_was_replaced(results, process)) {
            rank_set_add(&comparison->incomplete, ranks->processes[i].rank);
        }
    }
    rank_set_complement(&comparison->reported, ranks->world_size, &comparison->missing);
    comparison->hosts = count_hosts(ranks, results);
}

/* ---- Counts -------------------------------------------------------------------------------------
 */

static int by_rank_of_count(const void *one_place, const void *other_place)
{
    const struct rank_count *one = one_place, *other = other_place;

    return one->rank < other->rank ? -1 : one->rank > other->rank;
}

/* One for each rank: its processes together. */
static void sum_by_rank(struct rank_counts *counts)
{
    size_t kept = 0;

    if (counts->count == 0) {
        return;
    }
    qsort(counts->items, counts->count, sizeof *counts->items, by_rank_of_count);
    for (size_t i = 0; i < counts->count; i++) {
        if (kept > 0 && counts->items[kept - 1].rank == counts->items[i].rank) {
            results_add_count(&counts->items[kept - 1].launches, counts->items[i].launches);
            results_add_count(&counts->items[kept - 1].applied, counts->items[i].applied);
        } else {
            counts->items[kept++] = counts->items[i];
        }
    }
    counts->count = kept;
}

static int by_number(const void *one_place, const void *other_place)
{
    const int64_t *one = one_place, *other = other_place;

    return *one < *other ? -1 : *one > *other;
}

/* The lower one of the two in the middle. Sorts the numbers. */
static int64_t median_of(int64_t *numbers, size_t count)
{
    qsort(numbers, count, sizeof *numbers, by_number);
    return numbers[(count - 1) / 2];
}

static int64_t distance(int64_t one, int64_t other)
{
    return one > other ? one - other : other - one;
}

static struct rank_row row_of(const struct rank_counts *counts, int64_t *deviation)
{
    struct rank_row row = {.applied_least = INT64_MAX};
    int64_t *numbers = memory_allocate(counts->count, sizeof *numbers);

    for (size_t i = 0; i < counts->count; i++) {
        const struct rank_count *count = &counts->items[i];

        numbers[i] = count->launches;
        rank_set_add(&row.ranks, count->rank);
        row.applied_least = count->applied < row.applied_least ? count->applied : row.applied_least;
        row.applied_most = count->applied > row.applied_most ? count->applied : row.applied_most;
    }
    row.median = median_of(numbers, counts->count);
    row.least = numbers[0];
    row.most = numbers[counts->count - 1];
    for (size_t i = 0; i < counts->count; i++) {
        numbers[i] = distance(counts->items[i].launches, row.median);
    }
    *deviation = median_of(numbers, counts->count);
    free(numbers);
    return row;
}

static char *name_of(const struct rank_row *row)
{
    char *title = row->rule != NULL ? results_rule_title(row->rule) : NULL;
    char *name = title != NULL ? memory_format("rule %s", title)
                               : memory_format("kernel %s", row->kernel->name);

    free(title);
    return name;
}

static char *plural_of(const struct rank_set *ranks)
{
    char *list = rank_set_text(ranks);
    char *text = memory_format("rank%s %s", ranks->size == 1 ? "" : "s", list);

    free(list);
    return text;
}

/* Few or many: the shorter list of the two says it. */
static void find_some(struct rank_comparison *comparison, const struct rank_row *row)
{
    struct rank_set others = {0};
    bool few = 2 * row->ranks.size <= comparison->reported.size;
    char *name = name_of(row), *list;
    struct rank_finding *finding;

    if (row->ranks.size == comparison->reported.size) {
        free(name);
        return;
    }
    rank_set_without(&comparison->reported, &row->ranks, &others);
    list = plural_of(few ? &row->ranks : &others);
    finding = rank_comparison_find(
        comparison, row->rule != NULL ? RANK_FINDING_RULE_SOME : RANK_FINDING_KERNEL_SOME,
        memory_format(row->rule != NULL
                          ? (few ? "%s matched on %s only" : "%s matched nothing on %s")
                          : (few ? "%s ran on %s only" : "%s did not run on %s"),
                      name, list));
    if (few) {
        for (size_t i = 0; i < row->ranks.count; i++) {
            for (int64_t rank = row->ranks.runs[i].first; rank <= row->ranks.runs[i].last; rank++) {
                rank_set_add(&finding->ranks, rank);
            }
        }
        rank_set_release(&others);
    } else {
        finding->ranks = others;
    }
    free(list);
    free(name);
}

static bool is_far(int64_t launches, int64_t median, int64_t deviation)
{
    int64_t off = distance(launches, median);

    return off > FAR_LAUNCHES &&
           off > median / 100 * FAR_PERCENT + median % 100 * FAR_PERCENT / 100 &&
           off / FAR_DEVIATIONS >= deviation && off > deviation;
}

static void find_far(struct rank_comparison *comparison, const struct rank_row *row,
                     const struct rank_counts *counts, int64_t deviation)
{
    struct rank_set far = {0};
    struct printable_count least, most, median;
    int64_t low = INT64_MAX, high = 0;
    char *name, *list, *range;

    for (size_t i = 0; counts->count >= FAR_RANKS && i < counts->count; i++) {
        int64_t launches = counts->items[i].launches;

        if (is_far(launches, row->median, deviation)) {
            rank_set_add(&far, counts->items[i].rank);
            low = launches < low ? launches : low;
            high = launches > high ? launches : high;
        }
    }
    if (far.size == 0) {
        return;
    }
    name = name_of(row);
    list = plural_of(&far);
    range = low == high ? memory_format("%s", printable_count(&least, low))
                        : memory_format("%s to %s", printable_count(&least, low),
                                        printable_count(&most, high));
    rank_comparison_find(comparison,
                         row->rule != NULL ? RANK_FINDING_RULE_FAR : RANK_FINDING_KERNEL_FAR,
                         memory_format("%s: %s on %s, against a median of %s", name, range, list,
                                       printable_count(&median, row->median)))
        ->ranks = far;
    free(name);
    free(list);
    free(range);
}

static void add_row(struct rank_comparison *comparison, struct rank_counts *counts,
                    const struct results_rule *rule, const struct results_kernel *kernel)
{
    struct rank_row row;
    int64_t deviation;

    sum_by_rank(counts);
    if (counts->count == 0) {
        return;
    }
    row = row_of(counts, &deviation);
    row.rule = rule;
    row.kernel = kernel;
    comparison->rows = memory_grow(comparison->rows, comparison->row_count,
                                   &comparison->row_capacity, sizeof *comparison->rows);
    comparison->rows[comparison->row_count++] = row;
    find_some(comparison, &row);
    find_far(comparison, &row, counts, deviation);
}

/* ---- Facts --------------------------------------------------------------------------------------
 */

static int by_key_and_value(const void *one_place, const void *other_place)
{
    const struct rank_fact *one = one_place, *other = other_place;
    int order = one->key == other->key ? 0 : strcmp(one->key, other->key);

    if (order == 0 && one->value != other->value) {
        order = strcmp(one->value, other->value);
    }
    return order != 0 ? order : one->rank < other->rank ? -1 : one->rank > other->rank;
}

/* A value, and the ranks that have it. */
struct fact_value {
    const char *value;
    struct rank_set ranks;
};

static void append(char **text, char *more)
{
    char *longer = memory_format("%s%s", *text, more);

    free(*text);
    free(more);
    *text = longer;
}

/* Those beside the value that most ranks have are the odd ones. */
static void find_difference(struct rank_comparison *comparison, const char *key,
                            struct fact_value *values, size_t count)
{
    bool size = strcmp(key, "job world_size") == 0;
    char *text = memory_format("%s differs:", size ? "the number of ranks" : key);
    size_t most = 0;
    struct rank_finding *finding;

    for (size_t i = 0; i < count; i++) {
        most = values[i].ranks.size > values[most].ranks.size ? i : most;
        if (i < VALUES_SHOWN) {
            char *list = plural_of(&values[i].ranks);
            char *value = printable_shorten(values[i].value, 60);

            append(&text, memory_format("%s %s on %s", i > 0 ? "," : "", value, list));
            free(value);
            free(list);
        }
    }
    if (count > VALUES_SHOWN) {
        append(&text, memory_format(", and %zu more", count - VALUES_SHOWN));
    }
    finding =
        rank_comparison_find(comparison, size ? RANK_FINDING_WORLD_SIZE : RANK_FINDING_FACT, text);
    rank_set_without(&comparison->reported, &values[most].ranks, &finding->ranks);
}

/* The facts of one key, sorted. */
static void look_at_fact(const struct rank_fact *facts, size_t count,
                         struct rank_comparison *comparison)
{
    struct fact_value *values = memory_allocate(count + 1, sizeof *values);
    struct rank_set with = {0}, without = {0};
    size_t value_count = 0;
    int64_t *with_ranks = memory_allocate(count, sizeof *with_ranks);

    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(facts[i].value, facts[i - 1].value) != 0) {
            values[value_count++].value = facts[i].value;
        }
        rank_set_add(&values[value_count - 1].ranks, facts[i].rank);
        with_ranks[i] = facts[i].rank;
    }
    qsort(with_ranks, count, sizeof *with_ranks, by_number);
    for (size_t i = 0; i < count; i++) {
        rank_set_add(&with, with_ranks[i]);
    }
    rank_set_without(&comparison->reported, &with, &without);
    if (without.size > 0) {
        values[value_count++] = (struct fact_value){.value = "(none)", .ranks = without};
    }
    if (value_count > 1) {
        find_difference(comparison, facts[0].key, values, value_count);
    }
    for (size_t i = 0; i < value_count; i++) {
        rank_set_release(&values[i].ranks);
    }
    rank_set_release(&with);
    free(with_ranks);
    free(values);
}

static void compare_facts(struct ranks *ranks, struct rank_comparison *comparison)
{
    if (ranks->fact_count == 0) {
        return;
    }
    qsort(ranks->facts, ranks->fact_count, sizeof *ranks->facts, by_key_and_value);
    for (size_t from = 0, to; from < ranks->fact_count; from = to) {
        to = from + 1;
        while (to < ranks->fact_count &&
               strcmp(ranks->facts[to].key, ranks->facts[from].key) == 0) {
            to++;
        }
        look_at_fact(&ranks->facts[from], to - from, comparison);
    }
}

/* ---- All ----------------------------------------------------------------------------------------
 */

static int by_kind(const void *one_place, const void *other_place)
{
    const struct rank_finding *one = one_place, *other = other_place;

    if (one->kind != other->kind) {
        return one->kind < other->kind ? -1 : 1;
    }
    return strcmp(one->text, other->text);
}

void ranks_compare(struct ranks *ranks, const struct results *results,
                   struct rank_comparison *comparison)
{
    *comparison = (struct rank_comparison){0};
    if (ranks->process_count == 0) {
        return;
    }
    qsort(ranks->processes, ranks->process_count, sizeof *ranks->processes, by_rank);
    collect_ranks(ranks, results, comparison);
    ranks_find_duplicates(ranks, results, comparison);
    compare_facts(ranks, comparison);
    for (size_t i = 0; i < ranks->rule_count; i++) {
        add_row(comparison, &ranks->rules[i], &results->rules[i], NULL);
    }
    for (size_t i = 0; i < ranks->kernel_count; i++) {
        add_row(comparison, &ranks->kernels[i], NULL, &results->kernels[i]);
    }
    if (comparison->finding_count > 0) {
        qsort(comparison->findings, comparison->finding_count, sizeof *comparison->findings,
              by_kind);
    }
}

void rank_comparison_release(struct rank_comparison *comparison)
{
    for (size_t i = 0; i < comparison->row_count; i++) {
        rank_set_release(&comparison->rows[i].ranks);
    }
    for (size_t i = 0; i < comparison->finding_count; i++) {
        rank_set_release(&comparison->findings[i].ranks);
        free(comparison->findings[i].text);
    }
    free(comparison->rows);
    free(comparison->findings);
    rank_set_release(&comparison->reported);
    rank_set_release(&comparison->missing);
    rank_set_release(&comparison->incomplete);
    *comparison = (struct rank_comparison){0};
}
