/* SPDX-License-Identifier: Apache-2.0 */

/* What can be said only of all rules together: names, references, separated kernels. */

#include <stdlib.h>
#include <string.h>

#include "policy/hint.h"
#include "policy/parser.h"

enum {
    CANDIDATE_LIMIT = 64, /* names that a misspelt reference is compared with */
    SEARCH_LIMIT = 64,    /* names that are looked for in headers that could not be read */
};

/* ---- names ---------------------------------------------------------------------------------- */

/* By kind of section, then name, then place in the file. */
static int compare_rules(const void *left, const void *right)
{
    const struct policy_rule *const *first = left, *const *second = right;

    if ((*first)->section != (*second)->section) {
        return (*first)->section < (*second)->section ? -1 : 1;
    }
    int names = strcmp((*first)->name, (*second)->name);
    if (names != 0) {
        return names;
    }
    return (*first)->index < (*second)->index ? -1 : (*first)->index > (*second)->index;
}

static bool same_name(const struct policy_rule *left, const struct policy_rule *right)
{
    return left->section == right->section && strcmp(left->name, right->name) == 0;
}

static const char *section_text(const struct policy_rule *rule)
{
    return rule->section == POLICY_SECTION_STREAM ? "stream" : "kernel";
}

/* A rule whose name was refused is called "?", which no good name can be. */
static void report_duplicates(const struct policy_rule *const *sorted, size_t count,
                              struct policy_diagnostics *diagnostics)
{
    const struct policy_rule *first = count != 0 ? sorted[0] : NULL;

    for (size_t i = 1; i < count; i++) {
        if (!same_name(sorted[i], first)) {
            first = sorted[i];
        } else if (strcmp(first->name, "?") != 0) {
            policy_diagnose(diagnostics, POLICY_ERROR, sorted[i]->place,
                            "second [%s %s]; the first is in line %u", section_text(first),
                            first->name, (unsigned)first->place.line);
        }
    }
}

/* ---- references ----------------------------------------------------------------------------- */

static const struct policy_rule *const *find_stream_rule(const struct policy_rule *const *sorted,
                                                         size_t count, const char *name)
{
    struct policy_rule wanted = {.section = POLICY_SECTION_STREAM, .name = name};
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct policy_rule *rule = sorted[middle];

        if (rule->section < wanted.section ||
            (rule->section == wanted.section && strcmp(rule->name, name) < 0)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && same_name(sorted[low], &wanted) ? &sorted[low] : NULL;
}

static void report_reference(const struct policy_reference *reference,
                             const struct policy_rule *const *sorted, size_t count,
                             struct policy_diagnostics *diagnostics)
{
    struct policy_quotation quotation;
    struct policy_hint hint;
    const char *candidates[CANDIDATE_LIMIT];
    size_t candidate_count = 0;

    for (size_t i = 0; i < count && candidate_count < CANDIDATE_LIMIT; i++) {
        if (sorted[i]->section == POLICY_SECTION_STREAM) {
            candidates[candidate_count++] = sorted[i]->name;
        }
    }
    policy_diagnose(diagnostics, POLICY_ERROR, reference->place,
                    "stream: there is no [stream %s] in this policy%s",
                    policy_quote(&quotation, reference->name, strlen(reference->name)),
                    policy_hint(&hint, reference->name, candidates, candidate_count));
}

/* Whether the section of this name may be one whose header could not be read. It is looked for in
 * the text, since nothing else is known of those. */
static bool may_be_unread(const struct policy_parser *parser, const char *name)
{
    const char *line = parser->text, *end = parser->text + parser->length, *next;

    for (; parser->header_broken && line < end; line = next) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));

        next = newline != NULL ? newline + 1 : end;
        while (line < next && (*line == ' ' || *line == '\t')) {
            line++;
        }
        if (line < next && *line == '[' &&
            memmem(line, (size_t)(next - line), name, strlen(name)) != NULL) {
            return true;
        }
    }
    return parser->name_missing;
}

