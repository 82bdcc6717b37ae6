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
#include "decide/stream.h"

struct decide_stream_facts {
    enum decide_stream_kind kind;
    unsigned flags;
    int priority; /* asked for; 0 where the program did not ask */
    const char *library;
    int device;    /* -1: not known */
    int64_t index; /* -1: not known */
};

/* What the rules of the policy need to know. Written at the start, constant afterwards. */
struct decide_stream_needs {
    bool priority;   /* some rule for created streams sets a priority */
    bool merges;     /* some rule for default streams has a setting */
    bool partitions; /* some rule for created streams names a partition */
    struct {
        bool ruled; /* some rule matches streams of this kind */
        bool device, library;
    } kind[DECIDE_STREAM_UNKNOWN];
};
extern struct decide_stream_needs decide_stream_needs;

/* The mode of the process now: others may change it while it runs. */
static inline enum policy_mode decide_stream_mode(void)
{
    return (enum policy_mode)__atomic_load_n(&report_control_now()->part.mode, __ATOMIC_RELAXED);
}

/* The profile of a stream that no rule matched. */
extern const struct decide_stream_profile decide_stream_no_profile;

void decide_stream_rules_start(const struct policy *policy, const struct decide_process *process,
                               enum policy_mode mode);

/* Finds or makes the profile. May ask the driver about the device at its first sight. Locks. When
 * memory is short, the profile of no rule. */
const struct decide_stream_profile *
decide_stream_rules_match(const struct decide_stream_facts *facts);

#endif
