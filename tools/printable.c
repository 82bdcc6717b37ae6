/* SPDX-License-Identifier: Apache-2.0 */
#include "printable.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "memory.h"
#include "policy/diagnostics.h"

char *printable_copy(const char *text)
{
    size_t length = strlen(text);
    char *copy = memory_allocate(length * 4 + 1, 1);
    char *end = copy;

    /* Character by character, by the one function that knows which are fit for a terminal. */
    for (size_t i = 0; i < length;) {
        size_t character = 1;
        struct policy_quotation quotation;

        while (i + character < length && character < 4 &&
               ((unsigned char)text[i + character] & 0xc0) == 0x80) {
            character++;
        }
        policy_quote(&quotation, text + i, character);
        end = stpcpy(end, quotation.text);
        i += character;
    }
    return copy;
}

static size_t is_start(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

size_t printable_width(const char *text)
{
    size_t width = 0;

    for (; *text != '\0'; text++) {
        width += is_start(*text);
    }
    return width;
}

/* The byte at which the character number position begins. */
static size_t byte_of_character(const char *text, size_t position)
{
    size_t byte = 0;

    while (text[byte] != '\0') {
        if (is_start(text[byte]) && position-- == 0) {
            break;
        }
        byte++;
    }
    return byte;
}

char *printable_shorten(const char *text, size_t width)
{
    size_t whole = printable_width(text);
    size_t head, tail;

    if (whole <= width) {
        return memory_copy(text);
    }
    if (width <= 3) {
        return memory_format("%.*s", (int)width, "...");
    }
    /* The beginning of a kernel's name tells more than its end, which is often arguments. */
    tail = (width - 3) / 3;
    head = width - 3 - tail;
    return memory_format("%.*s...%s", (int)byte_of_character(text, head), text,
                         text + byte_of_character(text, whole - tail));
}

const char *printable_count(struct printable_count *count, int64_t number)
{
    char digits[24];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%" PRId64, number), end = 0;

    for (size_t i = 0; i < length; i++) {
        if (i > 0 && digits[i - 1] != '-' && (length - i) % 3 == 0) {
            count->text[end++] = ',';
        }
        count->text[end++] = digits[i];
    }
    count->text[end] = '\0';
    return count->text;
}
