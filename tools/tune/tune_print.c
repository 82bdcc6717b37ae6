/* SPDX-License-Identifier: Apache-2.0 */
#include "tune_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_output.h"
#include "memory.h"
#include "printable.h"
#include "table.h"

static const char *const end_names[] = {
    [SEARCH_CONFIRMED] = "confirmed",       [SEARCH_NOTHING] = "nothing better",
    [SEARCH_INCONCLUSIVE] = "inconclusive", [SEARCH_BROKEN] = "broken",
    [SEARCH_NO_BASELINE] = "no baseline",   [SEARCH_FAILED] = "failed",
};

static const char *baseline_name(const struct search *search)
{
    static const char *const names[] = {
        [SEARCH_AGAINST_BASE] = "base",
        [SEARCH_AGAINST_NONE] = "none",
        [SEARCH_AGAINST_OBSERVE] = "observe",
    };

    return names[search->baseline];
}

static size_t tried_count(const struct search *search)
{
    return search->space->candidate_count - (search->with_base ? 0 : 1);
}

void tune_print_space(const struct search *search, FILE *stream)
{
    const struct space *space = search->space;
    struct table *table = table_new();

    fprintf(stream, "%zu candidate%s against %s, seed %" PRIu64 ":\n", tried_count(search),
            tried_count(search) == 1 ? "" : "s", baseline_name(search), search->plan.seed);
    table_column(table, "arm", TABLE_LEFT, false);
    table_column(table, "policy", TABLE_LEFT, true);
    for (size_t i = search->with_base ? 0 : 1; i < space->candidate_count; i++) {
        table_cell(table, "%s", space->candidates[i].arm);
        table_cell(table, "%s", i == 0 ? "the policy as it stands" : space->candidates[i].name);
    }
    table_print(table, stream, search->wide, "  ");
    table_free(table);
    for (size_t i = 0; i < space->left_out_count; i++) {
        char *name = printable_copy(space->left_out[i].name);

        fprintf(stream, "left out: %s: %s\n", name, space->left_out[i].reason);
        free(name);
    }
}

/* ---- a round of the search ------------------------------------------------------------------- */

static void print_score(struct table *table, const struct ab_metric *metric,
                        const struct search_score *score)
{
    table_count(table, (int64_t)score->blocks);
    if (isnan(score->ratio)) {
        table_cell(table, "-");
        table_cell(table, "-");
    } else {
        table_cell(table, "%.4f", score->ratio);
        table_cell(table, "%.3f", search_gain(metric, score->ratio));
    }
    if (isnan(score->low) || isnan(score->high)) {
        table_cell(table, "-");
    } else {
        table_cell(table, "%.4f .. %.4f", score->low, score->high);
    }
    table_cell(table, "%s", score->broken ? "broken" : score->idle ? "changes nothing" : "");
}

void tune_print_round(const struct search *search, const struct search_result *result,
                      const size_t *candidates, size_t count, FILE *stream)
{
    const struct ab_analysis *analysis = &result->search_analysis;
    const struct ab_metric *metric = search_metric(search, result);
    struct table *table = table_new();

    fprintf(stream, "\nSearch%s, ratio of %s to %s, best first:\n",
            result->live      ? ", live"
            : search->halving ? " so far"
                              : "",
            metric->name, baseline_name(search));
    table_column(table, "arm", TABLE_LEFT, true);
    table_column(table, "blocks", TABLE_RIGHT, false);
    table_column(table, "ratio", TABLE_RIGHT, false);
    table_column(table, "times as good", TABLE_RIGHT, false);
    table_column(table, result->live ? "interval" : "interval of the round", TABLE_LEFT, false);
    table_column(table, "", TABLE_LEFT, false);
    for (size_t i = 0; i < count; i++) {
        table_cell(table, "%s", search->space->candidates[candidates[i]].arm);
        print_score(table, metric, &result->scores[candidates[i]]);
    }
    table_print(table, stream, search->wide, "  ");
    table_free(table);
    if (result->live_processes_only) {
        fprintf(stream,
                "  The intervals are about the processes of these runs; --live-runs %d or more "
                "says something about others.\n",
                (int)AB_NESTED_RUNS);
    }
    if (result->live && result->search_flagged > 0) {
        fprintf(stream, "  warning: in %zu of %zu runs a GPU was slowed down or shared\n",
                result->search_flagged, result->search_runs);
    }
    for (size_t i = 0; i < analysis->warning_count; i++) {
        char *text = printable_copy(analysis->warnings[i].text);

        fprintf(stream, "  warning: %s: %s\n", result->search.arms[analysis->warnings[i].arm].name,
                text);
        free(text);
    }
}

/* ---- the answer ----------------------------------------------------------------------------- */

