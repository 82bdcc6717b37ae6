/* SPDX-License-Identifier: Apache-2.0 */
#include "export_formats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "export.h"
#include "json_output.h"
#include "print.h"

enum {
    EXPORT_VERSION = 1,
};

/* In the order of the enumerations of analysis.h. */
static const char *const warning_names[] = {
    [AB_WARNING_OUTLIERS] = "outliers",
    [AB_WARNING_BIMODAL] = "bimodal",
    [AB_WARNING_DRIFT] = "drift",
    [AB_WARNING_NOT_APPLIED] = "not applied",
    [AB_WARNING_THROTTLED] = "throttled",
    [AB_WARNING_NOISE_FLOOR] = "noise floor",
    [AB_WARNING_FAILURES] = "failures",
    [AB_WARNING_FLAGGED_MATTERS] = "flagged blocks matter",
    [AB_WARNING_COST] = "cost of the preload",
    [AB_WARNING_NOT_COMPARABLE] = "not comparable",
};

static const char *const result_names[] = {
    [AB_RESULT_SHOWN] = "shown",
    [AB_RESULT_NOT_SHOWN] = "not shown",
    [AB_RESULT_INCONCLUSIVE] = "inconclusive",
    [AB_RESULT_BROKEN] = "broken",
};

static void set_number(json_t *object, const char *key, double number)
{
    json_object_set_new(object, key, isfinite(number) ? json_real(number) : json_null());
}

static void set_count(json_t *object, const char *key, size_t count)
{
    json_object_set_new(object, key, json_integer((json_int_t)count));
}

static void set_bool(json_t *object, const char *key, bool value)
{
    json_object_set_new(object, key, json_boolean(value));
}

static void set_text(json_t *object, const char *key, const char *text)
{
    json_object_set_new(object, key, json_output_string(text));
}

static json_t *interval(double low, double high, double level)
{
    json_t *object = json_object();

    set_number(object, "low", low);
    set_number(object, "high", high);
    set_number(object, "level", level);
    return object;
}

static json_t *comparison_json(const struct ab_experiment *experiment,
                               const struct ab_comparison *comparison)
{
    json_t *object = json_object();

    set_text(object, "arm", experiment->arms[comparison->arm].name);
    set_text(object, "metric", experiment->metrics[comparison->metric].name);
    set_bool(object, "exploratory", comparison->metric != 0);
    set_count(object, "pairs", comparison->pairs);
    set_number(object, "ratio", comparison->ratio);
    json_object_set_new(object, "interval",
                        interval(comparison->low, comparison->high, comparison->level));
    json_object_set_new(
        object, "margin_interval",
        interval(comparison->margin_low, comparison->margin_high, comparison->margin_level));
    set_number(object, "p", comparison->p);
    set_number(object, "p_adjusted", comparison->p_adjusted);
    set_text(object, "verdict", ab_verdict_names[comparison->verdict]);
    set_bool(object, "decided_at_look", comparison->decided_at_look);
    set_number(object, "blocks_for_ratio", comparison->blocks_for_ratio);
    set_number(object, "blocks_for_margin", comparison->blocks_for_margin);
    set_number(object, "smallest_detectable", comparison->smallest_detectable);
    return object;
}

static json_t *arm_json(const struct ab_arm *arm, const struct ab_arm_summary *summary)
{
    json_t *object = json_object(), *outcomes = json_object(), *modes = json_array();

    for (size_t i = 0; i < AB_OUTCOME_COUNT; i++) {
        set_count(outcomes, ab_outcome_names[i], summary->outcomes[i]);
    }
    set_text(object, "arm", arm->name);
    set_count(object, "runs", summary->runs);
    set_count(object, "ok", summary->ok);
    json_object_set_new(object, "outcomes", outcomes);
    set_number(object, "failure_p", summary->failure_p);
    set_bool(object, "fails_more", summary->fails_more);
    set_number(object, "mean", summary->mean);
    set_number(object, "median", summary->median);
    set_number(object, "deviation", summary->deviation);
    set_number(object, "least", summary->least);
    set_number(object, "most", summary->most);
    set_bool(object, "bimodal", summary->bimodal);
    for (size_t i = 0; summary->bimodal && i < 2; i++) {
        json_array_append_new(modes, isfinite(summary->modes[i]) ? json_real(summary->modes[i])
                                                                 : json_null());
    }
    json_object_set_new(object, "modes", modes);
    set_count(object, "outliers", summary->outliers);
    set_number(object, "drift", summary->drift);
    set_bool(object, "drifts", summary->drifts);
    set_count(object, "flagged", summary->flagged);
    set_bool(object, "rules_never_applied", summary->rules_never_applied);
    set_count(object, "rules_unmatched", summary->rules_unmatched);
    return object;
}

static json_t *warning_json(const struct ab_experiment *experiment,
                            const struct ab_warning *warning)
{
    json_t *object = json_object();

    set_text(object, "kind", warning_names[warning->kind]);
    set_text(object, "arm", experiment->arms[warning->arm].name);
    set_text(object, "text", warning->text);
    return object;
}

json_t *ab_analysis_json(const struct ab_experiment *experiment, const struct ab_analysis *analysis)
{
    json_t *object = json_object(), *comparisons = json_array(), *arms = json_array();
    json_t *warnings = json_array();
    char *answer = ab_answer(experiment, analysis);

    for (size_t i = 0; i < analysis->comparison_count; i++) {
        json_array_append_new(comparisons, comparison_json(experiment, &analysis->comparisons[i]));
    }
    for (size_t i = 0; i < experiment->arm_count; i++) {
        json_array_append_new(arms, arm_json(&experiment->arms[i], &analysis->arms[i]));
    }
    for (size_t i = 0; i < analysis->warning_count; i++) {
        json_array_append_new(warnings, warning_json(experiment, &analysis->warnings[i]));
    }
    set_text(object, "answer", answer);
    set_text(object, "result", result_names[analysis->result]);
    set_count(object, "exit_status", analysis->result);
    json_object_set_new(object, "winner",
                        analysis->winner == SIZE_MAX
                            ? json_null()
                            : json_output_string(experiment->arms[analysis->winner].name));
    set_count(object, "blocks", analysis->blocks);
    json_object_set_new(object, "look",
                        analysis->look == SIZE_MAX ? json_null()
                                                   : json_integer((json_int_t)analysis->look));
    set_number(object, "alpha_spent", analysis->alpha_spent);
    set_number(object, "alpha_here", analysis->alpha_here);
    set_bool(object, "done", analysis->done);
    json_object_set_new(object, "comparisons", comparisons);
    json_object_set_new(object, "arms", arms);
    json_object_set_new(object, "warnings", warnings);
    free(answer);
    return object;
}

json_t *ab_export_json(const struct ab_experiment *experiment, const struct ab_analysis *analysis)
{
    json_t *document = json_object(), *runs = json_array();

    for (size_t i = 0; i < experiment->run_count; i++) {
        json_array_append_new(runs, ab_run_json(experiment, &experiment->runs[i]));
    }
    set_text(document, "format", "cudapolicy ab");
    set_count(document, "version", EXPORT_VERSION);
    json_object_set_new(document, "experiment", ab_experiment_json(experiment));
    json_object_set_new(document, "runs", runs);
    json_object_set_new(document, "analysis", ab_analysis_json(experiment, analysis));
    return document;
}
