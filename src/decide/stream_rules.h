/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_STREAM_RULES_H
#define CUDAPOLICY_DECIDE_STREAM_RULES_H

/*
 * From a stream's facts to its profile: which stream rules match, and which settings hold. Not for
 * the launch path, except for the constants.
 */

#include <stdbool.h>
#include <stdint.h>

#include "decide/decide.h"
#include "decide/rule_set.h"
#include "decide/stream.h"

struct decide_stream_facts {
    enum decide_stream_kind kind;
    unsigned flags;
    int priority; /* asked for; 0 where the program did not ask */
    const char *library;
    int device;    /* -1: not known */
    int64_t index; /* -1: not known */
};

/* The mode of the process now: others may change it while it runs. */
static inline enum policy_mode decide_stream_mode(void)
{
    return (enum policy_mode)__atomic_load_n(&report_control_now()->part.mode, __ATOMIC_RELAXED);
}

/* The profile of a stream that no rule matched. */
extern const struct decide_stream_profile decide_stream_no_profile;

/* Makes the lock anew. No other thread may exist. */
void decide_stream_rules_start(void);

/* Fills in the stream rules of a set. False when memory is short. */
bool decide_stream_rules_make(struct decide_rule_set *set, const struct policy *policy,
                              const struct decide_process *process, enum policy_mode mode);

/* Finds or makes the profile that the rules of a set give. May ask the driver about the device at
 * its first sight. Locks. When memory is short, the profile of no rule. */
const struct decide_stream_profile *
decide_stream_rules_match(const struct decide_rule_set *set,
                          const struct decide_stream_facts *facts);

#endif
