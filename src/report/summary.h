/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_SUMMARY_H
#define CUDAPOLICY_REPORT_SUMMARY_H

/*
 * The short table at the end of a run: what each rule did, and which rules matched nothing. Made
 * from a report of any origin: members that are missing or of another type read as 0 or "". Not for
 * the launch path, nor for the preloaded library: the part of jansson that reads, which this needs,
 * is not position-independent in Debian's static archive.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

/* What to say about a rule that matched nothing ("nearest kernels: …"), into text[size]; false when
 * there is nothing to say. rule is its object in the report. */
typedef bool (*report_summary_hint)(const json_t *report, const json_t *rule, char *text,
                                    size_t size, void *context);

/* hint may be NULL. False when stream could not be written to, or memory ran out. */
bool report_summary_print(const json_t *report, FILE *stream, report_summary_hint hint,
                          void *context);

/* Reads a JSON report; NULL with a message in error[size] when it is not one of a schema that is
 * known here. The caller gives the reference back. */
json_t *report_load(const char *path, char *error, size_t size);

#endif
