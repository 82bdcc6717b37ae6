/* SPDX-License-Identifier: Apache-2.0 */

/* Metrics that a regular expression finds in what the command prints. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decimal.h"
#include "expression.h"
#include "lines.h"
#include "metric_parts.h"

enum {
    QUOTE_WIDTH = 80,
    RANK_LENGTH = 64,
};

struct search {
    struct ab_expression expression;
    struct ab_values *values;
    int64_t lines, matched;
    char *other; /* a text that was to be a number and is none: the first */
    char *error;
    size_t size;
};

/* The text that is to be a number: of the group called "value", else of the first group that took
 * part and is not the rank, else all of the match. */
static bool find_number(const struct ab_expression *expression, const char *line, const char **text,
                        size_t *length)
{
    if (expression->value_group > 0) {
        return ab_expression_group(expression, (unsigned)expression->value_group, line, text,
                                   length);
    }
    for (unsigned group = 1; group <= expression->group_count; group++) {
        if (group != (unsigned)expression->rank_group &&
            ab_expression_group(expression, group, line, text, length)) {
            return true;
        }
    }
    return ab_expression_group(expression, 0, line, text, length);
}

static void find_rank(const struct ab_expression *expression, const char *line,
                      char rank[RANK_LENGTH])
{
    const char *text;
    size_t length;

    rank[0] = '\0';
    if (expression->rank_group > 0 &&
        ab_expression_group(expression, (unsigned)expression->rank_group, line, &text, &length)) {
        snprintf(rank, RANK_LENGTH, "%.*s", (int)(length < RANK_LENGTH ? length : RANK_LENGTH),
                 text);
    }
}

static void take_match(struct search *search, const char *line)
{
    char rank[RANK_LENGTH];
    const char *text = "";
    size_t length = 0;
    double value;

    search->matched++;
    if (find_number(&search->expression, line, &text, &length) &&
        ab_decimal_read(text, length, &value)) {
        find_rank(&search->expression, line, rank);
        ab_values_add(search->values, rank, value);
    } else if (search->other == NULL) {
        search->other = ab_quote(text, length, QUOTE_WIDTH);
    }
}

/* False when the search has to end. A file that is not there has no lines. */
static bool search_file(struct search *search, const char *path)
{
    struct ab_lines lines;
    enum ab_match match = AB_MATCH_NO;

    if (path == NULL || !ab_lines_open(&lines, path, AB_LINES_TERMINAL, AB_EXPRESSION_LINE)) {
        return true;
    }
    while (match != AB_MATCH_FAILED && search->values->count < AB_VALUE_LIMIT &&
           ab_lines_next(&lines)) {
        search->lines++;
        match = ab_expression_match(&search->expression, lines.line, lines.length, search->error,
                                    search->size);
        if (match == AB_MATCH_YES) {
            take_match(search, lines.line);
        }
    }
    if (match == AB_MATCH_FAILED) {
        snprintf(search->error + strlen(search->error), search->size - strlen(search->error),
                 ", line %" PRId64 " of %s", lines.number, path);
    }
    ab_lines_close(&lines);
    return match != AB_MATCH_FAILED;
}

static void say_none(const struct search *search, const char *definition)
{
    char *pattern = ab_quote(definition, strlen(definition), QUOTE_WIDTH);

    if (search->matched > 0) {
        snprintf(search->error, search->size,
                 "'%s' matched %" PRId64 " lines, but '%s' is not a number: put the number alone "
                 "into a group, as in time=([0-9.]+)",
                 pattern, search->matched, search->other);
    } else if (search->lines == 0) {
        snprintf(search->error, search->size, "no line matched '%s': the command printed nothing",
                 pattern);
    } else {
        snprintf(search->error, search->size,
                 "no line matched '%s', of %" PRId64 " on standard output and standard error",
                 pattern, search->lines);
    }
    free(pattern);
}

bool ab_pattern_values(const struct ab_metric *metric, const struct ab_run_files *files,
                       struct ab_values *values, char *error, size_t size)
{
    struct search search = {.values = values, .error = error, .size = size};
    bool searched;

    if (!ab_expression_compile(&search.expression, metric->definition, error, size)) {
        return false;
    }
    /* Many programs print everything on both: the second is for those that print on it alone. */
    searched = search_file(&search, files->output) &&
               (values->count > 0 || search_file(&search, files->errors));
    if (searched && values->count == 0) {
        say_none(&search, metric->definition);
    }
    ab_expression_free(&search.expression);
    free(search.other);
    return searched && values->count > 0;
}
