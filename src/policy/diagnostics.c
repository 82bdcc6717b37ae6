/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/diagnostics.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void policy_diagnostics_init(struct policy_diagnostics *diagnostics)
{
    *diagnostics = (struct policy_diagnostics){0};
}

static bool diagnostics_reserve(struct policy_diagnostics *diagnostics)
{
    if (diagnostics->count < diagnostics->capacity) {
        return true;
    }
    size_t capacity = diagnostics->capacity == 0 ? 8 : diagnostics->capacity * 2;
    struct policy_diagnostic *items =
        realloc(diagnostics->items, capacity * sizeof *diagnostics->items);

    if (items == NULL) {
        return false;
    }
    diagnostics->items = items;
    diagnostics->capacity = capacity;
    return true;
}

__attribute__((format(printf, 1, 0))) static char *format_message(const char *format,
                                                                  va_list arguments)
{
    va_list again;

    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) {
        return NULL;
    }
    char *message = malloc((size_t)length + 1);
    if (message != NULL) {
        vsnprintf(message, (size_t)length + 1, format, arguments);
    }
    return message;
}

void policy_diagnose(struct policy_diagnostics *diagnostics, enum policy_severity severity,
                     struct policy_place place, const char *format, ...)
{
    size_t *count =
        severity == POLICY_ERROR ? &diagnostics->error_count : &diagnostics->warning_count;

    if (severity == POLICY_WARNING && diagnostics->errors_only) {
        return;
    }
    /* Counted apart, so that many warnings cannot hide an error. */
    ++*count;
    if (*count > POLICY_DIAGNOSTIC_LIMIT || !diagnostics_reserve(diagnostics)) {
        return;
    }

    va_list arguments;
    va_start(arguments, format);
    char *message = format_message(format, arguments);
    va_end(arguments);
    if (message != NULL) {
        diagnostics->items[diagnostics->count++] =
            (struct policy_diagnostic){.severity = severity, .place = place, .message = message};
    }
}

static bool comes_later(const struct policy_diagnostic *left, const struct policy_diagnostic *right)
{
    if (left->place.line != right->place.line) {
        return left->place.line > right->place.line;
    }
    return left->place.column > right->place.column;
}

/* By insertion: the list is short, nearly sorted already, and two messages about one place keep
 * their order. (qsort is not stable.) */
void policy_diagnostics_sort(struct policy_diagnostics *diagnostics)
{
    for (size_t i = 1; i < diagnostics->count; i++) {
        struct policy_diagnostic item = diagnostics->items[i];
        size_t position = i;

        while (position > 0 && comes_later(&diagnostics->items[position - 1], &item)) {
            diagnostics->items[position] = diagnostics->items[position - 1];
            position--;
        }
        diagnostics->items[position] = item;
    }
}

/* Marks, embeddings, overrides and isolates of direction, and separators of lines: what follows
 * would be shown in another order or place. */
static bool turns_text(unsigned code)
{
    return code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* Length of the printable character at text, 0 when its first byte has to be escaped: control
 * characters (also those of C1, which terminals obey) and bytes that are not UTF-8. */
static size_t printable_length(const unsigned char *text, size_t length)
{
    size_t expected;
    unsigned minimum, code;

    if (text[0] < 0x80) {
        return text[0] >= 0x20 && text[0] != 0x7f;
    }
    if ((text[0] & 0xe0) == 0xc0) {
        expected = 2, minimum = 0xa0, code = text[0] & 0x1f;
    } else if ((text[0] & 0xf0) == 0xe0) {
        expected = 3, minimum = 0x800, code = text[0] & 0x0f;
    } else if ((text[0] & 0xf8) == 0xf0) {
        expected = 4, minimum = 0x10000, code = text[0] & 0x07;
    } else {
        return 0;
    }
    if (expected > length) {
        return 0;
    }
    for (size_t i = 1; i < expected; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (text[i] & 0x3f);
    }
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code >= minimum && code <= 0x10ffff && !surrogate && !turns_text(code) ? expected : 0;
}

const char *policy_quote(struct policy_quotation *quotation, const char *text, size_t length)
{
    static const char hexadecimal[] = "0123456789abcdef";
    const unsigned char *bytes = (const unsigned char *)text;
    size_t written = 0, i = 0;

    while (i < length) {
        size_t character = printable_length(bytes + i, length - i);

        /* Room for the longest character or escape, the dots and the end. */
        if (written + 4 + 3 + 1 > sizeof quotation->text) {
            memcpy(quotation->text + written, "...", 3);
            written += 3;
            break;
        }
        if (character != 0) {
            memcpy(quotation->text + written, bytes + i, character);
            written += character;
            i += character;
        } else {
            quotation->text[written++] = '\\';
            quotation->text[written++] = 'x';
            quotation->text[written++] = hexadecimal[bytes[i] >> 4];
            quotation->text[written++] = hexadecimal[bytes[i] & 15];
            i++;
        }
    }
    quotation->text[written] = '\0';
    return quotation->text;
}

static void print_file_name(const char *file, FILE *stream)
{
    for (const char *character = file; *character != '\0'; character++) {
        bool control = (unsigned char)*character < 0x20 || *character == 0x7f;

        fputc(control ? '?' : *character, stream);
    }
}

static void print_item(const struct policy_diagnostic *item, const char *file, bool bare,
                       FILE *stream)
{
    print_file_name(file, stream);
    if (item->place.line != 0) {
        fprintf(stream, ":%u:%u", (unsigned)item->place.line, (unsigned)item->place.column);
    }
    if (!bare) {
        fputs(item->severity == POLICY_ERROR ? ": error" : ": warning", stream);
    }
    fprintf(stream, ": %s\n", item->message);
}

static void print(struct policy_diagnostics *diagnostics, bool bare, FILE *stream)
{
    const char *file = diagnostics->file != NULL ? diagnostics->file : "policy";
    size_t more = diagnostics->error_count + diagnostics->warning_count - diagnostics->count;

    policy_diagnostics_sort(diagnostics);
    for (size_t i = 0; i < diagnostics->count; i++) {
        print_item(&diagnostics->items[i], file, bare, stream);
    }
    if (more > 0) {
        print_file_name(file, stream);
        fprintf(stream, ": %zu more error%s or warning%s %s not shown\n", more,
                more == 1 ? "" : "s", more == 1 ? "" : "s", more == 1 ? "is" : "are");
    }
}

void policy_diagnostics_print(struct policy_diagnostics *diagnostics, FILE *stream)
{
    print(diagnostics, false, stream);
}

void policy_diagnostics_print_bare(struct policy_diagnostics *diagnostics, FILE *stream)
{
    print(diagnostics, true, stream);
}

void policy_diagnostics_forget_warnings(struct policy_diagnostics *diagnostics, size_t kept)
{
    size_t count = 0, warnings = 0;

    for (size_t i = 0; i < diagnostics->count; i++) {
        struct policy_diagnostic *item = &diagnostics->items[i];

        if (item->severity == POLICY_WARNING && warnings++ >= kept) {
            free(item->message);
        } else {
            diagnostics->items[count++] = *item;
        }
    }
    diagnostics->count = count;
    if (diagnostics->warning_count > kept) {
        diagnostics->warning_count = kept;
    }
}

void policy_diagnostics_release(struct policy_diagnostics *diagnostics)
{
    for (size_t i = 0; i < diagnostics->count; i++) {
        free(diagnostics->items[i].message);
    }
    free(diagnostics->items);
    free(diagnostics->file);
    *diagnostics = (struct policy_diagnostics){0};
}
