/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A policy's text to a policy. inih reads the file, but every raw line passes through here first:
 * inih would cut section names at 49 characters, end a section at the first ], take ':' for '=',
 * stop at NUL bytes, strip what the program's locale calls white space, and it tells neither where
 * a section starts nor the column of anything. So it is handed a normalised form of each line, in
 * which none of that can happen: `[7]` for the seventh section, `key="value"` for a key, an empty
 * line for everything else. The handler is called while the line that caused the call is still the
 * current one, so places are exact.
 */

#include <ini.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/parser.h"

enum {
    /* What normalising adds to a line at most: two quotation marks and the line end, and the key of
     * a line of [expect], which has none. */
    NORMALISED_EXTRA = 16,
};

/* The options of inih are global variables of the library (our own, hidden copy of it). They get
 * their values before any thread can read a policy. */
__attribute__((constructor)) static void set_inih_options(void)
{
    ini_allow_multiline = false;
    ini_allow_bom = false;
    ini_allow_inline_comments = false;
    ini_allow_no_value = false;
    ini_stop_on_first_error = false;
    ini_use_stack = false; /* the thread that reads a policy may have a small stack */
    ini_allow_realloc = true;
    ini_initial_alloc = 512;
    ini_max_line = POLICY_LINE_LIMIT + NORMALISED_EXTRA + 1;
}

/* ---- lines ---------------------------------------------------------------------------------- */

static bool reserve_normalised(struct policy_parser *parser, size_t size)
{
    if (size <= parser->normalised_capacity) {
        return true;
    }
    char *larger = realloc(parser->normalised, size + 256);
    if (larger == NULL) {
        parser->out_of_memory = true;
        return false;
    }
    parser->normalised = larger;
    parser->normalised_capacity = size + 256;
    return true;
}

static void append(struct policy_parser *parser, const char *text, size_t length)
{
    memcpy(parser->normalised + parser->normalised_length, text, length);
    parser->normalised_length += length;
}

static void normalise_value(struct policy_parser *parser, const struct policy_line *line)
{
    append(parser, "\"", 1);
    for (size_t i = 0; i < line->value.length; i++) {
        append(parser, &line->value.text[i], 1);
        if (line->quoted && line->value.text[i] == '"') {
            i++; /* "" stands for one mark */
        }
    }
    append(parser, "\"", 1);
}

/* True when the key consists of what keys consist of. inih would take a ':' in it for its end, and
 * no other character has ever a right to be there. */
static bool key_is_a_word(const struct policy_line *line, struct policy_diagnostics *diagnostics)
{
    struct policy_quotation quotation;

    for (size_t i = 0; i < line->key.length; i++) {
        unsigned char character = (unsigned char)line->key.text[i];
        bool letter = (character | 0x20) >= 'a' && (character | 0x20) <= 'z';
        bool digit = character >= '0' && character <= '9';

        if (!letter && !digit && character != '_' && character != '-') {
            policy_diagnose(diagnostics, POLICY_ERROR, line->key.place,
                            "\"%s\" is not a key: keys have letters, digits and _ only",
                            policy_quote(&quotation, line->key.text, line->key.length));
            return false;
        }
    }
    return true;
}

/* Fills parser->normalised with the form of the current line that inih gets. */
static void normalise(struct policy_parser *parser)
{
    const struct policy_line *line = &parser->line;
    bool live =
        parser->state == POLICY_PARSER_IN_POLICY || parser->state == POLICY_PARSER_IN_RULE ||
        parser->state == POLICY_PARSER_IN_PARTITION || parser->state == POLICY_PARSER_IN_TUNE ||
        parser->state == POLICY_PARSER_IN_ENV || parser->state == POLICY_PARSER_IN_EXPECT ||
        parser->state == POLICY_PARSER_IN_SITE || parser->state == POLICY_PARSER_IN_MARKER;

    parser->normalised_length = 0;
    parser->normalised_given = 0;
    if (!reserve_normalised(parser,
                            line->key.length + line->value.length + NORMALISED_EXTRA + 32)) {
        return;
    }
    if (line->kind == POLICY_LINE_SECTION || line->kind == POLICY_LINE_BAD_SECTION) {
        append(parser, "[", 1);
        append(parser, parser->section_label, strlen(parser->section_label));
        append(parser, "]", 1);
    } else if (line->kind == POLICY_LINE_KEY && live && key_is_a_word(line, parser->diagnostics)) {
        append(parser, line->key.text, line->key.length);
        append(parser, "=", 1);
        normalise_value(parser, line);
    }
    append(parser, "\n", 1);
}

