/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/line.h"

#include <string.h>

/* Not isspace(): its answer depends on the locale of the program that we live in. */
static bool starts_comment(const char *text, size_t position)
{
    return (text[position] == ';' || text[position] == '#') &&
           (position == 0 || policy_is_blank(text[position - 1]));
}

static struct policy_slice slice_of(const char *raw, size_t begin, size_t end, uint32_t line)
{
    while (begin < end && policy_is_blank(raw[begin])) {
        begin++;
    }
    while (end > begin && policy_is_blank(raw[end - 1])) {
        end--;
    }
    return (struct policy_slice){raw + begin, end - begin, {line, (uint32_t)begin + 1}};
}

/* Position of a comment in raw[begin, end), or end. */
static size_t comment_start(const char *raw, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        if (starts_comment(raw, i)) {
            return i;
        }
    }
    return end;
}

static bool only_printable(struct policy_slice value, struct policy_diagnostics *diagnostics)
{
    for (size_t i = 0; i < value.length; i++) {
        unsigned char byte = (unsigned char)value.text[i];

        if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
            struct policy_place place = {value.place.line, value.place.column + (uint32_t)i};

            policy_diagnose(diagnostics, POLICY_ERROR, place,
                            "control character (byte 0x%02x) in the value", byte);
            return false;
        }
    }
    return true;
}

/* raw[begin] is '['. The name of a rule cannot hold a bracket, so the first ] ends the header. */
static void read_section(const char *raw, size_t begin, size_t length, struct policy_line *line,
                         struct policy_diagnostics *diagnostics)
{
    uint32_t number = line->place.line;
    const char *close = memchr(raw + begin, ']', length - begin);
    struct policy_quotation quotation;

    line->kind = POLICY_LINE_BAD_SECTION;
    if (close == NULL) {
        policy_diagnose(diagnostics, POLICY_ERROR, line->place,
                        "section header \"%s\" has no closing ]",
                        policy_quote(&quotation, raw + begin, length - begin));
        return;
    }
    size_t end = (size_t)(close - raw);
    struct policy_slice rest = slice_of(raw, end + 1, comment_start(raw, end + 1, length), number);

    if (rest.length != 0) {
        policy_diagnose(diagnostics, POLICY_ERROR, rest.place, "text after ]: \"%s\"",
                        policy_quote(&quotation, rest.text, rest.length));
        return;
    }
    struct policy_slice inside = slice_of(raw, begin + 1, end, number);
    size_t word = 0;

    while (word < inside.length && !policy_is_blank(inside.text[word])) {
        word++;
    }
    size_t inside_begin = (size_t)(inside.text - raw);
    line->kind = POLICY_LINE_SECTION;
    line->section = slice_of(raw, inside_begin, inside_begin + word, number);
    line->name = slice_of(raw, inside_begin + word, inside_begin + inside.length, number);
}

/* The value begins with a quotation mark at raw[begin]; "" inside stands for one mark. */
static bool read_quoted(const char *raw, size_t begin, size_t length, uint32_t number,
                        struct policy_line *line, struct policy_diagnostics *diagnostics)
{
    struct policy_quotation quotation;
    size_t end = begin + 1;

    while (end < length) {
        if (raw[end] == '"') {
            if (end + 1 == length || raw[end + 1] != '"') {
                break;
            }
            end++;
        }
        end++;
    }
    if (end >= length) {
        policy_diagnose(diagnostics, POLICY_ERROR,
                        (struct policy_place){number, (uint32_t)begin + 1},
                        "quoted value %s has no closing quotation mark",
                        policy_quote(&quotation, raw + begin, length - begin));
        return false;
    }
    struct policy_slice rest = slice_of(raw, end + 1, comment_start(raw, end + 1, length), number);

    if (rest.length != 0) {
        policy_diagnose(diagnostics, POLICY_ERROR, rest.place,
                        "text after the closing quotation mark: \"%s\"",
                        policy_quote(&quotation, rest.text, rest.length));
        return false;
    }
    line->quoted = true;
    line->value =
        (struct policy_slice){raw + begin + 1, end - begin - 1, {number, (uint32_t)begin + 2}};
    return true;
}

/* Position of the '=' after the key, or length: a comment or the end comes first. */
static size_t find_equals(const char *raw, size_t begin, size_t length)
{
    for (size_t i = begin; i < length; i++) {
        if (raw[i] == '=') {
            return i;
        }
        if (starts_comment(raw, i)) {
            break;
        }
    }
    return length;
}

static void read_key(const char *raw, size_t begin, size_t length, struct policy_line *line,
                     struct policy_diagnostics *diagnostics)
{
    uint32_t number = line->place.line;
    struct policy_quotation quotation;
    size_t equals = find_equals(raw, begin, length);

    if (equals == length) {
        struct policy_slice text = slice_of(raw, begin, comment_start(raw, begin, length), number);

        policy_diagnose(diagnostics, POLICY_ERROR, line->place,
                        "\"%s\" is neither \"key = value\" nor a [section]",
                        policy_quote(&quotation, text.text, text.length));
        return;
    }
    line->key = slice_of(raw, begin, equals, number);
    if (line->key.length == 0) {
        policy_diagnose(diagnostics, POLICY_ERROR, line->place, "no key before =");
        return;
    }
    size_t value = equals + 1;
    while (value < length && policy_is_blank(raw[value])) {
        value++;
    }
    if (value < length && raw[value] == '"') {
        if (!read_quoted(raw, value, length, number, line, diagnostics)) {
            return;
        }
    } else {
        line->value = slice_of(raw, value, comment_start(raw, value, length), number);
    }
    if (only_printable(line->value, diagnostics)) {
        line->kind = POLICY_LINE_KEY;
    }
}

void policy_line_read(const char *raw, size_t length, uint32_t line_number,
                      struct policy_line *line, struct policy_diagnostics *diagnostics)
{
    size_t begin = 0;

    *line = (struct policy_line){.kind = POLICY_LINE_BLANK};
    while (begin < length && policy_is_blank(raw[begin])) {
        begin++;
    }
    line->place = (struct policy_place){line_number, (uint32_t)begin + 1};
    if (begin == length || starts_comment(raw, begin)) {
        return;
    }
    if (raw[begin] == '[') {
        read_section(raw, begin, length, line, diagnostics);
    } else {
        read_key(raw, begin, length, line, diagnostics);
    }
}

void policy_line_read_text(const char *raw, size_t length, uint32_t line_number,
                           struct policy_line *line, struct policy_diagnostics *diagnostics)
{
    static const char key[] = "expect";
    size_t begin = 0;

    while (begin < length && policy_is_blank(raw[begin])) {
        begin++;
    }
    if (begin == length || starts_comment(raw, begin) || raw[begin] == '[') {
        policy_line_read(raw, length, line_number, line, diagnostics);
        return;
    }
    *line = (struct policy_line){.kind = POLICY_LINE_BLANK};
    line->place = (struct policy_place){line_number, (uint32_t)begin + 1};
    line->key = (struct policy_slice){key, sizeof key - 1, line->place};
    line->value = slice_of(raw, begin, comment_start(raw, begin, length), line_number);
    if (only_printable(line->value, diagnostics)) {
        line->kind = POLICY_LINE_KEY;
    }
}
