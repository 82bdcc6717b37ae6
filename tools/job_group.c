/* SPDX-License-Identifier: Apache-2.0 */
#include "job_group.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* As the reports have them under facts.job. */
static const char *const report_keys[JOB_GROUP_KEYS] = {
    [JOB_GROUP_ID] = "id",
    [JOB_GROUP_STEP] = "step",
    [JOB_GROUP_LAUNCH] = "launch",
    [JOB_GROUP_ARRAY] = "array_job",
    [JOB_GROUP_ARRAY_TASK] = "array_task",
    [JOB_GROUP_RESTART] = "restart",
};

static const char *const words[JOB_GROUP_KEYS] = {
    [JOB_GROUP_ID] = "job",          [JOB_GROUP_STEP] = "step",
    [JOB_GROUP_LAUNCH] = "launch",   [JOB_GROUP_ARRAY] = "of array",
    [JOB_GROUP_ARRAY_TASK] = "task", [JOB_GROUP_RESTART] = "restart",
};

static struct job_group *group_of(struct job_groups *groups, const json_t *document)
{
    const json_t *job = json_object_get(json_object_get(document, "facts"), "job");
    json_t *place, *texts = json_array();
    struct job_group *group;
    char *key;

    for (int i = 0; i < JOB_GROUP_KEYS; i++) {
        json_array_append_new(texts, json_string(results_text(job, report_keys[i])));
    }
    key = json_dumps(texts, JSON_COMPACT);
    json_decref(texts);
    if (groups->index == NULL) {
        groups->index = json_object();
    }
    place = json_object_get(groups->index, key);
    if (place == NULL) {
        group = memory_allocate(1, sizeof *group);
        for (int i = 0; i < JOB_GROUP_KEYS; i++) {
            group->keys[i] = results_keep(&group->results, results_text(job, report_keys[i]));
        }
        json_object_set_new_nocheck(groups->index, key, json_integer((json_int_t)groups->count));
        groups->groups = memory_grow(groups->groups, groups->count, &groups->capacity,
                                     sizeof(struct job_group *));
        groups->groups[groups->count++] = group;
    } else {
        group = groups->groups[json_integer_value(place)];
    }
    free(key);
    return group;
}

static bool add(void *data, json_t *document, const char **error)
{
    struct job_group *group = group_of(data, document);
    size_t before = group->results.process_count;

    if (!results_add(&group->results, document, error)) {
        return false;
    }
    if (group->results.process_count > before) {
        ranks_add(&group->ranks, &group->results, document);
    }
    return true;
}

bool job_groups_load(struct job_groups *groups, const char *path)
{
    const struct results_sink sink = {.add = add, .data = groups};

    return results_load_into(&sink, path);
}

static bool add_to_both(void *data, json_t *document, const char **error)
{
    const struct job_groups_and_results *both = data;

    return results_add(both->results, document, error) && add(both->groups, document, error);
}

bool job_groups_load_both(struct job_groups_and_results *both, const char *path)
{
    const struct results_sink sink = {.add = add_to_both, .data = both};

    return results_load_into(&sink, path);
}

/* Digits at the beginning count as a number. */
static int compare_texts(const char *one, const char *other)
{
    unsigned long long number = strtoull(one, NULL, 10), other_number = strtoull(other, NULL, 10);

    if (number != other_number) {
        return number < other_number ? -1 : 1;
    }
    return strcmp(one, other);
}

static int in_order(const void *one_place, const void *other_place)
{
    const struct job_group *one = *(struct job_group *const *)one_place;
    const struct job_group *other = *(struct job_group *const *)other_place;

    for (int i = 0; i < JOB_GROUP_KEYS; i++) {
        int order = compare_texts(one->keys[i], other->keys[i]);

        if (order != 0) {
            return order;
        }
    }
    return 0;
}

/* Those without a process, whose only report was none, go. */
void job_groups_sort(struct job_groups *groups)
{
    size_t kept = 0;

    for (size_t i = 0; i < groups->count; i++) {
        if (groups->groups[i]->results.process_count > 0) {
            groups->groups[kept++] = groups->groups[i];
        } else {
            results_release(&groups->groups[i]->results);
            free(groups->groups[i]);
        }
    }
    groups->count = kept;
    if (kept > 0) {
        qsort(groups->groups, kept, sizeof(struct job_group *), in_order);
    }
    json_decref(groups->index); /* the places are others now */
    groups->index = NULL;
}

char *job_group_text(const struct job_group *group)
{
    char *text = memory_copy("");

    for (int i = 0; i < JOB_GROUP_KEYS; i++) {
        /* A launch that is named as its job is says nothing new. */
        if (group->keys[i][0] != '\0' &&
            (i == JOB_GROUP_ID || strcmp(group->keys[i], group->keys[JOB_GROUP_ID]) != 0)) {
            char *longer = memory_format("%s%s%s %s", text, text[0] != '\0' ? ", " : "", words[i],
                                         group->keys[i]);

            free(text);
            text = longer;
        }
    }
    if (text[0] == '\0') {
        free(text);
        return memory_copy("no job");
    }
    return text;
}

json_t *job_group_json(const struct job_group *group)
{
    json_t *object = json_object();

    for (int i = 0; i < JOB_GROUP_KEYS; i++) {
        if (group->keys[i][0] != '\0') {
            json_object_set_new(object, report_keys[i], json_string(group->keys[i]));
        }
    }
    return object;
}

void job_groups_release(struct job_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        ranks_release(&groups->groups[i]->ranks);
        results_release(&groups->groups[i]->results);
        free(groups->groups[i]);
    }
    free(groups->groups);
    json_decref(groups->index);
    *groups = (struct job_groups){0};
}
