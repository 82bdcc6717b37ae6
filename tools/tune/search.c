/* SPDX-License-Identifier: Apache-2.0 */
#include "search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "live_search.h"
#include "memory.h"
#include "print.h"
#include "stage.h"
#include "tune_print.h"

enum {
    LEAST_ROUND_BLOCKS = 2, /* of a round of halving */
};

double search_gain(const struct ab_metric *metric, double ratio)
{
    return metric->direction == AB_LESS_IS_BETTER ? 1 / ratio : ratio;
}

const struct ab_metric *search_metric(const struct search *search,
                                      const struct search_result *result)
{
    static char name[] = "step time", unit[] = "s";
    static const struct ab_metric step_time = {
        .name = name, .unit = unit, .source = AB_METRIC_STEP, .direction = AB_LESS_IS_BETTER};

    return result->live && search->metrics[0].source != AB_METRIC_STEP ? &step_time
                                                                       : &search->metrics[0];
}

/* ---- what a stage showed -------------------------------------------------------------------- */

/* A baseline that did not work once. */
static bool baseline_is_broken(const struct ab_experiment *experiment)
{
    size_t failed = 0;

    for (size_t i = 0; i < experiment->run_count; i++) {
        if (experiment->runs[i].arm == 0 && experiment->runs[i].outcome == AB_OK) {
            return false;
        }
        failed += experiment->runs[i].arm == 0;
    }
    return failed > 0;
}

static bool any_counts(const struct ab_experiment *experiment)
{
    for (size_t i = 0; i < experiment->run_count; i++) {
        if (!experiment->runs[i].warm_up) {
            return true;
        }
    }
    return false;
}

static size_t flagged_runs(const struct ab_experiment *experiment)
{
    size_t flagged = 0;

    for (size_t i = 0; i < experiment->run_count; i++) {
        flagged += experiment->runs[i].gpu.known && experiment->runs[i].gpu.flags != 0;
    }
    return flagged;
}

/* ---- the search ----------------------------------------------------------------------------- */

/* Adds what a round saw; ratios of several rounds are averaged by their blocks, as logarithms. */
static void score_round(const struct stage *stage, const struct ab_experiment *experiment,
                        const struct ab_analysis *analysis, struct search_score *scores)
{
    if (analysis->arms == NULL) {
        return;
    }
    for (size_t i = 0; i < stage->count; i++) {
        const struct ab_comparison *comparison = ab_analysis_comparison(analysis, 1 + i, 0);
        struct search_score *score = &scores[stage->candidates[i]];
        double before = score->blocks > 0 ? log(score->ratio) * (double)score->blocks : 0;

        score->tried = true;
        if (comparison == NULL) {
            continue;
        }
        score->broken = score->broken || comparison->verdict == AB_VERDICT_BROKEN ||
                        analysis->arms[1 + i].fails_more;
        score->idle = ab_changed_nothing(experiment, analysis->arms, 1 + i);
        if (isnan(comparison->ratio) || comparison->pairs == 0) {
            continue;
        }
        before += log(comparison->ratio) * (double)comparison->pairs;
        score->blocks += comparison->pairs;
        score->ratio = exp(before / (double)score->blocks);
        score->low = comparison->low;
        score->high = comparison->high;
        score->level = comparison->level;
    }
}

/* The better of two candidates: first those that work, then those that do anything, then those with
 * a ratio, then by it. */
static bool is_better(const struct ab_metric *metric, const struct search_score *left,
                      const struct search_score *right)
{
    if (left->broken != right->broken) {
        return right->broken;
    }
    if (left->idle != right->idle) {
        return right->idle;
    }
    if (isnan(left->ratio) || isnan(right->ratio)) {
        return !isnan(left->ratio) && isnan(right->ratio);
    }
    return search_gain(metric, left->ratio) > search_gain(metric, right->ratio);
}

void search_sort(const struct search *search, const struct search_result *result,
                 size_t *candidates, size_t count)
{
    const struct ab_metric *metric = search_metric(search, result);

    for (size_t i = 1; i < count; i++) {
        size_t candidate = candidates[i], place = i;

        while (place > 0 && is_better(metric, &result->scores[candidate],
                                      &result->scores[candidates[place - 1]])) {
            candidates[place] = candidates[place - 1];
            place--;
        }
        candidates[place] = candidate;
    }
}

