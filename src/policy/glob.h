/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Globs: the pattern language of the selectors that take a name.
 *
 *   *        any bytes, none included; it crosses "::" and "/"
 *   ?        one byte
 *   [a-z_]   one byte of the set; [!...] or [^...] one byte outside it; a ']' that stands first
 *            belongs to the set
 *   \x       the byte x itself, inside a set too: operator\[\]
 *
 * Everything else stands for itself. A pattern covers the whole text. Bytes are compared as
 * unsigned values whatever the locale of the process is.
 *
 * No function here allocates, locks or recurses; all may run on the launch path.
 */
#ifndef CUDAPOLICY_POLICY_GLOB_H
#define CUDAPOLICY_POLICY_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether `pattern` covers all of `text`. Takes at most strlen(pattern) * strlen(text) steps.
 * From the place on that glob_error() complains about, a malformed pattern matches nothing.
 */
bool glob_matches(const char *pattern, const char *text);

/*
 * What is wrong with `pattern`: a sentence without capital and full stop, in static memory, with
 * the offset in bytes of the offending text in *column (from 0; NULL if not wanted). NULL if the
 * pattern is well formed; *column is then left alone.
 */
const char *glob_error(const char *pattern, size_t *column);

/*
 * For those who walk a pattern element by element. An element is a star, a question mark, a set,
 * an escaped byte or a plain byte. glob_element_end() gives the first byte after the element at
 * `element`, which must not be the end of the pattern; NULL if the element is malformed.
 * glob_element_matches() says whether the element at `element` stands for `byte`; a star and a
 * question mark stand for every byte, a malformed element for none.
 */
const char *glob_element_end(const char *element);
bool glob_element_matches(const char *element, unsigned char byte);

#endif
