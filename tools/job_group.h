/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_JOB_GROUP_H
#define CUDAPOLICY_TOOLS_JOB_GROUP_H

/*
 * Reports told apart by what they belong to: a job of the batch system, its step, one call of a
 * launcher in it, one of several attempts. Ranks count from 0 in each of them.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "ranks.h"
#include "results.h"

enum job_group_key {
    JOB_GROUP_ID,
    JOB_GROUP_STEP,
    JOB_GROUP_LAUNCH,
    JOB_GROUP_ARRAY,
    JOB_GROUP_ARRAY_TASK,
    JOB_GROUP_RESTART,
    JOB_GROUP_KEYS
};

struct job_group {
    const char *keys[JOB_GROUP_KEYS]; /* "": not told */
    struct results results;
    struct ranks ranks;
};

struct job_groups {
    size_t count, capacity;
    struct job_group **groups; /* in the order in which they came, sorted by job_groups_sort */
    json_t *index;
};

/* As results_load does, with each report added to the group to which it belongs. */
bool job_groups_load(struct job_groups *groups, const char *path);

/* The same for reports that the results get as well, which may hold others. */
struct job_groups_and_results {
    struct job_groups *groups;
    struct results *results;
};
bool job_groups_load_both(struct job_groups_and_results *both, const char *path);

/* By job and step; numbers as numbers. */
void job_groups_sort(struct job_groups *groups);

/* "job 42, step 0, launch NAME, restart 1", or "no job". To be freed. */
char *job_group_text(const struct job_group *group);

/* {"id": "42", "step": "0"}, of what is told. */
json_t *job_group_json(const struct job_group *group);

void job_groups_release(struct job_groups *groups);

#endif
