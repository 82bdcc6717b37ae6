/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_TUNE_LIVE_SEARCH_H
#define CUDAPOLICY_TOOLS_TUNE_LIVE_SEARCH_H

/*
 * The search with arms that alternate inside one running job, by step, as in ab --live: what
 * differs from process to process is the same for all candidates. As many candidates as can
 * alternate make a batch, the baseline is in every batch. It only searches: what is confirmed is
 * confirmed by fresh runs.
 */

#include "search.h"

enum {
    LIVE_SEARCH_BATCH = POLICY_ARM_LIMIT - 1, /* candidates that alternate, beside the baseline */
};

enum live_search_end {
    LIVE_SEARCH_NOT,    /* not wanted or not possible, see why_not_live: search by processes */
    LIVE_SEARCH_MADE,   /* the candidates have their scores; or interrupted */
    LIVE_SEARCH_FAILED, /* it was insisted on, and it is not possible: the reason was printed */
};

/* Enters scores, and sorts the candidates, best first. */
enum live_search_end live_search_run(const struct search *search, size_t *candidates, size_t count,
                                     struct search_result *result);

#endif
