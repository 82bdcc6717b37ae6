/* SPDX-License-Identifier: Apache-2.0 */

/*
 * [tune]: which keys of which rules and partitions are to be varied, "RULE.KEY = A, B". A value is
 * read by the same code that reads it where it is to stand: as if a section of that kind, with
 * nothing else in it, had that line.
 */

#include <string.h>

#include "policy/hint.h"
#include "policy/line.h"
#include "policy/parser.h"
#include "policy/print.h"
#include "policy/value.h"

enum {
    CANDIDATE_LIMIT = 64, /* names that a misspelt one is compared with */
    KIND_COUNT = 3,       /* of sections whose keys can be varied */
    /* For a terminated copy; what is longer is neither a kind of section nor a key. */
    WORD_LIMIT = 64,
};

static const enum policy_section kinds[KIND_COUNT] = {
    POLICY_SECTION_KERNEL,
    POLICY_SECTION_STREAM,
    POLICY_SECTION_PARTITION,
};

/* The line's parts: offsets in its text. */
struct variation_parts {
    struct policy_value_item kind; /* length 0: not given */
    struct policy_value_item name, key;
    size_t values; /* where they begin */
};

/* A variation while it is read. */
struct variation_reader {
    struct policy_parser *parser;
    struct policy_value_text *value;
    struct variation_parts parts;
    struct policy_variation variation;
    const char *values[POLICY_VARIATION_VALUE_LIMIT];
};

static const char *quote_item(struct policy_quotation *quotation, const char *text,
                              struct policy_value_item item)
{
    return policy_quote(quotation, text + item.offset, item.length);
}

/* A terminated copy, "" where there is too much of it to be a word. */
static const char *copy_word(char word[WORD_LIMIT], const char *text, struct policy_value_item item)
{
    size_t length = item.length < WORD_LIMIT ? item.length : 0;

    memcpy(word, text + item.offset, length);
    word[length] = '\0';
    return word;
}

/* ---- the line's parts ----------------------------------------------------------------------- */

/* Names may have dots, keys have none, and neither has a '=' or a blank. */
static bool take_apart(struct policy_value_text *value, struct variation_parts *parts)
{
    static const char form[] = "as in \"vary = RULE.KEY = VALUE, VALUE\"";
    const char *text = value->text, *equals = strchr(text, '=');
    struct policy_quotation quotation;

    if (equals == NULL) {
        policy_value_error(value, 0, "\"%s\" gives no values, %s",
                           policy_quote(&quotation, text, strlen(text)), form);
        return false;
    }
    struct policy_value_item target = policy_trimmed(text, 0, (size_t)(equals - text));
    const char *dot = memrchr(text + target.offset, '.', target.length);

    if (dot == NULL || dot == text + target.offset ||
        dot + 1 == text + target.offset + target.length) {
        policy_value_error(value, target.offset, "\"%s\" is not RULE.KEY, %s",
                           quote_item(&quotation, text, target), form);
        return false;
    }
    size_t at = (size_t)(dot - text), end = target.offset + target.length, word = target.offset;

    while (word < at && !policy_is_blank(text[word])) {
        word++;
    }
    *parts = (struct variation_parts){.values = (size_t)(equals - text) + 1};
    parts->key = policy_trimmed(text, at + 1, end);
    parts->name = policy_trimmed(text, target.offset, at);
    if (word < at) {
        parts->kind = (struct policy_value_item){target.offset, word - target.offset};
        parts->name = policy_trimmed(text, word, at);
    }
    return true;
}

/* ---- which section -------------------------------------------------------------------------- */

static bool item_is(const char *text, struct policy_value_item item, const char *word)
{
    return item.length == strlen(word) && memcmp(text + item.offset, word, item.length) == 0;
}

/* The bits of the sections that have this name; the name's copy of the first. */
static unsigned sections_named(const struct policy_parser *parser, const char *text,
                               struct policy_value_item name, const char **copy)
{
    unsigned sections = 0;

