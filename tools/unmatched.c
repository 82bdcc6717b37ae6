/* SPDX-License-Identifier: Apache-2.0 */
#include "unmatched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decide/selectors.h"
#include "facts.h"
#include "match.h"
#include "memory.h"
#include "policy/suggest.h"

/* A kernel as a candidate for what the rule meant. */
struct candidate {
    size_t kernel;
    size_t distance; /* edits between the name and the nearest pattern */
    bool near;       /* few enough that the pattern may have meant it */
    enum policy_name_form form;
    bool matches; /* in that form, which is not the one the rule asks for */
};

static void add_nearest(struct unmatched *unmatched, const struct results_kernel *kernel,
                        const struct kernel_name *name, const struct candidate *candidate)
{
    char *text = memory_copy(match_form_text(name, candidate->form));

    unmatched->texts[unmatched->nearest_count] = text;
    unmatched->nearest[unmatched->nearest_count++] = (struct unmatched_kernel){
        .text = text,
        .form = match_form_word(candidate->form),
        .library = kernel->library,
        .matches = candidate->matches,
    };
}

/* Measures the name, or its last component, against the nearest of the rule's patterns. */
static void measure(const struct policy_selectors *selectors, const struct kernel_name *name,
                    struct candidate *candidate)
{
    const char *text = match_form_text(name, selectors->name_form);

    candidate->distance = SIZE_MAX;
    for (size_t i = 0; i < selectors->name.count; i++) {
        const char *pattern = selectors->name.patterns[i];
        size_t distance = suggest_glob_distance(pattern, text);

        if (selectors->name_form == POLICY_NAME_FORM_NAME && strstr(pattern, "::") == NULL) {
            size_t last = suggest_glob_distance(pattern, name->last_component);

            distance = last < distance ? last : distance;
        }
        if (distance < candidate->distance) {
            candidate->distance = distance;
            candidate->near = distance <= suggest_glob_limit(pattern);
        }
    }
}

static bool is_nearer(const struct candidate *one, const struct candidate *other)
{
    if (one->matches != other->matches) {
        return one->matches;
    }
    if (one->near != other->near) {
        return one->near;
    }
    return one->distance < other->distance;
}

/* Keeps the nearest few, in order. */
static void consider(struct candidate *best, size_t *count, const struct candidate *candidate)
{
    size_t place = *count;

    while (place > 0 && is_nearer(candidate, &best[place - 1])) {
        if (place < UNMATCHED_NEAREST) {
            best[place] = best[place - 1];
        }
        place--;
    }
    if (place < UNMATCHED_NEAREST) {
        best[place] = *candidate;
        *count += *count < UNMATCHED_NEAREST;
    }
}

/* Beside the nearest, others only distract unless they are as near. */
static bool is_worth_naming(const struct candidate *candidate, const struct candidate *nearest)
{
    if (nearest->matches) {
        return candidate->matches;
    }
    return candidate->near && candidate->distance <= 2 * nearest->distance + 1;
}

static void append_reason(struct unmatched *unmatched, const char *text)
{
    size_t length = strlen(unmatched->reason);

    snprintf(unmatched->reason + length, sizeof unmatched->reason - length, "%s", text);
}

/* No kernel has the name: those whose names are nearest, first of all those that another form of
 * the name would have found. Measuring takes long, so only so many are measured. */
static void find_nearest(const struct policy_rule *rule, const struct results *results,
                         struct unmatched *unmatched)
{
    struct candidate best[UNMATCHED_NEAREST];
    size_t count = 0, unmeasured = 0;

