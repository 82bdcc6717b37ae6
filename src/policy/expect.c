/* SPDX-License-Identifier: Apache-2.0 */

/* [expect]: "rule NAME: launches >= 1, refused = 0". */

#include "policy/expect.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "policy/hint.h"
#include "policy/line.h"
#include "policy/parser.h"
#include "policy/print.h"
#include "policy/value.h"

enum {
    CANDIDATE_LIMIT = 64, /* names that a misspelt one is compared with */
    WORD_LIMIT = 64,      /* for a terminated copy; what is longer is no word of the language */
};

static const char form[] = "as in \"rule NAME: launches >= 1, refused = 0\"";

/* Longer ones first. */
static const struct {
    const char *text;
    enum policy_comparison comparison;
} comparisons[] = {
    {">=", POLICY_COMPARISON_AT_LEAST},  {"<=", POLICY_COMPARISON_AT_MOST},
    {"!=", POLICY_COMPARISON_NOT_EQUAL}, {">", POLICY_COMPARISON_MORE},
    {"<", POLICY_COMPARISON_LESS},       {"=", POLICY_COMPARISON_EQUAL},
};

enum {
    COMPARISON_COUNT = sizeof comparisons / sizeof comparisons[0],
};

/* A line while it is read. */
struct expectation_reader {
    struct policy_parser *parser;
    struct policy_value_text value;
    size_t rule; /* its index */
};

/* ---- the section, and its lines as text ----------------------------------------------------- */

void policy_parser_begin_expect(struct policy_parser *parser)
{
    if (parser->line.name.length != 0) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->line.name.place,
                        "[expect] takes no name");
    }
    if (parser->expect_place.line != 0) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->section_place,
                        "second [expect]; the first is in line %u",
                        (unsigned)parser->expect_place.line);
    } else {
        parser->expect_place = parser->section_place;
    }
    parser->state = POLICY_PARSER_IN_EXPECT;
}

void policy_parser_note_expectation(struct policy_parser *parser, const char *text)
{
    struct policy_expectation_text *texts = policy_arena_grow(
        &parser->arena, parser->expectation_texts, parser->expectation_text_count, sizeof *texts);

    if (texts == NULL) {
        parser->out_of_memory = true;
        return;
    }
    texts[parser->expectation_text_count++] =
        (struct policy_expectation_text){.text = text, .place = parser->line.value.place};
    parser->expectation_texts = texts;
}

/* ---- which rule ----------------------------------------------------------------------------- */

static bool item_is(const char *text, struct policy_value_item item, const char *word)
{
    return item.length == strlen(word) && memcmp(text + item.offset, word, item.length) == 0;
}

