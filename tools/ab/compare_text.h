/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_COMPARE_TEXT_H
#define CUDAPOLICY_TOOLS_AB_COMPARE_TEXT_H

/* Whether two lines say the same: numbers with a tolerance, the rest as text. */

#include <stdbool.h>
#include <stddef.h>

struct ab_tolerance {
    double relative, absolute;
};

struct ab_text_difference {
    size_t first, second;               /* where, in each of the two */
    bool numbers;                       /* two numbers that are too far apart: */
    double first_number, second_number; /* perhaps NaN */
};

/* first is the reference. A number does not begin inside a word: sm_90 is text. Where there is a
 * number in both, blanks before it may be missing in one. */
bool ab_text_same(const char *first, size_t first_length, const char *second, size_t second_length,
                  const struct ab_tolerance *tolerance, struct ab_text_difference *difference);

#endif
