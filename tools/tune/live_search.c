/* SPDX-License-Identifier: Apache-2.0 */
#include "live_search.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "execute.h"
#include "live_batch.h"
#include "memory.h"
#include "stage.h"
#include "tune_print.h"

/* Seeds of batches, apart from those of rounds and of the confirmation. */
#define FIRST_SEED (UINT64_C(1) << 33)

/* ---- whether it is possible ----------------------------------------------------------------- */

static bool watches_steps(const struct search *search)
{
    return search->execution->trial.watch_steps;
}

/* What cannot be, whatever the candidates are; NULL: nothing. */
static const char *obstacle(const struct search *search)
{
    if (!watches_steps(search)) {
        return "no step is named (--step-kernel or --graph-steps)";
    }
    if (search->baseline == SEARCH_AGAINST_NONE) {
        return "the baseline is without the library, by which candidates alternate";
    }
    return NULL;
}

/* What only the user can want; NULL: nothing. */
static char *objection(const struct search *search)
{
    const struct ab_trial_options *trial = &search->execution->trial;

    if (search->metrics[0].source != AB_METRIC_STEP) {
        return memory_format("%s decides, which is known of whole runs only (--live=yes searches "
                             "by step time)",
                             search->metrics[0].name);
    }
    if (trial->check != NULL || search->same_output != NULL) {
        return memory_format("%s is about what a run leaves, which tells nothing of single "
                             "candidates (--live=yes leaves it to the confirmation)",
                             trial->check != NULL ? "--check" : "--same-output");
    }
    if (search->halving) {
        return memory_copy("--halving drops candidates from run to run (--live=yes searches "
                           "without it)");
    }
    return NULL;
}

/* ---- batches -------------------------------------------------------------------------------- */

static size_t batch_count(size_t count)
{
    return (count + LIVE_SEARCH_BATCH - 1) / LIVE_SEARCH_BATCH;
}

/* As many in each, but for one. */
static size_t batch_begin(size_t count, size_t batch)
{
    return count * batch / batch_count(count);
}

static void prepare_stage(const struct search *search, const size_t *candidates, size_t count,
                          size_t batch, struct stage *stage)
{
    const size_t begin = batch_begin(count, batch), end = batch_begin(count, batch + 1);

    *stage = (struct stage){.label = "search, live: ",
                            .name = "search-live",
                            .no_repeat = true,
                            .count = end - begin,
                            .candidates = candidates + begin,
                            .plan = search->plan};
    /* The library's variable takes numbers that others can read, too. */
    stage->plan.seed = stage_seed(search->plan.seed, FIRST_SEED + batch) & INT64_MAX;
    stage->plan.seed += stage->plan.seed == 0;
}

/* A file's path is no news here, and what to do about it stands elsewhere. */
static char *plain_reason(const struct search *search, const char *error)
{
    const char *folder = search->execution->trial.folder, *end = strstr(error, "; this needs");
    const size_t length = strlen(folder);
    char *reason;

    if (strncmp(error, folder, length) == 0 && error[length] == '/') {
        error += length + 1;
    }
    reason = end != NULL ? memory_format("%.*s", (int)(end - error), error) : memory_copy(error);
    return reason;
}

/* Whether the settings of all candidates can alternate; else the reason, to be freed. */
static char *unfit(const struct search *search, const size_t *candidates, size_t count)
{
    char *reason = NULL;

    for (size_t batch = 0; batch < batch_count(count) && reason == NULL; batch++) {
        struct ab_experiment experiment;
        struct stage stage;
        char error[1024] = "", *text = NULL;

        prepare_stage(search, candidates, count, batch, &stage);
        if (!stage_make_experiment(search, &stage, &experiment)) {
            reason = memory_copy("a candidate does not load");
        } else {
            text = ab_live_policy(&experiment, error, sizeof error);
            reason = text == NULL ? plain_reason(search, error) : NULL;
        }
        free(text);
        ab_experiment_release(&experiment);
    }
    return reason;
}

/* ---- scores --------------------------------------------------------------------------------- */

static void score_batch(const struct stage *stage, const struct live_batch *batch,
                        struct search_result *result)
{
    struct ab_live_comparison *comparisons =
        memory_allocate(batch->experiment.arm_count, sizeof *comparisons);

