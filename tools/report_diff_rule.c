/* SPDX-License-Identifier: Apache-2.0 */

/* Rules in two runs, and what to paste where one lost its kernels. */

#include "report_diff.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "communication.h"
#include "decide/selectors.h"
#include "match.h"
#include "memory.h"
#include "policy/print.h"
#include "printable.h"
#include "summary.h"

enum {
    NAMES_SUGGESTED = 16,
};

static __attribute__((format(printf, 2, 3))) void add_line(struct diff_rule *rule,
                                                           const char *format, ...)
{
    va_list arguments;
    char *line;

    va_start(arguments, format);
    if (vasprintf(&line, format, arguments) < 0) {
        line = memory_copy("?");
    }
    va_end(arguments);
    rule->lines = memory_grow(rule->lines, rule->line_count, &rule->line_capacity, sizeof(char *));
    rule->lines[rule->line_count++] = line;
}

/* ---- Outcomes -----------------------------------------------------------------------------------
 */

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static bool is_change(int64_t old, int64_t old_whole, int64_t new, int64_t new_whole)
{
    double before = share(old, old_whole), after = share(new, new_whole);

    return (old > 0) != (new > 0) || before - after > DIFF_SHARE || after - before > DIFF_SHARE;
}

static void compare_outcome(struct diff_rule *rule, const char *what, const char *unit, int64_t old,
                            int64_t old_whole, int64_t new, int64_t new_whole)
{
    if (is_change(old, old_whole, new, new_whole)) {
        add_line(rule, "%s: %lld of %lld %s before, %lld of %lld now", what, (long long)old,
                 (long long)old_whole, unit, (long long)new, (long long)new_whole);
    }
}

static int64_t times_of(const struct results_refusals *refused, const char *reason)
{
    for (size_t i = 0; i < refused->count; i++) {
        if (strcmp(refused->items[i].reason, reason) == 0) {
            return refused->items[i].times;
        }
    }
    return 0;
}

static void compare_reason(struct diff_rule *rule, const char *reason, const char *unit,
                           const struct results_refusals *old, int64_t old_whole,
                           const struct results_refusals *new, int64_t new_whole)
{
    char *what = memory_format("refused (%s)", reason);

    compare_outcome(rule, what, unit, times_of(old, reason), old_whole, times_of(new, reason),
                    new_whole);
    free(what);
}

static void compare_outcomes(struct diff_rule *rule, const char *unit,
                             const struct results_outcomes *old, int64_t old_whole,
                             const struct results_outcomes *new, int64_t new_whole)
{
    if (old_whole == 0 || new_whole == 0) {
        return; /* said by itself */
    }
    compare_outcome(rule, "applied", unit, old->applied, old_whole, new->applied, new_whole);
    compare_outcome(rule, "already so", unit, old->already_so, old_whole, new->already_so,
                    new_whole);
    compare_outcome(rule, "kept", unit, old->kept, old_whole, new->kept, new_whole);
    for (size_t i = 0; i < old->refused.count; i++) {
        compare_reason(rule, old->refused.items[i].reason, unit, &old->refused, old_whole,
                       &new->refused, new_whole);
    }
    for (size_t i = 0; i < new->refused.count; i++) {
        if (times_of(&old->refused, new->refused.items[i].reason) == 0) {
            compare_reason(rule, new->refused.items[i].reason, unit, &old->refused, old_whole,
                           &new->refused, new_whole);
        }
    }
}

/* ---- Kernels of a rule --------------------------------------------------------------------------
 */

static bool decides_on(const struct results *results, const struct results_rule *rule,
                       const struct results_kernel *kernel)
{
    size_t place = results_find_kernel(results, kernel->mangled, kernel->library);

    for (size_t i = 0; rule != NULL && place != SIZE_MAX && i < rule->kernel_count; i++) {
        if (rule->kernels[i] == place) {
            return true;
        }
    }
    return false;
}

/* The same kernel in the other run, perhaps of another library; NULL: it is not there. */
static const struct results_kernel *counterpart(const struct results_kernel *kernel,
                                                const struct results *other,
                                                const struct report_diff *diff)
{
    size_t place = results_find_kernel(other, kernel->mangled, kernel->library);

    if (place != SIZE_MAX) {
        return &other->kernels[place];
    }
    for (size_t i = 0; i < diff->moved_count; i++) {
        if (diff->moved[i].kernel == kernel || diff->moved[i].other == kernel) {
            return diff->moved[i].kernel == kernel ? diff->moved[i].other : diff->moved[i].kernel;
        }
    }
    return NULL;
}

