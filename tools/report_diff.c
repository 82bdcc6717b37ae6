/* SPDX-License-Identifier: Apache-2.0 */
#include "report_diff.h"

#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "memory.h"

/* ---- Reading ------------------------------------------------------------------------------------
 */

static void note_fact(struct diff_side *side, const char *key, const char *value)
{
    json_t *values;

    if (value[0] == '\0') {
        return;
    }
    if (side->facts == NULL) {
        side->facts = json_object();
    }
    values = json_object_get(side->facts, key);
    if (values == NULL) {
        values = json_object();
        json_object_set_new_nocheck(side->facts, key, values);
    }
    json_object_set_new_nocheck(values, value, json_null());
}

static void note_facts(struct diff_side *side, const json_t *document)
{
    json_t *facts = json_object_get(document, "facts"), *value;
    const char *key;

    note_fact(side, "mode", results_text(document, "mode"));
    note_fact(side, "policy", results_text(json_object_get(facts, "policy"), "sha256"));
    note_fact(side, "site", results_text(json_object_get(facts, "site"), "sha256"));
    note_fact(side, "driver", results_text(json_object_get(facts, "driver"), "version"));
    note_fact(side, "gpu", results_text(json_object_get(facts, "gpu0"), "name"));
    json_object_foreach(json_object_get(facts, "libraries"), key, value)
    {
        const char *slash = strrchr(key, '/');

        note_fact(side, slash != NULL ? slash + 1 : key,
                  json_is_string(value) ? json_string_value(value) : "");
    }
}

static bool add(void *data, json_t *document, const char **error)
{
    struct diff_side *side = data;
    size_t before = side->results.process_count;

    if (!results_add(&side->results, document, error)) {
        return false;
    }
    if (side->results.process_count > before) {
        note_facts(side, document);
    }
    return true;
}

bool report_diff_load(struct diff_side *side, const char *path)
{
    const struct results_sink sink = {.add = add, .data = side};

    return results_load_into(&sink, path);
}

void report_diff_release_side(struct diff_side *side)
{
    results_release(&side->results);
    json_decref(side->facts);
    side->facts = NULL;
}

/* ---- Kernels ------------------------------------------------------------------------------------
 */

void report_diff_add_name(struct diff_names *names, const struct results_kernel *kernel)
{
    names->kernels = memory_grow(names->kernels, names->count, &names->capacity,
                                 sizeof(const struct results_kernel *));
    names->kernels[names->count++] = kernel;
}

static bool has(const struct results *results, const struct results_kernel *kernel)
{
    return results_find_kernel(results, kernel->mangled, kernel->library) != SIZE_MAX;
}

static int most_first(const void *one_place, const void *other_place)
{
    const struct results_kernel *one = *(const struct results_kernel *const *)one_place;
    const struct results_kernel *other = *(const struct results_kernel *const *)other_place;

    if (one->launches.total != other->launches.total) {
        return one->launches.total < other->launches.total ? 1 : -1;
    }
    return strcmp(one->mangled, other->mangled);
}

/* Those of `from` that `other` does not have. */
static void collect_new(const struct results *from, const struct results *other,
                        struct diff_names *names)
{
    for (size_t i = 0; i < from->kernel_count; i++) {
        if (facts_has_name(&from->kernels[i]) && !has(other, &from->kernels[i])) {
            report_diff_add_name(names, &from->kernels[i]);
        }
    }
    if (names->count > 0) {
        qsort(names->kernels, names->count, sizeof(const struct results_kernel *), most_first);
    }
}

/* A kernel of the same name in another library has moved, and is neither gone nor new. */
static bool take_moved(struct report_diff *diff, const struct results_kernel *kernel)
{
    struct diff_names *appeared = &diff->appeared;

    for (size_t i = 0; i < appeared->count; i++) {
        if (strcmp(appeared->kernels[i]->mangled, kernel->mangled) == 0) {
            diff->moved = memory_grow(diff->moved, diff->moved_count, &diff->moved_capacity,
                                      sizeof *diff->moved);
            diff->moved[diff->moved_count++] =
                (struct diff_moved){.kernel = kernel, .other = appeared->kernels[i]};
            memmove(&appeared->kernels[i], &appeared->kernels[i + 1],
                    (--appeared->count - i) * sizeof(const struct results_kernel *));
            return true;
        }
    }
    return false;
}

