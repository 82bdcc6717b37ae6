/* SPDX-License-Identifier: Apache-2.0 */
#include "rank_set.h"

#include <stdlib.h>

#include "memory.h"

enum {
    RUNS_SHOWN = 12,
};

static void add_run(struct rank_set *set, int64_t first, int64_t last)
{
    set->runs = memory_grow(set->runs, set->count, &set->capacity, sizeof *set->runs);
    set->runs[set->count++] = (struct rank_run){.first = first, .last = last};
    set->size += last - first + 1;
}

void rank_set_add(struct rank_set *set, int64_t rank)
{
    struct rank_run *last = set->count > 0 ? &set->runs[set->count - 1] : NULL;

    if (last == NULL || rank > last->last + 1) {
        add_run(set, rank, rank);
    } else if (rank == last->last + 1) {
        last->last = rank;
        set->size++;
    }
}

void rank_set_complement(const struct rank_set *set, int64_t size, struct rank_set *complement)
{
    int64_t next = 0;

    for (size_t i = 0; i < set->count && next < size; i++) {
        int64_t first = set->runs[i].first < size ? set->runs[i].first : size;

        if (first > next) {
            add_run(complement, next, first - 1);
        }
        next = set->runs[i].last + 1;
    }
    if (next < size) {
        add_run(complement, next, size - 1);
    }
}

void rank_set_without(const struct rank_set *all, const struct rank_set *set, struct rank_set *rest)
{
    size_t at = 0;

    for (size_t i = 0; i < all->count; i++) {
        for (int64_t rank = all->runs[i].first; rank <= all->runs[i].last; rank++) {
            while (at < set->count && set->runs[at].last < rank) {
                at++;
            }
            if (at == set->count || rank < set->runs[at].first) {
                rank_set_add(rest, rank);
            }
        }
    }
}

char *rank_set_text(const struct rank_set *set)
{
    char *text = memory_copy("");

    for (size_t i = 0; i < set->count; i++) {
        const struct rank_run *run = &set->runs[i];
        const char *comma = i > 0 ? "," : "";
        char *longer;

        if (i == RUNS_SHOWN) {
            longer = memory_format("%s,...", text);
        } else if (run->first == run->last) {
            longer = memory_format("%s%s%lld", text, comma, (long long)run->first);
        } else {
            longer = memory_format("%s%s%lld-%lld", text, comma, (long long)run->first,
                                   (long long)run->last);
        }
        free(text);
        text = longer;
        if (i == RUNS_SHOWN) {
            break;
        }
    }
    return text;
}

json_t *rank_set_json(const struct rank_set *set)
{
    json_t *array = json_array();

    for (size_t i = 0; i < set->count; i++) {
        json_array_append_new(array, json_pack("[I, I]", (json_int_t)set->runs[i].first,
                                               (json_int_t)set->runs[i].last));
    }
    return array;
}

void rank_set_release(struct rank_set *set)
{
    free(set->runs);
    *set = (struct rank_set){0};
}
