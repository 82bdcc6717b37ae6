/* SPDX-License-Identifier: Apache-2.0 */
#include "variation.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "policy/line.h"
#include "policy/print.h"

enum {
    NO_SECTION = -1,
};

/* A line of the text: its bytes without and with its end, what it says, and in which section. */
struct text_line {
    const char *raw;
    size_t length, whole;
    struct policy_line line;
    int section;
};

struct text_section {
    struct policy_slice kind, name;
    size_t header, last_key; /* lines; the header where there is no key */
};

struct policy_text {
    size_t skipped; /* bytes of a byte order mark, which is no part of the first line */
    size_t line_count, line_capacity;
    struct text_line *lines;
    size_t section_count, section_capacity;
    struct text_section *sections;
    const char *newline; /* that of its first line */
};

/* ---- reading -------------------------------------------------------------------------------- */

static void note_line(struct policy_text *text, size_t index)
{
    struct text_line *line = &text->lines[index];

    if (line->line.kind == POLICY_LINE_SECTION) {
        text->sections = memory_grow(text->sections, text->section_count, &text->section_capacity,
                                     sizeof *text->sections);
        text->sections[text->section_count++] = (struct text_section){.kind = line->line.section,
                                                                      .name = line->line.name,
                                                                      .header = index,
                                                                      .last_key = index};
    }
    line->section = (int)text->section_count - 1;
    if (line->line.kind == POLICY_LINE_KEY && line->section != NO_SECTION) {
        text->sections[line->section].last_key = index;
    }
}

static void read_lines(struct policy_text *text, const char *bytes, size_t length)
{
    static const char mark[] = "\xef\xbb\xbf";
    struct policy_diagnostics unused;
    size_t offset = 0;

    policy_diagnostics_init(&unused);
    *text = (struct policy_text){.newline = "\n"};
    if (length >= 3 && memcmp(bytes, mark, 3) == 0) {
        offset = text->skipped = 3;
    }
    while (offset < length) {
        const char *raw = bytes + offset, *end = memchr(raw, '\n', length - offset);
        struct text_line line = {.raw = raw};

        line.whole = end != NULL ? (size_t)(end - raw) + 1 : length - offset;
        line.length = end != NULL ? line.whole - 1 : line.whole;
        if (line.length > 0 && raw[line.length - 1] == '\r') {
            line.length--;
        }
        if (text->line_count == 0 && line.whole - line.length == 2) {
            text->newline = "\r\n";
        }
        policy_line_read(raw, line.length, 1, &line.line, &unused);
        text->lines =
            memory_grow(text->lines, text->line_count, &text->line_capacity, sizeof *text->lines);
        text->lines[text->line_count++] = line;
        note_line(text, text->line_count - 1);
        offset += line.whole;
    }
    policy_diagnostics_release(&unused);
}

static bool slice_is(struct policy_slice slice, const char *text)
{
    return slice.length == strlen(text) && memcmp(slice.text, text, slice.length) == 0;
}

static bool section_is(const struct text_section *section, enum policy_section kind,
                       const char *name)
{
    return slice_is(section->kind, policy_section_text(kind)) && slice_is(section->name, name);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* The lines of [tune]. */
static bool is_dropped(const struct policy_text *text, size_t index)
{
    int number = text->lines[index].section;
    const struct text_section *section = number != NO_SECTION ? &text->sections[number] : NULL;

    return section != NULL && section_is(section, POLICY_SECTION_TUNE, "") &&
           index <= section->last_key;
}

/* The choice that is about the key of this line; NULL: none. */
static const struct variation_choice *choice_of_line(const struct policy_text *text, size_t index,
                                                     const struct variation_choice *choices,
                                                     size_t count)
{
    const struct text_line *line = &text->lines[index];

    for (size_t i = 0; i < count && line->line.kind == POLICY_LINE_KEY; i++) {
        if (slice_is(line->line.key, choices[i].key) && line->section != NO_SECTION &&
            section_is(&text->sections[line->section], choices[i].section, choices[i].name)) {
            return &choices[i];
        }
    }
    return NULL;
}

static bool has_key_before(const struct policy_text *text, size_t index, size_t begin,
                           const char *key)
{
    for (size_t i = begin; i < index; i++) {
        if (text->lines[i].line.kind == POLICY_LINE_KEY && slice_is(text->lines[i].line.key, key)) {
            return true;
        }
    }
    return false;
}

/* The first line of the key gets the value; of the others at most a comment stays. */
static void write_chosen(const struct policy_text *text, size_t index,
                         const struct variation_choice *choice, FILE *stream)
{
    const struct text_line *line = &text->lines[index];
    const struct policy_line *parts = &line->line;
    size_t quote = parts->quoted ? 1 : 0;
    size_t value = (size_t)(parts->value.text - line->raw) - quote;
    size_t after = value + parts->value.length + 2 * quote;
    size_t begin = (size_t)(parts->key.text - line->raw);

    if (!has_key_before(text, index, text->sections[line->section].header, choice->key)) {
        fwrite(line->raw, 1, value, stream);
        policy_text_print(stream, choice->value);
        fwrite(line->raw + after, 1, line->whole - after, stream);
        return;
    }
    while (after < line->length && (line->raw[after] == ' ' || line->raw[after] == '\t')) {
        after++;
    }
    if (after < line->length) {
        fwrite(line->raw, 1, begin, stream);
        fwrite(line->raw + after, 1, line->whole - after, stream);
    }
}

/* What is written so far; text and length are right after fflush. */
struct output {
    FILE *stream;
    char *text;
    size_t length;
};

static void end_line(struct output *output, const char *newline)
{
    fflush(output->stream);
    if (output->length > 0 && output->text[output->length - 1] != '\n') {
        fputs(newline, output->stream);
    }
}

/* Keys that the section does not have, after its last one and indented like it. */
static void write_added(const struct policy_text *text, size_t index,
                        const struct variation_choice *choices, size_t count, struct output *output)
{
    const struct text_line *line = &text->lines[index];
    const struct text_section *section = &text->sections[line->section];
    size_t indent = index == section->header ? 0 : (size_t)(line->line.key.text - line->raw);

    for (size_t i = 0; i < count; i++) {
        if (!section_is(section, choices[i].section, choices[i].name) ||
            has_key_before(text, section->last_key + 1, section->header, choices[i].key)) {
            continue;
        }
        end_line(output, text->newline); /* the text's last line may have no end */
        fwrite(line->raw, 1, indent, output->stream);
        fprintf(output->stream, "%s = ", choices[i].key);
        policy_text_print(output->stream, choices[i].value);
        fputs(text->newline, output->stream);
    }
}

char *variation_text(const char *text, size_t length, const struct variation_choice *choices,
                     size_t count, size_t *result_length)
{
    struct policy_text read;
    struct output output = {0};

    output.stream = open_memstream(&output.text, &output.length);
    read_lines(&read, text, length);
    fwrite(text, 1, read.skipped, output.stream);
    for (size_t i = 0; i < read.line_count; i++) {
        const struct text_line *line = &read.lines[i];
        const struct variation_choice *choice = choice_of_line(&read, i, choices, count);

        if (is_dropped(&read, i)) {
            continue;
        }
        if (choice != NULL) {
            write_chosen(&read, i, choice, output.stream);
        } else {
            fwrite(line->raw, 1, line->whole, output.stream);
        }
        if (line->section != NO_SECTION && i == read.sections[line->section].last_key) {
            write_added(&read, i, choices, count, &output);
        }
    }
    fclose(output.stream);
    free(read.lines);
    free(read.sections);
    *result_length = output.length;
    return output.text;
}
