/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_JSON_PARTS_H
#define CUDAPOLICY_REPORT_JSON_PARTS_H

/* The parts of a report that are made from cells; for json.c. What json.h says of NULL holds here.
 */

#include "report/json.h"

/* Launches of one kernel at which one setting met one fate. */
struct report_setting_sum {
    uint32_t kernel;
    uint16_t setting, rule;
    uint8_t outcome, reason;
    uint32_t detail;
    uint64_t launches[REPORT_LAUNCH_KIND_COUNT];
};

/* All of them that have launches, ordered by kernel, setting, rule, outcome, reason and detail;
 * *count of them, to be freed. NULL when memory ran out. */
struct report_setting_sum *report_setting_sums(const struct report_view *view, size_t *count);

uint64_t report_launch_sum(const uint64_t launches[REPORT_LAUNCH_KIND_COUNT]);
void report_launch_add(uint64_t sum[REPORT_LAUNCH_KIND_COUNT],
                       const uint64_t launches[REPORT_LAUNCH_KIND_COUNT]);

/* A rule, or nothing, decided about this setting. */
bool report_result_decided(const struct report_result *result);

/* An object of launches by kind. */
json_t *report_json_kinds(const uint64_t launches[REPORT_LAUNCH_KIND_COUNT]);

/* An object with "setting", "rule_section", "rule", "outcome" and "reason". */
json_t *report_json_result(struct report_view *view, size_t setting,
                           const struct report_result *result);

/* Adds the layer of a rule to an object, where it is not the job's. Takes the object, and returns
 * it; NULL when memory ran out. */
json_t *report_json_add_layer(json_t *object, struct report_view *view, const char *key,
                              const struct report_rule_row *row);

/* "rules". */
json_t *report_json_rules(struct report_view *view, const struct report_setting_sum *sums,
                          size_t count);
/* Adds "kernels" and "unmatched". False when memory ran out. */
bool report_json_add_kernels(json_t *report, struct report_view *view,
                             const struct report_setting_sum *sums, size_t count);

#endif
