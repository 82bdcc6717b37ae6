/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_EXPLAIN_POLICY_H
#define CUDAPOLICY_TOOLS_EXPLAIN_POLICY_H

/* What a policy says beside its rules: variables of the environment, and what it expects. */

#include <jansson.h>
#include <stdio.h>

#include "policy/policy.h"

/* Nothing where there is neither. */
void explain_policy_print(const struct policy *policy, FILE *stream);

json_t *explain_environment_json(const struct policy *policy);
json_t *explain_expectations_json(const struct policy *policy);

#endif
