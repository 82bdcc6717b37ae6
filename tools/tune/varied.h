/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_TUNE_VARIED_H
#define CUDAPOLICY_TOOLS_TUNE_VARIED_H

/* What is varied: by [tune] of the policy, and by --vary on the command line. */

#include <stdbool.h>
#include <stddef.h>

#include "policy/policy.h"

struct varied {
    size_t count, capacity;
    struct policy_variation *variations;
    size_t policy_count, policy_capacity;
    struct policy **policies; /* in which the strings of those from the command line are */
};

/* Those of base, which is the policy that text states, then the words: a word about a key that is
 * varied already takes its place. The words are read and checked as lines of [tune] are. False
 * after messages on stderr about words that are wrong. */
bool varied_read(struct varied *varied, const struct policy *base, const char *text, size_t length,
                 const char *const *words, size_t count);

void varied_release(struct varied *varied);

#endif
