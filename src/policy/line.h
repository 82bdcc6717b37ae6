/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_POLICY_LINE_H
#define CUDAPOLICY_POLICY_LINE_H

/* One line of a policy file, taken apart: comments, quotes, section headers, columns. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/diagnostics.h"

static inline bool policy_is_blank(char character)
{
    return character == ' ' || character == '\t';
}

enum {
    POLICY_LINE_LIMIT = 64 * 1024, /* bytes, without the line end */
};

enum policy_line_kind {
    POLICY_LINE_BLANK, /* also a comment, and a line with an error */
    POLICY_LINE_SECTION,
    POLICY_LINE_BAD_SECTION, /* a header with an error: what follows belongs to no section */
    POLICY_LINE_KEY,
};

/* A piece of the line, not terminated. */
struct policy_slice {
    const char *text;
    size_t length;
    struct policy_place place;
};

struct policy_line {
    enum policy_line_kind kind;
    struct policy_place place;         /* of the first character that is not blank */
    struct policy_slice section, name; /* of [section name]; name may be empty */
    struct policy_slice key, value;    /* of key = value; value without its outer quotes */
    bool quoted;                       /* in value, "" stands for one " */
};

/* Takes apart a line (raw, without its end). A line with a mistake is reported and comes back as
 * POLICY_LINE_BLANK or POLICY_LINE_BAD_SECTION. The slices point into raw. */
void policy_line_read(const char *raw, size_t length, uint32_t line_number,
                      struct policy_line *line, struct policy_diagnostics *diagnostics);

/* The same in a section whose lines are text: one that is neither blank nor a header comes back as
 * POLICY_LINE_KEY, the text without its comment as the value of a key that is not in the file. */
void policy_line_read_text(const char *raw, size_t length, uint32_t line_number,
                           struct policy_line *line, struct policy_diagnostics *diagnostics);

#endif
