/* SPDX-License-Identifier: Apache-2.0 */

/* Sections of a policy: their headers, and the rule or partition that each of them makes. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/hint.h"
#include "policy/parser.h"

enum {
    SECTION_WORD_LIMIT = 64, /* for a terminated copy; longer words are no sections anyway */
    SECTION_LIMIT = 16,
};

static void report_unknown_section(struct policy_parser *parser, const char *word)
{
    size_t count;
    const struct policy_section_entry *sections = policy_vocabulary_sections(&count);
    const char *candidates[SECTION_LIMIT];
    struct policy_quotation quotation;
    struct policy_hint hint;

    for (size_t i = 0; i < count && i < SECTION_LIMIT; i++) {
        candidates[i] = sections[i].text;
    }
    policy_diagnose(
        parser->diagnostics, POLICY_ERROR, parser->line.section.place, "unknown section \"%s\"%s",
        policy_quote(&quotation, parser->line.section.text, parser->line.section.length),
        policy_hint(&hint, word, candidates, count < SECTION_LIMIT ? count : SECTION_LIMIT));
}

static const struct policy_section_entry *find_section(struct policy_parser *parser)
{
    const struct policy_slice *text = &parser->line.section;
    const struct policy_section_entry *entry;
    char word[SECTION_WORD_LIMIT] = "";

    if (text->length == 0) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, text->place, "empty section header");
        return NULL;
    }
    if (text->length < sizeof word) {
        memcpy(word, text->text, text->length);
    }
    entry = policy_vocabulary_section(word);
    if (entry == NULL) {
        report_unknown_section(parser, word);
    }
    return entry;
}

static bool is_name_character(unsigned char character)
{
    bool letter = (character | 0x20) >= 'a' && (character | 0x20) <= 'z';
    bool digit = character >= '0' && character <= '9';

    return letter || digit || (character != '\0' && strchr("_-.:+@/", character) != NULL);
}

/* Words that mean something else where a rule names a partition. */
static bool is_taken(const struct policy_slice *name)
{
    static const char *const words[] = {"leave", "unset"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (name->length == strlen(words[i]) && memcmp(name->text, words[i], name->length) == 0) {
            return true;
        }
    }
    return false;
}

/* A rule's name stands in reports, tables and other rules, so it is one short, plain word. So is a
 * partition's. */
static bool name_is_good(struct policy_parser *parser)
{
    const struct policy_slice *name = &parser->line.name;
    bool partition = parser->section->section == POLICY_SECTION_PARTITION;
    const char *what = partition ? "partition" : "rule";
    struct policy_quotation quotation;

    if (name->length == 0) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->line.section.place,
                        "[%s] needs a name, as in [%s example]", parser->section->text,
                        parser->section->text);
        return false;
    }
    policy_quote(&quotation, name->text, name->length);
    if (name->length > POLICY_RULE_NAME_LIMIT) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, name->place,
                        "the %s's name \"%s\" has %zu bytes; at most %d are allowed", what,
                        quotation.text, name->length, (int)POLICY_RULE_NAME_LIMIT);
        return false;
    }
    for (size_t i = 0; i < name->length; i++) {
        if (!is_name_character((unsigned char)name->text[i])) {
            policy_diagnose(
                parser->diagnostics, POLICY_ERROR,
                (struct policy_place){name->place.line, name->place.column + (uint32_t)i},
                "the %s's name \"%s\" has something other than letters, digits and "
                "_ - . : + @ /",
                what, quotation.text);
            return false;
        }
    }
    if (partition && is_taken(name)) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, name->place,
                        "a partition cannot be called \"%s\": in a rule that word is no name",
                        quotation.text);
        return false;
    }
    return true;
}

static void begin_policy(struct policy_parser *parser)
{
    if (parser->line.name.length != 0) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->line.name.place,
                        "[policy] takes no name");
    }
    if (parser->policy_place.line != 0) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->section_place,
                        "second [policy]; the first is in line %u",
                        (unsigned)parser->policy_place.line);
    } else if (parser->section_count != 1) {
        /* Its version says how to read all the rest. */
        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->section_place,
                        "[policy] has to be the first section");
    }
    if (parser->policy_place.line == 0) {
        parser->policy_place = parser->section_place;
    }
    parser->state = POLICY_PARSER_IN_POLICY;
}

static void begin_tune(struct policy_parser *parser)
{
    if (parser->line.name.length != 0) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->line.name.place,
                        "[tune] takes no name");
    }
    if (parser->tune_place.line != 0) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->section_place,
                        "second [tune]; the first is in line %u",
                        (unsigned)parser->tune_place.line);
    } else {
        parser->tune_place = parser->section_place;
    }
    parser->state = POLICY_PARSER_IN_TUNE;
}

static void begin_named(struct policy_parser *parser)
{
    struct policy_rule_builder *builder = &parser->builder;
    size_t errors = parser->diagnostics->error_count;

    const char *name = "?";

    *builder =
        (struct policy_rule_builder){.errors_before = errors, .name_is_good = name_is_good(parser)};
    parser->name_missing |= !builder->name_is_good;
    if (builder->name_is_good) {
        name = policy_arena_copy(&parser->arena, parser->line.name.text, parser->line.name.length);
        if (name == NULL) {
            parser->out_of_memory = true;
            return;
        }
    }
    if (parser->section->section == POLICY_SECTION_PARTITION) {
        builder->partition = (struct policy_partition){
            .name = name, .named = true, .layer = parser->layer, .place = parser->section_place};
        parser->state = POLICY_PARSER_IN_PARTITION;
    } else {
        builder->rule.section = parser->section->section;
        builder->rule.layer = parser->layer;
        builder->rule.place = parser->section_place;
        builder->rule.name = name;
        parser->state = POLICY_PARSER_IN_RULE;
    }
}