    for (size_t i = 0; i < parser->rule_count; i++) {
        if (item_is(text, name, parser->rules[i].name)) {
            sections |= 1u << parser->rules[i].section;
            *copy = parser->rules[i].name;
        }
    }
    for (size_t i = 0; i < parser->partition_count; i++) {
        if (parser->partitions[i].named && item_is(text, name, parser->partitions[i].name)) {
            sections |= POLICY_IN(PARTITION);
            *copy = parser->partitions[i].name;
        }
    }
    return sections;
}

/* The bit of the kind that is given, all of them when none is, 0 after an error. */
static unsigned kind_given(struct policy_value_text *value, struct policy_value_item kind)
{
    const char *candidates[KIND_COUNT];
    struct policy_quotation quotation;
    struct policy_hint hint;
    char word[WORD_LIMIT];
    unsigned all = 0;

    copy_word(word, value->text, kind);
    for (size_t i = 0; i < KIND_COUNT; i++) {
        candidates[i] = policy_section_text(kinds[i]);
        if (kind.length != 0 && strcmp(word, candidates[i]) == 0) {
            return 1u << kinds[i];
        }
        all |= 1u << kinds[i];
    }
    if (kind.length == 0) {
        return all;
    }
    policy_value_error(value, kind.offset,
                       "\"%s\" is not kernel, stream or partition, the kind of what is varied%s",
                       quote_item(&quotation, value->text, kind),
                       policy_hint(&hint, word, candidates, KIND_COUNT));
    return 0;
}

static void report_unknown_name(struct variation_reader *reader, unsigned wanted)
{
    const struct policy_parser *parser = reader->parser;
    const struct policy_value_item *name = &reader->parts.name;
    const char *candidates[CANDIDATE_LIMIT], *what = "rule or partition";
    struct policy_quotation quotation;
    struct policy_hint hint;
    char word[POLICY_RULE_NAME_LIMIT + 1] = "";
    size_t count = 0;

    if (parser->header_broken || parser->name_missing) {
        return; /* it may be the one that could not be read */
    }
    for (size_t i = 0; i < parser->rule_count && count < CANDIDATE_LIMIT; i++) {
        if ((wanted & 1u << parser->rules[i].section) != 0) {
            candidates[count++] = parser->rules[i].name;
        }
    }
    for (size_t i = 0; i < parser->partition_count && count < CANDIDATE_LIMIT; i++) {
        if ((wanted & POLICY_IN(PARTITION)) != 0 && parser->partitions[i].named) {
            candidates[count++] = parser->partitions[i].name;
        }
    }
    if (name->length < sizeof word) {
        memcpy(word, reader->value->text + name->offset, name->length);
    }
    for (size_t i = 0; i < KIND_COUNT; i++) {
        what = wanted == 1u << kinds[i] ? policy_section_text(kinds[i]) : what;
    }
    policy_value_error(reader->value, name->offset, "there is no %s \"%s\" in this policy%s", what,
                       quote_item(&quotation, reader->value->text, *name),
                       policy_hint(&hint, word, candidates, count));
}

/* Those of the sections in which the key may stand; all of them where it may in none, so that the
 * message is about the key. */
static unsigned sections_with_key(unsigned sections, const char *key)
{
    unsigned able = 0;

    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (policy_vocabulary_key(key, 1u << kinds[i]) != NULL) {
            able |= 1u << kinds[i];
        }
    }
    return (sections & able) != 0 ? sections & able : sections;
}

/* Finds the section and its name; false after an error. */
static bool find_target(struct variation_reader *reader)
{
    struct policy_value_text *value = reader->value;
    struct policy_quotation quotation;
    char key[WORD_LIMIT];
    unsigned wanted = kind_given(value, reader->parts.kind);

    if (wanted == 0) {
        return false;
    }
    unsigned sections = wanted & sections_named(reader->parser, value->text, reader->parts.name,
                                                &reader->variation.name);
    if (sections == 0) {
        report_unknown_name(reader, wanted);
        return false;
    }
    unsigned able = sections_with_key(sections, copy_word(key, value->text, reader->parts.key));

    for (size_t i = KIND_COUNT; i-- > 0;) {
        if ((able & 1u << kinds[i]) != 0) {
            reader->variation.section = kinds[i];
        }
    }
    if ((able & (able - 1)) != 0 && policy_vocabulary_key(key, able) != NULL) {
        policy_value_error(value, reader->parts.name.offset,
                           "there are several \"%s\" in this policy; say which, as in \"%s %s.%s\"",
                           quote_item(&quotation, value->text, reader->parts.name),
                           policy_section_text(reader->variation.section), reader->variation.name,
                           key);
        return false;
    }
    return true;
}

