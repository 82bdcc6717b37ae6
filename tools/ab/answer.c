/* SPDX-License-Identifier: Apache-2.0 */

/* One sentence that says what the experiment shows. See print.h. */

#include "print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "wording.h"

/* ", 5 runs", of arms that alternate inside runs. */
static const char *of_runs(const struct ab_experiment *experiment, struct ab_text *text)
{
    const struct ab_live_design *live = experiment->live;

    if (live == NULL) {
        return "";
    }
    snprintf(text->text, sizeof text->text,
             live->these_processes_only ? ", in the processes of %zu run%s only" : " in %zu run%s",
             live->runs_made, live->runs_made == 1 ? "" : "s");
    return text->text;
}

/* "95 % interval 1.31 .. 1.55, 20 blocks" */
static char *evidence(const struct ab_experiment *experiment,
                      const struct ab_comparison *comparison, double low, double high, double level,
                      int decimals)
{
    struct ab_text interval, percent, runs;

    return memory_format("%s interval %s, %zu block%s%s%s", ab_percent(&percent, level),
                         ab_interval(&interval, low, high, decimals), comparison->pairs,
                         comparison->pairs == 1 ? "" : "s", of_runs(experiment, &runs),
                         comparison->decided_at_look ? "" : ", between the planned looks");
}

/* A ratio in the words of its metric, after the arm's name: "is 1.42 times as fast as none", for
 * which the interval is that of the inverse. */
static char *in_words(const struct ab_experiment *experiment,
                      const struct ab_comparison *comparison, bool faster)
{
    const struct ab_metric *metric = &experiment->metrics[comparison->metric];
    const char *baseline = experiment->arms[0].name;
    double ratio = comparison->ratio, low = comparison->low, high = comparison->high;
    bool known = isfinite(low) && isfinite(high);
    struct ab_text number;
    char *claim, *numbers, *text;
    int decimals;

    if (ab_metric_is_time(metric) && faster) {
        ratio = 1 / comparison->ratio;
        low = 1 / comparison->high;
        high = 1 / comparison->low;
    }
    decimals = ab_ratio_decimals(ratio, low, high, 2);
    ab_ratio(&number, ratio, decimals);
    if (ab_metric_is_time(metric)) {
        claim = faster ? memory_format("%s times as fast as %s", number.text, baseline)
                       : memory_format("%s times as long as %s", number.text, baseline);
    } else {
        claim =
            memory_format("%s times the %s of %s, where %s is better", number.text, metric->name,
                          baseline, metric->direction == AB_LESS_IS_BETTER ? "less" : "more");
    }
    numbers = known ? evidence(experiment, comparison, low, high, comparison->level, decimals)
                    : memory_format("%zu block%s, too few for an interval", comparison->pairs,
                                    comparison->pairs == 1 ? "" : "s");
    text = memory_format("%s (%s)", claim, numbers);
    free(claim);
    free(numbers);
    return text;
}

static char *shown(const struct ab_experiment *experiment, const struct ab_comparison *comparison,
                   bool better)
{
    const struct ab_metric *metric = &experiment->metrics[comparison->metric];
    const char *arm = experiment->arms[comparison->arm].name;
    char *words = in_words(experiment, comparison, better), *text;

    if (ab_metric_is_time(metric)) {
        text = better ? memory_format("%s is %s", arm, words)
                      : memory_format("%s is slower: it takes %s", arm, words);
    } else {
        text = memory_format("%s is %s: it has %s", arm, better ? "better" : "worse", words);
    }
    free(words);
    return text;
}

static char *no_difference(const struct ab_experiment *experiment,
                           const struct ab_comparison *comparison)
{
    struct ab_text margin;
    int decimals =
        ab_ratio_decimals(comparison->ratio, comparison->margin_low, comparison->margin_high, 3);
    char *numbers = evidence(experiment, comparison, comparison->margin_low,
                             comparison->margin_high, comparison->margin_level, decimals);
    char *text = memory_format("%s and %s: no difference larger than %s in %s (%s)",
                               experiment->arms[comparison->arm].name, experiment->arms[0].name,
                               ab_percent(&margin, experiment->plan.margin),
                               experiment->metrics[comparison->metric].name, numbers);

    free(numbers);
    return text;
}

/* How many blocks would do, rounded up to what one would ask for. Where arms alternate inside many
 * runs it is runs that are few. */
static void append_blocks(char **text, const struct ab_experiment *experiment, double blocks,
                          const char *what)
{
    const char *units =
        experiment->live != NULL && !experiment->live->these_processes_only ? "runs" : "blocks";

    if (isfinite(blocks) && blocks > 0 && blocks < 1e6) {
        ab_append(text, "; about %.0f %s would %s", ceil(blocks), units, what);
    } else if (blocks >= 1e6) {
        ab_append(text, "; more than a million %s would be needed to %s", units, what);
    }
}