/* What no line may have. Reports it and returns false. */
static bool raw_line_is_good(struct policy_parser *parser, const char *raw, size_t length)
{
    const char *nul = memchr(raw, '\0', length);

    if (length > POLICY_LINE_LIMIT) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR,
                        (struct policy_place){parser->line_number, POLICY_LINE_LIMIT + 1},
                        "the line has %zu bytes; at most %d are allowed", length,
                        (int)POLICY_LINE_LIMIT);
        return false;
    }
    if (nul != NULL) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR,
                        (struct policy_place){parser->line_number, (uint32_t)(nul - raw) + 1},
                        "NUL byte in the line: a policy is a text file");
        return false;
    }
    return true;
}

/* Reads the next raw line and acts on what is ours in it. False at the end of the text. */
static bool next_line(struct policy_parser *parser)
{
    if (parser->stopped || parser->out_of_memory || parser->offset >= parser->length) {
        return false;
    }
    if (parser->diagnostics->error_count >= POLICY_DIAGNOSTIC_LIMIT - 1) {
        /* No more are kept, and finding them in a file that is no policy can take long. */
        policy_diagnose(parser->diagnostics, POLICY_ERROR, (struct policy_place){0},
                        "too many errors; the file was not read beyond line %u",
                        (unsigned)parser->line_number);
        parser->stopped = true;
        return false;
    }
    const char *raw = parser->text + parser->offset;
    size_t rest = parser->length - parser->offset;
    const char *newline = memchr(raw, '\n', rest);
    size_t length = newline != NULL ? (size_t)(newline - raw) : rest;

    parser->offset += newline != NULL ? length + 1 : length;
    parser->line_number++;
    if (length > 0 && raw[length - 1] == '\r') {
        length--;
    }
    parser->line = (struct policy_line){.kind = POLICY_LINE_BLANK};
    if (raw_line_is_good(parser, raw, length)) {
        (parser->state == POLICY_PARSER_IN_EXPECT ? policy_line_read_text : policy_line_read)(
            raw, length, parser->line_number, &parser->line, parser->diagnostics);
    }
    if (parser->line.kind == POLICY_LINE_SECTION || parser->line.kind == POLICY_LINE_BAD_SECTION) {
        policy_parser_end_section(parser);
        policy_parser_begin_section(parser);
    } else if (parser->line.kind == POLICY_LINE_KEY &&
               parser->state == POLICY_PARSER_BEFORE_SECTIONS) {
        struct policy_quotation quotation;

        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->line.key.place,
                        "\"%s\" stands before the first [section]",
                        policy_quote(&quotation, parser->line.key.text, parser->line.key.length));
    }
    normalise(parser);
    return !parser->out_of_memory;
}

/* What inih reads from: like fgets(), the rest of the line or as much of it as there is room for.
 */
static char *give_line(char *buffer, int size, void *stream)
{
    struct policy_parser *parser = stream;

    if (parser->normalised_given == parser->normalised_length && !next_line(parser)) {
        return NULL;
    }
    size_t length = parser->normalised_length - parser->normalised_given;
    if (length > (size_t)size - 1) {
        length = (size_t)size - 1;
    }
    memcpy(buffer, parser->normalised + parser->normalised_given, length);
    buffer[length] = '\0';
    parser->normalised_given += length;
    return buffer;
}

/* What inih calls for each key. value still has the quotation marks of the normalised form. */
static int take_key(void *user, const char *section, const char *key, const char *value)
{
    struct policy_parser *parser = user;
    size_t length = strlen(value);

    if (strcmp(section, parser->section_label) != 0 || length < 2) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->line.key.place,
                        "the INI reader lost its place at this line");
        return 1;
    }
    char *copy = policy_arena_copy(&parser->arena, value + 1, length - 2);
    if (copy == NULL) {
        parser->out_of_memory = true;
        return 1;
    }
    policy_parser_store(parser, key, copy);
    return 1;
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* Byte order marks: that of UTF-8 is skipped; UTF-16 cannot be read. */
static void read_byte_order_mark(struct policy_parser *parser)
{
    const unsigned char *bytes = (const unsigned char *)parser->text;

    if (parser->length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) {
        parser->text += 3;
        parser->length -= 3;
    } else if (parser->length >= 2 &&
               (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0)) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, (struct policy_place){1, 1},
                        "the file is UTF-16; save it as UTF-8");
        parser->stopped = true;
    }
}

static void check_policy_section(struct policy_parser *parser)
{
    if (parser->stopped || parser->policy_key_place[POLICY_KEY_VERSION].line != 0) {
        return;
    }
    if (parser->policy_place.line == 0 && parser->first_header_broken) {
        return;
    }
    policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->policy_place,
                    parser->policy_place.line != 0
                        ? "[policy] has no version; this language is \"version = 1\""
                        : "the policy does not begin with [policy] and \"version = 1\"");
}

