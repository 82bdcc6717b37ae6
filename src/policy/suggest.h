/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which known word did somebody mean? For messages about misspelt keys, values and kernel names.
 * Nothing here allocates or locks; not for the launch path, since the work is quadratic in the
 * length of the words.
 */
#ifndef CUDAPOLICY_POLICY_SUGGEST_H
#define CUDAPOLICY_POLICY_SUGGEST_H

#include <stddef.h>

enum {
    /* Of longer words only the beginning is compared, which keeps the work and the stack (4 KiB)
     * small.  */
    SUGGEST_LENGTH_LIMIT = 256,
};

/*
 * The number of single-byte insertions, deletions, replacements and exchanges of neighbours that
 * turn `left` into `right` (no byte is edited twice).
 */
size_t suggest_distance(const char *left, const char *right);

/*
 * The same for a pattern in the language of policy/glob.h: how many edits of the text, or of the
 * pattern's elements, make the pattern match. 0 if it matches. What follows a malformed element
 * is left out.
 */
size_t suggest_glob_distance(const char *pattern, const char *text);

/* How many edits a pattern and a text may be apart and still be near: those of suggest_nearest. */
size_t suggest_glob_limit(const char *pattern);

/*
 * The candidate nearest to `word`, the first of equals; NULL if none is near enough to be meant.
 * Near enough: at most one edit for every three bytes of the word, and at least one is allowed; but
 * a candidate that shares nothing with the word is never near.
 */
const char *suggest_nearest(const char *word, const char *const *candidates, size_t count);

/* The same for a pattern that matched nothing. Its stars do not count as bytes. */
const char *suggest_nearest_to_glob(const char *pattern, const char *const *candidates,
                                    size_t count);

#endif
