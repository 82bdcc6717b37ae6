/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_POLICY_ENVIRONMENT_H
#define CUDAPOLICY_TOOLS_POLICY_ENVIRONMENT_H

/* [env] of a policy, for a program that is about to be started. */

#include <stdio.h>

#include "environment.h"
#include "policy/policy.h"

/* Sets what [env] sets in this environment, which already has all that the user gave, and
 * CUDAPOLICY_MODE where something beats the policy's own mode. */
void policy_environment_apply(const struct policy *policy, struct environment *environment);

/* Prints what would be set in our own environment, a line "NAME=VALUE" each. */
void policy_environment_print(const struct policy *policy, FILE *stream);

#endif
