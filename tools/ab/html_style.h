/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_HTML_STYLE_H
#define CUDAPOLICY_TOOLS_AB_HTML_STYLE_H

/* How the page looks: its style sheet, and the marks by which arms are told apart. */

#include <stdio.h>

#include "experiment.h"

/* The style sheet, without <style>. */
extern const char html_style_sheet[];

/* Shapes that <use href="#..."> refers to, in an SVG that is not seen: 0 to 4, a cross (x) and a
 * ring (o). Their ids begin with 's', and are smaller for very many runs; or with 'k', for text and
 * where there is one mark a row. */
void html_style_marks(FILE *stream, size_t run_count);

/* Classes for the arm's colour, and its shape: "a2", '1'. Colours and shapes go round at different
 * lengths, so that 35 candidates have each their own pair. */
struct html_mark {
    char colour[12], shape;
};
struct html_mark html_style_mark(const struct ab_experiment *experiment, size_t arm);

#endif