/* Of the kernels on which the rule decided in one run: those that the other run launched without
 * this rule, and those that it did not launch. */
static void compare_kernels(const struct results *results, const struct results_rule *rule,
                            const struct results *other, const struct results_rule *other_rule,
                            const struct report_diff *diff, struct diff_names *undecided,
                            struct diff_names *absent)
{
    for (size_t i = 0; rule != NULL && i < rule->kernel_count; i++) {
        const struct results_kernel *kernel = &results->kernels[rule->kernels[i]];
        const struct results_kernel *same = counterpart(kernel, other, diff);

        if (same != NULL && !decides_on(other, other_rule, same)) {
            report_diff_add_name(undecided, kernel);
        } else if (same == NULL && absent != NULL) {
            report_diff_add_name(absent, kernel);
        }
    }
}

static enum diff_change change_of(const struct diff_rule *rule)
{
    bool before = rule->old != NULL && summary_has_matched(rule->old);
    bool after = rule->new != NULL &&summary_has_matched(rule->new);

    if (rule->new == NULL) {
        return DIFF_REMOVED;
    }
    if (rule->old == NULL) {
        return DIFF_ADDED;
    }
    if (before != after) {
        return before ? DIFF_STOPPED : DIFF_BEGAN;
    }
    return rule->line_count > 0 || rule->lost.count > 0 || rule->gained.count > 0 ? DIFF_CHANGED
                                                                                  : DIFF_SAME;
}

static void compare_rule(const struct results *old, const struct results_rule *old_rule,
                         const struct results *new, const struct results_rule *new_rule,
                         struct report_diff *diff)
{
    struct diff_rule rule = {.old = old_rule, .new = new_rule};

    if (old_rule != NULL && new_rule != NULL) {
        compare_outcomes(&rule, "launches", &old_rule->launch_outcomes, old_rule->launches.total,
                         &new_rule->launch_outcomes, new_rule->launches.total);
        compare_outcomes(&rule, "streams", &old_rule->stream_outcomes, old_rule->streams,
                         &new_rule->stream_outcomes, new_rule->streams);
    }
    compare_kernels(old, old_rule, new, new_rule, diff, &rule.lost, &rule.missing);
    compare_kernels(new, new_rule, old, old_rule, diff, &rule.gained, NULL);
    rule.change = change_of(&rule);
    /* One that lost kernels with the program is worth a look, though the kernels say it. */
    if (rule.change == DIFF_SAME && rule.missing.count == 0) {
        free(rule.lost.kernels);
        free(rule.gained.kernels);
        return;
    }
    diff->rules =
        memory_grow(diff->rules, diff->rule_count, &diff->rule_capacity, sizeof *diff->rules);
    diff->rules[diff->rule_count++] = rule;
}

void report_diff_rules(const struct results *old, const struct results *new,
                       struct report_diff *diff)
{
    for (size_t i = 0; i < old->rule_count; i++) {
        size_t place =
            results_find_rule(new, old->rules[i].section, old->rules[i].name, old->rules[i].layer);

        compare_rule(old, &old->rules[i], new, place != SIZE_MAX ? &new->rules[place] : NULL, diff);
    }
    for (size_t i = 0; i < new->rule_count; i++) {
        if (results_find_rule(old, new->rules[i].section, new->rules[i].name,
                              new->rules[i].layer) == SIZE_MAX) {
            compare_rule(old, NULL, new, &new->rules[i], diff);
        }
    }
}

/* ---- What to paste ------------------------------------------------------------------------------
 */

struct suggestion {
    size_t count;
    char *patterns[NAMES_SUGGESTED];
};

/* In the form that the rule asks for; without the policy at hand, the plain one. */
static const char *text_of(const struct results_kernel *kernel, const struct policy_rule *rule)
{
    switch (rule != NULL ? rule->selectors.name_form : POLICY_NAME_FORM_NAME) {
    case POLICY_NAME_FORM_SIGNATURE:
        return kernel->signature;
    case POLICY_NAME_FORM_MANGLED:
        return kernel->mangled;
    default:
        return kernel->name;
    }
}

/* Whether a further name pattern could make the rule match: it does not name the kernel as it is,
 * and does not exclude it either. */
