/* SPDX-License-Identifier: Apache-2.0 */

/* A key and its value, into the section that is being read. */

#include <stdio.h>
#include <string.h>

#include "policy/glob.h"
#include "policy/hint.h"
#include "policy/parser.h"
#include "policy/value.h"

/* ---- which key it is ------------------------------------------------------------------------ */

static size_t keys_of(unsigned sections, const char *texts[POLICY_KEY_COUNT])
{
    size_t key_count, count = 0;
    const struct policy_key_entry *keys = policy_vocabulary(&key_count);

    for (size_t i = 0; i < key_count; i++) {
        if ((keys[i].sections & sections) != 0) {
            texts[count++] = keys[i].text;
        }
    }
    return count;
}

static void report_unknown_key(struct policy_parser *parser, const char *key)
{
    const char *candidates[POLICY_KEY_COUNT];
    struct policy_quotation quotation;
    struct policy_hint hint;
    size_t count = keys_of(1u << parser->section->section, candidates);

    policy_hint(&hint, key, candidates, count);
    if (hint.text[0] == '\0') {
        count = keys_of(~0u, candidates);
        policy_hint(&hint, key, candidates, count);
    }
    policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->line.key.place,
                    "unknown key \"%s\" in [%s]%s", policy_quote(&quotation, key, strlen(key)),
                    parser->section->text, hint.text);
}

/* "[partition], [stream] or [kernel]" */
static void name_sections(unsigned sections, char *text, size_t size)
{
    size_t count, length = 0;
    const struct policy_section_entry *entries = policy_vocabulary_sections(&count);

    text[0] = '\0';
    for (size_t i = 0; i < count && length < size; i++) {
        unsigned bit = 1u << entries[i].section;

        if ((sections & bit) != 0) {
            sections &= ~bit;
            length += (size_t)snprintf(text + length, size - length, "%s[%s]",
                                       length == 0     ? ""
                                       : sections == 0 ? " or "
                                                       : ", ",
                                       entries[i].text);
        }
    }
}

/* All sections in which a key of this text may stand, of this kind of file where there are some. */
static unsigned sections_of(const struct policy_parser *parser, const char *text)
{
    unsigned others = parser->of_site ? POLICY_IN(TUNE) : POLICY_IN(SITE);
    size_t count;
    const struct policy_key_entry *keys = policy_vocabulary(&count);
    unsigned sections = 0;

    for (size_t i = 0; i < count; i++) {
        sections |= strcmp(keys[i].text, text) == 0 ? keys[i].sections : 0;
    }
    return (sections & ~others) != 0 ? sections & ~others : sections;
}

static const struct policy_key_entry *find_key(struct policy_parser *parser, const char *text)
{
    const struct policy_key_entry *key =
        policy_vocabulary_key(text, 1u << parser->section->section);
    unsigned sections = key == NULL ? sections_of(parser, text) : 0;
    char places[100];

    if (key == NULL && sections == 0) {
        report_unknown_key(parser, text);
    } else if (key == NULL && strcmp(text, "arm") == 0) {
        policy_diagnose(
            parser->diagnostics, POLICY_ERROR, parser->line.key.place,
            "arm cannot stand in [%s]: it holds when the program starts or a stream is "
            "created, and cannot change with the arm; this needs process arms (cudapolicy "
            "ab without --live)",
            parser->section->text);
    } else if (key == NULL) {
        name_sections(sections, places, sizeof places);
        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->line.key.place,
                        "%s cannot stand in [%s], only in %s", text, parser->section->text, places);
    }
    return key;
}

/* Remembers where the key stands; false when it stands there for the second time and may not. */
static bool note_place(struct policy_parser *parser, const struct policy_key_entry *key)
{
    bool of_whole =
        parser->state == POLICY_PARSER_IN_POLICY || parser->state == POLICY_PARSER_IN_SITE;
    struct policy_place *places = of_whole ? parser->policy_key_place : parser->builder.key_place;
    struct policy_place *place = &places[key->key];

    if (place->line == 0) {
        *place = parser->line.key.place;
        return true;
    }
    if (key->repeatable) {
        return true;
    }
    policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->line.key.place,
                    "%s is given twice; the first is in line %u", key->text, (unsigned)place->line);
    return false;
}

/* ---- [policy] ------------------------------------------------------------------------------- */

static void store_property(struct policy_parser *parser, struct policy_value_text *value)
{
    struct policy_quotation quotation;
    int word;

    if (value->key->key == POLICY_KEY_MODE && parser->of_site) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->line.key.place,
                        "the mode of a site's file stands in [site]");
    } else if (value->key->key == POLICY_KEY_MODE) {
        if (policy_value_word(value, &word)) {
            parser->mode = (enum policy_mode)word;
        }
    } else if (strcmp(value->text, "1") == 0) {
        parser->version = 1;
    } else {
        policy_value_error(value, 0,
                           "\"%s\" is not a version that this cudapolicy knows; it knows 1",
                           policy_quote(&quotation, value->text, strlen(value->text)));
        /* The rest is in a language that we do not know: errors about it would be noise. */
        parser->stopped = true;
    }
}

