/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_EXPORT_FORMATS_H
#define CUDAPOLICY_TOOLS_AB_EXPORT_FORMATS_H

/* The formats of export.h, one file each. */

#include <jansson.h>
#include <stdio.h>

#include "analysis.h"
#include "experiment.h"

/* Format, version, experiment, runs, analysis: enough to analyse it again. */
json_t *ab_export_json(const struct ab_experiment *experiment, const struct ab_analysis *analysis);

/* RFC 4180: a row a run, warm-up runs and failed ones included. */
void ab_export_csv(const struct ab_experiment *experiment, FILE *stream);

/* Tables in the dialect of GitHub. */
void ab_export_markdown(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                        FILE *stream);

#endif
