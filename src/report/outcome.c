/* SPDX-License-Identifier: Apache-2.0 */
#include "report/outcome.h"

#include <stddef.h>

static const char *const outcome_texts[] = {
#define OUTCOME(symbol, text) text,
#include "report/outcome.def"
#undef OUTCOME
};

static const char *const reason_texts[] = {
#define REASON(symbol, text) text,
#include "report/outcome.def"
#undef REASON
};

const char *report_outcome_text(unsigned outcome)
{
    return outcome < REPORT_OUTCOME_COUNT ? outcome_texts[outcome] : "?";
}

const char *report_reason_text(unsigned reason)
{
    return reason < REPORT_REASON_COUNT ? reason_texts[reason] : "?";
}
