/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_LINES_H
#define CUDAPOLICY_TOOLS_AB_LINES_H

/* Lines of what a program printed or wrote: files of any size, in bounded memory. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ab_lines_kind {
    /* As a person at a terminal saw it: a carriage return ends a line too, so that every state of a
     * progress bar is a line, and escape sequences are left out. */
    AB_LINES_TERMINAL,
    /* As it is in the file. */
    AB_LINES_RAW,
};

struct ab_lines {
    enum ab_lines_kind kind;
    int descriptor;
    char *line;     /* without its end; a NUL behind it; may hold NULs */
    size_t length;  /* of it */
    size_t limit;   /* what is longer is cut there */
    bool cut;       /* this one was */
    int64_t number; /* of the line, from 1, as an editor counts: by newlines alone */
    bool failed;    /* the file could not be read on: errno */
    /* inside */
    char *buffer;
    size_t start, end, capacity;
    bool newline, after_return;
    int escape;
};

/* False with errno, and nothing to close: EINVAL when it is no regular file. */
bool ab_lines_open(struct ab_lines *lines, const char *path, enum ab_lines_kind kind, size_t limit);

/* The same for an open file, which ab_lines_close closes, from its beginning. */
void ab_lines_from(struct ab_lines *lines, int descriptor, enum ab_lines_kind kind, size_t limit);

/* The next line. An empty last one, behind the last newline, is none. */
bool ab_lines_next(struct ab_lines *lines);

void ab_lines_close(struct ab_lines *lines);

/* Opens a regular file for reading: the descriptor, or -1 with errno. */
int ab_lines_descriptor(const char *path);

#endif