/* Marks the stream rules that kernel rules name. */
static void check_references(const struct policy_parser *parser,
                             const struct policy_rule *const *sorted, bool *referenced)
{
    size_t searches = 0;

    for (size_t i = 0; i < parser->reference_count; i++) {
        const char *name = parser->references[i].name;
        const struct policy_rule *const *found = find_stream_rule(sorted, parser->rule_count, name);

        if (found != NULL) {
            referenced[(*found)->index] = true;
            continue;
        }
        /* The search takes long, and there are errors enough where a header is broken. */
        if (parser->diagnostics->error_count < POLICY_DIAGNOSTIC_LIMIT &&
            (!parser->header_broken || searches++ < SEARCH_LIMIT) && !may_be_unread(parser, name)) {
            report_reference(&parser->references[i], sorted, parser->rule_count,
                             parser->diagnostics);
        }
    }
}

/* ---- warnings ------------------------------------------------------------------------------- */

static bool has_setting(const struct policy_rule *rule)
{
    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        if (rule->settings[setting].action != POLICY_ACTION_ABSENT) {
            return true;
        }
    }
    return false;
}

static void warn_idle_stream_rules(const struct policy_rule *rules, size_t count,
                                   const bool *referenced, struct policy_diagnostics *diagnostics)
{
    for (size_t i = 0; i < count; i++) {
        if (rules[i].section == POLICY_SECTION_STREAM && !has_setting(&rules[i]) &&
            !rules[i].final && !referenced[i]) {
            policy_diagnose(diagnostics, POLICY_WARNING, rules[i].place,
                            "[stream %s] has no setting and no kernel rule names it, so it changes "
                            "nothing",
                            rules[i].name);
        }
    }
}

/* The setting by which a rule takes launches away from the physical domain in which launches are
 * without a policy: 0, since the driver's own map is default 0, remote 1. NULL: there is none. */
static const struct policy_setting_value *separating_setting(const struct policy_rule *rule)
{
    const struct policy_setting_value *domain = &rule->settings[POLICY_SETTING_MEM_SYNC_DOMAIN];
    const struct policy_setting_value *map = &rule->settings[POLICY_SETTING_MEM_SYNC_DOMAIN_MAP];
    bool has_map = map->action == POLICY_ACTION_SET;
    unsigned default_domain = has_map ? map->value.mem_sync_domain_map.default_domain : 0;
    unsigned remote_domain = has_map ? map->value.mem_sync_domain_map.remote_domain : 1;

    if (domain->action == POLICY_ACTION_SET) {
        bool remote = domain->value.mem_sync_domain == POLICY_MEM_SYNC_DOMAIN_REMOTE;
        bool separate = (remote ? remote_domain : default_domain) != 0;

        return separate ? domain : NULL;
    }
    return has_map && (default_domain != 0 || remote_domain > 1) ? map : NULL;
}

/* The first limit of the manual, said once where it first applies. */
static void warn_separated(const struct policy_rule *rules, size_t count,
                           struct policy_diagnostics *diagnostics)
{
    for (size_t i = 0; i < count; i++) {
        const struct policy_setting_value *setting = separating_setting(&rules[i]);

        if (setting != NULL) {
            policy_diagnose(
                diagnostics, POLICY_WARNING, setting->place,
                "[%s %s] may put kernels into another physical domain than others: where two "
                "concurrent kernels talk through device-scope atomics or fences, separating them "
                "breaks them silently",
                section_text(&rules[i]), rules[i].name);
            return;
        }
    }
}

void policy_check_rules(struct policy_parser *parser)
{
    const struct policy_rule *rules = parser->rules;
    size_t count = parser->rule_count;

    if (count == 0) {
        return;
    }
    const struct policy_rule **sorted = malloc(count * sizeof *sorted);
    bool *referenced = calloc(count, sizeof *referenced);

    if (sorted != NULL && referenced != NULL) {
        for (size_t i = 0; i < count; i++) {
            sorted[i] = &rules[i];
        }
        qsort(sorted, count, sizeof *sorted, compare_rules);
        report_duplicates(sorted, count, parser->diagnostics);
        check_references(parser, sorted, referenced);
        if (parser->diagnostics->error_count == parser->errors_before &&
            !parser->diagnostics->errors_only) {
            /* Of rules that could not be read as they were meant, these might be wrong. */
            warn_idle_stream_rules(rules, count, referenced, parser->diagnostics);
            warn_separated(rules, count, parser->diagnostics);
            policy_check_shadows(rules, count, parser->diagnostics);
        }
    } else {
        parser->out_of_memory = true;
    }
    free(sorted);
    free(referenced);
}