static void report(const struct expectation_reader *reader, size_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void report(const struct expectation_reader *reader, size_t offset, const char *format, ...)
{
    struct policy_place place = reader->value.place;
    char message[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    place.column += (uint32_t)offset;
    policy_diagnose(reader->parser->diagnostics, POLICY_ERROR, place, "%s", message);
}

static const char *quote_item(struct policy_quotation *quotation,
                              const struct expectation_reader *reader,
                              struct policy_value_item item)
{
    return policy_quote(quotation, reader->value.text + item.offset, item.length);
}

/* The bits of the sections that a line may mean by its first word; 0 after an error. */
static unsigned sections_meant(const struct expectation_reader *reader,
                               struct policy_value_item kind)
{
    static const char *const kinds[] = {"rule", "kernel", "stream"};
    static const unsigned sections[] = {POLICY_IN(KERNEL) | POLICY_IN(STREAM), POLICY_IN(KERNEL),
                                        POLICY_IN(STREAM)};
    struct policy_quotation quotation;
    struct policy_hint hint;
    char word[WORD_LIMIT] = "";

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (item_is(reader->value.text, kind, kinds[i])) {
            return sections[i];
        }
    }
    if (kind.length < sizeof word) {
        memcpy(word, reader->value.text + kind.offset, kind.length);
    }
    report(reader, kind.offset, "\"%s\" is not rule, kernel or stream, %s%s",
           quote_item(&quotation, reader, kind), form,
           policy_hint(&hint, word, kinds, sizeof kinds / sizeof kinds[0]));
    return 0;
}

static void report_unknown_rule(const struct expectation_reader *reader,
                                struct policy_value_item name, unsigned sections)
{
    const struct policy_parser *parser = reader->parser;
    const char *candidates[CANDIDATE_LIMIT];
    struct policy_quotation quotation;
    struct policy_hint hint;
    char word[POLICY_RULE_NAME_LIMIT + 1] = "";
    size_t count = 0;

    if (parser->header_broken || parser->name_missing) {
        return; /* it may be the one that could not be read */
    }
    for (size_t i = 0; i < parser->rule_count && count < CANDIDATE_LIMIT; i++) {
        if ((sections & 1u << parser->rules[i].section) != 0) {
            candidates[count++] = parser->rules[i].name;
        }
    }
    if (name.length < sizeof word) {
        memcpy(word, reader->value.text + name.offset, name.length);
    }
    report(reader, name.offset, "there is no %s \"%s\" in this policy%s",
           sections == POLICY_IN(KERNEL)   ? "kernel rule"
           : sections == POLICY_IN(STREAM) ? "stream rule"
                                           : "rule",
           quote_item(&quotation, reader, name), policy_hint(&hint, word, candidates, count));
}

/* Finds the rule; false after an error. */
static bool find_rule(struct expectation_reader *reader, struct policy_value_item name,
                      unsigned sections)
{
    const struct policy_parser *parser = reader->parser;
    struct policy_quotation quotation;
    size_t found = 0;

    for (size_t i = 0; i < parser->rule_count; i++) {
        if ((sections & 1u << parser->rules[i].section) != 0 &&
            item_is(reader->value.text, name, parser->rules[i].name)) {
            reader->rule = i;
            found++;
        }
    }
    if (found == 0) {
        report_unknown_rule(reader, name, sections);
    } else if (found > 1 && (sections & (sections - 1)) != 0) {
        const char *text = quote_item(&quotation, reader, name);

        report(reader, name.offset,
               "there are a kernel rule and a stream rule \"%s\"; say which, as in \"kernel %s: "
               "...\"",
               text, text);
    }
    /* Two rules of one kind and name are an error already. */
    return found == 1;
}

/* Takes apart what stands before the conditions: KIND NAME. Names may have colons, conditions have
 * none. *conditions: where they begin. */
static bool read_rule(struct expectation_reader *reader, size_t *conditions)
{
    const char *text = reader->value.text, *colon = strrchr(text, ':');
    struct policy_quotation quotation;
    struct policy_value_item head, kind, name;
    unsigned sections;

    if (colon == NULL) {
        report(reader, 0, "\"%s\" has no colon after a rule's name, %s",
               policy_quote(&quotation, text, strlen(text)), form);
        return false;
    }
    *conditions = (size_t)(colon - text) + 1;
    head = policy_trimmed(text, 0, *conditions - 1);
    kind = (struct policy_value_item){head.offset, 0};
    while (kind.length < head.length && !policy_is_blank(text[kind.offset + kind.length])) {
        kind.length++;
    }
    name = policy_trimmed(text, kind.offset + kind.length, head.offset + head.length);
    sections = sections_meant(reader, kind);
    if (sections == 0) {
        return false;
    }
    if (name.length == 0) {
        report(reader, kind.offset + kind.length, "the rule's name is missing, %s", form);
        return false;
    }
    return find_rule(reader, name, sections);
}

/* ---- conditions ----------------------------------------------------------------------------- */

static void report_unknown_quantity(const struct expectation_reader *reader,
                                    struct policy_value_item item, const char *word)
{
    const char *candidates[POLICY_QUANTITY_COUNT];
    struct policy_quotation quotation;
    struct policy_hint hint;
    char list[256] = "";
    size_t count, length = 0;
    const struct policy_quantity_entry *quantities = policy_vocabulary_quantities(&count);

    for (size_t i = 0; i < count; i++) {
        candidates[i] = quantities[i].text;
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s",
                                   i == 0           ? ""
                                   : i + 1 == count ? " or "
                                                    : ", ",
                                   quantities[i].text);
    }
    report(reader, item.offset, "\"%s\" is nothing that is counted: %s%s",
           quote_item(&quotation, reader, item), list, policy_hint(&hint, word, candidates, count));
}

/* False after an error. */
static bool read_quantity(const struct expectation_reader *reader, struct policy_value_item item,
                          enum policy_quantity *quantity)
{
    const struct policy_rule *rule = &reader->parser->rules[reader->rule];
    size_t count;
    const struct policy_quantity_entry *quantities = policy_vocabulary_quantities(&count);
    char word[WORD_LIMIT] = "";

    if (item.length < sizeof word) {
        memcpy(word, reader->value.text + item.offset, item.length);
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, quantities[i].text) != 0) {
            continue;
        }
        if ((quantities[i].sections & 1u << rule->section) == 0) {
            report(reader, item.offset, "%s: a %s rule has none", word,
                   policy_section_text(rule->section));
            return false;
        }
        *quantity = quantities[i].quantity;
        return true;
    }
    report_unknown_quantity(reader, item, word);
    return false;
}