    ab_live_compare(comparisons, &batch->experiment, batch->runs, batch->run_count, &batch->plan);
    for (size_t i = 0; i < stage->count; i++) {
        const struct ab_live_comparison *comparison = &comparisons[1 + i];
        struct search_score *score = &result->scores[stage->candidates[i]];

        *score = (struct search_score){.tried = true,
                                       .idle = !batch->changed[0] && !batch->changed[1 + i],
                                       .blocks = comparison->blocks,
                                       .ratio = comparison->nested.ratio,
                                       .low = comparison->nested.low,
                                       .high = comparison->nested.high,
                                       .level = comparison->nested.level};
        result->live_processes_only |= comparison->nested.these_processes_only;
    }
    result->search_runs += batch->run_count;
    result->search_flagged += batch->flagged;
    free(comparisons);
}

/* Makes one batch. False with the reason, to be freed, where it cannot be. */
static bool run_batch(const struct search *search, const size_t *candidates, size_t count,
                      size_t number, struct search_result *result, char **reason)
{
    struct live_batch batch;
    struct stage stage;
    char *name = memory_format("search-live-%zu", number + 1);
    bool made;

    prepare_stage(search, candidates, count, number, &stage);
    stage.name = name;
    made = live_batch_run(&batch, search, &stage, number, batch_count(count), reason);
    if (made || (batch.interrupted && batch.run_count > 0)) {
        score_batch(&stage, &batch, result);
    }
    if (number == 0) {
        result->search_seed = stage.plan.seed;
    }
    result->interrupted = batch.interrupted;
    live_batch_release(&batch);
    free(name);
    return made || result->interrupted;
}

/* ---- what an earlier search found ------------------------------------------------------------
 */

static char *given_up_path(const struct search *search)
{
    return memory_format("%s/not-live", search->execution->trial.folder);
}

/* A search that is continued goes on as it was: by processes, where live had failed. */
static char *given_up(const struct search *search)
{
    char *path = given_up_path(search), *reason = NULL;
    FILE *file = search->resume ? fopen(path, "re") : NULL;
    size_t size = 0;
    ssize_t length = file != NULL ? getline(&reason, &size, file) : -1;

    if (file != NULL) {
        fclose(file);
    }
    free(path);
    if (length <= 0) {
        free(reason);
        return NULL;
    }
    reason[strcspn(reason, "\n")] = '\0';
    return reason;
}

static void note_given_up(const struct search *search, const char *reason)
{
    char *path = given_up_path(search);
    FILE *file = fopen(path, "we");

    if (file == NULL || fprintf(file, "%s\n", reason) < 0 || fclose(file) != 0) {
        command_error("cannot write '%s': %s", path, strerror(errno));
    }
    free(path);
}

/* ---- the search ----------------------------------------------------------------------------- */

static void reset(const struct search *search, struct search_result *result)
{
    for (size_t i = 0; i < search->space->candidate_count; i++) {
        result->scores[i] = (struct search_score){.ratio = NAN, .low = NAN, .high = NAN};
    }
    result->live = result->live_processes_only = false;
    result->search_runs = result->search_flagged = 0;
    result->search_seed = 0;
}

/* NULL: the search was made, or interrupted; else why it could not be. */
static char *run_all(const struct search *search, size_t *candidates, size_t count,
                     struct search_result *result)
{
    char *reason = NULL;

    result->live = true;
    for (size_t batch = 0; batch < batch_count(count) && !result->interrupted; batch++) {
        if (!run_batch(search, candidates, count, batch, result, &reason)) {
            reset(search, result);
            return reason;
        }
        result->rounds++;
    }
    search_sort(search, result, candidates, count);
    if (!search->quiet && result->scores[candidates[0]].tried) {
        tune_print_round(search, result, candidates, count, stderr);
    }
    return NULL;
}

enum live_search_end live_search_run(const struct search *search, size_t *candidates, size_t count,
                                     struct search_result *result)
{
    const bool insists = search->live == SEARCH_LIVE_YES;
    const char *fault = obstacle(search);
    char *reason = fault != NULL ? memory_copy(fault) : NULL;

    if (search->live == SEARCH_LIVE_NO || count == 0) {
        free(reason);
        return LIVE_SEARCH_NOT;
    }
    if (reason == NULL && !insists) {
        reason = objection(search);
    }
    if (reason == NULL && !insists) {
        reason = given_up(search);
    }
    if (reason == NULL) {
        reason = unfit(search, candidates, count);
    }
    if (reason == NULL) {
        reason = run_all(search, candidates, count, result);
        if (reason == NULL) {
            return LIVE_SEARCH_MADE;
        }
        if (!insists) {
            note_given_up(search, reason);
        }
    }
    if (!insists) {
        result->why_not_live = reason;
        return LIVE_SEARCH_NOT;
    }
    command_error("--live: the search cannot be live: %s", reason);
    free(reason);
    return LIVE_SEARCH_FAILED;
}
