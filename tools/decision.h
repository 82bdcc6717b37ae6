/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_DECISION_H
#define CUDAPOLICY_TOOLS_DECISION_H

/* What a policy decides for a kernel of which more or less is known: the verdict on each rule, and
 * where each setting comes from. */

#include "match.h"
#include "policy/policy.h"

/* Where one setting comes from. The first rule in file order that has a setting of a group decides
 * the group; rules that only perhaps match stand before it as alternatives. */
struct decision_source {
    const struct policy_rule *rule;           /* NULL: no rule for certain */
    const struct policy_setting_value *value; /* NULL: the rule decides the group without it */
    bool from_stream; /* set on the stream, by the stream rule that was given */
};

struct decision_rule {
    const struct policy_rule *rule;
    struct match_verdict verdict;
    bool reached;     /* false after a rule with final = yes that matches */
    unsigned perhaps; /* groups that it decides if it matches: 1 << enum policy_group */
    bool may_end;     /* it perhaps matches, and is final: later rules are then not reached */
};

struct decision {
    size_t rule_count; /* kernel rules, in file order */
    struct decision_rule *rules;
    struct decision_source sources[POLICY_SETTING_COUNT];
};

/* To be released with decision_release. stream_rule: by its name, NULL for none. */
void decision_make(const struct policy *policy, const struct match_facts *facts,
                   struct decision *decision);

void decision_release(struct decision *decision);

#endif
