/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_METRIC_PARTS_H
#define CUDAPOLICY_TOOLS_AB_METRIC_PARTS_H

/* Between the files that read metrics: all values of a run before they are summarised. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "metric.h"

enum {
    /* Values of a run that are kept, over all ranks; later ones are passed over. */
    AB_VALUE_LIMIT = 1000000,
    AB_RANK_LIMIT = 65536,
};

struct ab_rank_values {
    size_t count, capacity;
    double *values;
};

struct ab_values {
    size_t rank_count, rank_capacity;
    struct ab_rank_values *ranks; /* in the order in which they were first seen */
    size_t count;                 /* over all ranks */
    json_t *index;                /* of ranks, by name; made when needed */
};

/* Adds a value to the rank with this name. Passed over beyond the limits. */
void ab_values_add(struct ab_values *values, const char *rank, double value);

/* A rank of its own, whatever its name: its number. */
size_t ab_values_add_rank(struct ab_values *values);
void ab_values_add_to(struct ab_values *values, size_t rank, double value);

void ab_values_release(struct ab_values *values);

/* metric_pattern.c and metric_json.c. The values of a run; false with the reason in error[size].
 * What was added before is still to be released. */
bool ab_pattern_values(const struct ab_metric *metric, const struct ab_run_files *files,
                       struct ab_values *values, char *error, size_t size);
bool ab_json_values(const struct ab_metric *metric, const struct ab_run_files *files,
                    struct ab_values *values, char *error, size_t size);

/* Whether the text behind "NAME=" of a JSON metric is well formed. */
bool ab_json_check(const char *definition, char *error, size_t size);

/* text, which is freed, with every name in it replaced; to be freed. */
char *ab_replace(char *text, const char *name, const char *value);

/* A path with {arm}, {block} and {position} replaced, absolute or below folder; to be freed. */
char *ab_place_of(const char *path, const struct ab_run_files *files);

#endif