static void begin(struct policy_parser *parser)
{
    switch (parser->section->section) {
    case POLICY_SECTION_POLICY:
        begin_policy(parser);
        break;
    case POLICY_SECTION_TUNE:
        begin_tune(parser);
        break;
    case POLICY_SECTION_ENV:
        policy_parser_begin_env(parser);
        break;
    case POLICY_SECTION_EXPECT:
        policy_parser_begin_expect(parser);
        break;
    case POLICY_SECTION_SITE:
        policy_parser_begin_site(parser);
        break;
    case POLICY_SECTION_LOCKED:
    case POLICY_SECTION_DEFAULTS:
        policy_parser_begin_marker(parser);
        break;
    case POLICY_SECTION_PARTITION:
    case POLICY_SECTION_STREAM:
    case POLICY_SECTION_KERNEL:
        begin_named(parser);
        break;
    }
}

void policy_parser_begin_section(struct policy_parser *parser)
{
    parser->section_count++;
    snprintf(parser->section_label, sizeof parser->section_label, "%u", parser->section_count);
    parser->section_place = parser->line.place;
    parser->section = parser->line.kind != POLICY_LINE_BAD_SECTION ? find_section(parser) : NULL;
    if (parser->section == NULL) {
        parser->state = POLICY_PARSER_SKIPPING;
        parser->header_broken = true;
        parser->first_header_broken |= parser->section_count == 1;
    } else if (!policy_parser_section_fits(parser)) {
        parser->state = POLICY_PARSER_SKIPPING;
    } else {
        begin(parser);
    }
}

static struct policy_rule *add_rule(struct policy_parser *parser)
{
    if (parser->rule_count == parser->rule_capacity) {
        size_t capacity = parser->rule_capacity == 0 ? 16 : parser->rule_capacity * 2;
        struct policy_rule *rules = realloc(parser->rules, capacity * sizeof *rules);

        if (rules == NULL) {
            parser->out_of_memory = true;
            return NULL;
        }
        parser->rules = rules;
        parser->rule_capacity = capacity;
    }
    return &parser->rules[parser->rule_count++];
}

struct policy_partition *policy_parser_add_partition(struct policy_parser *parser,
                                                     struct policy_place place,
                                                     struct policy_place request)
{
    if (parser->partitions == NULL) {
        parser->partitions = policy_arena_allocate(&parser->arena, POLICY_PARTITION_LIMIT *
                                                                       sizeof *parser->partitions);
        parser->partition_requests = policy_arena_allocate(
            &parser->arena, POLICY_PARTITION_LIMIT * sizeof *parser->partition_requests);
    }
    if (parser->partitions == NULL || parser->partition_requests == NULL) {
        parser->partitions = NULL;
        parser->out_of_memory = true;
        return NULL;
    }
    if (parser->partition_count == POLICY_PARTITION_LIMIT) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, place,
                        "a policy has at most %d partitions", (int)POLICY_PARTITION_LIMIT);
        parser->stopped = true;
        return NULL;
    }
    parser->partition_requests[parser->partition_count] = request;
    return &parser->partitions[parser->partition_count++];
}

static void end_partition(struct policy_parser *parser)
{
    const struct policy_rule_builder *builder = &parser->builder;
    struct policy_place request = builder->key_place[POLICY_KEY_SM_COUNT];

    if (request.line == 0) {
        request = builder->key_place[POLICY_KEY_DOMAIN_NUMBER];
    }
    policy_check_partition(builder, parser->diagnostics);

    struct policy_partition *partition =
        policy_parser_add_partition(parser, builder->partition.place, request);
    if (partition != NULL) {
        *partition = builder->partition;
        partition->index = (uint16_t)(parser->partition_count - 1);
    }
    parser->state = POLICY_PARSER_SKIPPING;
}

static void end_rule(struct policy_parser *parser)
{
    struct policy_rule_builder *builder = &parser->builder;

    if (parser->rule_count == POLICY_RULE_LIMIT) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, builder->rule.place,
                        "a policy has at most %d rules", (int)POLICY_RULE_LIMIT);
        parser->stopped = true;
        return;
    }
    if (builder->rule.section == POLICY_SECTION_STREAM &&
        builder->key_place[POLICY_KEY_KIND].line == 0) {
        builder->rule.selectors.kinds = POLICY_STREAM_KIND_CREATED;
    }
    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        if (builder->key_place[POLICY_KEY_WHEN_SET].line != 0 &&
            builder->rule.settings[setting].action != POLICY_ACTION_ABSENT) {
            builder->rule.settings[setting].when_set = builder->when_set;
        }
    }
    policy_check_rule(builder, parser->diagnostics);

    struct policy_rule *rule = add_rule(parser);
    if (rule != NULL) {
        builder->rule.index = (uint16_t)(parser->rule_count - 1);
        *rule = builder->rule;
    }
    parser->state = POLICY_PARSER_SKIPPING;
}

void policy_parser_end_section(struct policy_parser *parser)
{
    if (parser->out_of_memory) {
        return;
    }
    if (parser->state == POLICY_PARSER_IN_RULE) {
        end_rule(parser);
    } else if (parser->state == POLICY_PARSER_IN_PARTITION) {
        end_partition(parser);
    }
}
