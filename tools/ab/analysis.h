/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_ANALYSIS_H
#define CUDAPOLICY_TOOLS_AB_ANALYSIS_H

/*
 * What an experiment shows, and what it does not. Reads an experiment; runs nothing, prints
 * nothing, draws random numbers only from the plan's seed: the same experiment always gives the
 * same analysis.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "experiment.h"

enum ab_verdict {
    AB_VERDICT_BETTER,        /* shown */
    AB_VERDICT_WORSE,         /* shown */
    AB_VERDICT_NO_DIFFERENCE, /* none larger than the margin: shown */
    AB_VERDICT_NOT_ENOUGH,    /* not enough runs for any of these */
    AB_VERDICT_BROKEN,        /* changes results, or fails more often than the baseline */
    AB_VERDICT_NOT_APPLIED,   /* it seems better, but its rules changed nothing in any run: chance,
                                 or something else than the policy */
    AB_VERDICT_COUNT,
};
/* "better", "worse", "no difference", "not enough runs", "broken", "changed nothing". */
extern const char *const ab_verdict_names[AB_VERDICT_COUNT];

/* An arm against the baseline in one metric. Ratios are arm / baseline: below 1 is better where
 * less is. */
struct ab_comparison {
    size_t arm, metric;
    size_t pairs;     /* blocks in which both runs have a value */
    double ratio;     /* of geometric means over blocks; NaN without pairs */
    double low, high; /* the interval that goes with the verdict; NaN: too few pairs */
    double level;     /* of that interval, e.g. 0.95; looks before the last one make it higher */
    double margin_low, margin_high; /* the interval that has to lie within the margin: of
                                       margin_level, 90 % with one look */
    double margin_level;
    double p;          /* of the paired randomisation test, two-sided; NaN */
    double p_adjusted; /* after Holm over the arms */
    enum ab_verdict verdict;
    bool decided_at_look;       /* at a look of the plan, not in between (interrupted) */
    double blocks_for_ratio;    /* blocks in all that would show this ratio with 80 % power; NaN */
    double blocks_for_margin;   /* the same for "no difference larger than the margin" */
    double smallest_detectable; /* ratio that the blocks planned detect with 80 % power; NaN */
};

struct ab_arm_summary {
    size_t runs, ok;
    size_t outcomes[AB_OUTCOME_COUNT];
    double failure_p; /* that it fails no more often than the baseline: Fisher's exact test,
                         one-sided; NaN */
    bool fails_more;  /* more often than the baseline, shown or not: never the winner */
    double mean, median, deviation, least, most; /* of the primary metric over runs; NaN */
    bool bimodal;
    double modes[2]; /* where bimodal */
    size_t outliers;
    double drift;             /* correlation of value and block, Spearman; NaN */
    bool drifts;              /* shown */
    size_t flagged;           /* runs with a GPU flag that can change times */
    bool rules_never_applied; /* an arm with rules none of which applied in any run */
    size_t rules_unmatched;   /* rules that never matched in any run */
};

enum ab_warning_kind {
    AB_WARNING_OUTLIERS,
    AB_WARNING_BIMODAL,
    AB_WARNING_DRIFT,
    AB_WARNING_NOT_APPLIED,
    AB_WARNING_THROTTLED,
    AB_WARNING_NOISE_FLOOR, /* the baseline differs from itself by more than the arm from it */
    AB_WARNING_FAILURES,
    AB_WARNING_FLAGGED_MATTERS, /* without the flagged blocks the verdict would be another one */
    AB_WARNING_COST,            /* the preload alone makes a difference */
    AB_WARNING_NOT_COMPARABLE,  /* values of a metric that are not positive: no ratios */
};

struct ab_warning {
    enum ab_warning_kind kind;
    size_t arm;
    char *text; /* one sentence, without the arm's name */
};

/* Whether nothing that makes the arm can change a run: it has no policy, or one that sets no
 * variables and no rule of which changed anything in any run. What is not known is taken for a
 * change. */
bool ab_is_idle(const struct ab_experiment *experiment, const struct ab_arm_summary *summary,
                size_t arm);

/* Whether that holds of the arm and of the baseline both, so that their difference has another
 * cause. summaries: by arm. */
bool ab_changed_nothing(const struct ab_experiment *experiment,
                        const struct ab_arm_summary *summaries, size_t arm);

/* How the experiment as a whole ended: the exit status of the command. */
enum ab_result {
    AB_RESULT_SHOWN = 0,        /* what was claimed (ab_plan.claim), or nothing was */
    AB_RESULT_NOT_SHOWN = 1,    /* the opposite: e.g. every candidate is worse or no different */
    AB_RESULT_INCONCLUSIVE = 2, /* not enough runs to say either */
    AB_RESULT_BROKEN = 3,       /* a candidate is broken */
};

struct ab_analysis {
    size_t blocks;                  /* complete ones */
    size_t look;                    /* index of the last look taken; SIZE_MAX: none yet */
    double alpha_spent, alpha_here; /* over the looks so far, and at the last one */
    bool done;                      /* nothing more is to be learned: stop */
    size_t comparison_count;
    struct ab_comparison *comparisons; /* by metric, then by arm, the baseline left out */
    struct ab_arm_summary *arms;       /* by arm */
    size_t warning_count, warning_capacity;
    struct ab_warning *warnings;
    size_t winner; /* arm; SIZE_MAX: none */
    enum ab_result result;
};

/* Analyses the experiment as it stands. Under a second for 1,000 runs. */
void ab_analyse(const struct ab_experiment *experiment, struct ab_analysis *analysis);
void ab_analysis_release(struct ab_analysis *analysis);

/* The comparison of an arm in a metric, NULL for the baseline. */
const struct ab_comparison *ab_analysis_comparison(const struct ab_analysis *analysis, size_t arm,
                                                   size_t metric);

#endif
