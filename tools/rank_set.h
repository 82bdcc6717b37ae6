/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_RANK_SET_H
#define CUDAPOLICY_TOOLS_RANK_SET_H

/* A set of ranks, as runs of ranks that follow one another: small however many there are. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rank_run {
    int64_t first, last;
};

struct rank_set {
    size_t count, capacity; /* runs */
    struct rank_run *runs;  /* in order, with a gap between any two */
    int64_t size;           /* ranks */
};

/* Adds a rank that is none before the last one added; one that is there already stays. */
void rank_set_add(struct rank_set *set, int64_t rank);

/* The ranks from 0 to below size that are not in the set. */
void rank_set_complement(const struct rank_set *set, int64_t size, struct rank_set *complement);

/* Those of `all` that are not in the set. */
void rank_set_without(const struct rank_set *all, const struct rank_set *set,
                      struct rank_set *rest);

/* "3", "0-3,7"; beyond some length ended by "...". To be freed. */
char *rank_set_text(const struct rank_set *set);

/* [[0, 3], [7, 7]]. */
json_t *rank_set_json(const struct rank_set *set);

void rank_set_release(struct rank_set *set);

#endif
