/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_DECIMAL_H
#define CUDAPOLICY_TOOLS_AB_DECIMAL_H

/* Numbers as programs print them: sign, digits with a decimal point, exponent. Whatever the locale
 * is. */

#include <stdbool.h>
#include <stddef.h>

/* How many bytes at the beginning of text are a number; 0: none. */
size_t ab_decimal_scan(const char *text, size_t length, double *value);

/* The text as a whole, blanks around it aside. Commas are taken for thousands separators where they
 * stand as such: 1,234.5, but not 1,5. False when it is no number, nan and inf among them, or none
 * that a double can hold. */
bool ab_decimal_read(const char *text, size_t length, double *value);

#endif
