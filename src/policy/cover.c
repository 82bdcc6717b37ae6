/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Does one pattern match all that another matches? The second is taken as a text of elements, and
 * the first is matched against them: its star takes any elements, its question mark any one element
 * that stands for one byte, its byte or set an element that stands for no other byte. That proves
 * containment, and it misses some cases, in which the answer is no.
 */

#include <string.h>

#include "policy/glob.h"
#include "policy/parser.h"

bool policy_glob_is_everything(const char *pattern)
{
    return pattern[0] != '\0' && pattern[strspn(pattern, "*")] == '\0';
}

static bool same_element(const char *left, const char *left_end, const char *right,
                         const char *right_end)
{
    size_t length = (size_t)(left_end - left);

    return length == (size_t)(right_end - right) && memcmp(left, right, length) == 0;
}

/* The byte that an element stands for when it stands for exactly one; false otherwise. */
static bool plain_byte(const char *element, const char *end, unsigned char *byte)
{
    if (end - element == 1 && *element != '*' && *element != '?') {
        *byte = (unsigned char)element[0];
        return true;
    }
    if (end - element == 2 && element[0] == '\\') {
        *byte = (unsigned char)element[1];
        return true;
    }
    return false;
}

static bool element_covers(const char *element, const char *end, const char *covered,
                           const char *covered_end)
{
    unsigned char byte;

    if (*covered == '*') {
        return false;
    }
    if (*element == '?') {
        return true;
    }
    if (plain_byte(covered, covered_end, &byte)) {
        return glob_element_matches(element, byte);
    }
    return same_element(element, end, covered, covered_end);
}

static bool glob_covers(const char *pattern, const char *covered, size_t *steps)
{
    const char *retry_pattern = NULL, *retry_covered = NULL;

    while (*covered != '\0') {
        const char *covered_end = glob_element_end(covered);
        const char *end = *pattern != '\0' ? glob_element_end(pattern) : NULL;

        if (*steps == 0 || covered_end == NULL || (end == NULL && *pattern != '\0')) {
            return false;
        }
        --*steps;
        if (*pattern == '*') {
            /* The star takes nothing at first; one element more at each retry. */
            retry_pattern = end;
            retry_covered = covered;
            pattern = end;
        } else if (end != NULL && element_covers(pattern, end, covered, covered_end)) {
            pattern = end;
            covered = covered_end;
        } else if (retry_pattern != NULL) {
            retry_covered = glob_element_end(retry_covered);
            pattern = retry_pattern;
            covered = retry_covered;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

bool policy_pattern_covers(const char *pattern, const char *covered, bool is_name, size_t *steps)
{
    /* So that many long patterns cost as much as they take to look at. */
    size_t cost = 1 + (strlen(pattern) + strlen(covered)) / 16;

    if (*steps < cost) {
        *steps = 0;
        return false;
    }
    *steps -= cost;
    /* Without ::, a pattern is also compared with a name's last component alone; one with :: is
     * not, whatever its text matches. */
    if (is_name && strstr(pattern, "::") != NULL && strstr(covered, "::") == NULL) {
        return false;
    }
    return glob_covers(pattern, covered, steps);
}