/* Rounds until two candidates are left, so that whoever is in all of them has had about as many
 * blocks as each would have had without halving. */
static uint32_t round_blocks(const struct search *search, size_t count)
{
    uint32_t rounds = 1, blocks;

    for (size_t left = count; search->halving && left > 2; left = (left + 1) / 2) {
        rounds++;
    }
    blocks = (search->blocks + rounds - 1) / rounds;
    return rounds > 1 && blocks < LEAST_ROUND_BLOCKS ? LEAST_ROUND_BLOCKS : blocks;
}

static bool search_by_processes(const struct search *search, size_t *candidates, size_t count,
                                struct search_result *result)
{
    struct stage stage = {.label = "search: ",
                          .no_repeat = true,
                          .count = count,
                          .candidates = candidates,
                          .plan = search->plan};
    uint32_t blocks = round_blocks(search, count);
    bool went;

    stage.plan.claim = AB_CLAIM_NONE;
    stage.plan.look_count = 1;
    stage.plan.looks[0] = blocks;
    for (;;) {
        char *name = search->halving ? memory_format("search-%zu", result->rounds + 1)
                                     : memory_copy("search");

        stage.name = name;
        stage.plan.seed = stage_seed(search->plan.seed, result->rounds);
        result->search_seed = result->rounds == 0 ? stage.plan.seed : result->search_seed;
        ab_analysis_release(&result->search_analysis);
        ab_experiment_release(&result->search);
        went = stage_run(search, &stage, &result->search, &result->search_analysis);
        score_round(&stage, &result->search, &result->search_analysis, result->scores);
        result->search_runs += result->search.run_count;
        result->search_flagged += flagged_runs(&result->search);
        result->interrupted = result->search.interrupted;
        result->rounds++;
        free(name);
        search_sort(search, result, candidates, stage.count);
        if (!search->quiet && result->search_analysis.blocks > 0) {
            tune_print_round(search, result, candidates, stage.count, stderr);
        }
        if (!went || result->interrupted || !search->halving || stage.count <= 2) {
            break;
        }
        stage.count = (stage.count + 1) / 2;
        stage.plan.warm_up_blocks = 0; /* caches are warm by now */
    }
    return went;
}

/* Whether the search alone rules out that a candidate is better by more than the margin: then there
 * is nothing to confirm. */
static bool all_ruled_out(const struct search *search, const struct search_result *result)
{
    const struct ab_metric *metric = search_metric(search, result);

    if (metric != &search->metrics[0] || result->live_processes_only) {
        return false; /* it is about another metric, or about these processes alone */
    }
    for (size_t i = 0; i < search->space->candidate_count; i++) {
        const struct search_score *score = &result->scores[i];
        double hope = metric->direction == AB_LESS_IS_BETTER ? score->low : score->high;

        if (!score->tried || score->broken || score->idle) {
            continue;
        }
        if (isnan(hope) || search_gain(metric, hope) > 1 + search->plan.margin) {
            return false;
        }
    }
    return true;
}

/* Makes the search, live or by processes. False when it could not be made. */
static bool search_candidates(const struct search *search, size_t *candidates, size_t count,
                              struct search_result *result)
{
    switch (live_search_run(search, candidates, count, result)) {
    case LIVE_SEARCH_MADE:
        return true;
    case LIVE_SEARCH_FAILED:
        return false;
    case LIVE_SEARCH_NOT:
    default:
        break;
    }
    if (result->why_not_live != NULL && !search->quiet) {
        command_error("the search is by processes: %s", result->why_not_live);
    }
    return search_by_processes(search, candidates, count, result);
}

/* ---- the confirmation ----------------------------------------------------------------------- */

static enum search_end confirm(const struct search *search, struct search_result *result)
{
    size_t best = result->best;
    struct stage stage = {.name = "confirmation",
                          .label = "confirmation: ",
                          .no_repeat = search->no_repeat,
                          .count = 1,
                          .candidates = &best,
                          .plan = search->plan};
    bool went;

