/* SPDX-License-Identifier: Apache-2.0 */
#include "match.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decide/selectors.h"
#include "policy/vocabulary.h"

/* ---- Texts --------------------------------------------------------------------------------------
 */

static void append(char *text, size_t size, const char *addition)
{
    size_t length = strlen(text);

    snprintf(text + length, size - length, "%s", addition);
}

static void append_range(char *text, size_t size, const struct policy_range *range)
{
    char low[24] = "", high[24] = "", both[64];

    if (range->low == range->high) {
        snprintf(both, sizeof both, "%" PRId64, range->low);
    } else {
        if (range->low != INT64_MIN) {
            snprintf(low, sizeof low, "%" PRId64, range->low);
        }
        if (range->high != INT64_MAX) {
            snprintf(high, sizeof high, "%" PRId64, range->high);
        }
        snprintf(both, sizeof both, "%s..%s", low, high);
    }
    append(text, size, both);
}

static void ranges_text(const struct policy_ranges *ranges, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < ranges->count; i++) {
        append(text, size, i > 0 ? "," : "");
        append_range(text, size, &ranges->ranges[i]);
    }
}

static void globs_text(const struct policy_globs *globs, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < globs->count; i++) {
        append(text, size, i > 0 ? ", " : "");
        append(text, size, globs->patterns[i]);
    }
}

const char *match_form_word(enum policy_name_form form)
{
    const char *word = policy_vocabulary_word_text(POLICY_WORDS_NAME_FORM, (int)form);

    return word != NULL ? word : "?";
}

const char *match_form_text(const struct kernel_name *name, enum policy_name_form form)
{
    switch (form) {
    case POLICY_NAME_FORM_MANGLED:
        return name->mangled;
    case POLICY_NAME_FORM_SIGNATURE:
        return name->signature;
    case POLICY_NAME_FORM_NAME:
        break;
    }
    return name->name;
}

/* ---- Verdicts -----------------------------------------------------------------------------------
 */

/* Enters what one selector says: a "no" ends the search, the first "perhaps" is remembered. The
 * detail is made by the caller only when true is returned. */
static bool takes(struct match_verdict *verdict, enum match_answer answer, const char *key)
{
    if (answer >= verdict->answer) {
        return false;
    }
    verdict->answer = answer;
    verdict->key = key;
    return true;
}

#define say(verdict, ...) snprintf((verdict)->detail, sizeof(verdict)->detail, __VA_ARGS__)

static void weigh_name(const struct policy_selectors *selectors, const struct match_facts *facts,
                       struct match_verdict *verdict)
{
    const struct kernel_name *name = &facts->name;
    const char *text = match_form_text(name, selectors->name_form);
    char patterns[200];

    if (facts->nameless) {
        if (!decide_selectors_hold_name(selectors, NULL) && takes(verdict, MATCH_NO, "name")) {
            say(verdict, "the driver gives no name for the kernel");
        }
        return;
    }
    if (selectors->name.count + selectors->not_name.count > 0 &&
        !facts->form_known[selectors->name_form]) {
        if (takes(verdict, MATCH_PERHAPS, "name")) {
            say(verdict, "the %s is not known: give the kernel's mangled name",
                match_form_word(selectors->name_form));
        }
        return;
    }
    if (selectors->name.count > 0 &&
        !decide_selectors_any_name(&selectors->name, selectors->name_form, name) &&
        takes(verdict, MATCH_NO, "name")) {
        globs_text(&selectors->name, patterns, sizeof patterns);
        say(verdict, "%s does not match %s", text, patterns);
    }
    if (decide_selectors_any_name(&selectors->not_name, selectors->name_form, name) &&
        takes(verdict, MATCH_NO, "not_name")) {
        globs_text(&selectors->not_name, patterns, sizeof patterns);
        say(verdict, "%s is excluded by %s", text, patterns);
    }
}

