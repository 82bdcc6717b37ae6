/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_TUNE_TUNE_EXPORT_H
#define CUDAPOLICY_TOOLS_TUNE_TUNE_EXPORT_H

/* A search in files. JSON has everything; Markdown the answer, the search and the confirmation;
 * CSV and HTML are those of ab, of the confirmation, or where there was none, of the search's last
 * round by processes. */

#include <stdbool.h>
#include <stdio.h>

#include "export.h"
#include "search.h"

/* Whether there is anything to write in this format. */
bool tune_export_has(const struct search_result *result, enum ab_format format);

void tune_export(const struct search *search, const struct search_result *result,
                 enum ab_format format, FILE *stream);

#endif
