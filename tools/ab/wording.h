/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_WORDING_H
#define CUDAPOLICY_TOOLS_AB_WORDING_H

/*
 * Numbers and words of an experiment, the same on the terminal, in Markdown and on the page. A
 * number that is not there is "-", never invented and never "nan". Functions that return char *
 * return text to be freed.
 */

#include <stdbool.h>
#include <stddef.h>

#include "analysis.h"
#include "experiment.h"

struct ab_text {
    char text[96];
};

/* How values of a metric are shown beside each other: times in s, ms, µs or ns. */
struct ab_scale {
    double factor;
    char unit[24]; /* "": not known */
    int decimals;
};

/* So that value reads well and two figures of deviation (NaN: not known) are seen. */
struct ab_scale ab_scale_of(const struct ab_metric *metric, double value, double deviation);

/* The scale for all arms in the metric: what the summary or the runs say of the baseline. */
struct ab_scale ab_scale_of_arms(const struct ab_experiment *experiment, size_t metric);

/* "12.34", and "12.34 ms". */
const char *ab_number(struct ab_text *text, const struct ab_scale *scale, double value);
const char *ab_quantity(struct ab_text *text, const struct ab_scale *scale, double value);

/* How many decimals show that low and high differ from each other and from 1; at least least. */
int ab_ratio_decimals(double ratio, double low, double high, int least);
const char *ab_ratio(struct ab_text *text, double ratio, int decimals);
const char *ab_interval(struct ab_text *text, double low, double high, int decimals);

/* 0.95: "95 %". */
const char *ab_percent(struct ab_text *text, double share);

/* 0.00012: "0.0001"; below that "< 0.0001". */
const char *ab_probability(struct ab_text *text, double p);

/* Whether the metric is a time, for which "faster" and "slower" are the words. */
bool ab_metric_is_time(const struct ab_metric *metric);

/* The metric with its unit as it is shown: "time [ms]". */
char *ab_metric_heading(const struct ab_metric *metric, const struct ab_scale *scale);

/* "timed out" */
extern const char *const ab_outcome_words[AB_OUTCOME_COUNT];

/* Runs of an arm that failed, and how: "2 timed out, 1 check failed"; "" where none did. Runs that
 * the user interrupted are none of them. */
size_t ab_failed(const struct ab_arm_summary *arm);
char *ab_failures(const struct ab_arm_summary *arm);

/* "baseline", "baseline again", "preload alone", "candidate" */
extern const char *const ab_role_words[];

/* For a table: "better", "no difference over 1 %". comparison NULL: the baseline. */
char *ab_verdict_words(const struct ab_experiment *experiment,
                       const struct ab_comparison *comparison);

/* What has one value of an arm: "run"; "slice" where arms alternate inside runs. */
const char *ab_unit_word(const struct ab_experiment *experiment);

/* Flags of a run: "thermal throttling, other processes"; "" for none. */
char *ab_flag_words(unsigned flags);

/* What a number in the ratio column is. */
char *ab_ratio_legend(const struct ab_experiment *experiment);

/* The baseline against itself, and the preload against nothing: a sentence each. NULL when the
 * experiment has no such arm. */
char *ab_noise_floor(const struct ab_experiment *experiment, const struct ab_analysis *analysis);
char *ab_cost(const struct ab_experiment *experiment, const struct ab_analysis *analysis);

/* Which comparisons have no ratio or no interval, and why: a sentence about each set of arms of
 * which the same is to be said. *arm is 0 at first; NULL: no more. */
char *ab_what_is_lacking(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                         size_t *arm);

/* How the experiment was made and decided: a paragraph. */
char *ab_method(const struct ab_experiment *experiment, const struct ab_analysis *analysis);

/* The small print: seed, blocks, looks and the like. */
enum {
    AB_FACT_LIMIT = 12,
};
struct ab_facts {
    size_t count;
    struct {
        const char *label;
        char *value;
    } items[AB_FACT_LIMIT];
};
void ab_facts_gather(struct ab_facts *facts, const struct ab_experiment *experiment,
                     const struct ab_analysis *analysis);
void ab_facts_release(struct ab_facts *facts);

/* Values of an arm in a metric, of runs that count, sorted; to be freed. */
double *ab_arm_values(const struct ab_experiment *experiment, size_t arm, size_t metric,
                      size_t *count);

/* The arm of this role, SIZE_MAX: none. */
size_t ab_arm_of_role(const struct ab_experiment *experiment, enum ab_arm_role role);

/* text, a format and its arguments appended to *text, which is freed; *text may be NULL. */
void ab_append(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
