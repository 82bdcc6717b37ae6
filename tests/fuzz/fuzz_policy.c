/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the policy language. The input is the text of a policy. Whatever it is, it is read
 * without a fault; it is refused exactly when there is an error; the end of its lines does not
 * matter; and the canonical form of one that is accepted is read as the same policy.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/test_policy_same.h"
#include "policy/combine.h"
#include "policy/print.h"
#include "policy/site.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process where it can be seen which property does not hold. */
static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_diagnostics(struct policy_diagnostics *diagnostics)
{
    size_t errors = 0, warnings = 0;
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);

    must(stream != NULL);
    policy_diagnostics_print(diagnostics, stream);
    must(fclose(stream) == 0);
    for (size_t i = 0; i < diagnostics->count; i++) {
        const struct policy_diagnostic *item = &diagnostics->items[i];

        errors += item->severity == POLICY_ERROR;
        warnings += item->severity == POLICY_WARNING;
        must(i == 0 || item->place.line >= item[-1].place.line);
        must(item->message[0] != '\0' && strchr(item->message, '\n') == NULL &&
             strchr(item->message, '\x1b') == NULL);
    }
    must(errors <= diagnostics->error_count && warnings <= diagnostics->warning_count);
    free(text);
}

static char *print(const struct policy *policy, size_t *length)
{
    char *text = NULL;
    FILE *stream = open_memstream(&text, length);

    must(stream != NULL);
    policy_print(stream, policy);
    must(fclose(stream) == 0);
    return text;
}

static void check_round_trip(const struct policy *policy)
{
    struct policy_diagnostics diagnostics = {0};
    size_t length, length_again;
    char *text = print(policy, &length);
    struct policy *again = policy_parse(text, length, "canonical", &diagnostics);

    must(again != NULL && same_policy(policy, again));
    char *text_again = print(again, &length_again);
    must(length == length_again && memcmp(text, text_again, length) == 0);
    free(text_again);
    policy_free(again);
    policy_diagnostics_release(&diagnostics);
    free(text);
}

/* The same text with \r\n for \n has the same errors and warnings. */
static void check_line_ends(const uint8_t *data, size_t size,
                            const struct policy_diagnostics *first)
{
    struct policy_diagnostics diagnostics = {0};
    char *text = malloc(2 * size + 1);
    size_t length = 0;

    must(text != NULL);
    for (size_t i = 0; i < size; i++) {
        if (data[i] == '\n') {
            text[length++] = '\r';
        }
        text[length++] = (char)data[i];
    }
    policy_free(policy_parse(text, length, "crlf", &diagnostics));
    must(diagnostics.error_count == first->error_count &&
         diagnostics.warning_count == first->warning_count);
    policy_diagnostics_release(&diagnostics);
    free(text);
}

/* The same text as a site's file, around a job's policy: what is accepted keeps all its rules. */
static void check_as_site(const uint8_t *data, size_t size)
{
    static const char job_text[] =
        "[policy]\nversion = 1\n[partition p]\nsm_count = 25%\n[kernel k]\npartition = p\n"
        "[stream s]\nlocality_domain = 1\n";
    struct policy_diagnostics diagnostics = {0};
    struct policy *site = policy_site_parse((const char *)data, size, "site", &diagnostics);
    struct policy *job, *combined;

    must((site == NULL) == (diagnostics.error_count != 0));
    check_diagnostics(&diagnostics);
    policy_diagnostics_release(&diagnostics);
    if (site == NULL) {
        return;
    }
    must(site->site != NULL);
    job = policy_parse(job_text, sizeof job_text - 1, "job", &diagnostics);
    combined = policy_combine(site, job, &diagnostics);
    must((combined == NULL) == (diagnostics.error_count != 0));
    must(combined == NULL || combined->rule_count == site->rule_count + 2);
    if (combined == NULL) {
        policy_free(site);
        policy_free(job);
    }
    policy_free(combined);
    policy_diagnostics_release(&diagnostics);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct policy_diagnostics diagnostics = {0};
    struct policy *policy = policy_parse((const char *)data, size, "fuzz", &diagnostics);

    must((policy == NULL) == (diagnostics.error_count != 0));
    check_diagnostics(&diagnostics);
    if (policy != NULL) {
        check_round_trip(policy);
    }
    if (size == 0 || memchr(data, '\r', size) == NULL) {
        check_line_ends(data, size, &diagnostics);
    }
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
    check_as_site(data, size);
    return 0;
}