static bool read_number(const struct expectation_reader *reader, struct policy_value_item item,
                        int64_t *number)
{
    const char *digits = reader->value.text + item.offset;
    struct policy_quotation quotation;

    *number = 0;
    for (size_t i = 0; i < item.length; i++) {
        int digit = digits[i] - '0';

        if (digit < 0 || digit > 9) {
            report(reader, item.offset, "\"%s\" is not a whole number from 0",
                   quote_item(&quotation, reader, item));
            return false;
        }
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, digit, number)) {
            report(reader, item.offset, "\"%s\" is too large a number",
                   quote_item(&quotation, reader, item));
            return false;
        }
    }
    if (item.length == 0) {
        report(reader, item.offset, "a number is missing, %s", form);
    }
    return item.length != 0;
}

/* The item's parts: a quantity, a comparison, a number. */
static bool read_condition(const struct expectation_reader *reader, struct policy_value_item item,
                           struct policy_expectation *condition)
{
    const char *text = reader->value.text;
    struct policy_quotation quotation;
    size_t end = item.offset + item.length, at = item.offset, which = 0;

    while (at < end && strchr("<>=!", text[at]) == NULL) {
        at++;
    }
    while (which < COMPARISON_COUNT &&
           strncmp(text + at, comparisons[which].text, strlen(comparisons[which].text)) != 0) {
        which++;
    }
    if (at == end || which == COMPARISON_COUNT) {
        report(reader, item.offset, "\"%s\" is no condition with =, !=, <, <=, > or >=, %s",
               quote_item(&quotation, reader, item), form);
        return false;
    }
    condition->rule = (uint16_t)reader->rule;
    condition->comparison = comparisons[which].comparison;
    condition->place = reader->value.place;
    condition->place.column += (uint32_t)item.offset;
    return read_quantity(reader, policy_trimmed(text, item.offset, at), &condition->quantity) &&
           read_number(reader, policy_trimmed(text, at + strlen(comparisons[which].text), end),
                       &condition->number);
}

/* The least and the largest count of which the condition holds; of != all. */
static void bounds(const struct policy_expectation *condition, int64_t *least, int64_t *most)
{
    const int64_t number = condition->number;

    *least = 0;
    *most = INT64_MAX;
    switch (condition->comparison) {
    case POLICY_COMPARISON_EQUAL:
        *least = *most = number;
        break;
    case POLICY_COMPARISON_LESS:
        *most = number - 1;
        break;
    case POLICY_COMPARISON_AT_MOST:
        *most = number;
        break;
    case POLICY_COMPARISON_MORE:
        *least = number < INT64_MAX ? number + 1 : number;
        break;
    case POLICY_COMPARISON_AT_LEAST:
        *least = number;
        break;
    case POLICY_COMPARISON_NOT_EQUAL:
        break;
    }
}

/* Whether the condition and an earlier one cannot both hold, or it can never; reports it. */
static bool contradicts(const struct expectation_reader *reader, struct policy_value_item item,
                        const struct policy_expectation *condition)
{
    const struct policy_parser *parser = reader->parser;
    int64_t least, most, low, high;

    bounds(condition, &least, &most);
    if (least > most) {
        report(reader, item.offset, "no count is less than 0: this can never hold");
        return true;
    }
    for (size_t i = 0; i < parser->expectation_count; i++) {
        const struct policy_expectation *other = &parser->expectations[i];

        if (other->rule != condition->rule || other->quantity != condition->quantity) {
            continue;
        }
        bounds(other, &low, &high);
        if (low > most || high < least) {
            report(reader, item.offset,
                   "%s: this and the condition in line %u%s can never both hold",
                   policy_quantity_text(condition->quantity), (unsigned)other->place.line,
                   other->place.line == condition->place.line ? " before it" : "");
            return true;
        }
    }
    return false;
}

static bool has_setting(const struct policy_rule *rule)
{
    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        if (rule->settings[setting].action != POLICY_ACTION_ABSENT) {
            return true;
        }
    }
    return false;
}

