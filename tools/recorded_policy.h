/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_RECORDED_POLICY_H
#define CUDAPOLICY_TOOLS_RECORDED_POLICY_H

#include "policy/policy.h"
#include "results.h"

/* The policy that all processes ran under, when its file is where it was and as it was; else NULL,
 * without a message. To be freed with policy_free. */
struct policy *recorded_policy(const struct results *results);

#endif