static void weigh_text(const struct policy_globs *globs, const char *text, bool excluding,
                       const char *key, struct match_verdict *verdict)
{
    char patterns[200];

    if (globs->count == 0) {
        return;
    }
    globs_text(globs, patterns, sizeof patterns);
    if (text == NULL) {
        if (takes(verdict, MATCH_PERHAPS, key)) {
            say(verdict, "not known, the rule asks for %s%s", excluding ? "none of " : "",
                patterns);
        }
    } else if (text[0] == '\0') {
        /* A caller that could not be told is no library by name, and none that is excluded. */
        if (!excluding && takes(verdict, MATCH_NO, key)) {
            say(verdict, "could not be told, the rule asks for %s", patterns);
        }
    } else if (decide_selectors_any(globs, text) == excluding && takes(verdict, MATCH_NO, key)) {
        say(verdict, excluding ? "%s is excluded by %s" : "%s does not match %s", text, patterns);
    }
}

/* How much of the extent the ranges hold. Ranges of one list may touch or overlap, so the extent is
 * walked from its low end, each step to the end of the range that reaches furthest. */
static enum match_answer ranges_answer(const struct policy_ranges *ranges,
                                       const struct match_extent *extent)
{
    int64_t from = extent->least;
    bool touched = false, moved = true;

    if (extent->least == extent->most) {
        return policy_ranges_hold(ranges, extent->least) ? MATCH_YES : MATCH_NO;
    }
    for (size_t i = 0; i < ranges->count; i++) {
        touched = touched || (ranges->ranges[i].low <= extent->most &&
                              ranges->ranges[i].high >= extent->least);
    }
    while (moved) {
        moved = false;
        for (size_t i = 0; i < ranges->count; i++) {
            if (ranges->ranges[i].low <= from && ranges->ranges[i].high >= from) {
                if (ranges->ranges[i].high >= extent->most) {
                    return MATCH_YES;
                }
                from = ranges->ranges[i].high + 1;
                moved = true;
            }
        }
    }
    return touched ? MATCH_PERHAPS : MATCH_NO;
}

static const char not_known[] = "not known";
/* Noting them costs time, so it is done only where nothing is changed. */
static const char not_noted[] = "not noted (reports have it from observe mode and record only)";

/* unknown: what to say where the extent is not known. */
static void weigh_ranges(const struct policy_ranges *ranges, const struct match_extent *extent,
                         const char *unknown, const char *key, struct match_verdict *verdict)
{
    enum match_answer answer;
    char text[200], launches[64];

    if (ranges->count == 0) {
        return;
    }
    ranges_text(ranges, text, sizeof text);
    if (!extent->known) {
        if (takes(verdict, MATCH_PERHAPS, key)) {
            say(verdict, "%s, the rule asks for %s", unknown, text);
        }
        return;
    }
    answer = ranges_answer(ranges, extent);
    if (!takes(verdict, answer, key)) {
        return;
    }
    if (extent->least == extent->most) {
        snprintf(launches, sizeof launches, "%" PRId64 " is", extent->least);
    } else {
        snprintf(launches, sizeof launches, "%" PRId64 "..%" PRId64 " is", extent->least,
                 extent->most);
    }
    say(verdict, "%s %s %s", launches, answer == MATCH_NO ? "not in" : "only partly in", text);
}

static void weigh_stream(enum policy_layer layer, const struct policy_globs *names,
                         const struct match_facts *facts, struct match_verdict *verdict)
{
    char text[200];

    if (names->count == 0) {
        return;
    }
    globs_text(names, text, sizeof text);
    if (!facts->stream_known) {
        if (takes(verdict, MATCH_PERHAPS, "stream")) {
            say(verdict, "not known, the rule asks for [stream %s]", text);
        }
        return;
    }
    for (size_t i = 0; i < names->count; i++) {
        if (facts->stream_rule != NULL && policy_layers_share_file(layer, facts->stream_layer) &&
            strcmp(names->patterns[i], facts->stream_rule) == 0) {
            return;
        }
    }
    if (takes(verdict, MATCH_NO, "stream")) {
        say(verdict, "the stream matches %s%s, the rule asks for [stream %s]",
            facts->stream_rule != NULL ? "[stream] " : "no stream rule",
            facts->stream_rule != NULL ? facts->stream_rule : "", text);
    }
}