static char *not_enough(const struct ab_experiment *experiment,
                        const struct ab_comparison *comparison)
{
    const char *arm = experiment->arms[comparison->arm].name;
    const char *baseline = experiment->arms[0].name;
    const struct ab_metric *metric = &experiment->metrics[comparison->metric];
    bool less = comparison->ratio < 1;
    struct ab_text margin;
    char *words, *exclude, *text = NULL;

    if (!isfinite(comparison->ratio)) {
        return memory_format("not enough runs to compare %s with %s: there is no block in which "
                             "both have a positive value",
                             arm, baseline);
    }
    words = in_words(experiment, comparison, less);
    ab_append(&text, "not enough runs%s to say whether %s and %s differ: seen was that %s %s %s",
              experiment->live != NULL ? " or steps" : "", arm, baseline, arm,
              !ab_metric_is_time(metric) ? "has"
              : less                     ? "is"
                                         : "takes",
              words);
    free(words);
    append_blocks(&text, experiment, comparison->blocks_for_ratio, "show such a difference");
    exclude =
        memory_format("exclude one larger than %s", ab_percent(&margin, experiment->plan.margin));
    append_blocks(&text, experiment, comparison->blocks_for_margin, exclude);
    free(exclude);
    return text;
}

static char *broken(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                    const struct ab_comparison *comparison)
{
    const struct ab_arm_summary *arm = &analysis->arms[comparison->arm];
    const struct ab_arm_summary *baseline = &analysis->arms[0];
    bool changes = arm->outcomes[AB_CHECK_FAILED] + arm->outcomes[AB_OUTPUT_DIFFERS] > 0;
    char *failures = ab_failures(arm);
    char *text = memory_format("%s is broken: %s; %zu of its %zu runs failed%s%s%s, %zu of %zu of "
                               "%s",
                               experiment->arms[comparison->arm].name,
                               changes ? "it changes results" : "it fails more often",
                               ab_failed(arm), arm->runs, failures[0] == '\0' ? "" : " (", failures,
                               failures[0] == '\0' ? "" : ")", ab_failed(baseline), baseline->runs,
                               experiment->arms[0].name);

    free(failures);
    return text;
}

static char *not_applied(const struct ab_experiment *experiment,
                         const struct ab_comparison *comparison)
{
    struct ab_text ratio;
    int decimals = ab_ratio_decimals(comparison->ratio, comparison->low, comparison->high, 3);

    return memory_format("%s is not better by its policy, whose rules changed nothing in any run: "
                         "the ratio %s is chance, or has another cause",
                         experiment->arms[comparison->arm].name,
                         ab_ratio(&ratio, comparison->ratio, decimals));
}

static char *clause(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                    const struct ab_comparison *comparison)
{
    switch (comparison->verdict) {
    case AB_VERDICT_BETTER:
        return shown(experiment, comparison, true);
    case AB_VERDICT_WORSE:
        return shown(experiment, comparison, false);
    case AB_VERDICT_NO_DIFFERENCE:
        return no_difference(experiment, comparison);
    case AB_VERDICT_BROKEN:
        return broken(experiment, analysis, comparison);
    case AB_VERDICT_NOT_APPLIED:
        return not_applied(experiment, comparison);
    case AB_VERDICT_NOT_ENOUGH:
    case AB_VERDICT_COUNT:
        break;
    }
    return not_enough(experiment, comparison);
}

/* "b: worse (ratio 1.20)", "c: broken (2 of 20 runs failed)" */
static void append_short(char **text, const struct ab_experiment *experiment,
                         const struct ab_analysis *analysis, const struct ab_comparison *comparison)
{
    const struct ab_arm_summary *arm = &analysis->arms[comparison->arm];
    int decimals = ab_ratio_decimals(comparison->ratio, comparison->low, comparison->high, 3);
    char *verdict = ab_verdict_words(experiment, comparison);
    struct ab_text ratio;

    ab_append(text, "%s: %s", experiment->arms[comparison->arm].name, verdict);
    if (comparison->verdict == AB_VERDICT_BROKEN) {
        ab_append(text, " (%zu of %zu runs failed)", ab_failed(arm), arm->runs);
    } else if (isfinite(comparison->ratio)) {
        ab_append(text, " (ratio %s)", ab_ratio(&ratio, comparison->ratio, decimals));
    }
    free(verdict);
}

/* ---- Several candidates ---- */

enum {
    ALL_NAMED = 6,  /* as many candidates are all named */
    SOME_NAMED = 4, /* of more, so many are, and the others counted */
};

/* Where a candidate stands: the winner, others that are better, those that are broken since the
 * exit status comes from them, the rest. */
static int rank_of(const struct ab_analysis *analysis, size_t arm)
{
    enum ab_verdict verdict = ab_analysis_comparison(analysis, arm, 0)->verdict;

    return arm == analysis->winner        ? 0
           : verdict == AB_VERDICT_BETTER ? 1
           : verdict == AB_VERDICT_BROKEN ? 2
                                          : 3;
}

