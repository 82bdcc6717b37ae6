/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_NUMBER_H
#define CUDAPOLICY_TOOLS_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Reads up to `dimensions` numbers separated by commas or 'x', each at least least and at most 2^31
 * - 1 (one alone: 2^32 - 1), and multiplies them. False when text is anything else. */
bool number_parse_product(const char *text, int dimensions, int64_t least, int64_t *product);

#endif
