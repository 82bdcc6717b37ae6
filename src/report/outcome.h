/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_OUTCOME_H
#define CUDAPOLICY_REPORT_OUTCOME_H

/* What became of a setting, and why: the list stands in outcome.def. */

enum report_outcome {
#define OUTCOME(symbol, text, meaning) REPORT_OUTCOME_##symbol,
#include "report/outcome.def"
#undef OUTCOME
    REPORT_OUTCOME_COUNT
};

enum report_reason {
#define REASON(symbol, text, meaning) REPORT_REASON_##symbol,
#include "report/outcome.def"
#undef REASON
    REPORT_REASON_COUNT
};

/* The text of the list; "?" for a number outside it. Any thread, launch path included. */
const char *report_outcome_text(unsigned outcome);
const char *report_reason_text(unsigned reason);

/* One line about it, for who reads a report; "?" for a number outside the list. Any thread. */
const char *report_outcome_meaning(unsigned outcome);
const char *report_reason_meaning(unsigned reason);

#endif
