/* SPDX-License-Identifier: Apache-2.0 */
#include "live.h"

#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>

#include "memory.h"
#include "sequential.h"

const char *const ab_live_verdict_names[] = {"better", "worse", "no difference", "not enough",
                                             "changed nothing"};

/* ---- Comparisons -------------------------------------------------------------------------------
 */

static size_t all_blocks(const struct ab_live_run *runs, size_t run_count)
{
    size_t count = 0;

    for (size_t i = 0; i < run_count; i++) {
        count += runs[i].block_count;
    }
    return count;
}

static void summarise(struct ab_live_comparison *comparison, const struct ab_live_run *runs,
                      size_t run_count, size_t arm, size_t arms)
{
    const size_t count = all_blocks(runs, run_count);
    double *values = memory_allocate(count + 1, sizeof *values);
    size_t at = 0;

    for (size_t i = 0; i < run_count; i++) {
        for (size_t block = 0; block < runs[i].block_count; block++) {
            values[at++] = runs[i].blocks[block * arms + arm];
        }
    }
    comparison->blocks = count;
    comparison->mean = count > 0 ? gsl_stats_mean(values, 1, count) : NAN;
    comparison->deviation = count > 1 ? gsl_stats_sd(values, 1, count) : NAN;
    free(values);
}

/* Logarithms of arm / baseline by block, of all runs one after the other. */
static void compare(struct ab_live_comparison *comparison, const struct ab_live_run *runs,
                    size_t run_count, size_t arm, size_t arms, double alpha)
{
    double *values = memory_allocate(all_blocks(runs, run_count) + 1, sizeof *values);
    size_t *blocks = memory_allocate(run_count + 1, sizeof *blocks);
    struct ab_nested margin;
    size_t at = 0;

    for (size_t i = 0; i < run_count; i++) {
        blocks[i] = runs[i].block_count;
        for (size_t block = 0; block < runs[i].block_count; block++) {
            const double *seconds = &runs[i].blocks[block * arms];

            values[at++] = log(seconds[arm] / seconds[0]);
        }
    }
    ab_nested_compare(&comparison->nested, values, blocks, run_count, 1 - alpha);
    ab_nested_compare(&margin, values, blocks, run_count, 1 - 2 * alpha);
    comparison->margin_low = margin.low;
    comparison->margin_high = margin.high;
    free(blocks);
    free(values);
}

static void adjust(struct ab_live_comparison *comparisons, const struct ab_experiment *experiment)
{
    double *p = memory_allocate(experiment->arm_count, sizeof *p);
    double *adjusted = memory_allocate(experiment->arm_count, sizeof *adjusted);
    size_t count = 0;

    for (size_t arm = 0; arm < experiment->arm_count; arm++) {
        if (experiment->arms[arm].role == AB_ROLE_CANDIDATE) {
            p[count++] = comparisons[arm].nested.p;
        }
    }
    ab_holm(p, count, adjusted);
    count = 0;
    for (size_t arm = 0; arm < experiment->arm_count; arm++) {
        comparisons[arm].p_adjusted = experiment->arms[arm].role == AB_ROLE_CANDIDATE
                                          ? adjusted[count++]
                                          : comparisons[arm].nested.p;
    }
    free(adjusted);
    free(p);
}

static enum ab_live_verdict verdict_of(const struct ab_live_comparison *comparison,
                                       const struct ab_live_plan *plan)
{
    if (comparison->blocks < AB_LEAST_BLOCKS || isnan(comparison->nested.low)) {
        return AB_LIVE_NOT_ENOUGH;
    }
    if (comparison->p_adjusted <= plan->alpha &&
        (comparison->nested.high < 1 || comparison->nested.low > 1)) {
        const bool more = plan->metric != NULL && plan->metric->direction == AB_MORE_IS_BETTER;

        return (comparison->nested.high < 1) != more ? AB_LIVE_BETTER : AB_LIVE_WORSE;
    }
    if (comparison->margin_low >= 1 / (1 + plan->margin) &&
        comparison->margin_high <= 1 + plan->margin) {
        return AB_LIVE_NO_DIFFERENCE;
    }
    return AB_LIVE_NOT_ENOUGH;
}

