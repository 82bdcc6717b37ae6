/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TEST_POLICY_SUPPORT_H
#define CUDAPOLICY_TEST_POLICY_SUPPORT_H

/* What the tests of the policy language share. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy.h"

/* Two lines; what follows them is counted from line 3. */
#define POLICY_HEADER "[policy]\nversion = 1\n"
#define POLICY_HEADER_LINES 2u

/* All diagnostics as printed, for the message of a failed test. */
static inline const char *diagnostics_text(struct policy_diagnostics *diagnostics)
{
    static char text[8192];
    FILE *stream = fmemopen(text, sizeof text, "w");

    policy_diagnostics_print(diagnostics, stream);
    fclose(stream);
    return text;
}

static inline size_t severity_count(const struct policy_diagnostics *diagnostics,
                                    enum policy_severity severity)
{
    return severity == POLICY_ERROR ? diagnostics->error_count : diagnostics->warning_count;
}

/* The text has exactly one diagnostic of this severity, with this message, at this place (counted
 * in the text itself). An error makes the policy NULL; a warning does not. */
static inline void expect_in_text(const char *text, size_t length, enum policy_severity severity,
                                  unsigned line, unsigned column, const char *message)
{
    struct policy_diagnostics diagnostics = {0};
    struct policy *policy = policy_parse(text, length, "test.ini", &diagnostics);
    const struct policy_diagnostic *found = NULL;

    for (size_t i = 0; i < diagnostics.count; i++) {
        if (diagnostics.items[i].severity == severity) {
            found = &diagnostics.items[i];
        }
    }
    if (found == NULL || severity_count(&diagnostics, severity) != 1 || found->place.line != line ||
        found->place.column != column || strcmp(found->message, message) != 0) {
        fail_msg("expected test.ini:%u:%u: %s\n\tgot %s", line, column, message,
                 diagnostics_text(&diagnostics));
    }
    assert_true((policy == NULL) == (severity == POLICY_ERROR || diagnostics.error_count != 0));
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
}

/* The same for what follows [policy], with lines counted from there. */
static inline void expect_diagnostic(const char *body, enum policy_severity severity, unsigned line,
                                     unsigned column, const char *message)
{
    size_t length = strlen(POLICY_HEADER) + strlen(body);
    char *text = malloc(length + 1);

    assert_non_null(text);
    snprintf(text, length + 1, "%s%s", POLICY_HEADER, body);
    expect_in_text(text, length, severity, POLICY_HEADER_LINES + line, column, message);
    free(text);
}

static inline void expect_error(const char *body, unsigned line, unsigned column,
                                const char *message)
{
    expect_diagnostic(body, POLICY_ERROR, line, column, message);
}

static inline void expect_warning(const char *body, unsigned line, unsigned column,
                                  const char *message)
{
    expect_diagnostic(body, POLICY_WARNING, line, column, message);
}

/* The text is a policy with neither error nor warning. */
static inline struct policy *expect_clean_text(const char *text, size_t length)
{
    struct policy_diagnostics diagnostics = {0};
    struct policy *policy = policy_parse(text, length, "test.ini", &diagnostics);

    if (policy == NULL || diagnostics.error_count != 0 || diagnostics.warning_count != 0) {
        fail_msg("expected no diagnostics, got %s", diagnostics_text(&diagnostics));
    }
    policy_diagnostics_release(&diagnostics);
    return policy;
}

static inline struct policy *expect_clean(const char *body)
{
    size_t length = strlen(POLICY_HEADER) + strlen(body);
    char *text = malloc(length + 1);

    assert_non_null(text);
    snprintf(text, length + 1, "%s%s", POLICY_HEADER, body);
    struct policy *policy = expect_clean_text(text, length);
    free(text);
    return policy;
}

/* One kernel rule `k` with a setting, and these lines in it. */
static inline struct policy *expect_clean_kernel(const char *lines)
{
    size_t length = strlen(lines) + 64;
    char *body = malloc(length);

    assert_non_null(body);
    snprintf(body, length, "[kernel k]\npriority = 0\n%s\n", lines);
    struct policy *policy = expect_clean(body);
    free(body);
    assert_int_equal(policy->rule_count, 1);
    return policy;
}

static inline struct policy *expect_clean_stream(const char *lines)
{
    size_t length = strlen(lines) + 64;
    char *body = malloc(length);

    assert_non_null(body);
    snprintf(body, length, "[stream s]\npriority = 0\n%s\n", lines);
    struct policy *policy = expect_clean(body);
    free(body);
    assert_int_equal(policy->rule_count, 1);
    return policy;
}

#endif
