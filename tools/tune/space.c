/* SPDX-License-Identifier: Apache-2.0 */
#include "space.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "policy/print.h"
#include "policy/vocabulary.h"
#include "variation.h"

enum {
    ARM_LENGTH_LIMIT = 28, /* it stands in tables, and names folders */
};

/* How much of a choice a name has. */
enum detail {
    DETAIL_ALL,
    DETAIL_KEY, /* without the section */
    DETAIL_VALUE,
    DETAIL_COUNT,
};

/* The space while it is made. */
struct maker {
    struct space *space;
    const char *text;
    size_t length;
    const struct policy *base;
    const struct policy_variation *variations;
    size_t count;
    char **forms; /* of the candidates, in the canonical form: what each of them says */
    size_t form_capacity;
    enum detail detail; /* of the arms' names; DETAIL_COUNT: they are numbered */
};

/* ---- names ---------------------------------------------------------------------------------- */

/* Whether several sections of this name can have the key, so that the kind has to stand before it.
 */
static bool is_shared(const struct policy *base, const char *name, const char *key)
{
    size_t found = 0;

    for (size_t i = 0; i < base->rule_count; i++) {
        found += strcmp(base->rules[i].name, name) == 0 &&
                 policy_vocabulary_key(key, 1u << base->rules[i].section) != NULL;
    }
    for (size_t i = 0; i < base->partition_count; i++) {
        found += base->partitions[i].named && strcmp(base->partitions[i].name, name) == 0 &&
                 policy_vocabulary_key(key, POLICY_IN(PARTITION)) != NULL;
    }
    return found > 1;
}

static char *name_of(const struct maker *maker, const struct variation_choice *choices,
                     size_t count, enum detail detail)
{
    char *name = NULL;
    size_t length;
    FILE *stream = open_memstream(&name, &length);

    for (size_t i = 0; i < count; i++) {
        bool shared = is_shared(maker->base, choices[i].name, choices[i].key);

        fputs(i > 0 ? ", " : "", stream);
        if (detail == DETAIL_ALL) {
            fprintf(stream, "%s%s%s.", shared ? policy_section_text(choices[i].section) : "",
                    shared ? " " : "", choices[i].name);
        }
        if (detail <= DETAIL_KEY) {
            fprintf(stream, "%s=", choices[i].key);
        }
        fputs(choices[i].value, stream);
    }
    fclose(stream);
    return name;
}

/* Names that mean something else as an arm; the base alone is called so. */
static bool is_reserved(const char *arm)
{
    return arm[0] == '\0' || strcmp(arm, "none") == 0 || strcmp(arm, "observe") == 0;
}

static bool is_arm(const struct space *space, const char *arm)
{
    for (size_t i = 0; i < space->candidate_count; i++) {
        if (strcmp(space->candidates[i].arm, arm) == 0) {
            return true;
        }
    }
    return false;
}

/* What is not allowed in an arm's name becomes one '-', and ", " between choices a '+'. */
static char *spell_arm(const char *name)
{
    char *arm = memory_allocate(strlen(name) + 1, 1);
    size_t length = 0;

    for (size_t i = 0; name[i] != '\0'; i++) {
        bool letter = (name[i] | 0x20) >= 'a' && (name[i] | 0x20) <= 'z';
        bool plain =
            letter || (name[i] >= '0' && name[i] <= '9') || strchr("._+-", name[i]) != NULL;

        if (name[i] == ',' && name[i + 1] == ' ') {
            arm[length++] = '+';
            i++;
        } else if (plain || (length > 0 && arm[length - 1] != '-')) {
            arm[length++] = plain ? name[i] : '-';
        }
    }
    return arm;
}

/* A number where another arm has the name. */
static char *arm_of(const struct maker *maker, const struct variation_choice *choices, size_t count)
{
    char *name, *arm = NULL;

    if (count == 0) {
        return memory_copy("base");
    }
    if (maker->detail < DETAIL_COUNT) {
        name = name_of(maker, choices, count, maker->detail);
        arm = spell_arm(name);
        free(name);
        if (!is_reserved(arm) && !is_arm(maker->space, arm)) {
            return arm;
        }
        free(arm);
    }
    return memory_format("candidate-%zu", maker->space->candidate_count);
}

