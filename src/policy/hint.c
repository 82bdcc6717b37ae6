/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/hint.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "policy/suggest.h"

enum {
    HINT_WORD_LIMIT = 128, /* nothing that has a name in a policy is longer */
};

static char folded(char character)
{
    if (character >= 'A' && character <= 'Z') {
        return (char)(character - 'A' + 'a');
    }
    return character == '-' ? '_' : character;
}

static bool same_folded(const char *left, const char *right)
{
    while (*left != '\0' && folded(*left) == folded(*right)) {
        left++;
        right++;
    }
    return *left == '\0' && *right == '\0';
}

const char *policy_hint(struct policy_hint *hint, const char *word, const char *const *candidates,
                        size_t count)
{
    const char *nearest = NULL;

    for (size_t i = 0; i < count && nearest == NULL; i++) {
        if (same_folded(word, candidates[i])) {
            nearest = candidates[i];
        }
    }
    if (nearest == NULL && strlen(word) <= HINT_WORD_LIMIT) {
        nearest = suggest_nearest(word, candidates, count);
    }
    hint->text[0] = '\0';
    if (nearest != NULL) {
        snprintf(hint->text, sizeof hint->text, "; did you mean \"%.100s\"?", nearest);
    }
    return hint->text;
}
