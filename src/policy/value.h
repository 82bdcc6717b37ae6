/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_POLICY_VALUE_H
#define CUDAPOLICY_POLICY_VALUE_H

/*
 * The text of one value, read as what its key wants. Each function reports every mistake in the
 * text, at its column, and returns false when there was one (or, where it allocates, when memory
 * ran out; it then sets out_of_memory and reports nothing).
 */

#include <stdbool.h>

#include "policy/arena.h"
#include "policy/vocabulary.h"

struct policy_value_text {
    const struct policy_key_entry *key;
    const char *text; /* not empty, no blanks at its ends unless quoted */
    struct policy_place place;
    struct policy_diagnostics *diagnostics;
    struct policy_arena *arena;
    bool out_of_memory;
};

bool policy_value_word(struct policy_value_text *value, int *word);
bool policy_value_integer(struct policy_value_text *value, int64_t *number);
bool policy_value_domain_map(struct policy_value_text *value, uint8_t *default_domain,
                             uint8_t *remote_domain);
bool policy_value_cluster(struct policy_value_text *value, union policy_value *result);
bool policy_value_carveout(struct policy_value_text *value, int32_t *carveout);
bool policy_value_sm_count(struct policy_value_text *value, enum policy_partition_kind *kind,
                           uint32_t *number);
bool policy_value_even(struct policy_value_text *value, uint32_t *number);

/* These add to the list. */
bool policy_value_ranges(struct policy_value_text *value, struct policy_ranges *ranges);
bool policy_value_devices(struct policy_value_text *value, struct policy_devices *devices);
bool policy_value_text(struct policy_value_text *value, struct policy_globs *list);

/* One number or range, as in a list of them; offset is its place in the value. */
bool policy_value_range(struct policy_value_text *value, size_t offset, size_t length,
                        struct policy_range *range);

/* The next item of a list with commas, without blanks around it; false at the end of the list. An
 * empty item has length 0. *next starts at 0. */
struct policy_value_item {
    size_t offset, length;
};
bool policy_value_next(const struct policy_value_text *value, size_t *next,
                       struct policy_value_item *item);

/* The part of the text from begin to before end, without blanks around it. */
struct policy_value_item policy_trimmed(const char *text, size_t begin, size_t end);

/* Adds an error about the value at this offset in its text. */
void policy_value_error(struct policy_value_text *value, size_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