static void read_text(struct policy_parser *parser)
{
    read_byte_order_mark(parser);

    int result = ini_parse_stream(give_line, parser, take_key, parser);
    if (result == -2) {
        parser->out_of_memory = true;
    } else if (result != 0) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR,
                        (struct policy_place){(uint32_t)result, 1},
                        "the INI reader cannot read this line");
    }
    if (parser->out_of_memory) {
        return;
    }
    if (!parser->stopped) {
        policy_parser_end_section(parser);
    }
    check_policy_section(parser);
    if (!parser->stopped && !parser->out_of_memory) {
        policy_relate_partitions(parser);
        policy_check_rules(parser);
        policy_relate_tune(parser);
        policy_check_variables(parser);
        policy_relate_expectations(parser);
    }
    if (parser->version == 0) {
        /* In which language was this written? */
        policy_diagnostics_forget_warnings(parser->diagnostics, parser->warnings_before);
    }
}

static struct policy_owned *make_policy(struct policy_parser *parser, const char *text,
                                        size_t length, const char *label)
{
    struct policy_owned *owned = calloc(1, sizeof *owned);
    const char *path = policy_arena_copy(&parser->arena, label, strlen(label));
    struct policy_site *site = policy_arena_allocate(&parser->arena, sizeof *site);
    SHA2_CTX digest;

    if (owned == NULL || path == NULL || site == NULL) {
        free(owned);
        return NULL;
    }
    *site = parser->site;
    owned->arena = parser->arena;
    owned->rules = parser->rules;
    owned->policy.version = parser->version;
    owned->policy.mode = parser->mode;
    owned->policy.mode_place = parser->policy_key_place[POLICY_KEY_MODE];
    owned->policy.mode_given = owned->policy.mode_place.line != 0;
    owned->policy.path = path;
    owned->policy.rule_count = parser->rule_count;
    owned->policy.rules = parser->rules;
    owned->policy.partition_count = parser->partition_count;
    owned->policy.partitions = parser->partitions;
    owned->policy.variation_count = parser->variation_count;
    owned->policy.variations = parser->variations;
    owned->policy.variable_count = parser->variable_count;
    owned->policy.variables = parser->variables;
    owned->policy.expectation_count = parser->expectation_count;
    owned->policy.expectations = parser->expectations;
    SHA256Init(&digest);
    SHA256Update(&digest, (const uint8_t *)text, length);
    SHA256Final(owned->policy.sha256, &digest);
    if (parser->of_site) {
        site->path = path;
        memcpy(site->sha256, owned->policy.sha256, sizeof site->sha256);
        owned->policy.site = site;
    }
    return owned;
}

static struct policy *parse(bool of_site, const char *text, size_t length, const char *label,
                            struct policy_diagnostics *diagnostics)
{
    struct policy_parser parser = {.of_site = of_site,
                                   .site = POLICY_SITE_DEFAULTS,
                                   .diagnostics = diagnostics,
                                   .errors_before = diagnostics->error_count,
                                   .warnings_before = diagnostics->warning_count,
                                   .text = text,
                                   .length = length,
                                   .mode = POLICY_MODE_ENFORCE};
    struct policy_owned *owned = NULL;

    if (diagnostics->file == NULL) {
        diagnostics->file = strdup(label);
    }
    if (length > POLICY_FILE_LIMIT) {
        policy_diagnose(diagnostics, POLICY_ERROR, (struct policy_place){0},
                        "a policy has at most %d bytes, this one has %zu", (int)POLICY_FILE_LIMIT,
                        length);
        return NULL;
    }
    read_text(&parser);
    if (!parser.out_of_memory && diagnostics->error_count == parser.errors_before) {
        owned = make_policy(&parser, text, length, label);
        parser.out_of_memory = owned == NULL;
    }
    if (parser.out_of_memory) {
        policy_diagnose(diagnostics, POLICY_ERROR, (struct policy_place){0},
                        "out of memory while reading the policy");
    }
    if (owned == NULL) {
        policy_arena_release(&parser.arena);
        free(parser.rules);
    }
    free(parser.normalised);
    policy_diagnostics_sort(diagnostics);
    return owned != NULL ? &owned->policy : NULL;
}

struct policy *policy_parse(const char *text, size_t length, const char *label,
                            struct policy_diagnostics *diagnostics)
{
    return parse(false, text, length, label, diagnostics);
}

struct policy *policy_site_parse(const char *text, size_t length, const char *label,
                                 struct policy_diagnostics *diagnostics)
{
    return parse(true, text, length, label, diagnostics);
}

void policy_free(struct policy *policy)
{
    struct policy_owned *owned = (struct policy_owned *)policy;

    if (owned != NULL) {
        for (size_t i = 0; i < sizeof owned->parts / sizeof owned->parts[0]; i++) {
            policy_free(owned->parts[i]);
        }
        policy_arena_release(&owned->arena);
        free(owned->rules);
        free(owned);
    }
}