/* ---- values --------------------------------------------------------------------------------- */

/* A rule or a partition that a value names has to be there. */
static void check_names(struct variation_reader *reader, const struct policy_parser *reading)
{
    const struct policy_parser *parser = reader->parser;
    struct policy_quotation quotation;
    const char *copy = NULL, *name = NULL;
    struct policy_place place = {0};
    unsigned section = 0;

    if (reading->reference_count > 0) {
        name = reading->references[0].name;
        place = reading->references[0].place;
        section = POLICY_IN(STREAM);
    } else if (reading->partition_reference_count > 0) {
        name = reading->partition_references[0].name; /* NULL: by its locality domain */
        place = reading->partition_references[0].place;
        section = POLICY_IN(PARTITION);
    }
    if (name == NULL || parser->header_broken || parser->name_missing) {
        return;
    }
    struct policy_value_item whole = {0, strlen(name)};
    if ((sections_named(parser, name, whole, &copy) & section) == 0) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, place,
                        "%s: there is no [%s %s] in this policy",
                        section == POLICY_IN(STREAM) ? "stream" : "partition",
                        section == POLICY_IN(STREAM) ? "stream" : "partition",
                        policy_quote(&quotation, name, strlen(name)));
    }
}

/* Reads a value where it is to stand; its mistakes get the place that it has here. */
static bool value_is_good(struct variation_reader *reader, const char *key, const char *text,
                          size_t offset)
{
    struct policy_parser *parser = reader->parser;
    struct policy_place place = reader->value->place, key_place = place;
    size_t errors = parser->diagnostics->error_count, count;
    const struct policy_section_entry *sections = policy_vocabulary_sections(&count);
    struct policy_parser reading = {.diagnostics = parser->diagnostics};

    place.column += (uint32_t)offset;
    key_place.column += (uint32_t)reader->parts.key.offset;
    for (size_t i = 0; i < count; i++) {
        if (sections[i].section == reader->variation.section) {
            reading.section = &sections[i];
        }
    }
    reading.state = reader->variation.section == POLICY_SECTION_PARTITION
                        ? POLICY_PARSER_IN_PARTITION
                        : POLICY_PARSER_IN_RULE;
    reading.line.key.place = key_place;
    reading.line.value.place = place;
    policy_parser_store(&reading, key, text);
    parser->out_of_memory = parser->out_of_memory || reading.out_of_memory;
    if (parser->diagnostics->error_count == errors && !parser->out_of_memory) {
        check_names(reader, &reading);
    }
    policy_arena_release(&reading.arena);
    return parser->diagnostics->error_count == errors && !parser->out_of_memory;
}

static bool add_value(struct variation_reader *reader, struct policy_value_item item)
{
    struct policy_variation *variation = &reader->variation;
    struct policy_quotation quotation;
    const char *text =
        policy_arena_copy(&reader->parser->arena, reader->value->text + item.offset, item.length);

    if (text == NULL) {
        reader->parser->out_of_memory = true;
        return false;
    }
    if (item.length == 0) {
        policy_value_error(reader->value, item.offset, "a value is missing");
        return false;
    }
    if (variation->value_count == POLICY_VARIATION_VALUE_LIMIT) {
        policy_value_error(reader->value, item.offset, "more than %d values",
                           (int)POLICY_VARIATION_VALUE_LIMIT);
        return false;
    }
    for (size_t i = 0; i < variation->value_count; i++) {
        if (strcmp(reader->values[i], text) == 0) {
            policy_value_error(reader->value, item.offset, "the value \"%s\" is given twice",
                               quote_item(&quotation, reader->value->text, item));
            return false;
        }
    }
    if (!value_is_good(reader, variation->key, text, item.offset)) {
        return false;
    }
    reader->values[variation->value_count++] = text;
    return true;
}

