/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"
#include "metric.h"
#include "printable.h"

enum {
    BUFFER_SIZE = 256 * 1024,
    LAST_LINES_SIZE = 64 * 1024,
    LAST_LINES_WIDTH = 200,
};

/* Where in an escape sequence (ECMA-48) the text is. */
enum escape {
    ESCAPE_NONE,
    ESCAPE_BEGUN,   /* behind ESC */
    ESCAPE_CONTROL, /* ESC [ … a byte of @ to ~ */
    ESCAPE_STRING,  /* ESC ] … BEL, or ESC \ */
};

int ab_lines_descriptor(const char *path)
{
    /* Without waiting for somebody to write into a named pipe. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;

    if (descriptor >= 0 && (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))) {
        close(descriptor);
        errno = EINVAL;
        return -1;
    }
    return descriptor;
}

void ab_lines_from(struct ab_lines *lines, int descriptor, enum ab_lines_kind kind, size_t limit)
{
    *lines =
        (struct ab_lines){.kind = kind, .limit = limit, .newline = true, .descriptor = descriptor};
    lseek(descriptor, 0, SEEK_SET);
    lines->buffer = memory_allocate(BUFFER_SIZE, 1);
}

bool ab_lines_open(struct ab_lines *lines, const char *path, enum ab_lines_kind kind, size_t limit)
{
    int descriptor = ab_lines_descriptor(path);

    if (descriptor < 0) {
        return false;
    }
    ab_lines_from(lines, descriptor, kind, limit);
    return true;
}

void ab_lines_close(struct ab_lines *lines)
{
    close(lines->descriptor);
    free(lines->buffer);
    free(lines->line);
    lines->buffer = lines->line = NULL;
}

static bool fill(struct ab_lines *lines)
{
    ssize_t got;

    if (lines->start < lines->end) {
        return true;
    }
    do {
        got = read(lines->descriptor, lines->buffer, BUFFER_SIZE);
    } while (got < 0 && errno == EINTR);
    lines->failed = got < 0;
    lines->start = 0;
    lines->end = got > 0 ? (size_t)got : 0;
    return got > 0;
}

static void append(struct ab_lines *lines, const char *text, size_t length)
{
    if (length > lines->limit - lines->length) {
        length = lines->limit - lines->length;
        lines->cut = true;
    }
    if (lines->length + length + 1 > lines->capacity) {
        size_t capacity = lines->capacity * 2 + length + 256;
        char *larger;

        if (capacity > lines->limit + 1) {
            capacity = lines->limit + 1;
        }
        larger = memory_allocate(capacity, 1);
        memcpy(larger, lines->line == NULL ? "" : lines->line, lines->length);
        free(lines->line);
        lines->line = larger;
        lines->capacity = capacity;
    }
    memcpy(lines->line + lines->length, text, length);
    lines->length += length;
}

/* One byte inside an escape sequence. */
static void pass_escape(struct ab_lines *lines, unsigned char byte)
{
    switch (lines->escape) {
    case ESCAPE_BEGUN:
        if (byte == '[') {
            lines->escape = ESCAPE_CONTROL;
        } else if (byte == ']' || byte == 'P' || byte == '_' || byte == '^' || byte == 'X') {
            lines->escape = ESCAPE_STRING;
        } else if (byte < 0x20 || byte > 0x2f) {
            lines->escape = ESCAPE_NONE;
        }
        break;
    case ESCAPE_CONTROL:
        if (byte < 0x20 || byte > 0x3f) {
            lines->escape = ESCAPE_NONE;
        }
        break;
    default:
        if (byte == 0x07) {
            lines->escape = ESCAPE_NONE;
        } else if (byte == 0x1b) {
            lines->escape = ESCAPE_BEGUN;
        }
        break;
    }
}

/* The bytes at the buffer's start that are plain text. */
static size_t plain(const struct ab_lines *lines)
{
    const char *text = lines->buffer + lines->start;
    size_t length = lines->end - lines->start, i = 0;
    const char *newline;

    if (lines->kind == AB_LINES_RAW) {
        newline = memchr(text, '\n', length);
        return newline == NULL ? length : (size_t)(newline - text);
    }
    while (i < length && text[i] != '\n' && text[i] != '\r' && text[i] != 0x1b) {
        i++;
    }
    return i;
}

/* A byte that plain() stopped at, or one in an escape sequence; true: it ends the line. */
static bool take_special(struct ab_lines *lines, char byte)
{
    if (byte == '\n' || byte == '\r') {
        lines->newline = byte == '\n';
        return true;
    }
    if (lines->escape != ESCAPE_NONE) {
        pass_escape(lines, (unsigned char)byte);
    } else {
        lines->escape = ESCAPE_BEGUN;
    }
    return false;
}

static void begin_line(struct ab_lines *lines)
{
    lines->number += lines->newline;
    lines->newline = lines->cut = false;
    lines->length = 0;
    /* A sequence that nobody ended must not swallow the file. */
    lines->escape = ESCAPE_NONE;
    append(lines, "", 0);
}

/* The newline of a pair of carriage return and newline ends no line of its own. */
static void pass_pair(struct ab_lines *lines)
{
    if (lines->after_return && fill(lines) && lines->buffer[lines->start] == '\n') {
        lines->start++;
        lines->newline = true;
    }
    lines->after_return = false;
}

bool ab_lines_next(struct ab_lines *lines)
{
    bool some = false, ended = false;

    pass_pair(lines);
    begin_line(lines);
    while (!ended && fill(lines)) {
        some = true;
        if (lines->escape == ESCAPE_NONE) {
            size_t length = plain(lines);

            append(lines, lines->buffer + lines->start, length);
            lines->start += length;
        }
        if (lines->start < lines->end) {
            char byte = lines->buffer[lines->start++];

            ended = take_special(lines, byte);
            lines->after_return = ended && byte == '\r';
        }
    }
    lines->line[lines->length] = '\0';
    return some;
}

/* ---- The last lines of a file --------------------------------------------------------------- */

/* Reads on from so many bytes before the end. */
static void go_near_end(struct ab_lines *lines, off_t distance)
{
    struct stat status;

    if (fstat(lines->descriptor, &status) == 0 && status.st_size > distance &&
        lseek(lines->descriptor, status.st_size - distance, SEEK_SET) > 0) {
        ab_lines_next(lines); /* the rest of a line */
    }
}

static char *presentable(const struct ab_lines *lines)
{
    char *printable = printable_copy(lines->line);
    char *text = printable_shorten(printable, LAST_LINES_WIDTH);

    free(printable);
    return text;
}

static char *join(char **texts, size_t count)
{
    char *joined = memory_copy("");

    for (size_t i = 0; i < count; i++) {
        char *longer = memory_format("%s%s%s", joined, i > 0 ? "\n" : "", texts[i]);

        free(joined);
        free(texts[i]);
        joined = longer;
    }
    return joined;
}

char *ab_last_lines(const char *path, size_t lines)
{
    struct ab_lines reader;
    char **texts = memory_allocate(lines + 1, sizeof *texts);
    char *joined;
    size_t count = 0;

    if (lines > 0 &&
        ab_lines_open(&reader, path, AB_LINES_TERMINAL, (size_t)LAST_LINES_WIDTH * 8)) {
        go_near_end(&reader, LAST_LINES_SIZE);
        while (ab_lines_next(&reader)) {
            if (reader.length == 0) {
                continue;
            }
            if (count == lines) {
                free(texts[0]);
                memmove(texts, texts + 1, --count * sizeof *texts);
            }
            texts[count++] = presentable(&reader);
        }
        ab_lines_close(&reader);
    }
    joined = join(texts, count);
    free(texts);
    return joined;
}
