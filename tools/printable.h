/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_PRINTABLE_H
#define CUDAPOLICY_TOOLS_PRINTABLE_H

/* Kernel names, paths and messages come from programs and files that nobody vouches for. What is
 * printed of them is one line of valid UTF-8 without control characters. */

#include <stddef.h>
#include <stdint.h>

/* A copy in which control characters and bytes that are not UTF-8 stand as \xNN; to be freed. */
char *printable_copy(const char *text);

/* Characters in a text of printable_copy: what it takes of a terminal's width, as long as no
 * character is double-wide. */
size_t printable_width(const char *text);

/* A copy of at most width characters: where it is longer, the middle is replaced by "...". */
char *printable_shorten(const char *text, size_t width);

/* A number with a comma before each three digits. Returns count->text. */
struct printable_count {
    char text[32];
};
const char *printable_count(struct printable_count *count, int64_t number);

#endif
