/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why not fnmatch(3): what it answers depends on the locale that the application happens to have
 * set, and a policy must mean the same in every program and in `cudapolicy explain`. With glibc
 * 2.36, fnmatch("?", "\303\251", 0) is a match under C.UTF-8 and none under C; sets compare by
 * the collation order of the locale; in a multibyte locale the text is first converted into wide
 * characters, in allocated memory when it is long, while another thread may be changing the locale.
 * It also takes an unclosed '[' for a plain byte, where a policy wants to hear of the mistake.
 * (Its time is not the reason: it remembers the last star only, as is done here.)
 */
#include "policy/glob.h"

#include <string.h>

static const char *const unclosed_set =
    "'[' without a closing ']' (write \\[ for the character itself)";
static const char *const trailing_backslash =
    "a backslash at the end escapes nothing (write \\\\ for the character itself)";
static const char *const reversed_range = "a range in a set must go upwards";

/* One member of a set: a byte or a range of bytes. */
struct set_member {
    unsigned char first;
    unsigned char last;
    const char *end; /* the first byte after it */
};

/* Reads the byte at `*cursor`, escaped or not, and moves behind it; false at the pattern's end. */
static bool read_byte(const char **cursor, unsigned char *byte)
{
    const char *at = *cursor;

    if (*at == '\\') {
        at++;
    }
    if (*at == '\0') {
        return false;
    }
    *byte = (unsigned char)*at;
    *cursor = at + 1;
    return true;
}

/* Reads the set member at `cursor`; false if the pattern ends inside it. */
static bool read_member(const char *cursor, struct set_member *member)
{
    if (!read_byte(&cursor, &member->first)) {
        return false;
    }
    member->last = member->first;
    /* A '-' just before the ']' is a member of its own, not half a range. */
    if (cursor[0] == '-' && cursor[1] != ']' && cursor[1] != '\0') {
        cursor++;
        if (!read_byte(&cursor, &member->last)) {
            return false;
        }
    }
    member->end = cursor;
    return true;
}

/* The first member of the set at `set` ('['), and whether the set is negated. */
static const char *set_begin(const char *set, bool *negated)
{
    *negated = set[1] == '!' || set[1] == '^';
    return set + (*negated ? 2 : 1);
}

/*
 * The first byte after the set at `set`, or NULL: then *why says what is wrong, and *where points
 * at it. The one place that knows how far a set reaches.
 */
static const char *set_end(const char *set, const char **why, const char **where)
{
    bool negated;
    struct set_member member;
    const char *cursor = set_begin(set, &negated);

    do { /* at least one member, so that a ']' that stands first is one */
        if (!read_member(cursor, &member)) {
            *why = unclosed_set;
            *where = set;
            return NULL;
        }
        if (member.first > member.last) {
            *why = reversed_range;
            *where = cursor;
            return NULL;
        }
        cursor = member.end;
    } while (*cursor != ']');
    return cursor + 1;
}

static bool set_contains(const char *set, unsigned char byte)
{
    bool negated;
    bool found = false;
    struct set_member member;
    const char *cursor = set_begin(set, &negated);

    do {
        if (!read_member(cursor, &member) || member.first > member.last) {
            return false;
        }
        found = found || (byte >= member.first && byte <= member.last);
        cursor = member.end;
    } while (*cursor != ']');
    return found != negated;
}

static const char *element_end(const char *element, const char **why, const char **where)
{
    if (*element == '[') {
        return set_end(element, why, where);
    }
    if (*element == '\\' && element[1] == '\0') {
        *why = trailing_backslash;
        *where = element;
        return NULL;
    }
    return element + (*element == '\\' ? 2 : 1);
}

const char *glob_element_end(const char *element)
{
    const char *why;
    const char *where;

    return element_end(element, &why, &where);
}

bool glob_element_matches(const char *element, unsigned char byte)
{
    switch (*element) {
    case '*':
    case '?':
        return true;
    case '[':
        return set_contains(element, byte);
    case '\\':
        return element[1] != '\0' && (unsigned char)element[1] == byte;
    default:
        return *element != '\0' && (unsigned char)*element == byte;
    }
}

const char *glob_error(const char *pattern, size_t *column)
{
    const char *cursor = pattern;

    while (*cursor != '\0') {
        const char *why;
        const char *where;
        const char *end = element_end(cursor, &why, &where);

        if (end == NULL) {
            if (column != NULL) {
                *column = (size_t)(where - pattern);
            }
            return why;
        }
        cursor = end;
    }
    return NULL;
}

/*
 * Only the last star is remembered: whatever an earlier one would have to give back, the last
 * one can take instead, since both take any bytes. So there is nothing to recurse into.
 */
bool glob_matches(const char *pattern, const char *text)
{
    const char *after_star = NULL; /* the pattern behind the last star */
    const char *star_text = NULL;  /* the first byte of text which that star does not cover */

    while (*text != '\0' || *pattern != '\0') {
        if (*pattern == '*') {
            after_star = ++pattern;
            star_text = text;
            if (*pattern == '\0') {
                return true;
            }
            continue;
        }
        if (*text != '\0' && *pattern != '\0' &&
            glob_element_matches(pattern, (unsigned char)*text)) {
            pattern = glob_element_end(pattern);
            if (pattern == NULL) {
                return false;
            }
            text++;
            continue;
        }
        if (after_star == NULL || *text == '\0') {
            return false;
        }
        pattern = after_star;
        text = ++star_text;
    }
    return true;
}
