/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/hint.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "policy/suggest.h"

enum {
    HINT_WORD_LIMIT = 128, /* nothing that has a name in a policy is longer */
    HINT_CANDIDATE_LIMIT = 128,
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

/* suggest_nearest() allows one edit for three bytes of the word. A candidate whose length differs
 * by more cannot be near; leaving it out saves most of the work on a file full of mistakes.
 */
static const char *nearest_of_similar_length(const char *word, const char *const *candidates,
                                             size_t count)
{
    const char *similar[HINT_CANDIDATE_LIMIT];
    size_t length = strlen(word), similar_count = 0;

    if (length > HINT_WORD_LIMIT) {
        return NULL;
    }
    for (size_t i = 0; i < count && similar_count < HINT_CANDIDATE_LIMIT; i++) {
        size_t other = strlen(candidates[i]);
        size_t difference = other > length ? other - length : length - other;

        if (difference <= length / 3 + 1) {
            similar[similar_count++] = candidates[i];
        }
    }
    return suggest_nearest(word, similar, similar_count);
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
    if (nearest == NULL) {
        nearest = nearest_of_similar_length(word, candidates, count);
    }
    hint->text[0] = '\0';
    if (nearest != NULL) {
        snprintf(hint->text, sizeof hint->text, "; did you mean \"%.100s\"?", nearest);
    }
    return hint->text;
}
