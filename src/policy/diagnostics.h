/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_POLICY_DIAGNOSTICS_H
#define CUDAPOLICY_POLICY_DIAGNOSTICS_H

/* Errors and warnings about a policy file, each with its place. Not for the launch path. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Line and column count from 1, the column in bytes; line 0: the file as a whole. */
struct policy_place {
    uint32_t line, column;
};

enum policy_severity {
    POLICY_WARNING,
    POLICY_ERROR,
};

struct policy_diagnostic {
    enum policy_severity severity;
    struct policy_place place;
    char *message; /* one line, no newline; quotes the offending text */
};

struct policy_diagnostics {
    char *file; /* the file's name as given */
    size_t count, capacity;
    struct policy_diagnostic *items;
    size_t error_count, warning_count;
    bool unreadable;  /* there is no text that could be wrong: the file cannot be read */
    bool errors_only; /* set by the caller: warnings are not even looked for, which can take long */
};

enum {
    POLICY_DIAGNOSTIC_LIMIT = 1000, /* errors kept, and warnings; any more are counted only */
};

/* An empty list. Zeroed memory is one too. */
void policy_diagnostics_init(struct policy_diagnostics *diagnostics);

/* Adds one; the message is formatted and copied. When memory runs out the message is lost, but it
 * is counted, so an error never passes for success. */
void policy_diagnose(struct policy_diagnostics *diagnostics, enum policy_severity severity,
                     struct policy_place place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Sorts by place, then writes one line each, "file:line:column: error: message". */
void policy_diagnostics_print(struct policy_diagnostics *diagnostics, FILE *stream);

/* The same without "error: " and "warning: ", for who says so himself. */
void policy_diagnostics_print_bare(struct policy_diagnostics *diagnostics, FILE *stream);

/* Takes back all warnings but the first so many of the list. */
void policy_diagnostics_forget_warnings(struct policy_diagnostics *diagnostics, size_t kept);

/* Sorts by place; messages about one place keep their order. */
void policy_diagnostics_sort(struct policy_diagnostics *diagnostics);

/* Text of a policy as it may stand in a message: one line, shortened, with control characters and
 * bytes that are not UTF-8 written as \xNN, so that no file can send commands to a terminal. */
struct policy_quotation {
    char text[80];
};

/* Returns quotation->text. */
const char *policy_quote(struct policy_quotation *quotation, const char *text, size_t length);

void policy_diagnostics_release(struct policy_diagnostics *diagnostics);

#endif
