/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "comparison.h"
#include "memory.h"
#include "sample.h"
#include "sequential.h"
#include "warnings.h"

const char *const ab_verdict_names[AB_VERDICT_COUNT] = {
    [AB_VERDICT_BETTER] = "better",
    [AB_VERDICT_WORSE] = "worse",
    [AB_VERDICT_NO_DIFFERENCE] = "no difference",
    [AB_VERDICT_NOT_ENOUGH] = "not enough runs",
    [AB_VERDICT_BROKEN] = "broken",
    [AB_VERDICT_NOT_APPLIED] = "changed nothing",
};

/* Trends are looked for in every arm: with the usual 0.05 every other experiment would have one. */
static const double drift_level = 0.01;
static const double failure_level = 0.05;

/* The primary metric over the runs of an arm. */
static void summarise_values(const struct ab_experiment *experiment, size_t arm,
                             struct ab_arm_summary *summary)
{
    double *values = memory_allocate(experiment->run_count + 1, sizeof *values), p;
    double *times = memory_allocate(experiment->run_count + 1, sizeof *times);
    struct ab_sample sample;
    struct ab_modes modes;
    size_t count = 0, i;

    for (i = 0; experiment->metric_count > 0 && i < experiment->run_count; i++) {
        const struct ab_run *run = &experiment->runs[i];

        if (!ab_run_counts(experiment, run) || run->arm != arm || isnan(ab_run_value_of(run, 0)))
            continue;
        values[count] = ab_run_value_of(run, 0);
        times[count++] = run->block;
    }
    ab_sample_summarise(values, count, &sample);
    ab_modes_find(values, count, &modes);
    summary->mean = sample.mean;
    summary->median = sample.median;
    summary->deviation = sample.deviation;
    summary->least = sample.least;
    summary->most = sample.most;
    summary->bimodal = modes.bimodal;
    summary->modes[0] = modes.modes[0];
    summary->modes[1] = modes.modes[1];
    summary->outliers = ab_outliers(values, count, &modes);
    summary->drift = ab_drift(values, times, count, &p);
    summary->drifts = p <= drift_level;
    free(values);
    free(times);
}

/* Whether the rules did anything. A rule about streams is not seen at launches: where rules
 * matched, and no launch of theirs was left unchanged, streams are what they changed. */
static void summarise_rules(const struct ab_experiment *experiment, size_t arm,
                            struct ab_arm_summary *summary)
{
    int64_t rules = 0, matched = 0, applied = 0, unchanged = 0;
    size_t i;

    for (i = 0; i < experiment->run_count; i++) {
        const struct ab_run *run = &experiment->runs[i];

        if (!ab_run_counts(experiment, run) || run->arm != arm || !run->policy.known)
            continue;
        rules = run->policy.rules > rules ? run->policy.rules : rules;
        matched = run->policy.rules_matched > matched ? run->policy.rules_matched : matched;
        applied += run->policy.applied;
        unchanged += run->policy.already_so + run->policy.kept + run->policy.refused;
    }
    summary->rules_never_applied = rules > 0 && applied == 0 && (matched == 0 || unchanged > 0);
    summary->rules_unmatched = rules > matched ? (size_t)(rules - matched) : 0;
}

static void summarise_arm(const struct ab_experiment *experiment, size_t arm,
                          struct ab_analysis *analysis)
{
    struct ab_arm_summary *summary = &analysis->arms[arm];
    const struct ab_arm_summary *baseline = &analysis->arms[0];
    size_t failures, of_baseline, i;

    for (i = 0; i < experiment->run_count; i++) {
        const struct ab_run *run = &experiment->runs[i];

        if (run->warm_up || run->arm != arm || run->outcome >= AB_OUTCOME_COUNT)
            continue;
        summary->outcomes[run->outcome]++;
        summary->runs += ab_run_counts(experiment, run);
        summary->flagged += ab_run_counts(experiment, run) && run->gpu.known && run->gpu.flags != 0;
    }
    summary->ok = summary->outcomes[AB_OK];
    failures = summary->runs - summary->ok;
    of_baseline = baseline->runs - baseline->ok;
    summary->failure_p = NAN;
    if (arm > 0) {
        summary->failure_p = ab_fails_more_p(failures, summary->runs, of_baseline, baseline->runs);
        summary->fails_more = failures * baseline->runs > of_baseline * summary->runs;
    }
    summarise_values(experiment, arm, summary);
    summarise_rules(experiment, arm, summary);
}

/* An arm that changes results does so in a warm-up too. */
static bool changes_results(const struct ab_experiment *experiment, size_t arm)
{
    size_t i;

    for (i = 0; i < experiment->run_count; i++) {
        const struct ab_run *run = &experiment->runs[i];

        if (run->arm == arm &&
            (run->outcome == AB_CHECK_FAILED || run->outcome == AB_OUTPUT_DIFFERS))
            return true;
    }
    return false;
}

