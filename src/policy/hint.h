/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_POLICY_HINT_H
#define CUDAPOLICY_POLICY_HINT_H

/* "did you mean" for messages about a word that the policy language does not have. */

#include <stddef.h>

struct policy_hint {
    char text[128];
};

/* The end of a message, "; did you mean \"name\"?", or "" when no candidate is near. A candidate
 * that differs only in case, or in - for _, is near whatever its length. Returns hint->text. */
const char *policy_hint(struct policy_hint *hint, const char *word, const char *const *candidates,
                        size_t count);

#endif