    for (size_t i = 0; i < results->kernel_count; i++) {
        const struct kernel_name *name = results_kernel_name(&results->kernels[i]);
        struct candidate candidate = {.kernel = i, .form = rule->selectors.name_form};
        const char *pattern;

        if (!facts_has_name(&results->kernels[i])) {
            continue;
        }
        candidate.matches = match_other_form(&rule->selectors, name, &candidate.form, &pattern);
        if (!candidate.matches) {
            if (i >= UNMATCHED_MEASURED) {
                unmeasured++;
                continue;
            }
            measure(&rule->selectors, name, &candidate);
        }
        consider(best, &count, &candidate);
    }
    for (size_t i = 0; i < count && is_worth_naming(&best[i], &best[0]); i++) {
        const struct results_kernel *kernel = &results->kernels[best[i].kernel];

        add_nearest(unmatched, kernel, results_kernel_name(kernel), &best[i]);
    }
    if (count > 0 && unmatched->nearest_count == 0 && unmeasured == 0) {
        append_reason(unmatched, ", and none is near it");
    }
}

/* The first kernel that the rule names and comes nearest to matching; false when it names none. */
static bool closest_named(const struct policy_rule *rule, const struct results *results,
                          struct match_verdict *closest, size_t *which)
{
    bool found = false;

    for (size_t i = 0; i < results->kernel_count; i++) {
        struct match_facts facts;
        struct match_verdict verdict;

        facts_of_kernel(&results->kernels[i], &facts);
        if (facts_has_name(&results->kernels[i]) &&
            decide_selectors_hold_name(&rule->selectors, &facts.name)) {
            match_rule(rule, &facts, &verdict);
            if (!found || verdict.answer > closest->answer) {
                *closest = verdict;
                *which = i;
            }
            found = true;
        }
    }
    return found;
}

static bool sets_something(const struct policy_rule *rule)
{
    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        if (rule->settings[setting].action != POLICY_ACTION_ABSENT) {
            return true;
        }
    }
    return false;
}

static void explain_named(const struct policy_rule *rule, const struct results_kernel *kernel,
                          const struct match_verdict *verdict, char *reason, size_t size)
{
    switch (verdict->answer) {
    case MATCH_NO:
        snprintf(reason, size, "it names %s, but %s: %s", kernel->name, verdict->key,
                 verdict->detail);
        return;
    case MATCH_PERHAPS:
        snprintf(reason, size, "it names %s, but %s did not hold (%s)", kernel->name, verdict->key,
                 verdict->detail);
        return;
    case MATCH_YES:
        snprintf(reason, size, "it matches %s, but %s", kernel->name,
                 sets_something(rule) ? "earlier rules decided all that it sets" : "sets nothing");
        return;
    }
}

static void explain_kernel_rule(const struct policy_rule *rule, const struct results *results,
                                bool nearest, struct unmatched *unmatched)
{
    struct match_verdict verdict = {0};
    size_t kernel = 0;

    if (closest_named(rule, results, &verdict, &kernel)) {
        explain_named(rule, &results->kernels[kernel], &verdict, unmatched->reason,
                      sizeof unmatched->reason);
        return;
    }
    snprintf(unmatched->reason, sizeof unmatched->reason, "no kernel's %s matches it",
             match_form_word(rule->selectors.name_form));
    if (nearest && rule->selectors.name.count > 0) {
        find_nearest(rule, results, unmatched);
    }
}

void unmatched_explain(const struct policy_rule *rule, const struct results *results, bool nearest,
                       struct unmatched *unmatched)
{
    *unmatched = (struct unmatched){0};
    if (results->kernel_count == 0) {
        snprintf(unmatched->reason, sizeof unmatched->reason, "no kernel was launched");
    } else if (rule == NULL) {
        snprintf(unmatched->reason, sizeof unmatched->reason,
                 "the policy is not at hand: give it with -p to learn why");
    } else if (rule->section == POLICY_SECTION_STREAM) {
        snprintf(unmatched->reason, sizeof unmatched->reason,
                 "no stream that it selects was created");
    } else {
        explain_kernel_rule(rule, results, nearest, unmatched);
    }
}

void unmatched_release(struct unmatched *unmatched)
{
    for (size_t i = 0; i < unmatched->nearest_count; i++) {
        free(unmatched->texts[i]);
    }
}
