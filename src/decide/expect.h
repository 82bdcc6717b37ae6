/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_EXPECT_H
#define CUDAPOLICY_DECIDE_EXPECT_H

/*
 * What a policy expects, judged by the report of one process: in the process itself at its end, and
 * by the command, also for processes that had no chance to. Allocates; not for the launch path.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "policy/policy.h"

struct decide_judgement {
    /* False: the rule's rank, local_rank, world_size and host leave this process out, so that
     * nothing is expected of it. */
    bool asked;
    bool held;     /* of what was asked */
    int64_t count; /* 0 where the report has no such rule */
};

/* report: of the format "cudapolicy report". Rules of the same kind and name, of which a process
 * has several when its policy was read again, count together. */
struct decide_judgement decide_expect_judge(const struct policy *policy,
                                            const struct policy_expectation *expectation,
                                            const json_t *report);

/* A member of "expectations" of a report: the condition and the judgement. NULL: no memory. */
json_t *decide_expect_json(const struct policy *policy,
                           const struct policy_expectation *expectation,
                           const struct decide_judgement *judgement);

#endif
