/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_UNMATCHED_H
#define CUDAPOLICY_TOOLS_UNMATCHED_H

/* Why a rule came to nothing in a run: what to say of it, and the kernels it may have meant. */

#include <stddef.h>

#include "policy/policy.h"
#include "results.h"

enum {
    UNMATCHED_NEAREST = 3,
    UNMATCHED_RULES = 20, /* of a policy, for which it is worth the time to look for the nearest */
    UNMATCHED_MEASURED = 1000, /* kernels whose names are compared edit by edit */
};

struct unmatched_kernel {
    const char *text; /* the name, in the form in which it would have matched or is nearest */
    const char *form; /* name, signature, mangled */
    const char *library;
    bool matches; /* in this form the rule's pattern would have matched */
};

struct unmatched {
    char reason[600]; /* one line */
    size_t nearest_count;
    struct unmatched_kernel nearest[UNMATCHED_NEAREST];
    char *texts[UNMATCHED_NEAREST]; /* memory of the above */
};

/* rule: of the policy under which the results came about; NULL when the policy is not at hand.
 * nearest: whether to look for the nearest kernels. */
void unmatched_explain(const struct policy_rule *rule, const struct results *results, bool nearest,
                       struct unmatched *unmatched);

void unmatched_release(struct unmatched *unmatched);

#endif
