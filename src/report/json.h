/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_JSON_H
#define CUDAPOLICY_REPORT_JSON_H

/*
 * A view as JSON, schema version 1: docs/report-format.md says what each member means.
 *
 * The library is jansson: small, kept for fifteen years and packaged everywhere, it keeps the order
 * of members, refuses text that is not UTF-8 instead of writing it, and its static archive links
 * into a shared object that needs libc alone, without a symbol newer than glibc 2.14. (json-c links
 * as well, but writes invalid UTF-8 as it comes.)
 */

#include <jansson.h>

#include "report/view.h"

enum { REPORT_JSON_SCHEMA = 1 };

/* A new reference; NULL when memory ran out. */
json_t *report_json(const struct report_view *view);

/* Text of any bytes as a JSON string: bytes that are not UTF-8 become \xNN, four characters each. A
 * new reference; NULL when memory ran out. */
json_t *report_json_text(const char *text);

/* A count, cut to what JSON readers take as an integer (2^63 - 1). */
json_t *report_json_count(uint64_t count);

/* Rows of settings and their outcomes, from cells and their launches (json_settings.c). */
struct report_setting_sum {
    uint32_t kernel;
    uint16_t setting, rule;
    uint8_t outcome, reason;
    uint32_t detail;
    uint64_t launches[REPORT_LAUNCH_KIND_COUNT];
};

/* All sums of cells with launches, by kernel, setting, rule, outcome, reason and detail, in that
 * order; *count of them, to be freed. NULL when memory ran out. */
struct report_setting_sum *report_setting_sums(const struct report_view *view, size_t *count);

/* The array "rules"; the object of launches by kind; the name of a rule as a JSON string, or null.
 * New references; NULL when memory ran out. */
json_t *report_json_rules(const struct report_view *view, const struct report_setting_sum *sums,
                          size_t count);
json_t *report_json_kinds(const uint64_t launches[REPORT_LAUNCH_KIND_COUNT]);

/* Adds "setting", "rule_section", "rule", "outcome", "reason" to an object. False when memory ran
 * out. */
bool report_json_add_result(json_t *object, const struct report_view *view, size_t setting,
                            const struct report_result *result);

uint64_t report_launch_sum(const uint64_t launches[REPORT_LAUNCH_KIND_COUNT]);

#endif
