/* SPDX-License-Identifier: Apache-2.0 */
#include "html_text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "printable.h"

void html_text(FILE *stream, const char *text)
{
    char *copy = printable_copy(text);

    for (const char *byte = copy; *byte != '\0'; byte++) {
        switch (*byte) {
        case '&':
            fputs("&amp;", stream);
            break;
        case '<':
            fputs("&lt;", stream);
            break;
        case '>':
            fputs("&gt;", stream);
            break;
        case '"':
            fputs("&quot;", stream);
            break;
        case '\'':
            fputs("&#39;", stream);
            break;
        default:
            fputc(*byte, stream);
        }
    }
    free(copy);
}

void html_message(FILE *stream, const char *text, size_t most)
{
    bool cut = strlen(text) > most;
    char *copy = memory_format("%.*s", (int)most, text), *rest = copy, *line;

    /* No half character at the end: it would not be printable. */
    if (cut) {
        while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80) {
            copy[--most] = '\0';
        }
    }
    while ((line = strsep(&rest, "\n")) != NULL) {
        html_text(stream, line);
        fputs(rest != NULL ? "\n" : cut ? "..." : "", stream);
    }
    free(copy);
}

void html_format(FILE *stream, const char *format, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) {
        text = memory_copy("");
    }
    va_end(arguments);
    html_text(stream, text);
    free(text);
}

void html_markup(FILE *stream, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stream, format, arguments);
    va_end(arguments);
}