static struct variation_choice choice_of(const struct policy_variation *variation, size_t value)
{
    return (struct variation_choice){.section = variation->section,
                                     .name = variation->name,
                                     .key = variation->key,
                                     .value = variation->values[value]};
}

/* Length of the longest name that a value of this variation makes. */
static size_t longest_name(const struct maker *maker, const struct policy_variation *variation,
                           enum detail detail)
{
    size_t longest = 0;

    for (size_t i = 0; i < variation->value_count; i++) {
        const struct variation_choice choice = choice_of(variation, i);
        char *name = name_of(maker, &choice, 1, detail);

        longest = strlen(name) > longest ? strlen(name) : longest;
        free(name);
    }
    return longest;
}

/* As much as leaves all names short: those of one space are to look alike. */
static enum detail detail_of(const struct maker *maker, bool each)
{
    int detail = DETAIL_ALL;

    for (; detail < DETAIL_COUNT; detail++) {
        size_t total = 0;

        for (size_t i = 0; i < maker->count; i++) {
            size_t length = longest_name(maker, &maker->variations[i], (enum detail)detail);

            if (!each) {
                total += length + (i > 0 ? 1 : 0);
            } else if (length > total) {
                total = length;
            }
        }
        if (total <= ARM_LENGTH_LIMIT) {
            break;
        }
    }
    return (enum detail)detail;
}

/* ---- candidates ----------------------------------------------------------------------------- */

static char *canonical(const struct policy *policy)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    policy_print(stream, policy);
    fclose(stream);
    return text;
}

static void leave_out(struct space *space, char *name, char *reason)
{
    space->left_out = memory_grow(space->left_out, space->left_out_count, &space->left_out_capacity,
                                  sizeof *space->left_out);
    space->left_out[space->left_out_count++] =
        (struct space_left_out){.name = name, .reason = reason};
}

static void keep(struct maker *maker, struct space_candidate candidate, char *form)
{
    struct space *space = maker->space;

    maker->forms = memory_grow(maker->forms, space->candidate_count, &maker->form_capacity,
                               sizeof *maker->forms);
    maker->forms[space->candidate_count] = form;
    space->candidates = memory_grow(space->candidates, space->candidate_count,
                                    &space->candidate_capacity, sizeof *space->candidates);
    space->candidates[space->candidate_count++] = candidate;
}

/* The first error, without its place: that is one in a text which the user never sees. */
static char *first_error(struct policy_diagnostics *diagnostics)
{
    policy_diagnostics_sort(diagnostics);
    for (size_t i = 0; i < diagnostics->count; i++) {
        if (diagnostics->items[i].severity == POLICY_ERROR) {
            return memory_copy(diagnostics->items[i].message);
        }
    }
    return memory_copy("it cannot be read");
}

static void add(struct maker *maker, const struct variation_choice *choices, size_t count)
{
    struct policy_diagnostics diagnostics;
    size_t length;
    char *name = count > 0 ? name_of(maker, choices, count, DETAIL_ALL) : memory_copy("base");
    char *text = variation_text(maker->text, maker->length, choices, count, &length);
    struct policy *policy;
    char *form;

    policy_diagnostics_init(&diagnostics);
    diagnostics.errors_only = true;
    policy = policy_parse(text, length, name, &diagnostics);
    if (policy == NULL) {
        leave_out(maker->space, name, first_error(&diagnostics));
        free(text);
        policy_diagnostics_release(&diagnostics);
        return;
    }
    form = canonical(policy);
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
    for (size_t i = 0; i < maker->space->candidate_count; i++) {
        if (strcmp(maker->forms[i], form) == 0) {
            leave_out(maker->space, name,
                      memory_format("it says the same as %s", maker->space->candidates[i].name));
            free(form);
            free(text);
            return;
        }
    }
    keep(maker,
         (struct space_candidate){
             .name = name, .arm = arm_of(maker, choices, count), .text = text, .length = length},
         form);
}

