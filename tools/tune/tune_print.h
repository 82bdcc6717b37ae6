/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_TUNE_TUNE_PRINT_H
#define CUDAPOLICY_TOOLS_TUNE_TUNE_PRINT_H

/* What a search found, for a person and as JSON. */

#include <jansson.h>
#include <stdio.h>

#include "search.h"

/* Before anything runs: what is tried, and what is left out and why. */
void tune_print_space(const struct search *search, FILE *stream);

/* After a round of the search: its candidates as they are sorted, best first. No verdicts: the
 * search shows nothing. */
void tune_print_round(const struct search *search, const struct search_result *result,
                      const size_t *candidates, size_t count, FILE *stream);

/* Afterwards: the answer, the figures of search and confirmation, and how much of the search's
 * figure was luck. */
void tune_print_result(const struct search *search, const struct search_result *result,
                       FILE *stream);

json_t *tune_result_json(const struct search *search, const struct search_result *result);

#endif