static void add_vanished(struct report_diff *diff, const struct results_kernel *kernel)
{
    diff->vanished = memory_grow(diff->vanished, diff->vanished_count, &diff->vanished_capacity,
                                 sizeof *diff->vanished);
    diff->vanished[diff->vanished_count++] = (struct diff_vanished){.kernel = kernel};
}

/* New kernels first; where none is near, one that was there before may do the work now. */
static void find_nearest(struct report_diff *diff, const struct results *new)
{
    struct diff_names all = {0};
    struct nearest_effort effort = {0};

    for (size_t i = 0; i < new->kernel_count; i++) {
        if (facts_has_name(&new->kernels[i])) {
            report_diff_add_name(&all, &new->kernels[i]);
        }
    }
    for (size_t i = 0; i < diff->vanished_count; i++) {
        struct diff_vanished *vanished = &diff->vanished[i];

        vanished->nearest_count = nearest_kernels(vanished->kernel, diff->appeared.kernels,
                                                  diff->appeared.count, &effort, vanished->nearest);
        if (vanished->nearest_count == 0) {
            vanished->nearest_count = nearest_kernels(vanished->kernel, all.kernels, all.count,
                                                      &effort, vanished->nearest);
        }
    }
    free(all.kernels);
}

static void compare_kernels(const struct results *old, const struct results *new,
                            struct report_diff *diff)
{
    struct diff_names gone = {0};

    collect_new(new, old, &diff->appeared);
    collect_new(old, new, &gone);
    for (size_t i = 0; i < gone.count; i++) {
        if (!take_moved(diff, gone.kernels[i])) {
            add_vanished(diff, gone.kernels[i]);
        }
    }
    free(gone.kernels);
    find_nearest(diff, new);
}

/* ---- Facts --------------------------------------------------------------------------------------
 */

static char *values_text(json_t *values)
{
    char *text = memory_copy("");
    const char *value;
    json_t *nothing;

    json_object_foreach(values, value, nothing)
    {
        char *longer = memory_format("%s%s%s", text, text[0] != '\0' ? ", " : "", value);

        free(text);
        text = longer;
    }
    return text;
}

static void compare_fact(struct report_diff *diff, const char *key, json_t *old, json_t *new)
{
    if (json_equal(old, new)) {
        return;
    }
    diff->facts =
        memory_grow(diff->facts, diff->fact_count, &diff->fact_capacity, sizeof *diff->facts);
    diff->facts[diff->fact_count++] =
        (struct diff_fact){.key = key, .old = values_text(old), .new = values_text(new)};
}

static void compare_facts(const struct diff_side *old, const struct diff_side *new,
                          struct report_diff *diff)
{
    const char *key;
    json_t *values;

    json_object_foreach(old->facts, key, values)
    {
        compare_fact(diff, key, values, json_object_get(new->facts, key));
    }
    json_object_foreach(new->facts, key, values)
    {
        if (json_object_get(old->facts, key) == NULL) {
            compare_fact(diff, key, NULL, values);
        }
    }
}

/* ---- All ----------------------------------------------------------------------------------------
 */

void report_diff_make(const struct diff_side *old, const struct diff_side *new,
                      const struct policy *policy, struct report_diff *diff)
{
    *diff = (struct report_diff){0};
    compare_kernels(&old->results, &new->results, diff);
    report_diff_rules(&old->results, &new->results, diff);
    for (size_t i = 0; i < diff->rule_count; i++) {
        diff->rules[i].suggestion =
            report_diff_suggest(&diff->rules[i], diff, &new->results, policy);
    }
    compare_facts(old, new, diff);
    diff->same = diff->appeared.count == 0 && diff->vanished_count == 0 && diff->moved_count == 0 &&
                 diff->rule_count == 0;
}

void report_diff_release(struct report_diff *diff)
{
    for (size_t i = 0; i < diff->rule_count; i++) {
        struct diff_rule *rule = &diff->rules[i];

        for (size_t line = 0; line < rule->line_count; line++) {
            free(rule->lines[line]);
        }
        free(rule->lines);
        free(rule->lost.kernels);
        free(rule->gained.kernels);
        free(rule->missing.kernels);
        free(rule->suggestion);
    }
    for (size_t i = 0; i < diff->fact_count; i++) {
        free(diff->facts[i].old);
        free(diff->facts[i].new);
    }
    free(diff->appeared.kernels);
    free(diff->vanished);
    free(diff->moved);
    free(diff->rules);
    free(diff->facts);
    *diff = (struct report_diff){0};
}