void ab_live_summarise_rules(struct ab_arm_summary *summary, const struct ab_live_run *runs,
                             size_t run_count, size_t arm)
{
    int64_t rules = 0, matched = 0, applied = 0;

    for (size_t i = 0; i < run_count; i++) {
        const struct ab_run_policy *policy =
            runs[i].policies != NULL ? &runs[i].policies[arm] : NULL;

        if (policy != NULL) {
            rules = policy->rules > rules ? policy->rules : rules;
            matched = policy->rules_matched > matched ? policy->rules_matched : matched;
            applied += policy->applied;
        }
    }
    summary->rules_never_applied = rules > 0 && applied == 0;
    summary->rules_unmatched = (size_t)(rules - matched);
}

/* What seems better without having changed anything. */
static void find_unapplied(struct ab_live_comparison *comparisons,
                           const struct ab_experiment *experiment, const struct ab_live_run *runs,
                           size_t run_count)
{
    struct ab_arm_summary *summaries = memory_allocate(experiment->arm_count, sizeof *summaries);

    for (size_t arm = 0; arm < experiment->arm_count; arm++) {
        ab_live_summarise_rules(&summaries[arm], runs, run_count, arm);
    }
    for (size_t arm = 1; arm < experiment->arm_count; arm++) {
        if (experiment->arms[arm].role == AB_ROLE_CANDIDATE &&
            experiment->arms[arm].kind == AB_ARM_POLICY &&
            comparisons[arm].verdict == AB_LIVE_BETTER &&
            ab_changed_nothing(experiment, summaries, arm)) {
            comparisons[arm].verdict = AB_LIVE_NOT_APPLIED;
        }
    }
    free(summaries);
}

void ab_live_compare(struct ab_live_comparison *comparisons, const struct ab_experiment *experiment,
                     const struct ab_live_run *runs, size_t run_count,
                     const struct ab_live_plan *plan)
{
    for (size_t arm = 0; arm < experiment->arm_count; arm++) {
        comparisons[arm] = (struct ab_live_comparison){.verdict = AB_LIVE_NOT_ENOUGH};
        summarise(&comparisons[arm], runs, run_count, arm, experiment->arm_count);
        if (arm > 0) {
            compare(&comparisons[arm], runs, run_count, arm, experiment->arm_count, plan->alpha);
        }
    }
    adjust(comparisons, experiment);
    for (size_t arm = 1; arm < experiment->arm_count; arm++) {
        comparisons[arm].verdict = verdict_of(&comparisons[arm], plan);
    }
    find_unapplied(comparisons, experiment, runs, run_count);
}

/* What is known about the claim as far as one candidate goes: as ab_live_status. */
static int settled(const struct ab_live_comparison *comparison, enum ab_claim claim, double margin)
{
    if (comparison->verdict == AB_LIVE_NOT_ENOUGH) {
        return 2;
    }
    if (claim == AB_CLAIM_NO_DIFFERENCE) {
        /* A difference may be shown and be one that does not matter. */
        return comparison->margin_low >= 1 / (1 + margin) && comparison->margin_high <= 1 + margin
                   ? 0
               : comparison->nested.high < 1 / (1 + margin) || comparison->nested.low > 1 + margin
                   ? 1
                   : 2;
    }
    return comparison->verdict == AB_LIVE_BETTER ? 0 : 1;
}

int ab_live_status(const struct ab_live_comparison *comparisons,
                   const struct ab_experiment *experiment)
{
    const enum ab_claim claim = experiment->plan.claim;
    size_t counts[3] = {0}, candidates = 0;

    for (size_t arm = 1; arm < experiment->arm_count; arm++) {
        if (experiment->arms[arm].role == AB_ROLE_CANDIDATE) {
            candidates++;
            counts[settled(&comparisons[arm], claim, experiment->plan.margin)]++;
        }
    }
    if (candidates == 0 || claim == AB_CLAIM_NONE) {
        return 0;
    }
    if (claim == AB_CLAIM_NO_DIFFERENCE) {
        return counts[1] > 0 ? 1 : counts[2] > 0 ? 2 : 0;
    }
    return counts[0] > 0 ? 0 : counts[2] > 0 ? 2 : 1;
}
