/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_EXPRESSION_H
#define CUDAPOLICY_TOOLS_AB_EXPRESSION_H

/*
 * Regular expressions of the command line (PCRE2), on text from anywhere: bytes that are not UTF-8
 * match nothing but cost nothing either, and an expression that backtracks without end is an error,
 * not a hang.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* What is matched is cut at so many bytes. */
    AB_EXPRESSION_LINE = 16 * 1024,
};

struct ab_expression {
    void *code, *match, *context, *stack; /* of PCRE2 */
    const char *text;                     /* the caller's */
    unsigned group_count;
    int value_group, rank_group; /* numbers of the groups called "value" and "rank"; 0: none */
    int64_t tried, nanoseconds;  /* lines, and how long they took */
};

/* Compiles text, which must outlive the expression. False, with nothing to free, and a message in
 * error[size] that shows the place. */
bool ab_expression_compile(struct ab_expression *expression, const char *text, char *error,
                           size_t size);

enum ab_match {
    AB_MATCH_NO,
    AB_MATCH_YES,
    AB_MATCH_FAILED, /* takes too long: message in error[size] */
};
enum ab_match ab_expression_match(struct ab_expression *expression, const char *line, size_t length,
                                  char *error, size_t size);

/* What a group holds in the last match, 0: the whole of it. False when it took no part. */
bool ab_expression_group(const struct ab_expression *expression, unsigned group, const char *line,
                         const char **text, size_t *length);

void ab_expression_free(struct ab_expression *expression);

/* A text of length bytes for a message: printable, at most width characters; to be freed. */
char *ab_quote(const char *text, size_t length, size_t width);

#endif
