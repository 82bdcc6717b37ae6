/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rules and settings that can never apply. A setting of a rule is shadowed when an earlier rule of
 * the same kind of section matches all that the rule matches and either has a setting of the same
 * group or is final. Only what is proved is said: a selector that cannot be compared ends the
 * proof.
 */

#include <stdlib.h>
#include <string.h>

#include "policy/parser.h"

enum {
    /* Comparing every rule with every other is quadratic; a start-up cannot wait for that. Beyond
     * this many steps nothing more is looked for. */
    SHADOW_STEP_LIMIT = 5 * 1000 * 1000,
};

/* ---- does one selector match all that another matches? ----------------------------------------
 */

/* Each pattern of covered is covered by one of patterns. */
static bool patterns_cover(const struct policy_globs *patterns, const struct policy_globs *covered,
                           bool is_name, size_t *steps)
{
    for (size_t i = 0; i < covered->count; i++) {
        bool found = false;

        for (size_t j = 0; j < patterns->count && !found && *steps != 0; j++) {
            found =
                policy_pattern_covers(patterns->patterns[j], covered->patterns[i], is_name, steps);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

static bool globs_cover(const struct policy_globs *globs, const struct policy_globs *covered,
                        bool is_name, size_t *steps)
{
    if (globs->count == 0) {
        return true;
    }
    return covered->count != 0 && patterns_cover(globs, covered, is_name, steps);
}

/* What the first excludes, the second excludes too. */
static bool exclusions_cover(const struct policy_globs *globs, const struct policy_globs *covered,
                             bool is_name, size_t *steps)
{
    return patterns_cover(covered, globs, is_name, steps);
}

static bool same_names_cover(const struct policy_globs *names, const struct policy_globs *covered,
                             size_t *steps)
{
    if (names->count == 0) {
        return true;
    }
    for (size_t i = 0; i < covered->count; i++) {
        bool found = false;

        for (size_t j = 0; j < names->count && !found && *steps != 0; j++, --*steps) {
            found = strcmp(names->patterns[j], covered->patterns[i]) == 0;
        }
        if (!found) {
            return false;
        }
    }
    return covered->count != 0;
}

static bool range_covers(const struct policy_range *range, const struct policy_range *covered)
{
    return range->low <= covered->low && range->high >= covered->high;
}

static bool ranges_cover(const struct policy_ranges *ranges, const struct policy_ranges *covered,
                         size_t *steps)
{
    if (ranges->count == 0) {
        return true;
    }
    for (size_t i = 0; i < covered->count; i++) {
        bool found = false;

        for (size_t j = 0; j < ranges->count && !found && *steps != 0; j++, --*steps) {
            found = range_covers(&ranges->ranges[j], &covered->ranges[i]);
        }
        if (!found) {
            return false;
        }
    }
    return covered->count != 0;
}

static bool device_covers(const struct policy_device *device, const struct policy_device *covered)
{
    if (device->form != covered->form) {
        return false;
    }
    switch (device->form) {
    case POLICY_DEVICE_INDEX:
        return range_covers(&device->index, &covered->index);
    case POLICY_DEVICE_UUID:
        return device->uuid.bytes_known <= covered->uuid.bytes_known &&
               memcmp(device->uuid.bytes, covered->uuid.bytes, device->uuid.bytes_known) == 0;
    case POLICY_DEVICE_PCI:
        return device->pci.domain == covered->pci.domain && device->pci.bus == covered->pci.bus &&
               device->pci.device == covered->pci.device;
    }
    return false;
}

static bool devices_cover(const struct policy_devices *devices,
                          const struct policy_devices *covered, size_t *steps)
{
    if (devices->count == 0) {
        return true;
    }
    for (size_t i = 0; i < covered->count; i++) {
        bool found = false;

        for (size_t j = 0; j < devices->count && !found && *steps != 0; j++, --*steps) {
            found = device_covers(&devices->devices[j], &covered->devices[i]);
        }
        if (!found) {
            return false;
        }
    }
    return covered->count != 0;
}

/* ---- does one rule match all that another matches? --------------------------------------------
 */

static bool kernel_selectors_cover(const struct policy_selectors *selectors,
                                   const struct policy_selectors *covered, size_t *steps)
{
    bool names = selectors->name.count != 0 || selectors->not_name.count != 0;

    /* A kernel may lack one form of its name, so forms do not compare. launch_stream counts the
     * streams of its own rule's kernels, so its numbers do not either. */
    if ((names && selectors->name_form != covered->name_form) ||
        selectors->launch_stream.count != 0) {
        return false;
    }
    return (selectors->captured == POLICY_CHOICE_ANY || selectors->captured == covered->captured) &&
           ranges_cover(&selectors->grid_blocks, &covered->grid_blocks, steps) &&
           ranges_cover(&selectors->block_threads, &covered->block_threads, steps) &&
           ranges_cover(&selectors->shared_memory, &covered->shared_memory, steps) &&
           ranges_cover(&selectors->arm, &covered->arm, steps) &&
           same_names_cover(&selectors->stream, &covered->stream, steps) &&
           globs_cover(&selectors->name, &covered->name,
                       selectors->name_form == POLICY_NAME_FORM_NAME, steps) &&
           exclusions_cover(&selectors->not_name, &covered->not_name,
                            selectors->name_form == POLICY_NAME_FORM_NAME, steps);
}

static bool stream_selectors_cover(const struct policy_selectors *selectors,
                                   const struct policy_selectors *covered, size_t *steps)
{
    return (covered->kinds & ~selectors->kinds) == 0 &&
           (selectors->flags == POLICY_STREAM_FLAGS_ANY || selectors->flags == covered->flags) &&
           ranges_cover(&selectors->created_priority, &covered->created_priority, steps) &&
           ranges_cover(&selectors->index, &covered->index, steps);
}

/* The cheap comparisons come first: for most pairs one of them ends it. */
static bool rule_covers(const struct policy_rule *rule, const struct policy_rule *covered,
                        size_t *steps)
{
    const struct policy_selectors *selectors = &rule->selectors, *others = &covered->selectors;
    bool special = rule->section == POLICY_SECTION_KERNEL
                       ? kernel_selectors_cover(selectors, others, steps)
                       : stream_selectors_cover(selectors, others, steps);

    return special && ranges_cover(&selectors->rank, &others->rank, steps) &&
           ranges_cover(&selectors->local_rank, &others->local_rank, steps) &&
           ranges_cover(&selectors->world_size, &others->world_size, steps) &&
           devices_cover(&selectors->device, &others->device, steps) &&
           globs_cover(&selectors->library, &others->library, false, steps) &&
           exclusions_cover(&selectors->not_library, &others->not_library, false, steps) &&
           globs_cover(&selectors->host, &others->host, false, steps);
}

/* ---- warnings ------------------------------------------------------------------------------- */

static unsigned groups_of(const struct policy_rule *rule)
{
    unsigned groups = 0;

    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        if (rule->settings[setting].action != POLICY_ACTION_ABSENT) {
            groups |= 1u << policy_setting_group((enum policy_setting)setting);
        }
    }
    return groups;
}

static const char *section_text(const struct policy_rule *rule)
{
    return rule->section == POLICY_SECTION_STREAM ? "stream" : "kernel";
}

static const char *other_file(const struct policy_rule *rule, const struct policy_rule *taker)
{
    return policy_layers_share_file(rule->layer, taker->layer) ? "" : " of the site's file";
}

/* Some groups of the rule are open still: each of its settings in the taken ones is reported. */
static void warn_settings(const struct policy_rule *rule, const struct policy_rule *const *takers,
                          struct policy_diagnostics *diagnostics)
{
    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        enum policy_group group = policy_setting_group((enum policy_setting)setting);

        if (rule->settings[setting].action != POLICY_ACTION_ABSENT && takers[group] != NULL) {
            policy_diagnose(diagnostics, POLICY_WARNING, rule->settings[setting].place,
                            "%s of [%s %s] can never apply: [%s %s] in line %u%s matches all that "
                            "this rule matches and comes first",
                            policy_setting_key((enum policy_setting)setting), section_text(rule),
                            rule->name, section_text(rule), takers[group]->name,
                            (unsigned)takers[group]->place.line, other_file(rule, takers[group]));
        }
    }
}

static void warn_rule(const struct policy_rule *rule, const struct policy_rule *taker,
                      struct policy_diagnostics *diagnostics)
{
    policy_diagnose(
        diagnostics, POLICY_WARNING, rule->place,
        "[%s %s] can never apply: [%s %s] in line %u%s matches all that this rule matches "
        "and %s",
        section_text(rule), rule->name, section_text(rule), taker->name,
        (unsigned)taker->place.line, other_file(rule, taker),
        taker->final ? "is final" : "comes first with the same settings");
}

/* All groups of the rule that are taken are taken by one earlier rule. */
static bool one_taker(const struct policy_rule *const *takers, const struct policy_rule *last)
{
    for (int group = 0; group < POLICY_GROUP_COUNT; group++) {
        if (takers[group] != NULL && takers[group] != last) {
            return false;
        }
    }
    return true;
}

static void check_rule(const struct policy_rule *rules, const unsigned char *groups, size_t index,
                       size_t *steps, struct policy_diagnostics *diagnostics)
{
    const struct policy_rule *takers[POLICY_GROUP_COUNT] = {0};
    const struct policy_rule *rule = &rules[index], *last = NULL;
    unsigned open = groups[index];
    bool ended = false;

    for (size_t i = 0; i < index && *steps != 0 && !ended; i++) {
        const struct policy_rule *earlier = &rules[i];
        unsigned taken = groups[i] & open;

        --*steps;
        if (earlier->section != rule->section || (taken == 0 && !earlier->final) ||
            !rule_covers(earlier, rule, steps)) {
            continue;
        }
        for (unsigned group = 0; group < POLICY_GROUP_COUNT; group++) {
            if ((taken & 1u << group) != 0) {
                takers[group] = earlier;
            }
        }
        open &= ~taken;
        last = earlier;
        ended = earlier->final || open == 0;
    }
    if (ended && (last->final || one_taker(takers, last))) {
        warn_rule(rule, last, diagnostics);
    } else {
        warn_settings(rule, takers, diagnostics);
    }
}

/* from: the first rule that is looked at, by the rules before it. */
static void check_rules(const struct policy_rule *rules, size_t from, size_t count,
                        struct policy_diagnostics *diagnostics)
{
    size_t steps = SHADOW_STEP_LIMIT;
    unsigned char *groups = malloc(count);

    if (groups == NULL) {
        return; /* warnings are not worth failing for */
    }
    for (size_t i = 0; i < count; i++) {
        groups[i] = (unsigned char)groups_of(&rules[i]);
    }
    for (size_t i = from; i < count && steps != 0; i++) {
        check_rule(rules, groups, i, &steps, diagnostics);
    }
    free(groups);
}

void policy_check_shadows(const struct policy_rule *rules, size_t count,
                          struct policy_diagnostics *diagnostics)
{
    check_rules(rules, 1, count, diagnostics);
}

/* Each file was looked at by itself; of the site's defaults it is no news that the job's rules come
 * first. */
void policy_check_shadows_of_site(const struct policy_rule *rules, size_t count,
                                  struct policy_diagnostics *diagnostics)
{
    size_t locked = 0;
    struct policy_rule *pair;

    while (locked < count && rules[locked].layer == POLICY_LAYER_LOCKED) {
        locked++;
    }
    pair = malloc((locked + 1) * sizeof *pair);
    if (pair == NULL || locked == 0) {
        free(pair);
        return;
    }
    memcpy(pair, rules, locked * sizeof *pair);
    for (size_t i = locked; i < count && rules[i].layer == POLICY_LAYER_JOB; i++) {
        pair[locked] = rules[i];
        check_rules(pair, locked, locked + 1, diagnostics);
    }
    free(pair);
}

_Static_assert(POLICY_GROUP_COUNT <= 8, "a set of groups is kept in a byte");
