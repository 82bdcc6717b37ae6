/* SPDX-License-Identifier: Apache-2.0 */
#include "search.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "arm.h"
#include "command.h"
#include "memory.h"
#include "print.h"
#include "tune_print.h"

enum {
    LEAST_ROUND_BLOCKS = 2, /* of a round of halving */
};

/* A stage: an experiment of its own, with the candidates that are still in it. */
struct stage {
    const char *name; /* of its folder, and in messages */
    const char *label;
    struct ab_plan plan;
    bool no_repeat;
    size_t count;
    size_t *candidates; /* arm 1 + i of the experiment */
};

double search_gain(const struct ab_metric *metric, double ratio)
{
    return metric->direction == AB_LESS_IS_BETTER ? 1 / ratio : ratio;
}

/* A seed for each stage, all of them from one (SplitMix64). */
static uint64_t derived_seed(uint64_t seed, uint64_t stage)
{
    uint64_t mixed = seed + 0x9e3779b97f4a7c15ULL * (stage + 1);

    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
    mixed ^= mixed >> 31;
    return mixed != 0 ? mixed : 1;
}

/* ---- a stage's experiment ------------------------------------------------------------------- */

static char *started_now(void)
{
    time_t now = time(NULL);
    struct tm parts;
    char text[32];

    gmtime_r(&now, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return memory_copy(text);
}

static char *own_host(void)
{
    char host[256] = "";

    gethostname(host, sizeof host - 1);
    return memory_copy(host);
}

static void copy_command(struct ab_experiment *experiment, char *const *command)
{
    size_t count = 0;

    while (command[count] != NULL) {
        count++;
    }
    experiment->command = memory_allocate(count + 1, sizeof *experiment->command);
    for (size_t i = 0; i < count; i++) {
        experiment->command[i] = memory_copy(command[i]);
    }
}

static void copy_metrics(struct ab_experiment *experiment, const struct search *search)
{
    experiment->metric_count = search->metric_count;
    experiment->metrics = memory_allocate(search->metric_count, sizeof *experiment->metrics);
    for (size_t i = 0; i < search->metric_count; i++) {
        struct ab_metric *metric = &experiment->metrics[i];

        *metric = search->metrics[i];
        metric->name = memory_copy(metric->name);
        metric->unit = metric->unit != NULL ? memory_copy(metric->unit) : NULL;
        metric->definition = metric->definition != NULL ? memory_copy(metric->definition) : NULL;
    }
}

static char *baseline_word(const struct search *search)
{
    switch (search->baseline) {
    case SEARCH_AGAINST_NONE:
        return memory_copy("none");
    case SEARCH_AGAINST_OBSERVE:
        return memory_copy("observe");
    default:
        return memory_format("base=%s", search->files[0]);
    }
}

static bool make_experiment(const struct search *search, const struct stage *stage,
                            struct ab_experiment *experiment)
{
    char **words = memory_allocate(stage->count + 1, sizeof *words);
    struct arm_request request = {
        .words = words, .count = stage->count + 1, .no_repeat = stage->no_repeat};
    char error[512] = "";
    enum arm_result added;

    *experiment = (struct ab_experiment){.plan = stage->plan};
    copy_command(experiment, search->command);
    copy_metrics(experiment, search);
    experiment->started = started_now();
    experiment->host = own_host();
    words[0] = baseline_word(search);
    for (size_t i = 0; i < stage->count; i++) {
        size_t candidate = stage->candidates[i];

        words[1 + i] = memory_format("%s=%s", search->space->candidates[candidate].arm,
                                     search->files[candidate]);
    }
    added = arm_add_all(experiment, &request, error, sizeof error);
    if (added == ARM_MISUSED) {
        command_error("%s: %s", stage->name, error);
    }
    for (size_t i = 0; i <= stage->count; i++) {
        free(words[i]);
    }
    free(words);
    return added == ARM_FINE;
}

static bool execute_stage(const struct search *search, const struct stage *stage,
                          struct ab_experiment *experiment)
{
    struct ab_execution execution = *search->execution;
    char *folder = memory_format("%s/%s", execution.trial.folder, stage->name);
    char *journal = memory_format("%s/journal.jsonl", folder);
    char error[512];
    bool ready = true;

    execution.trial.folder = folder;
    execution.trial.reference_taken = false;
    execution.label = stage->label;
    execution.journal = search->keep_journal ? journal : NULL;
    if (mkdir(folder, 0777) != 0) {
        command_error("cannot make the folder '%s': %s", folder, strerror(errno));
        ready = false;
    }
    if (ready && search->same_output != NULL) {
        execution.trial.same_output = ab_same_output_new(search->same_output, search->relative,
                                                         search->absolute, error, sizeof error);
        ready = execution.trial.same_output != NULL;
        if (!ready) {
            command_error("--same-output: %s", error);
        }
    }
    ready = ready && (!search->keep_journal || ab_journal_begin(experiment, journal)) &&
            ab_execute(experiment, &execution);
    if (execution.trial.same_output != NULL) {
        ab_same_output_free(execution.trial.same_output);
    }
    free(journal);
    free(folder);
    return ready;
}

/* Makes the runs of a stage and analyses them. False when it could not be done; what was run is in
 * the experiment then, too. */
static bool run_stage(const struct search *search, const struct stage *stage,
                      struct ab_experiment *experiment, struct ab_analysis *analysis)
{
    bool went;

    *analysis = (struct ab_analysis){.winner = SIZE_MAX};
    if (!make_experiment(search, stage, experiment)) {
        return false;
    }
    went = execute_stage(search, stage, experiment);
    ab_analyse(experiment, analysis);
    return went;
}

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

/* ---- the search ----------------------------------------------------------------------------- */

/* Adds what a round saw; ratios of several rounds are averaged by their blocks, as logarithms. */
static void score_round(const struct stage *stage, const struct ab_analysis *analysis,
                        struct search_score *scores)
{
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

/* The better of two candidates: first those that work, then those with a ratio, then by it. */
static bool is_better(const struct search *search, const struct search_score *scores, size_t one,
                      size_t other)
{
    const struct search_score *left = &scores[one], *right = &scores[other];

    if (left->broken != right->broken) {
        return right->broken;
    }
    if (isnan(left->ratio) || isnan(right->ratio)) {
        return !isnan(left->ratio) && isnan(right->ratio);
    }
    return search_gain(&search->metrics[0], left->ratio) >
           search_gain(&search->metrics[0], right->ratio);
}

/* Best first; equals in the order of the space. */
static void sort_candidates(const struct search *search, const struct search_score *scores,
                            size_t *candidates, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        size_t candidate = candidates[i], place = i;

        while (place > 0 && is_better(search, scores, candidate, candidates[place - 1])) {
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

static bool search_candidates(const struct search *search, size_t *candidates, size_t count,
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
        stage.plan.seed = derived_seed(search->plan.seed, result->rounds);
        result->search_seed = result->rounds == 0 ? stage.plan.seed : result->search_seed;
        ab_analysis_release(&result->search_analysis);
        ab_experiment_release(&result->search);
        went = run_stage(search, &stage, &result->search, &result->search_analysis);
        score_round(&stage, &result->search_analysis, result->scores);
        result->rounds++;
        free(name);
        sort_candidates(search, result->scores, candidates, stage.count);
        if (!search->quiet && result->search_analysis.blocks > 0) {
            tune_print_round(search, result, candidates, stage.count, stderr);
        }
        if (!went || result->search.interrupted || !search->halving || stage.count <= 2) {
            break;
        }
        stage.count = (stage.count + 1) / 2;
        stage.plan.warm_up_blocks = 0; /* caches are warm by now */
    }
    return went;
}

/* Whether the search alone rules out that a candidate is better by more than the margin: then there
 * is nothing to confirm. */
static bool all_ruled_out(const struct search *search, const struct search_score *scores)
{
    for (size_t i = 0; i < search->space->candidate_count; i++) {
        bool less = search->metrics[0].direction == AB_LESS_IS_BETTER;
        double hope = less ? scores[i].low : scores[i].high;

        if (!scores[i].tried || scores[i].broken) {
            continue;
        }
        if (isnan(hope) || search_gain(&search->metrics[0], hope) > 1 + search->plan.margin) {
            return false;
        }
    }
    return true;
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
    went = run_stage(search, &stage, &result->confirmation, &result->confirmation_analysis);
    if (!search->quiet && result->confirmation.run_count > 0) {
        fputs("\nConfirmation, new runs:\n", stderr);
        ab_print(&result->confirmation, &result->confirmation_analysis, search->wide, stderr);
        fputc('\n', stderr);
    }
    if (!went) {
        return baseline_is_broken(&result->confirmation) ? SEARCH_BROKEN : SEARCH_FAILED;
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
    result->confirmation_seed = derived_seed(search->plan.seed, UINT64_C(1) << 32);
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
    if (result->search.interrupted) {
        result->end = SEARCH_INCONCLUSIVE;
    } else if (baseline_is_broken(&result->search)) {
        result->end = SEARCH_BROKEN;
    } else if (!went) {
        result->end = SEARCH_FAILED;
    } else if (result->best == SIZE_MAX) {
        result->end = SEARCH_BROKEN;
    } else if (all_ruled_out(search, result->scores)) {
        result->end = SEARCH_NOTHING;
    } else {
        result->end = confirm(search, result);
    }
}

const struct ab_comparison *search_confirmation(const struct search_result *result)
{
    return result->confirmed ? ab_analysis_comparison(&result->confirmation_analysis, 1, 0) : NULL;
}

const char *const search_changed_nothing_text =
    "in no run did any of its rules change anything; the difference has another cause";

bool search_changed_nothing(const struct search_result *result)
{
    return result->confirmed && result->confirmation_analysis.arms != NULL &&
           result->confirmation.arm_count > 1 &&
           result->confirmation_analysis.arms[1].rules_never_applied;
}

void search_release(struct search_result *result)
{
    ab_analysis_release(&result->search_analysis);
    ab_experiment_release(&result->search);
    if (result->confirmed) {
        ab_analysis_release(&result->confirmation_analysis);
        ab_experiment_release(&result->confirmation);
    }
    free(result->scores);
    *result = (struct search_result){.best = SIZE_MAX};
}