/* "ratio 0.7391, 95 % interval 0.7102 .. 0.7691, 20 blocks" */
static char *figures(double ratio, double low, double high, double level, size_t blocks)
{
    const char *plural = blocks == 1 ? "" : "s";

    if (isnan(ratio)) {
        return memory_copy("no ratio");
    }
    if (isnan(low) || isnan(high)) {
        return memory_format("ratio %.4f, %zu block%s, too few for an interval", ratio, blocks,
                             plural);
    }
    return memory_format("ratio %.4f, %.3g %% interval %.4f .. %.4f, %zu block%s", ratio,
                         100 * level, low, high, blocks, plural);
}

static char *score_figures(const struct search_score *score)
{
    return figures(score->ratio, score->low, score->high, score->level, score->blocks);
}

static char *confirmed_figures(const struct search_result *result)
{
    const struct ab_comparison *comparison = search_confirmation(result);

    if (comparison == NULL) {
        return memory_copy("no figures");
    }
    return figures(comparison->ratio, comparison->low, comparison->high, comparison->level,
                   comparison->pairs);
}

static void print_shrinkage(const struct search *search, const struct search_result *result,
                            FILE *stream)
{
    const struct search_score *score = &result->scores[result->best];
    const struct ab_comparison *comparison = search_confirmation(result);
    char *searched = score_figures(score), *confirmed = confirmed_figures(result);

    fprintf(stream, "  search:       %s (best of %zu, so it is probably too good%s%s)\n", searched,
            tried_count(search), result->live ? "; live, in " : "",
            result->live ? search_metric(search, result)->name : "");
    fprintf(stream, "  confirmation: %s (new runs, seed %" PRIu64 ")\n", confirmed,
            result->confirmation_seed);
    if (comparison != NULL && !isnan(comparison->ratio) &&
        search_metric(search, result) == &search->metrics[0]) {
        double before = 100 * (search_gain(search_metric(search, result), score->ratio) - 1);
        double after = 100 * (search_gain(&search->metrics[0], comparison->ratio) - 1);

        fprintf(stream, "  shrinkage:    from %+.1f %% in the search to %+.1f %%\n", before, after);
    }
    free(searched);
    free(confirmed);
}

static void print_confirmed(const struct search *search, const struct search_result *result,
                            const char *name, FILE *stream)
{
    const struct ab_comparison *comparison = search_confirmation(result);
    const struct ab_metric *metric = &search->metrics[0];
    double low = search_gain(metric, comparison->low), high = search_gain(metric, comparison->high);

    fprintf(stream,
            "%s is better than %s: %.3f times as good in %s (%.3g %% interval %.3f .. %.3f)\n",
            name, baseline_name(search), search_gain(metric, comparison->ratio), metric->name,
            100 * comparison->level, fmin(low, high), fmax(low, high));
}

static void print_inconclusive(const struct search *search, const struct search_result *result,
                               const char *name, FILE *stream)
{
    const struct ab_comparison *comparison = search_confirmation(result);

    if (result->interrupted || !result->confirmed) {
        fprintf(stream, "The search was ended before anything could be confirmed.\n");
        return;
    }
    fprintf(stream, "Not enough runs to say whether %s is better than %s", name,
            baseline_name(search));
    if (comparison != NULL && !isnan(comparison->blocks_for_ratio)) {
        fprintf(stream, "; about %.0f blocks would show a ratio of %.4f",
                comparison->blocks_for_ratio, comparison->ratio);
    }
    fputs(".\n", stream);
}

static void print_nothing(const struct search *search, const struct search_result *result,
                          const char *name, FILE *stream)
{
    if (search_changed_nothing(result)) {
        fprintf(stream, "Nothing beats %s: of %s, the best of the search, it is said: %s.\n",
                baseline_name(search), name, search_changed_nothing_text);
        return;
    }
    if (result->confirmed) {
        fprintf(stream,
                "Nothing beats %s: %s, the best of the search, is not better in new runs.\n",
                baseline_name(search), name);
        return;
    }
    if (result->scores[result->best].idle) {
        fprintf(stream,
                "Nothing beats %s: in no run of the search did a rule of a candidate that works "
                "change anything, nor one of the baseline.\n",
                baseline_name(search));
        return;
    }
    char *best = score_figures(&result->scores[result->best]);

    fprintf(stream,
            "Nothing beats %s by more than %g %%: the search rules it out for every candidate. "
            "The best was %s: %s.\n",
            baseline_name(search), 100 * search->plan.margin, name, best);
    free(best);
}

static void print_broken(const struct search_result *result, const char *name, FILE *stream)
{
    if (result->end == SEARCH_FAILED) {
        fputs("The search could not be made.\n", stream);
    } else if (result->end == SEARCH_BROKEN && result->confirmed) {
        fprintf(stream,
                "%s, the best of the search, is broken: it fails, or changes results, in "
                "new runs.\n",
                name);
    } else if (result->end == SEARCH_NO_BASELINE) {
        fputs("The baseline does not work, or has no such metric: there is nothing to compare "
              "with.\n",
              stream);
    } else {
        fputs("No candidate works.\n", stream);
    }
}

