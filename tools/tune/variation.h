/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_TUNE_VARIATION_H
#define CUDAPOLICY_TOOLS_TUNE_VARIATION_H

/*
 * Other values in the text of a policy. What nobody asked to change - comments, blanks, line ends,
 * other keys - stays as the user wrote it, byte for byte.
 */

#include <stddef.h>

#include "policy/policy.h"

/* A value for a key of a section. */
struct variation_choice {
    enum policy_section section;
    const char *name, *key, *value;
};

/*
 * The text with these choices made, to be freed. The value stands in the place of the key's first
 * one; further lines of the key go, but for their comments; a key that is not there is added after
 * the section's last one. [tune] goes, from its header to its last key. text has to be a policy
 * without errors; a section that it does not have is passed over.
 */
char *variation_text(const char *text, size_t length, const struct variation_choice *choices,
                     size_t count, size_t *result_length);

#endif
