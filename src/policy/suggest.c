/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/suggest.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "policy/glob.h"

/*
 * One table serves words and patterns: a word is a pattern without special elements. Its rows are
 * the elements of the pattern, its columns the bytes of the text, and only three rows are ever
 * needed: the one being filled, the one before it, and one more for exchanged neighbours.
 */
typedef uint16_t row[SUGGEST_LENGTH_LIMIT + 1];

struct pattern {
    const char *elements[SUGGEST_LENGTH_LIMIT];
    size_t count;
    bool literal; /* every byte stands for itself */
};

static void split(struct pattern *pattern, const char *text, bool literal)
{
    pattern->count = 0;
    pattern->literal = literal;
    while (*text != '\0' && pattern->count < SUGGEST_LENGTH_LIMIT) {
        pattern->elements[pattern->count++] = text;
        text = literal ? text + 1 : glob_element_end(text);
        if (text == NULL) {
            pattern->count--;
            return;
        }
    }
}

static bool is_star(const struct pattern *pattern, size_t index)
{
    return !pattern->literal && *pattern->elements[index] == '*';
}

static bool stands_for(const struct pattern *pattern, size_t index, char byte)
{
    const char *element = pattern->elements[index];

    return pattern->literal ? *element == byte : glob_element_matches(element, (unsigned char)byte);
}

static uint16_t least(uint16_t left, uint16_t right)
{
    return left < right ? left : right;
}

/* Whether the two elements up to `index` are the two bytes up to text[column], exchanged. */
static bool exchanged(const struct pattern *pattern, size_t index, const char *text, size_t column)
{
    return index > 0 && column > 0 && !is_star(pattern, index) && !is_star(pattern, index - 1) &&
           stands_for(pattern, index, text[column - 1]) &&
           stands_for(pattern, index - 1, text[column]);
}

static size_t distance(const struct pattern *pattern, const char *text)
{
    row rows[3];
    uint16_t *before_last = rows[0];
    uint16_t *last = rows[1];
    uint16_t *current = rows[2];
    size_t length = strnlen(text, SUGGEST_LENGTH_LIMIT);

    for (size_t column = 0; column <= length; column++) {
        last[column] = (uint16_t)column;
    }
    for (size_t index = 0; index < pattern->count; index++) {
        bool star = is_star(pattern, index);
        uint16_t *spare = before_last;

        current[0] = (uint16_t)(last[0] + (star ? 0 : 1));
        for (size_t column = 0; column < length; column++) {
            uint16_t best;

            if (star) { /* the star ends here, or takes one byte more: free either way */
                current[column + 1] = least(last[column + 1], current[column]);
                continue;
            }
            best = (uint16_t)(last[column] + (stands_for(pattern, index, text[column]) ? 0 : 1));
            best = least(best, (uint16_t)(least(last[column + 1], current[column]) + 1));
            if (exchanged(pattern, index, text, column)) {
                best = least(best, (uint16_t)(before_last[column - 1] + 1));
            }
            current[column + 1] = best;
        }
        before_last = last;
        last = current;
        current = spare;
    }
    return last[length];
}

size_t suggest_distance(const char *left, const char *right)
{
    struct pattern pattern;

    split(&pattern, left, true);
    return distance(&pattern, right);
}

size_t suggest_glob_distance(const char *pattern, const char *text)
{
    struct pattern parsed;

    split(&parsed, pattern, false);
    return distance(&parsed, text);
}

static size_t limit_of(const struct pattern *pattern)
{
    size_t weight = 0; /* what has to be there: everything but the stars */
    size_t limit;

    for (size_t index = 0; index < pattern->count; index++) {
        weight += is_star(pattern, index) ? 0 : 1;
    }
    limit = weight / 3 > 0 ? weight / 3 : 1;
    /* With as many edits as there are bytes, a word becomes any other of its length. */
    return limit < weight ? limit : weight > 0 ? weight - 1 : 0;
}

size_t suggest_glob_limit(const char *pattern)
{
    struct pattern parsed;

    split(&parsed, pattern, false);
    return limit_of(&parsed);
}

static const char *nearest(const struct pattern *pattern, const char *const *candidates,
                           size_t count)
{
    size_t best_distance = limit_of(pattern) + 1;
    const char *best = NULL;

    for (size_t index = 0; index < count; index++) {
        size_t candidate_distance = distance(pattern, candidates[index]);

        if (candidate_distance < best_distance) {
            best_distance = candidate_distance;
            best = candidates[index];
        }
    }
    return best;
}

const char *suggest_nearest(const char *word, const char *const *candidates, size_t count)
{
    struct pattern pattern;

    split(&pattern, word, true);
    return nearest(&pattern, candidates, count);
}

const char *suggest_nearest_to_glob(const char *pattern, const char *const *candidates,
                                    size_t count)
{
    struct pattern parsed;

    split(&parsed, pattern, false);
    return nearest(&parsed, candidates, count);
}