static void add_each(struct maker *maker)
{
    for (size_t i = 0; i < maker->count; i++) {
        for (size_t value = 0; value < maker->variations[i].value_count; value++) {
            const struct variation_choice choice = choice_of(&maker->variations[i], value);

            add(maker, &choice, 1);
        }
    }
}

/* Counts through the combinations, the last variation fastest. */
static void add_product(struct maker *maker)
{
    struct variation_choice choices[POLICY_VARIATION_LIMIT];
    size_t values[POLICY_VARIATION_LIMIT] = {0};
    size_t turned;

    do {
        for (size_t i = 0; i < maker->count; i++) {
            choices[i] = choice_of(&maker->variations[i], values[i]);
        }
        add(maker, choices, maker->count);
        turned = maker->count;
        while (turned > 0 && ++values[turned - 1] == maker->variations[turned - 1].value_count) {
            values[--turned] = 0;
        }
    } while (turned > 0);
}

/* ---- how many ------------------------------------------------------------------------------- */

/* Whether there are no more than limit; else the message that says how they come about. */
static bool few_enough(const struct maker *maker, bool each, size_t limit, char *error, size_t size)
{
    size_t number = each ? 0 : 1;
    char *sum = NULL;
    size_t length;
    FILE *stream = open_memstream(&sum, &length);

    for (size_t i = 0; i < maker->count; i++) {
        size_t values = maker->variations[i].value_count;
        bool overflow = each ? __builtin_add_overflow(number, values, &number)
                             : __builtin_mul_overflow(number, values, &number);

        number = overflow ? SIZE_MAX : number;
        fprintf(stream, "%s%zu", i == 0 ? "" : each ? " + " : " x ", values);
    }
    fclose(stream);
    if (number > limit) {
        snprintf(error, size, "%s values make %zu%s candidates, more than %zu: vary fewer keys%s%s",
                 sum, number, number == SIZE_MAX ? " or more" : "", limit,
                 each ? "" : ", one at a time (--each)", ", or give a larger --limit");
    }
    free(sum);
    return number <= limit;
}

bool space_make(struct space *space, const char *text, size_t length, const struct policy *base,
                const struct policy_variation *variations, size_t count, bool each, size_t limit,
                char *error, size_t size)
{
    struct maker maker = {.space = space,
                          .text = text,
                          .length = length,
                          .base = base,
                          .variations = variations,
                          .count = count};

    *space = (struct space){0};
    if (count > POLICY_VARIATION_LIMIT) {
        snprintf(error, size, "%zu keys are varied, at most %d can be", count,
                 (int)POLICY_VARIATION_LIMIT);
        return false;
    }
    if (!few_enough(&maker, each, limit, error, size)) {
        return false;
    }
    maker.detail = detail_of(&maker, each);
    add(&maker, NULL, 0);
    if (each) {
        add_each(&maker);
    } else {
        add_product(&maker);
    }
    for (size_t i = 0; i < space->candidate_count; i++) {
        free(maker.forms[i]);
    }
    free(maker.forms);
    if (space->candidate_count < 2) {
        snprintf(error, size,
                 "there is nothing to try: every combination of values is left out%s%s",
                 space->left_out_count > 0 ? "; the first, since " : "",
                 space->left_out_count > 0 ? space->left_out[0].reason : "");
        return false;
    }
    return true;
}

void space_release(struct space *space)
{
    for (size_t i = 0; i < space->candidate_count; i++) {
        free(space->candidates[i].name);
        free(space->candidates[i].arm);
        free(space->candidates[i].text);
    }
    free(space->candidates);
    for (size_t i = 0; i < space->left_out_count; i++) {
        free(space->left_out[i].name);
        free(space->left_out[i].reason);
    }
    free(space->left_out);
    *space = (struct space){0};
}