static void weigh_captured(enum policy_choice asked, enum policy_choice known,
                           struct match_verdict *verdict)
{
    if (asked == POLICY_CHOICE_ANY || asked == known) {
        return;
    }
    if (takes(verdict, known == POLICY_CHOICE_ANY ? MATCH_PERHAPS : MATCH_NO, "captured")) {
        say(verdict, "%s, the rule asks for %s",
            known == POLICY_CHOICE_ANY   ? "not known, or not always"
            : known == POLICY_CHOICE_YES ? "launches are captured"
                                         : "launches are not captured",
            asked == POLICY_CHOICE_YES ? "yes" : "no");
    }
}

/* Only indices can be compared here: addresses and UUIDs are those of a machine. */
static void weigh_device(const struct policy_devices *devices, const struct match_extent *extent,
                         struct match_verdict *verdict)
{
    bool open = !extent->known || extent->least != extent->most;

    if (devices->count == 0) {
        return;
    }
    for (size_t i = 0; i < devices->count; i++) {
        const struct policy_device *device = &devices->devices[i];

        if (device->form != POLICY_DEVICE_INDEX) {
            open = true;
        } else if (!open && device->index.low <= extent->least &&
                   extent->least <= device->index.high) {
            return;
        }
    }
    if (takes(verdict, open ? MATCH_PERHAPS : MATCH_NO, "device")) {
        say(verdict, "%s", open ? "not known" : "it is another device");
    }
}

void match_rule(const struct policy_rule *rule, const struct match_facts *facts,
                struct match_verdict *verdict)
{
    const struct policy_selectors *selectors = &rule->selectors;
    const char *shape = facts->shapes_unnoted ? not_noted : not_known;

    *verdict = (struct match_verdict){.answer = MATCH_YES};
    weigh_name(selectors, facts, verdict);
    weigh_text(&selectors->library, facts->library, false, "library", verdict);
    weigh_text(&selectors->not_library, facts->library, true, "not_library", verdict);
    weigh_stream(rule->layer, &selectors->stream, facts, verdict);
    weigh_ranges(&selectors->launch_stream, &facts->launch_stream, not_known, "launch_stream",
                 verdict);
    weigh_ranges(&selectors->grid_blocks, &facts->grid_blocks, shape, "grid_blocks", verdict);
    weigh_ranges(&selectors->block_threads, &facts->block_threads, shape, "block_threads", verdict);
    weigh_ranges(&selectors->shared_memory, &facts->shared_memory, shape, "shared_memory", verdict);
    weigh_captured(selectors->captured, facts->captured, verdict);
    weigh_ranges(&selectors->arm, &facts->arm, not_known, "arm", verdict);
    weigh_device(&selectors->device, &facts->device, verdict);
    weigh_ranges(&selectors->rank, &facts->rank, not_known, "rank", verdict);
    weigh_ranges(&selectors->local_rank, &facts->local_rank, not_known, "local_rank", verdict);
    weigh_ranges(&selectors->world_size, &facts->world_size, not_known, "world_size", verdict);
    weigh_text(&selectors->host, facts->host, false, "host", verdict);
}

bool match_other_form(const struct policy_selectors *selectors, const struct kernel_name *name,
                      enum policy_name_form *form, const char **pattern)
{
    static const enum policy_name_form forms[] = {
        POLICY_NAME_FORM_NAME,
        POLICY_NAME_FORM_SIGNATURE,
        POLICY_NAME_FORM_MANGLED,
    };

    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        for (size_t i = 0; i < selectors->name.count && forms[f] != selectors->name_form; i++) {
            if (kernel_name_matches(name, forms[f], selectors->name.patterns[i])) {
                *form = forms[f];
                *pattern = selectors->name.patterns[i];
                return true;
            }
        }
    }
    return false;
}
