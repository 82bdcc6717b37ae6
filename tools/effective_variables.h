/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_EFFECTIVE_VARIABLES_H
#define CUDAPOLICY_TOOLS_EFFECTIVE_VARIABLES_H

/* What a job's policy says beside its rules, as it would be for a program started from here. */

#include <jansson.h>
#include <stdbool.h>

#include "policy/policy.h"

/* policy: with the site's around it. Variables with the value that the program would have and where
 * it comes from, then conditions; nothing where there is neither. */
void effective_variables_print(const struct policy *policy, bool wide);

/* Adds them to the object: "variables" and "expectations". */
void effective_variables_json(const struct policy *policy, json_t *object);

#endif