    stage.plan.claim = AB_CLAIM_BETTER;
    stage.plan.seed = result->confirmation_seed;
    result->confirmed = true;
    went = stage_run(search, &stage, &result->confirmation, &result->confirmation_analysis);
    if (!search->quiet && any_counts(&result->confirmation)) {
        fputs("\nConfirmation, new runs:\n", stderr);
        ab_print(&result->confirmation, &result->confirmation_analysis, search->wide, stderr);
        fputc('\n', stderr);
    }
    if (!went) {
        return baseline_is_broken(&result->confirmation) ? SEARCH_NO_BASELINE : SEARCH_FAILED;
    }
    switch (result->confirmation_analysis.result) {
    case AB_RESULT_SHOWN:
        return SEARCH_CONFIRMED;
    case AB_RESULT_NOT_SHOWN:
        return SEARCH_NOTHING;
    case AB_RESULT_BROKEN:
        return SEARCH_BROKEN;
    default:
        return SEARCH_INCONCLUSIVE;
    }
}

static void begin_result(const struct search *search, struct search_result *result)
{
    size_t count = search->space->candidate_count;

    *result = (struct search_result){.best = SIZE_MAX};
    result->scores = memory_allocate(count, sizeof *result->scores);
    for (size_t i = 0; i < count; i++) {
        result->scores[i] = (struct search_score){.ratio = NAN, .low = NAN, .high = NAN};
    }
    /* One that no round of the search has. */
    result->confirmation_seed = stage_seed(search->plan.seed, UINT64_C(1) << 32);
}

void search_run(const struct search *search, struct search_result *result)
{
    size_t count = 0, total = search->space->candidate_count;
    size_t *candidates = memory_allocate(total, sizeof *candidates);
    bool went;

    begin_result(search, result);
    ab_trial_catch_signals();
    for (size_t i = search->with_base ? 0 : 1; i < total; i++) {
        candidates[count++] = i;
    }
    went = search_candidates(search, candidates, count, result);
    if (count > 0 && !isnan(result->scores[candidates[0]].ratio) &&
        !result->scores[candidates[0]].broken) {
        result->best = candidates[0];
    }
    free(candidates);
    if (result->interrupted) {
        result->end = SEARCH_INCONCLUSIVE;
    } else if (baseline_is_broken(&result->search)) {
        result->end = SEARCH_NO_BASELINE;
    } else if (!went) {
        result->end = SEARCH_FAILED;
    } else if (result->best == SIZE_MAX) {
        result->end = SEARCH_BROKEN;
    } else if (result->scores[result->best].idle || all_ruled_out(search, result)) {
        result->end = SEARCH_NOTHING;
    } else {
        result->end = confirm(search, result);
    }
}

const struct ab_comparison *search_confirmation(const struct search_result *result)
{
    return result->confirmed ? ab_analysis_comparison(&result->confirmation_analysis, 1, 0) : NULL;
}

const char *const search_changed_nothing_text = "in no run did a rule of it change anything, nor "
                                                "one of the baseline: the difference has another "
                                                "cause";
const char *const search_takes_away_text =
    "its own rules changed nothing in any run: the gain is what the baseline's rules cost";

/* Whether the confirmation has what it takes to tell. */
static bool confirmation_tells(const struct search_result *result)
{
    return result->confirmed && result->confirmation_analysis.arms != NULL &&
           result->confirmation.arm_count > 1;
}

bool search_changed_nothing(const struct search_result *result)
{
    return confirmation_tells(result) &&
           ab_changed_nothing(&result->confirmation, result->confirmation_analysis.arms, 1);
}

bool search_takes_away(const struct search_result *result)
{
    return confirmation_tells(result) &&
           ab_is_idle(&result->confirmation, &result->confirmation_analysis.arms[1], 1) &&
           !ab_is_idle(&result->confirmation, &result->confirmation_analysis.arms[0], 0);
}

void search_release(struct search_result *result)
{
    ab_analysis_release(&result->search_analysis);
    ab_experiment_release(&result->search);
    if (result->confirmed) {
        ab_analysis_release(&result->confirmation_analysis);
        ab_experiment_release(&result->confirmation);
    }
    free(result->why_not_live);
    free(result->policy_changed);
    free(result->scores);
    *result = (struct search_result){.best = SIZE_MAX};
}
