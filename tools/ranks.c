/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* A number that a fact holds as text; -1 where it is none. */
static int64_t number_of(const json_t *facts, const char *key)
{
    const char *text = results_text(facts, key);
    char *end;
    long long number;

    if (text[0] < '0' || text[0] > '9') {
        return -1;
    }
    number = strtoll(text, &end, 10);
    return *end == '\0' && number < INT64_MAX ? number : -1;
}

/* ---- Counts -------------------------------------------------------------------------------------
 */

static void add_count(struct rank_counts *counts, int64_t rank, int64_t launches, int64_t applied)
{
    counts->items =
        memory_grow(counts->items, counts->count, &counts->capacity, sizeof *counts->items);
    counts->items[counts->count] = (struct rank_count){.rank = rank};
    results_add_count(&counts->items[counts->count].launches, launches);
    results_add_count(&counts->items[counts->count++].applied, applied);
}

static struct rank_counts *counts_at(struct rank_counts **counts, size_t *count, size_t *capacity,
                                     size_t place)
{
    while (*count <= place) {
        *counts = memory_grow(*counts, *count, capacity, sizeof **counts);
        (*counts)[(*count)++] = (struct rank_counts){0};
    }
    return &(*counts)[place];
}

/* Streams count as launches do: of most rules there is only one of both. */
static void add_rule(struct ranks *ranks, const struct results *results, const json_t *rule,
                     int64_t rank)
{
    const json_t *streams = json_object_get(rule, "on_streams");
    size_t place = results_find_rule(results, results_text(rule, "section"),
                                     results_text(rule, "name"), results_text(rule, "layer"));
    int64_t seen = 0, applied = 0;

    results_add_count(&seen, results_number(rule, "launches"));
    results_add_count(&seen, results_number(streams, "streams"));
    results_add_count(&applied, results_number(rule, "applied"));
    results_add_count(&applied, results_number(streams, "applied"));
    if (place != SIZE_MAX && seen > 0) {
        add_count(counts_at(&ranks->rules, &ranks->rule_count, &ranks->rule_capacity, place), rank,
                  seen, applied);
    }
}

static void add_kernel(struct ranks *ranks, size_t place, const json_t *kernel, int64_t rank)
{
    add_count(counts_at(&ranks->kernels, &ranks->kernel_count, &ranks->kernel_capacity, place),
              rank, results_number(kernel, "launches"), 0);
}

/* ---- Facts --------------------------------------------------------------------------------------
 */

static void add_fact(struct ranks *ranks, struct results *results, const char *key,
                     const char *value, int64_t rank)
{
    ranks->facts =
        memory_grow(ranks->facts, ranks->fact_count, &ranks->fact_capacity, sizeof *ranks->facts);
    ranks->facts[ranks->fact_count++] = (struct rank_fact){
        .key = results_keep(results, key), .value = results_keep(results, value), .rank = rank};
}

static void add_fact_of(struct ranks *ranks, struct results *results, const json_t *facts,
                        const char *section, const char *key, int64_t rank)
{
    const char *value = results_text(json_object_get(facts, section), key);
    char *name = memory_format("%s %s", section, key);

    if (value[0] != '\0') {
        add_fact(ranks, results, name, value, rank);
    }
    free(name);
}

/* Which devices a rank sees, and where its files are, differs from rank to rank by design. */
static bool is_to_agree(const char *variable)
{
    return strcmp(variable, "CUDA_VISIBLE_DEVICES") != 0 &&
           (strncmp(variable, "NCCL_", 5) == 0 || strncmp(variable, "CUDA_", 5) == 0);
}

static void add_facts(struct ranks *ranks, struct results *results, const json_t *document,
                      int64_t rank)
{
    static const char *const of_device[] = {"name", "multiprocessors", "memory_sync_domains"};
    json_t *facts = json_object_get(document, "facts"), *value;
    const char *key;

    add_fact(ranks, results, "mode", results_text(document, "mode"), rank);
    add_fact_of(ranks, results, facts, "policy", "sha256", rank);
    add_fact_of(ranks, results, facts, "site", "sha256", rank);
    add_fact_of(ranks, results, facts, "driver", "version", rank);
    for (size_t i = 0; i < sizeof of_device / sizeof of_device[0]; i++) {
        add_fact_of(ranks, results, facts, "gpu0", of_device[i], rank);
    }
    json_object_foreach(json_object_get(facts, "libraries"), key, value)
    {
        const char *slash = strrchr(key, '/');
        char *name = memory_format("library %s", slash != NULL ? slash + 1 : key);

        add_fact(ranks, results, name, json_is_string(value) ? json_string_value(value) : "", rank);
        free(name);
    }
    json_object_foreach(json_object_get(facts, "environment"), key, value)
    {
        if (is_to_agree(key)) {
            add_fact_of(ranks, results, facts, "environment", key, rank);
        }
    }
    if (results_text(json_object_get(facts, "job"), "world_size")[0] != '\0') {
        add_fact_of(ranks, results, facts, "job", "world_size", rank);
    }
}

void ranks_add(struct ranks *ranks, struct results *results, const json_t *document)
{
    const json_t *facts = json_object_get(document, "facts");
    const json_t *job = json_object_get(facts, "job");
    const json_t *ancestors = json_object_get(json_object_get(facts, "process"), "ancestors");
    int64_t rank = number_of(job, "rank"), world_size = number_of(job, "world_size");
    json_t *object;
    size_t i;

    if (ranks->process_count == 0) {
        ranks->world_size = -1;
    }
    if (rank < 0) {
        return;
    }
    if (world_size > ranks->world_size) {
        ranks->world_size = world_size;
    }
    ranks->processes = memory_grow(ranks->processes, ranks->process_count, &ranks->process_capacity,
                                   sizeof *ranks->processes);
    ranks->processes[ranks->process_count++] = (struct rank_process){
        .rank = rank,
        .process = results->process_count - 1,
        .ancestors =
            json_is_string(ancestors) ? results_keep(results, json_string_value(ancestors)) : NULL,
    };
    add_facts(ranks, results, document, rank);
    json_array_foreach(json_object_get(document, "rules"), i, object)
    {
        add_rule(ranks, results, object, rank);
    }
    json_array_foreach(json_object_get(document, "kernels"), i, object)
    {
        add_kernel(ranks, results->last_kernels[i], object, rank);
    }
}

void ranks_release(struct ranks *ranks)
{
    for (size_t i = 0; i < ranks->rule_count; i++) {
        free(ranks->rules[i].items);
    }
    for (size_t i = 0; i < ranks->kernel_count; i++) {
        free(ranks->kernels[i].items);
    }
    free(ranks->processes);
    free(ranks->rules);
    free(ranks->kernels);
    free(ranks->facts);
    *ranks = (struct ranks){0};
}