/* Conditions that say nothing, or ask for what is never counted. */
static void warn(const struct expectation_reader *reader,
                 const struct policy_expectation *condition)
{
    struct policy_diagnostics *diagnostics = reader->parser->diagnostics;
    const struct policy_rule *rule = &reader->parser->rules[condition->rule];
    const char *quantity = policy_quantity_text(condition->quantity);
    int64_t least, most;

    if (diagnostics->errors_only) {
        return;
    }
    bounds(condition, &least, &most);
    if (condition->comparison != POLICY_COMPARISON_NOT_EQUAL && least == 0 && most == INT64_MAX) {
        policy_diagnose(diagnostics, POLICY_WARNING, condition->place,
                        "%s: every count is at least 0: this says nothing", quantity);
    } else if (!has_setting(rule) && condition->quantity != POLICY_QUANTITY_STREAMS) {
        policy_diagnose(diagnostics, POLICY_WARNING, condition->place,
                        "%s: [%s %s] has no setting, so this stays 0", quantity,
                        policy_section_text(rule->section), rule->name);
    } else if (rule->section == POLICY_SECTION_STREAM &&
               rule->selectors.kinds == POLICY_STREAM_KIND_CREATED &&
               condition->quantity <= POLICY_QUANTITY_KERNELS && least > 0) {
        policy_diagnose(diagnostics, POLICY_WARNING, condition->place,
                        "%s: [stream %s] sets its streams' attributes when they are created, and "
                        "launches on them are not counted for it; did you mean \"streams\"?",
                        quantity, rule->name);
    }
}

static void add_condition(struct expectation_reader *reader, struct policy_value_item item)
{
    struct policy_parser *parser = reader->parser;
    struct policy_expectation condition = {0}, *grown;

    if (item.length == 0) {
        report(reader, item.offset, "a condition is missing, %s", form);
        return;
    }
    if (!read_condition(reader, item, &condition) || contradicts(reader, item, &condition)) {
        return;
    }
    if (parser->expectation_count == POLICY_EXPECTATION_LIMIT) {
        report(reader, item.offset, "a policy has at most %d expectations",
               (int)POLICY_EXPECTATION_LIMIT);
        parser->stopped = true;
        return;
    }
    grown = policy_arena_grow(&parser->arena, parser->expectations, parser->expectation_count,
                              sizeof *grown);
    if (grown == NULL) {
        parser->out_of_memory = true;
        return;
    }
    grown[parser->expectation_count++] = condition;
    parser->expectations = grown;
    warn(reader, &condition);
}

static void read_line(struct policy_parser *parser, const struct policy_expectation_text *line)
{
    struct expectation_reader reader = {.parser = parser,
                                        .value = {.text = line->text, .place = line->place}};
    struct policy_value_item item;
    size_t next;

    if (!read_rule(&reader, &next)) {
        return;
    }
    if (policy_trimmed(line->text, next, strlen(line->text)).length == 0) {
        report(&reader, next - 1, "nothing is expected after the colon, %s", form);
        return;
    }
    while (policy_value_next(&reader.value, &next, &item) && !parser->out_of_memory &&
           !parser->stopped) {
        add_condition(&reader, item);
    }
}

void policy_relate_expectations(struct policy_parser *parser)
{
    if (parser->expect_place.line != 0 && parser->expectation_text_count == 0 &&
        parser->diagnostics->error_count == parser->errors_before &&
        !parser->diagnostics->errors_only) {
        policy_diagnose(parser->diagnostics, POLICY_WARNING, parser->expect_place,
                        "[expect] expects nothing");
    }
    for (size_t i = 0;
         i < parser->expectation_text_count && !parser->out_of_memory && !parser->stopped; i++) {
        read_line(parser, &parser->expectation_texts[i]);
    }
}

/* ---- for others ----------------------------------------------------------------------------- */

bool policy_expectation_holds(const struct policy_expectation *expectation, int64_t count)
{
    int64_t least, most;

    if (expectation->comparison == POLICY_COMPARISON_NOT_EQUAL) {
        return count != expectation->number;
    }
    bounds(expectation, &least, &most);
    return count >= least && count <= most;
}

const char *policy_quantity_text(enum policy_quantity quantity)
{
    size_t count;
    const struct policy_quantity_entry *quantities = policy_vocabulary_quantities(&count);

    return (size_t)quantity < count ? quantities[quantity].text : "?";
}

const char *policy_comparison_text(enum policy_comparison comparison)
{
    for (size_t i = 0; i < COMPARISON_COUNT; i++) {
        if (comparisons[i].comparison == comparison) {
            return comparisons[i].text;
        }
    }
    return "?";
}

const char *policy_expectation_text(const struct policy *policy,
                                    const struct policy_expectation *expectation, char *text,
                                    size_t size)
{
    const struct policy_rule *rule = &policy->rules[expectation->rule];

    snprintf(text, size, "%s %s: %s %s %" PRId64, policy_section_text(rule->section), rule->name,
             policy_quantity_text(expectation->quantity),
             policy_comparison_text(expectation->comparison), expectation->number);
    return text;
}