void tune_print_result(const struct search *search, const struct search_result *result,
                       FILE *stream)
{
    char *name = printable_copy(
        result->best == SIZE_MAX ? "" : search->space->candidates[result->best].name);

    switch (result->end) {
    case SEARCH_CONFIRMED:
        print_confirmed(search, result, name, stream);
        break;
    case SEARCH_NOTHING:
        print_nothing(search, result, name, stream);
        break;
    case SEARCH_INCONCLUSIVE:
        print_inconclusive(search, result, name, stream);
        break;
    case SEARCH_BROKEN:
    case SEARCH_NO_BASELINE:
    case SEARCH_FAILED:
        print_broken(result, name, stream);
        break;
    }
    if (result->confirmed) {
        print_shrinkage(search, result, stream);
    }
    if (result->end == SEARCH_CONFIRMED && search_takes_away(result)) {
        fprintf(stream, "  note:         %s\n", search_takes_away_text);
    }
    if (result->policy_changed != NULL) {
        char *change = printable_copy(result->policy_changed);

        fprintf(stream, "  warning:      %s; all this is about it as it was at the start\n",
                change);
        free(change);
    }
    free(name);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static json_t *number_json(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

static json_t *text_json(const char *text)
{
    return text != NULL ? json_output_string(text) : json_null();
}

/* Integers of JSON readers end early; a seed has 64 bits. */
static json_t *seed_json(uint64_t seed)
{
    char digits[24];

    if (seed <= INT64_MAX) {
        return json_integer((json_int_t)seed);
    }
    snprintf(digits, sizeof digits, "%" PRIu64, seed);
    return json_string(digits);
}

static json_t *candidate_json(const struct search *search, const struct search_result *result,
                              size_t candidate)
{
    const struct search_score *score = &result->scores[candidate];

    return json_pack("{s:o, s:s, s:b, s:b, s:I, s:o, s:o, s:o, s:o}", "name",
                     json_output_string(search->space->candidates[candidate].name), "arm",
                     search->space->candidates[candidate].arm, "broken", score->broken, "idle",
                     score->idle, "blocks", (json_int_t)score->blocks, "ratio",
                     number_json(score->ratio), "low", number_json(score->low), "high",
                     number_json(score->high), "level",
                     number_json(score->blocks > 0 ? score->level : NAN));
}

static json_t *search_json(const struct search *search, const struct search_result *result)
{
    json_t *candidates = json_array(), *left_out = json_array();

    for (size_t i = search->with_base ? 0 : 1; i < search->space->candidate_count; i++) {
        json_array_append_new(candidates, candidate_json(search, result, i));
    }
    for (size_t i = 0; i < search->space->left_out_count; i++) {
        json_array_append_new(
            left_out,
            json_pack("{s:o, s:o}", "name", json_output_string(search->space->left_out[i].name),
                      "reason", json_output_string(search->space->left_out[i].reason)));
    }
    return json_pack("{s:o, s:b, s:s?, s:s, s:b, s:I, s:I, s:I, s:o, s:o}", "seed",
                     seed_json(result->search_seed), "live", result->live, "why_not_live",
                     result->why_not_live, "metric", search_metric(search, result)->name,
                     "these_processes_only", result->live_processes_only, "rounds",
                     (json_int_t)result->rounds, "runs", (json_int_t)result->search_runs, "flagged",
                     (json_int_t)result->search_flagged, "candidates", candidates, "left_out",
                     left_out);
}

static json_t *confirmation_json(const struct search_result *result)
{
    const struct ab_comparison *comparison = search_confirmation(result);

    if (comparison == NULL) {
        return json_null();
    }
    return json_pack("{s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:s, s:b}", "seed",
                     seed_json(result->confirmation_seed), "runs",
                     (json_int_t)result->confirmation.run_count, "flagged",
                     (json_int_t)(result->confirmation_analysis.arms[0].flagged +
                                  result->confirmation_analysis.arms[1].flagged),
                     "blocks", (json_int_t)comparison->pairs, "ratio",
                     number_json(comparison->ratio), "low", number_json(comparison->low), "high",
                     number_json(comparison->high), "level", number_json(comparison->level),
                     "verdict", ab_verdict_names[comparison->verdict], "changed_nothing",
                     search_changed_nothing(result));
}

json_t *tune_result_json(const struct search *search, const struct search_result *result)
{
    json_t *best = json_null();

    if (result->best != SIZE_MAX) {
        best = json_output_string(search->space->candidates[result->best].name);
    }
    return json_pack(
        "{s:s, s:i, s:s, s:o, s:s, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "format",
        "cudapolicy tune", "schema", 1, "result", end_names[result->end], "policy",
        json_output_string(search->policy), "policy_sha256", search->policy_sha256,
        "policy_changed", text_json(result->policy_changed), "baseline", baseline_name(search),
        "metric", search->metrics[0].name, "direction",
        search->metrics[0].direction == AB_LESS_IS_BETTER ? "less" : "more", "seed",
        seed_json(search->plan.seed), "gpus", text_json(search->gpus), "best", best, "search",
        search_json(search, result), "confirmation", confirmation_json(result));
}
