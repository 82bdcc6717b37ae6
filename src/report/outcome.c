/* SPDX-License-Identifier: Apache-2.0 */
#include "report/outcome.h"

#include <stddef.h>

struct entry {
    const char *text, *meaning;
};

static const struct entry outcomes[] = {
#define OUTCOME(symbol, text, meaning) {text, meaning},
#include "report/outcome.def"
#undef OUTCOME
};

static const struct entry reasons[] = {
#define REASON(symbol, text, meaning) {text, meaning},
#include "report/outcome.def"
#undef REASON
};

const char *report_outcome_text(unsigned outcome)
{
    return outcome < REPORT_OUTCOME_COUNT ? outcomes[outcome].text : "?";
}

const char *report_reason_text(unsigned reason)
{
    return reason < REPORT_REASON_COUNT ? reasons[reason].text : "?";
}

const char *report_outcome_meaning(unsigned outcome)
{
    return outcome < REPORT_OUTCOME_COUNT ? outcomes[outcome].meaning : "?";
}

const char *report_reason_meaning(unsigned reason)
{
    return reason < REPORT_REASON_COUNT ? reasons[reason].meaning : "?";
}
