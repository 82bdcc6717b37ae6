/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_POLICY_EXPECT_H
#define CUDAPOLICY_POLICY_EXPECT_H

/* [expect]: what has to be so of a policy's rules when a process ends. Any thread; not for the
 * launch path. */

#include <stdbool.h>
#include <stddef.h>

#include "policy/policy.h"

enum {
    POLICY_EXPECTATION_TEXT_SIZE = 192, /* has room for every condition */
};

/* Whether a count is as the condition says. */
bool policy_expectation_holds(const struct policy_expectation *expectation, int64_t count);

/* "launches"; ">=". */
const char *policy_quantity_text(enum policy_quantity quantity);
const char *policy_comparison_text(enum policy_comparison comparison);

/* The condition as the policy language has it, "kernel small: launches >= 1". Returns text. */
const char *policy_expectation_text(const struct policy *policy,
                                    const struct policy_expectation *expectation, char *text,
                                    size_t size);

#endif
