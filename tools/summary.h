/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_SUMMARY_H
#define CUDAPOLICY_TOOLS_SUMMARY_H

/* What a job did, as tables for a person or as JSON. Shared by run and report. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "policy/policy.h"
#include "results.h"

enum {
    SUMMARY_SCHEMA = 1,
};

struct summary_options {
    bool wide;    /* nothing is shortened */
    bool kernels; /* the table of kernels too */
};

/* Rules with what became of their settings, rules that matched nothing with the reason, notes of
 * the processes. policy: the one the processes ran under, or NULL when it is not at hand; then less
 * can be said of rules that matched nothing. */
void summary_print(const struct results *results, const struct policy *policy,
                   const struct summary_options *options, FILE *stream);

/* Its first line, and the table of kernels, alone. */
void summary_print_head(const struct results *results, FILE *stream);
void summary_print_kernels(const struct results *results, const struct summary_options *options,
                           FILE *stream);

/* The kernels with most launches first; an array of kernel_count pointers, to be freed. */
const struct results_kernel **summary_sorted_kernels(const struct results *results);

/* Whether any launch or stream had a setting of the rule; the rule in the policy, or NULL. */
bool summary_has_matched(const struct results_rule *rule);
const struct policy_rule *summary_policy_rule(const struct policy *policy,
                                              const struct results_rule *rule);

/* summary_json.c. The same as JSON; its parts "kernels" and "streams" alone. */
json_t *summary_json(const struct results *results, const struct policy *policy);

json_t *summary_outcomes_json(const struct results_outcomes *outcomes);
json_t *summary_kernels_json(const struct results *results);
json_t *summary_streams_json(const struct results *results);

/* The document of a whole job: its summary and the report of each process. */
json_t *summary_job_json(const struct results *results, const struct policy *policy);

#endif
