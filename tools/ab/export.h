/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_EXPORT_H
#define CUDAPOLICY_TOOLS_AB_EXPORT_H

/* An experiment and its analysis in files: the format by the file's suffix. */

#include <stdbool.h>
#include <stdio.h>

#include "analysis.h"
#include "experiment.h"

enum ab_format {
    AB_FORMAT_JSON,     /* everything: experiment, runs, analysis */
    AB_FORMAT_CSV,      /* a row a run */
    AB_FORMAT_MARKDOWN, /* the tables of ab_print */
    AB_FORMAT_HTML,     /* html.c: one self-contained page with plots, light and dark */
};

/* By suffix: .json, .csv, .md, .html. */
bool ab_format_of(const char *path, enum ab_format *format);

void ab_export(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
               enum ab_format format, FILE *stream);

/* html.c */
void ab_export_html(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                    FILE *stream);

/* The analysis as JSON. */
json_t *ab_analysis_json(const struct ab_experiment *experiment,
                         const struct ab_analysis *analysis);

#endif
