/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_SAME_OUTPUT_H
#define CUDAPOLICY_TOOLS_AB_SAME_OUTPUT_H

/*
 * --same-output: what the runs of all arms must agree on. The first successful run of the baseline
 * is the reference. Numbers are compared with a tolerance, everything else as text; blanks are
 * equal however many there are, so that a number may take more room. NaN equals NaN.
 *
 * Files and lines may be of any size; what of the reference is needed is kept in a temporary file.
 */

#include <stdbool.h>
#include <stddef.h>

struct ab_same_output;

/* definition: a path of a file that each run writes ("FILE", may contain {arm}), or "/REGEX/" for
 * what matches in lines of standard output, the first match of each. relative and absolute:
 * tolerance of numbers, |a - b| <= absolute + relative * |reference|; 0: equal. A file that is no
 * text is compared byte by byte, which needs a tolerance of 0.
 * NULL with a message in error[size] when the expression is wrong. */
struct ab_same_output *ab_same_output_new(const char *definition, double relative, double absolute,
                                          char *error, size_t size);

enum ab_same {
    AB_SAME,
    AB_DIFFERENT,      /* error says where: line, both values, the difference */
    AB_SAME_NO_OUTPUT, /* nothing to compare: nothing matched, no file, no text: error says so */
};

/* Before a run: marks a file that is still there from an earlier one by an old time of change, so
 * that a run which does not write it is found out. */
void ab_same_output_before(struct ab_same_output *same, const char *folder, const char *arm);

/* Takes what a run left as the reference, or compares it with that. output: its standard output;
 * folder: where relative paths begin. */
enum ab_same ab_same_output_check(struct ab_same_output *same, const char *output,
                                  const char *folder, const char *arm, bool reference, char *error,
                                  size_t size);

void ab_same_output_free(struct ab_same_output *same);

#endif
