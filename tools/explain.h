/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_EXPLAIN_H
#define CUDAPOLICY_TOOLS_EXPLAIN_H

/* The decision of a policy on one kernel, for a person or as JSON. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "match.h"
#include "policy/policy.h"

void explain_print(const struct policy *policy, const struct match_facts *facts, bool wide,
                   FILE *stream);
json_t *explain_json(const struct policy *policy, const struct match_facts *facts);

#endif