static bool never_works(const struct ab_experiment *experiment, const struct ab_look *look,
                        const struct ab_arm_summary *summary)
{
    return (look->decides || experiment->interrupted) && summary->runs > 0 && summary->ok == 0;
}

static void find_broken(const struct ab_experiment *experiment, const struct ab_look *look,
                        struct ab_analysis *analysis)
{
    size_t i;

    for (i = 0; i < analysis->comparison_count; i++) {
        struct ab_comparison *comparison = &analysis->comparisons[i];
        const struct ab_arm_summary *summary = &analysis->arms[comparison->arm];

        if (changes_results(experiment, comparison->arm) ||
            never_works(experiment, look, summary) ||
            (look->decides && summary->failure_p <= failure_level))
            comparison->verdict = AB_VERDICT_BROKEN;
    }
}

bool ab_is_idle(const struct ab_experiment *experiment, const struct ab_arm_summary *summary,
                size_t arm)
{
    bool known = false, rules = false;

    if (experiment->arms[arm].kind != AB_ARM_POLICY)
        return true;
    if (experiment->arms[arm].sets_variables)
        return false;
    for (size_t i = 0; i < experiment->run_count; i++) {
        if (experiment->runs[i].arm == arm && experiment->runs[i].policy.known) {
            known = true;
            rules = rules || experiment->runs[i].policy.rules > 0;
        }
    }
    return summary->rules_never_applied || (known && !rules);
}

bool ab_changed_nothing(const struct ab_experiment *experiment,
                        const struct ab_arm_summary *summaries, size_t arm)
{
    /* To be rid of what the baseline's rules do can be a gain as well. */
    return ab_is_idle(experiment, &summaries[arm], arm) && ab_is_idle(experiment, &summaries[0], 0);
}

/* What seems better without having changed anything is not better by its policy. */
static void find_unapplied(const struct ab_experiment *experiment, struct ab_analysis *analysis)
{
    for (size_t i = 0; i < analysis->comparison_count; i++) {
        struct ab_comparison *comparison = &analysis->comparisons[i];

        if (experiment->arms[comparison->arm].role == AB_ROLE_CANDIDATE &&
            comparison->verdict == AB_VERDICT_BETTER &&
            ab_changed_nothing(experiment, analysis->arms, comparison->arm))
            comparison->verdict = AB_VERDICT_NOT_APPLIED;
    }
}

static size_t find_winner(const struct ab_experiment *experiment,
                          const struct ab_analysis *analysis)
{
    bool less = experiment->metrics[0].direction == AB_LESS_IS_BETTER;
    size_t winner = SIZE_MAX, arm;

    for (arm = 1; arm < experiment->arm_count; arm++) {
        const struct ab_comparison *comparison = &analysis->comparisons[arm - 1];
        double best = winner == SIZE_MAX ? NAN : analysis->comparisons[winner - 1].ratio;

        if (experiment->arms[arm].role != AB_ROLE_CANDIDATE || analysis->arms[arm].fails_more ||
            comparison->verdict != AB_VERDICT_BETTER)
            continue;
        if (winner == SIZE_MAX || (less ? comparison->ratio < best : comparison->ratio > best))
            winner = arm;
    }
    return winner;
}

/* What is known about the claim as far as one candidate goes. */
static enum ab_result settled(const struct ab_experiment *experiment, const struct ab_look *look,
                              const struct ab_comparison *comparison)
{
    if (experiment->plan.claim == AB_CLAIM_NO_DIFFERENCE) {
        /* a difference may be shown, and be one that does not matter, or not known to */
        if (look->decides && comparison->pairs >= AB_LEAST_PAIRS) {
            if (ab_within_margin(&experiment->plan, comparison))
                return AB_RESULT_SHOWN;
            if (comparison->p_adjusted <= look->level &&
                ab_beyond_margin(&experiment->plan, comparison))
                return AB_RESULT_NOT_SHOWN;
        }
        return AB_RESULT_INCONCLUSIVE;
    }
    if (comparison->verdict == AB_VERDICT_BETTER)
        return AB_RESULT_SHOWN;
    return comparison->verdict == AB_VERDICT_NOT_ENOUGH ? AB_RESULT_INCONCLUSIVE
                                                        : AB_RESULT_NOT_SHOWN;
}

struct tally {
    size_t candidates, broken, results_changed, shown, not_shown, inconclusive;
};

static void count_candidates(const struct ab_experiment *experiment, const struct ab_look *look,
                             const struct ab_analysis *analysis, struct tally *tally)
{
    size_t arm;

    memset(tally, 0, sizeof *tally);
    for (arm = 1; arm < experiment->arm_count; arm++) {
        const struct ab_comparison *comparison = &analysis->comparisons[arm - 1];

        if (experiment->arms[arm].role != AB_ROLE_CANDIDATE)
            continue;
        tally->candidates++;
        tally->results_changed += changes_results(experiment, arm);
        if (comparison->verdict == AB_VERDICT_BROKEN) {
            tally->broken++;
            continue;
        }
        switch (settled(experiment, look, comparison)) {
        case AB_RESULT_SHOWN:
            tally->shown++;
            break;
        case AB_RESULT_NOT_SHOWN:
            tally->not_shown++;
            break;
        default:
            tally->inconclusive++;
        }
    }
}