/* The larger, the better. */
static double gain_of(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                      size_t arm)
{
    double ratio = ab_analysis_comparison(analysis, arm, 0)->ratio;

    if (!(ratio > 0) || !isfinite(ratio)) {
        return 0;
    }
    return experiment->metrics[0].direction == AB_LESS_IS_BETTER ? 1 / ratio : ratio;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Best first; where all are named, those behind the better ones as they were given. */
static void sort_candidates(const struct ab_experiment *experiment,
                            const struct ab_analysis *analysis, size_t *candidates, size_t count)
{
    const int most = count <= ALL_NAMED ? 2 : 3;

    for (size_t i = 1; i < count; i++) {
        size_t arm = candidates[i], place = i;

        for (; place > 0; place--) {
            size_t before = candidates[place - 1];
            int difference =
                least(rank_of(analysis, before), most) - least(rank_of(analysis, arm), most);

            if (difference < 0 || (difference == 0 && (count <= ALL_NAMED ||
                                                       gain_of(experiment, analysis, before) >=
                                                           gain_of(experiment, analysis, arm)))) {
                break;
            }
            candidates[place] = before;
        }
        candidates[place] = arm;
    }
}

/* "26 others: 1 better, 20 not enough runs, 5 no difference over 1 %" */
static void append_others(char **text, const struct ab_experiment *experiment,
                          const struct ab_analysis *analysis, const size_t *others, size_t count)
{
    size_t verdicts[AB_VERDICT_COUNT] = {0};
    const char *separator = ": ";

    for (size_t i = 0; i < count; i++) {
        verdicts[ab_analysis_comparison(analysis, others[i], 0)->verdict]++;
    }
    ab_append(text, "; %zu others", count);
    for (size_t i = 0; i < count; i++) {
        const struct ab_comparison *comparison = ab_analysis_comparison(analysis, others[i], 0);
        char *words;

        if (verdicts[comparison->verdict] > 0) {
            words = ab_verdict_words(experiment, comparison);
            if (verdicts[comparison->verdict] == count) {
                ab_append(text, ": %s", words);
            } else {
                ab_append(text, "%s%zu %s", separator, verdicts[comparison->verdict], words);
            }
            free(words);
            verdicts[comparison->verdict] = 0;
            separator = ", ";
        }
    }
}

/* What holds of all of them together where none is better. */
static void append_head(char **text, const struct ab_experiment *experiment,
                        const struct ab_analysis *analysis, const size_t *candidates, size_t count)
{
    size_t verdicts[AB_VERDICT_COUNT] = {0};
    struct ab_text margin;

    for (size_t i = 0; i < count; i++) {
        verdicts[ab_analysis_comparison(analysis, candidates[i], 0)->verdict]++;
    }
    if (verdicts[AB_VERDICT_BETTER] > 0) {
        return;
    }
    if (verdicts[AB_VERDICT_NO_DIFFERENCE] == count) {
        ab_append(text, "no candidate differs from %s by more than %s: ", experiment->arms[0].name,
                  ab_percent(&margin, experiment->plan.margin));
    } else {
        ab_append(text, "none of the %zu candidates is shown to be better than %s: ", count,
                  experiment->arms[0].name);
    }
}

/* The winner in full, then the others in short; without one, all that are better in full, or all
 * in short behind what holds of them together. Of many, the best few and how many others. */
static char *of_several(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                        size_t *candidates, size_t count)
{
    size_t named = count <= ALL_NAMED ? count : SOME_NAMED;
    char *text = NULL;

    sort_candidates(experiment, analysis, candidates, count);
    append_head(&text, experiment, analysis, candidates, count);
    for (size_t i = 0; i < named; i++) {
        const struct ab_comparison *comparison = ab_analysis_comparison(analysis, candidates[i], 0);
        int rank = rank_of(analysis, candidates[i]);

        if (i > 0) {
            ab_append(&text, "; ");
        }
        if (rank == 0 || (rank == 1 && analysis->winner == SIZE_MAX)) {
            char *words = clause(experiment, analysis, comparison);

            ab_append(&text, "%s", words);
            free(words);
        } else {
            append_short(&text, experiment, analysis, comparison);
        }
    }
    if (named < count) {
        append_others(&text, experiment, analysis, candidates + named, count - named);
    }
    return text;
}

char *ab_answer(const struct ab_experiment *experiment, const struct ab_analysis *analysis)
{
    size_t *candidates = memory_allocate(experiment->arm_count + 1, sizeof *candidates);
    size_t count = 0;
    char *text;

    for (size_t arm = 1; arm < experiment->arm_count; arm++) {
        if (experiment->arms[arm].role == AB_ROLE_CANDIDATE &&
            ab_analysis_comparison(analysis, arm, 0) != NULL) {
            candidates[count++] = arm;
        }
    }
    if (analysis->arms[0].ok == 0) {
        char *failures = ab_failures(&analysis->arms[0]);

        text = memory_format("no answer: no run of the baseline %s succeeded%s%s%s",
                             experiment->arms[0].name, failures[0] == '\0' ? "" : " (", failures,
                             failures[0] == '\0' ? "" : ")");
        free(failures);
    } else if (count == 0) {
        text = memory_format("no candidate was compared with %s", experiment->arms[0].name);
    } else if (count == 1) {
        text = clause(experiment, analysis, ab_analysis_comparison(analysis, candidates[0], 0));
    } else {
        text = of_several(experiment, analysis, candidates, count);
    }
    free(candidates);
    return text;
}