static bool read_values(struct variation_reader *reader)
{
    struct policy_value_text *value = reader->value;
    struct policy_value_item item;
    size_t next = reader->parts.values;

    while (policy_value_next(value, &next, &item)) {
        if (!add_value(reader, item)) {
            return false;
        }
    }
    if (reader->variation.value_count < 2) {
        policy_value_error(value, reader->parts.values,
                           "one value leaves no choice; give two or more with commas between them");
        return false;
    }
    size_t size = reader->variation.value_count * sizeof reader->values[0];
    const char **values = policy_arena_allocate(&reader->parser->arena, size);
    if (values == NULL) {
        reader->parser->out_of_memory = true;
        return false;
    }
    memcpy(values, reader->values, size);
    reader->variation.values = values;
    return true;
}

/* ---- the section ---------------------------------------------------------------------------- */

static bool is_varied_before(struct variation_reader *reader)
{
    const struct policy_variation *variation = &reader->variation;

    for (size_t i = 0; i < reader->parser->variation_count; i++) {
        const struct policy_variation *other = &reader->parser->variations[i];

        if (other->section == variation->section && strcmp(other->name, variation->name) == 0 &&
            strcmp(other->key, variation->key) == 0) {
            policy_value_error(reader->value, reader->parts.name.offset,
                               "%s.%s is varied twice; the first time is in line %u",
                               variation->name, variation->key, (unsigned)other->place.line);
            return true;
        }
    }
    return false;
}

static void read_variation(struct policy_parser *parser, struct policy_value_text *value)
{
    struct variation_reader reader = {.parser = parser, .value = value};

    if (strlen(value->text) > POLICY_VARIATION_TEXT_LIMIT) {
        policy_value_error(value, 0, "%zu bytes; at most %d are allowed", strlen(value->text),
                           (int)POLICY_VARIATION_TEXT_LIMIT);
        return;
    }
    if (!take_apart(value, &reader.parts) || !find_target(&reader)) {
        return;
    }
    reader.variation.place = value->place;
    reader.variation.key = policy_arena_copy(&parser->arena, value->text + reader.parts.key.offset,
                                             reader.parts.key.length);
    if (reader.variation.key == NULL) {
        parser->out_of_memory = true;
        return;
    }
    if (!is_varied_before(&reader) && read_values(&reader)) {
        parser->variations[parser->variation_count++] = reader.variation;
    }
}

void policy_relate_tune(struct policy_parser *parser)
{
    size_t count = parser->variation_text_count;

    if (parser->tune_place.line == 0) {
        return;
    }
    if (count == 0) {
        if (parser->diagnostics->error_count == parser->errors_before &&
            !parser->diagnostics->errors_only) {
            policy_diagnose(parser->diagnostics, POLICY_WARNING, parser->tune_place,
                            "[tune] varies nothing");
        }
        return;
    }
    if (count > POLICY_VARIATION_LIMIT) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR,
                        parser->variation_texts[POLICY_VARIATION_LIMIT].place,
                        "vary: [tune] has at most %d lines", (int)POLICY_VARIATION_LIMIT);
        count = POLICY_VARIATION_LIMIT;
    }
    parser->variations = policy_arena_allocate(&parser->arena, count * sizeof *parser->variations);
    if (parser->variations == NULL) {
        parser->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < count && !parser->out_of_memory; i++) {
        struct policy_value_text value = {.key = policy_vocabulary_key("vary", POLICY_IN(TUNE)),
                                          .text = parser->variation_texts[i].text,
                                          .place = parser->variation_texts[i].place,
                                          .diagnostics = parser->diagnostics,
                                          .arena = &parser->arena};
        read_variation(parser, &value);
    }
}
