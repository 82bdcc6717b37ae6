/* SPDX-License-Identifier: Apache-2.0 */
#include "expression.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "memory.h"
#include "printable.h"

enum {
    /* Far beyond what any expression that was meant well needs for a line of that length. */
    MATCH_LIMIT = 2000000,
    HEAP_LIMIT = 64 * 1024, /* KiB */
    STACK_START = 32 * 1024,
    STACK_LIMIT = 8 * 1024 * 1024,
    /* Every line within its limit, and still too slow for a file of many: so many seconds are there
     * for all lines that are far from short. */
    SECONDS_LIMIT = 60,
    LINE_SHORT = 1024,
    QUOTE_WIDTH = 120,
};

char *ab_quote(const char *text, size_t length, size_t width)
{
    char *copy = memory_allocate(length + 1, 1);
    char *printable, *quoted;

    memcpy(copy, text, length);
    for (size_t i = 0; i < length; i++) {
        copy[i] = copy[i] == '\0' ? ' ' : copy[i];
    }
    printable = printable_copy(copy);
    quoted = printable_shorten(printable, width);
    free(printable);
    free(copy);
    return quoted;
}

static void say_wrong(const char *text, int code, size_t offset, char *error, size_t size)
{
    char reason[160] = "not understood";
    size_t length = strlen(text);
    char *whole = ab_quote(text, length, QUOTE_WIDTH);
    char *head = ab_quote(text, offset < length ? offset : length, QUOTE_WIDTH);

    pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof reason);
    if (offset == 0) {
        snprintf(error, size, "the expression '%s' is wrong at its beginning: %s", whole, reason);
    } else {
        snprintf(error, size, "the expression '%s' is wrong at offset %zu, behind '%s': %s", whole,
                 offset, head, reason);
    }
    free(whole);
    free(head);
}

static int named_group(const struct ab_expression *expression, const char *name)
{
    return pcre2_substring_number_from_name(expression->code, (PCRE2_SPTR)name);
}

/* False when a group that we ask for is there twice. */
static bool find_groups(struct ab_expression *expression, char *error, size_t size)
{
    uint32_t count = 0;

    pcre2_pattern_info(expression->code, PCRE2_INFO_CAPTURECOUNT, &count);
    expression->group_count = count;
    expression->value_group = named_group(expression, "value");
    expression->rank_group = named_group(expression, "rank");
    if (expression->value_group == PCRE2_ERROR_NOUNIQUESUBSTRING ||
        expression->rank_group == PCRE2_ERROR_NOUNIQUESUBSTRING) {
        snprintf(error, size,
                 "the expression '%.120s' has the group \"%s\" more than once: (?|…|…) gives the "
                 "groups of alternatives one number",
                 expression->text,
                 expression->value_group == PCRE2_ERROR_NOUNIQUESUBSTRING ? "value" : "rank");
        return false;
    }
    expression->value_group = expression->value_group < 0 ? 0 : expression->value_group;
    expression->rank_group = expression->rank_group < 0 ? 0 : expression->rank_group;
    return true;
}

/* Just-in-time compilation is there or not: the answers are the same. */
static bool prepare(struct ab_expression *expression)
{
    expression->match = pcre2_match_data_create_from_pattern(expression->code, NULL);
    expression->context = pcre2_match_context_create(NULL);
    if (expression->match == NULL || expression->context == NULL) {
        return false;
    }
    pcre2_set_match_limit(expression->context, MATCH_LIMIT);
    pcre2_set_heap_limit(expression->context, HEAP_LIMIT);
    if (pcre2_jit_compile(expression->code, PCRE2_JIT_COMPLETE) == 0) {
        expression->stack = pcre2_jit_stack_create(STACK_START, STACK_LIMIT, NULL);
        pcre2_jit_stack_assign(expression->context, NULL, expression->stack);
    }
    return true;
}

bool ab_expression_compile(struct ab_expression *expression, const char *text, char *error,
                           size_t size)
{
    int code = 0;
    PCRE2_SIZE offset = 0;

    *expression = (struct ab_expression){.text = text};
    if (text[0] == '\0') {
        snprintf(error, size, "the expression is empty");
        return false;
    }
    expression->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C,
                                     &code, &offset, NULL);
    if (expression->code == NULL) {
        say_wrong(text, code, offset, error, size);
        return false;
    }
    if (!prepare(expression)) {
        snprintf(error, size, "out of memory");
    } else if (find_groups(expression, error, size)) {
        return true;
    }
    ab_expression_free(expression);
    return false;
}

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int match_timed(struct ab_expression *expression, const char *line, size_t length)
{
    int64_t start = length > LINE_SHORT ? now() : 0;
    int result = pcre2_match(expression->code, (PCRE2_SPTR)line, length, 0, 0, expression->match,
                             expression->context);

    expression->nanoseconds += length > LINE_SHORT ? now() - start : 0;
    return result;
}

enum ab_match ab_expression_match(struct ab_expression *expression, const char *line, size_t length,
                                  char *error, size_t size)
{
    char reason[160] = "";
    char *pattern;
    int result;

    length = length > AB_EXPRESSION_LINE ? AB_EXPRESSION_LINE : length;
    expression->tried++;
    result = match_timed(expression, line, length);
    if (expression->nanoseconds > SECONDS_LIMIT * INT64_C(1000000000)) {
        snprintf(reason, sizeof reason, "over %d seconds in all", SECONDS_LIMIT);
    } else if (result >= 0) {
        return AB_MATCH_YES;
    } else if (result == PCRE2_ERROR_NOMATCH) {
        return AB_MATCH_NO;
    } else {
        pcre2_get_error_message(result, (PCRE2_UCHAR *)reason, sizeof reason);
    }
    pattern = ab_quote(expression->text, strlen(expression->text), QUOTE_WIDTH);
    snprintf(error, size,
             "the expression '%s' takes too long on a line of %zu bytes (%s): make it more precise",
             pattern, length, reason);
    free(pattern);
    return AB_MATCH_FAILED;
}

bool ab_expression_group(const struct ab_expression *expression, unsigned group, const char *line,
                         const char **text, size_t *length)
{
    const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(expression->match);
    PCRE2_SIZE start, end;

    if (group >= pcre2_get_ovector_count(expression->match)) {
        return false;
    }
    start = offsets[2 * group];
    end = offsets[2 * group + 1];
    /* \K in a lookahead can put the start of a match behind its end. */
    if (start == PCRE2_UNSET || end < start) {
        return false;
    }
    *text = line + start;
    *length = end - start;
    return true;
}

void ab_expression_free(struct ab_expression *expression)
{
    pcre2_match_data_free(expression->match);
    pcre2_match_context_free(expression->context);
    pcre2_jit_stack_free(expression->stack);
    pcre2_code_free(expression->code);
    *expression = (struct ab_expression){0};
}