static enum ab_result conclude(const struct ab_experiment *experiment, const struct ab_look *look,
                               const struct ab_analysis *analysis, const struct tally *tally)
{
    size_t arm;

    for (arm = 0; arm < experiment->arm_count; arm++) {
        bool broken =
            changes_results(experiment, arm) || never_works(experiment, look, &analysis->arms[arm]);

        if (broken && experiment->arms[arm].role != AB_ROLE_CANDIDATE)
            return AB_RESULT_BROKEN;
    }
    if (tally->broken > 0)
        return AB_RESULT_BROKEN;
    switch (experiment->plan.claim) {
    case AB_CLAIM_NONE:
        return AB_RESULT_SHOWN;
    case AB_CLAIM_BETTER:
        if (analysis->winner != SIZE_MAX)
            return AB_RESULT_SHOWN;
        return tally->not_shown > 0 && tally->not_shown == tally->candidates
                   ? AB_RESULT_NOT_SHOWN
                   : AB_RESULT_INCONCLUSIVE;
    case AB_CLAIM_NO_DIFFERENCE:
        if (tally->not_shown > 0)
            return AB_RESULT_NOT_SHOWN;
        return tally->shown > 0 && tally->inconclusive == 0 ? AB_RESULT_SHOWN
                                                            : AB_RESULT_INCONCLUSIVE;
    }
    return AB_RESULT_INCONCLUSIVE;
}

/* Whether more runs can tell more. Of candidates that change results they cannot, look or not. */
static bool nothing_more(const struct ab_experiment *experiment, const struct ab_look *look,
                         const struct tally *tally)
{
    if (look->last && look->at_look)
        return true;
    if (experiment->plan.claim == AB_CLAIM_NONE || tally->candidates == 0)
        return false;
    if (tally->results_changed == tally->candidates)
        return true;
    return look->at_look && look->decides && tally->inconclusive == 0;
}

void ab_analyse(const struct ab_experiment *experiment, struct ab_analysis *analysis)
{
    size_t others = experiment->arm_count > 0 ? experiment->arm_count - 1 : 0, metric, arm;
    struct ab_blocks blocks;
    struct ab_look look;
    struct tally tally;

    memset(analysis, 0, sizeof *analysis);
    ab_blocks_of(experiment, &blocks);
    ab_look_at(&experiment->plan, blocks.count, experiment->interrupted, &look);
    analysis->blocks = blocks.count;
    analysis->look = look.taken;
    analysis->alpha_spent = look.spent;
    analysis->alpha_here = look.level;
    analysis->comparison_count = others * experiment->metric_count;
    analysis->comparisons =
        memory_allocate(analysis->comparison_count + 1, sizeof *analysis->comparisons);
    analysis->arms = memory_allocate(experiment->arm_count + 1, sizeof *analysis->arms);
    for (arm = 0; arm < experiment->arm_count; arm++)
        summarise_arm(experiment, arm, analysis);
    for (metric = 0; metric < experiment->metric_count; metric++)
        ab_compare_arms(experiment, &blocks, &look, metric, false,
                        analysis->comparisons + metric * others);
    find_broken(experiment, &look, analysis);
    find_unapplied(experiment, analysis);
    analysis->winner =
        analysis->comparison_count > 0 ? find_winner(experiment, analysis) : SIZE_MAX;
    if (experiment->metric_count > 0) {
        count_candidates(experiment, &look, analysis, &tally);
        analysis->result = conclude(experiment, &look, analysis, &tally);
        analysis->done = nothing_more(experiment, &look, &tally);
    } else {
        analysis->result = AB_RESULT_INCONCLUSIVE;
    }
    ab_warn(experiment, &blocks, &look, analysis);
    ab_blocks_release(&blocks);
}

void ab_analysis_release(struct ab_analysis *analysis)
{
    size_t i;

    for (i = 0; i < analysis->warning_count; i++)
        free(analysis->warnings[i].text);
    free(analysis->warnings);
    free(analysis->comparisons);
    free(analysis->arms);
    memset(analysis, 0, sizeof *analysis);
}

const struct ab_comparison *ab_analysis_comparison(const struct ab_analysis *analysis, size_t arm,
                                                   size_t metric)
{
    size_t i;

    for (i = 0; i < analysis->comparison_count; i++) {
        if (analysis->comparisons[i].arm == arm && analysis->comparisons[i].metric == metric)
            return &analysis->comparisons[i];
    }
    return NULL;
}