/* ---- [partition] ---------------------------------------------------------------------------- */

static void store_partition_key(struct policy_parser *parser, struct policy_value_text *value)
{
    struct policy_partition *partition = &parser->builder.partition;
    void *field = (char *)partition + value->key->offset;
    enum policy_partition_kind kind = POLICY_PARTITION_LOCALITY_DOMAIN;
    int64_t number;
    int word;

    switch (value->key->kind) {
    case POLICY_VALUE_SM_COUNT:
        if (policy_value_sm_count(value, &kind, field)) {
            partition->kind = kind;
        }
        break;
    case POLICY_VALUE_LOCALITY_DOMAIN:
        if (policy_value_integer(value, &number)) {
            partition->kind = kind;
            partition->number = (uint32_t)number;
        }
        break;
    case POLICY_VALUE_EVEN:
        policy_value_even(value, field);
        break;
    case POLICY_VALUE_YES_NO:
        if (policy_value_word(value, &word)) {
            *(bool *)field = word != 0;
        }
        break;
    default:
        policy_value_devices(value, field);
        break;
    }
}

/* ---- [tune] --------------------------------------------------------------------------------- */

static void note_variation(struct policy_parser *parser, struct policy_value_text *value)
{
    struct policy_variation_text *texts = policy_arena_grow(
        &parser->arena, parser->variation_texts, parser->variation_text_count, sizeof *texts);

    if (texts == NULL) {
        value->out_of_memory = true;
        return;
    }
    texts[parser->variation_text_count++] =
        (struct policy_variation_text){.text = value->text, .place = value->place};
    parser->variation_texts = texts;
}

/* ---- settings ------------------------------------------------------------------------------- */

/* leave and unset; true when the value was one of them. */
static bool store_action(struct policy_parser *parser, struct policy_value_text *value,
                         struct policy_setting_value *setting)
{
    if (strcmp(value->text, "leave") == 0) {
        setting->action = POLICY_ACTION_LEAVE;
        return true;
    }
    if (strcmp(value->text, "unset") != 0) {
        return false;
    }
    if (value->key->unset_sections == 0) {
        policy_value_error(value, 0,
                           "\"unset\" cannot stand here: a program has no partition that could be "
                           "taken away; leave ends the search");
    } else if ((value->key->unset_sections & 1u << parser->section->section) == 0) {
        policy_value_error(
            value, 0,
            "unset cannot stand in [%s]: there is nothing to take away when a stream "
            "is created",
            parser->section->text);
    } else {
        setting->action = POLICY_ACTION_UNSET;
    }
    return true;
}

/* Which partition it is can only be said at the end. */
static void note_partition(struct policy_parser *parser, struct policy_value_text *value)
{
    struct policy_partition_reference *references =
        policy_arena_grow(&parser->arena, parser->partition_references,
                          parser->partition_reference_count, sizeof *references);
    struct policy_partition_reference reference = {.rule = parser->rule_count,
                                                   .place = value->place};
    int64_t number = 0;

    if (references == NULL) {
        value->out_of_memory = true;
        return;
    }
    parser->partition_references = references;
    if (value->key->kind == POLICY_VALUE_PARTITION_NAME) {
        reference.name = value->text;
    } else if (!policy_value_integer(value, &number)) {
        return;
    }
    reference.number = (uint32_t)number;
    references[parser->partition_reference_count++] = reference;
}

static bool read_setting(struct policy_value_text *value, union policy_value *result)
{
    struct policy_quotation quotation;
    int64_t number;
    int word;

    switch (value->key->kind) {
    case POLICY_VALUE_WORD:
        if (!policy_value_word(value, &word)) {
            return false;
        }
        if (value->key->setting == POLICY_SETTING_MEM_SYNC_DOMAIN) {
            result->mem_sync_domain = (enum policy_mem_sync_domain)word;
        } else {
            result->cluster_scheduling = (enum policy_cluster_scheduling)word;
        }
        return true;
    case POLICY_VALUE_YES_NO:
        if (!policy_value_word(value, &word)) {
            return false;
        }
        result->nvlink_util_centric = word != 0;
        return true;
    case POLICY_VALUE_DOMAIN_MAP:
        return policy_value_domain_map(value, &result->mem_sync_domain_map.default_domain,
                                       &result->mem_sync_domain_map.remote_domain);
    case POLICY_VALUE_PHYSICAL_DOMAIN:
        if (!policy_value_integer(value, &number)) {
            return false;
        }
        result->mem_sync_domain_map.default_domain = (uint8_t)number;
        result->mem_sync_domain_map.remote_domain = (uint8_t)number;
        return true;
    case POLICY_VALUE_CLUSTER:
        return policy_value_cluster(value, result);
    case POLICY_VALUE_INTEGER:
        if (!policy_value_integer(value, &number)) {
            return false;
        }
        result->priority = (int32_t)number;
        return true;
    case POLICY_VALUE_CARVEOUT:
        return policy_value_carveout(value, &result->shared_memory_carveout);
    default:
        policy_value_error(
            value, 0,
            "\"%s\" is not unset or leave; adding programmatic dependent launch to a "
            "kernel would be a race",
            policy_quote(&quotation, value->text, strlen(value->text)));
        return false;
    }
}