static bool would_help(const struct policy_rule *rule, const struct results_kernel *kernel)
{
    const struct kernel_name *name;

    if (rule == NULL) {
        return true;
    }
    name = results_kernel_name(kernel);
    return rule->selectors.name.count > 0 && !decide_selectors_hold_name(&rule->selectors, name) &&
           !decide_selectors_any_name(&rule->selectors.not_name, rule->selectors.name_form, name);
}

/* What cannot be printed as it is cannot be pasted either. */
static bool is_printable(const char *text)
{
    char *copy = printable_copy(text);
    bool same = strcmp(copy, text) == 0;

    free(copy);
    return same;
}

static void suggest_kernel(struct suggestion *suggestion, const struct results_kernel *kernel,
                           const struct policy_rule *rule)
{
    char *pattern = communication_escape(text_of(kernel, rule));

    if (!is_printable(pattern) || suggestion->count == NAMES_SUGGESTED) {
        free(pattern);
        return;
    }
    for (size_t i = 0; i < suggestion->count; i++) {
        if (strcmp(suggestion->patterns[i], pattern) == 0) {
            free(pattern);
            return;
        }
    }
    suggestion->patterns[suggestion->count++] = pattern;
}

static const struct diff_vanished *vanished_of(const struct report_diff *diff,
                                               const struct results_kernel *kernel)
{
    for (size_t i = 0; i < diff->vanished_count; i++) {
        if (diff->vanished[i].kernel == kernel) {
            return &diff->vanished[i];
        }
    }
    return NULL;
}

/* Of each kernel that is gone, the nearest one; those that are as near by kind as well, since one
 * template may have been taken apart into several. */
static void suggest_for(struct suggestion *suggestion, const struct diff_vanished *vanished,
                        const struct results *new, const struct results_rule *new_rule,
                        const struct policy_rule *rule)
{
    for (size_t i = 0; vanished != NULL && i < vanished->nearest_count; i++) {
        const struct nearest_kernel *nearest = &vanished->nearest[i];

        if (i > 0 && (nearest->how != vanished->nearest[0].how ||
                      nearest->distance > vanished->nearest[0].distance)) {
            return;
        }
        if (!decides_on(new, new_rule, nearest->kernel) && would_help(rule, nearest->kernel)) {
            suggest_kernel(suggestion, nearest->kernel, rule);
        }
    }
}

/* The whole rule where its text is known, with the further names; else the lines to add. */
static void print_suggestion(const struct diff_rule *rule, const struct policy_rule *text,
                             const struct suggestion *suggestion, FILE *stream)
{
    if (text != NULL) {
        size_t count = text->selectors.name.count;
        const char **patterns = memory_allocate(count + suggestion->count, sizeof *patterns);
        struct policy_rule copy = *text;

        memcpy(patterns, text->selectors.name.patterns, count * sizeof *patterns);
        for (size_t i = 0; i < suggestion->count; i++) {
            patterns[count + i] = suggestion->patterns[i];
        }
        copy.selectors.name.count = count + suggestion->count;
        copy.selectors.name.patterns = patterns;
        policy_rule_print(stream, &copy);
        free(patterns);
        return;
    }
    fprintf(stream, "[%s %s]\n", rule->old->section, rule->old->name);
    for (size_t i = 0; i < suggestion->count; i++) {
        fputs("name = ", stream);
        policy_text_print(stream, suggestion->patterns[i]);
        fputc('\n', stream);
    }
}

char *report_diff_suggest(const struct diff_rule *rule, const struct report_diff *diff,
                          const struct results *new, const struct policy *policy)
{
    struct suggestion suggestion = {0};
    const struct policy_rule *text;
    char *result = NULL;
    size_t size = 0;
    FILE *stream;

    if (rule->old == NULL || rule->new == NULL || strcmp(rule->old->section, "kernel") != 0 ||
        !is_printable(rule->old->name)) {
        return NULL;
    }
    text = summary_policy_rule(policy, rule->old);
    for (size_t i = 0; i < rule->missing.count; i++) {
        suggest_for(&suggestion, vanished_of(diff, rule->missing.kernels[i]), new, rule->new, text);
    }
    stream = suggestion.count > 0 ? open_memstream(&result, &size) : NULL;
    if (stream != NULL) {
        print_suggestion(rule, text, &suggestion, stream);
        fclose(stream);
    }
    for (size_t i = 0; i < suggestion.count; i++) {
        free(suggestion.patterns[i]);
    }
    return result;
}
