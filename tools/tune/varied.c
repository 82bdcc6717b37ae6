/* SPDX-License-Identifier: Apache-2.0 */
#include "varied.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "memory.h"
#include "policy/print.h"
#include "printable.h"
#include "variation.h"

static const char key[] = "\n[tune]\nvary = ";

static void add(struct varied *varied, const struct policy_variation *variation)
{
    for (size_t i = 0; i < varied->count; i++) {
        const struct policy_variation *other = &varied->variations[i];

        if (other->section == variation->section && strcmp(other->name, variation->name) == 0 &&
            strcmp(other->key, variation->key) == 0) {
            varied->variations[i] = *variation;
            return;
        }
    }
    varied->variations = memory_grow(varied->variations, varied->count, &varied->capacity,
                                     sizeof *varied->variations);
    varied->variations[varied->count++] = *variation;
}

/* The policy with this word as the only line of [tune]. */
static char *text_with(const char *text, size_t length, const char *word, size_t *result_length)
{
    char *plain = variation_text(text, length, NULL, 0, &length), *result = NULL;
    FILE *stream = open_memstream(&result, result_length);

    fwrite(plain, 1, length, stream);
    fputs(key, stream);
    policy_text_print(stream, word);
    fputc('\n', stream);
    fclose(stream);
    free(plain);
    return result;
}

static void report(const char *word, struct policy_diagnostics *diagnostics)
{
    char *name = printable_copy(word);

    policy_diagnostics_sort(diagnostics);
    for (size_t i = 0; i < diagnostics->count; i++) {
        if (diagnostics->items[i].severity == POLICY_ERROR) {
            command_error("--vary '%s': %s", name, diagnostics->items[i].message);
        }
    }
    free(name);
}

static bool read_word(struct varied *varied, const char *text, size_t length, const char *word)
{
    struct policy_diagnostics diagnostics;
    struct policy *policy;
    char *whole;
    bool good;

    /* A line end would begin another line of the policy. */
    for (const char *byte = word; *byte != '\0'; byte++) {
        if ((unsigned char)*byte < ' ') {
            char *name = printable_copy(word);

            command_error("--vary '%s': there is a control character in it", name);
            free(name);
            return false;
        }
    }
    policy_diagnostics_init(&diagnostics);
    diagnostics.errors_only = true;
    whole = text_with(text, length, word, &length);
    policy = policy_parse(whole, length, "--vary", &diagnostics);
    good = policy != NULL && policy->variation_count == 1;
    if (good) {
        varied->policies = memory_grow(varied->policies, varied->policy_count,
                                       &varied->policy_capacity, sizeof *varied->policies);
        varied->policies[varied->policy_count++] = policy;
        add(varied, &policy->variations[0]);
    } else {
        report(word, &diagnostics);
        policy_free(policy);
    }
    policy_diagnostics_release(&diagnostics);
    free(whole);
    return good;
}

bool varied_read(struct varied *varied, const struct policy *base, const char *text, size_t length,
                 const char *const *words, size_t count)
{
    bool good = true;

    *varied = (struct varied){0};
    for (size_t i = 0; i < base->variation_count; i++) {
        add(varied, &base->variations[i]);
    }
    for (size_t i = 0; i < count; i++) {
        good = read_word(varied, text, length, words[i]) && good;
    }
    return good;
}

void varied_release(struct varied *varied)
{
    for (size_t i = 0; i < varied->policy_count; i++) {
        policy_free(varied->policies[i]);
    }
    free(varied->policies);
    free(varied->variations);
    *varied = (struct varied){0};
}