static void store_setting(struct policy_parser *parser, struct policy_value_text *value)
{
    struct policy_setting_value setting = {.when_set = value->key->when_set,
                                           .place = parser->line.key.place};

    if (!store_action(parser, value, &setting)) {
        if (value->key->setting == POLICY_SETTING_PARTITION) {
            note_partition(parser, value);
        } else if (!read_setting(value, &setting.value)) {
            return;
        }
        setting.action = POLICY_ACTION_SET;
    }
    parser->builder.rule.settings[value->key->setting] = setting;
}

/* ---- selectors and modifiers ---------------------------------------------------------------- */

/* A pattern that cannot be one is reported; the list keeps it, the policy is refused anyway. */
static void check_pattern(struct policy_value_text *value)
{
    size_t column = 0;
    const char *error = glob_error(value->text, &column);

    if (error != NULL) {
        policy_value_error(value, column, "%s", error);
    }
}

static void store_word(struct policy_parser *parser, struct policy_value_text *value, char *field)
{
    int word;

    if (!policy_value_word(value, &word)) {
        return;
    }
    if (value->key->kind == POLICY_VALUE_WORD_BITS) {
        unsigned bits;

        memcpy(&bits, field, sizeof bits);
        bits |= (unsigned)word;
        memcpy(field, &bits, sizeof bits);
    } else if (value->key->key == POLICY_KEY_WHEN_SET) {
        parser->builder.when_set = (enum policy_when_set)word;
    } else if (value->key->kind == POLICY_VALUE_YES_NO) {
        *(bool *)field = word != 0;
    } else {
        memcpy(field, &word, sizeof word); /* an enum, of the size of int */
    }
}

/* Whether the rule exists can only be said at the end. */
static void note_reference(struct policy_parser *parser, struct policy_value_text *value)
{
    struct policy_reference *references = policy_arena_grow(
        &parser->arena, parser->references, parser->reference_count, sizeof *references);

    if (references == NULL) {
        value->out_of_memory = true;
        return;
    }
    references[parser->reference_count++] =
        (struct policy_reference){.name = value->text, .place = value->place};
    parser->references = references;
}

static void store_selector(struct policy_parser *parser, struct policy_value_text *value)
{
    size_t offset = value->key->offset != POLICY_NO_OFFSET ? value->key->offset : 0;
    void *field = (char *)&parser->builder.rule + offset;

    switch (value->key->kind) {
    case POLICY_VALUE_GLOB:
        check_pattern(value);
        policy_value_text(value, field);
        break;
    case POLICY_VALUE_RULE_NAME:
        policy_value_text(value, field);
        note_reference(parser, value);
        break;
    case POLICY_VALUE_RANGES:
        policy_value_ranges(value, field);
        break;
    case POLICY_VALUE_DEVICES:
        policy_value_devices(value, field);
        break;
    default:
        store_word(parser, value, field);
        break;
    }
}

_Static_assert(sizeof(enum policy_name_form) == sizeof(int) &&
                   sizeof(enum policy_choice) == sizeof(int) &&
                   sizeof(enum policy_stream_flags) == sizeof(int),
               "store_word copies an int into selectors with one word");

void policy_parser_store(struct policy_parser *parser, const char *key_text, const char *text)
{
    const struct policy_key_entry *key;

    if (parser->state == POLICY_PARSER_IN_ENV) {
        policy_parser_store_variable(parser, key_text, text);
        return;
    }
    if (parser->state == POLICY_PARSER_IN_EXPECT) {
        policy_parser_note_expectation(parser, text);
        return;
    }
    key = find_key(parser, key_text);
    if (key == NULL || !note_place(parser, key)) {
        return;
    }
    struct policy_value_text value = {.key = key,
                                      .text = text,
                                      .place = parser->line.value.place,
                                      .diagnostics = parser->diagnostics,
                                      .arena = &parser->arena};
    if (text[0] == '\0') {
        policy_value_error(&value, 0, "the value is missing");
        return;
    }
    switch (key->role) {
    case POLICY_ROLE_PROPERTY:
        if (parser->state == POLICY_PARSER_IN_PARTITION) {
            store_partition_key(parser, &value);
        } else if (parser->state == POLICY_PARSER_IN_TUNE) {
            note_variation(parser, &value);
        } else if (parser->state == POLICY_PARSER_IN_SITE) {
            policy_parser_store_site(parser, &value);
        } else {
            store_property(parser, &value);
        }
        break;
    case POLICY_ROLE_SETTING:
        store_setting(parser, &value);
        break;
    case POLICY_ROLE_SELECTOR:
    case POLICY_ROLE_MODIFIER:
        store_selector(parser, &value);
        break;
    }
    parser->out_of_memory = parser->out_of_memory || value.out_of_memory;
}
