/* SPDX-License-Identifier: Apache-2.0 */

/* A live comparison for a person, and as JSON. */

#include "live.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decide/live.h"
#include "memory.h"
#include "table.h"
#include "wording.h"

static char step_name[] = "step time", step_unit[] = "s";
static const struct ab_metric step_time = {
    .name = step_name, .unit = step_unit, .source = AB_METRIC_STEP};

static void print_columns(struct table *table, const struct ab_scale *scale)
{
    char *heading = ab_metric_heading(&step_time, scale);

    table_column(table, "arm", TABLE_LEFT, true);
    table_column(table, "what", TABLE_LEFT, false);
    table_column(table, heading, TABLE_RIGHT, false);
    table_column(table, "+-", TABLE_RIGHT, false);
    table_column(table, "ratio", TABLE_RIGHT, false);
    table_column(table, "interval", TABLE_RIGHT, false);
    table_column(table, "p", TABLE_RIGHT, false);
    table_column(table, "verdict", TABLE_LEFT, false);
    free(heading);
}

static void print_row(struct table *table, const struct ab_live_comparison *comparison,
                      const struct ab_arm *arm, const struct ab_scale *scale)
{
    const struct ab_nested *nested = &comparison->nested;
    const int decimals = ab_ratio_decimals(nested->ratio, nested->low, nested->high, 3);
    struct ab_text text;

    table_cell(table, "%s", arm->name);
    table_cell(table, "%s", ab_role_words[arm->role]);
    table_cell(table, "%s", ab_number(&text, scale, comparison->mean));
    table_cell(table, "%s", ab_number(&text, scale, comparison->deviation));
    if (arm->role == AB_ROLE_BASELINE) {
        for (int i = 0; i < 4; i++) {
            table_cell(table, "%s", "");
        }
        return;
    }
    table_cell(table, "%s", ab_ratio(&text, nested->ratio, decimals));
    table_cell(table, "%s", ab_interval(&text, nested->low, nested->high, decimals));
    table_cell(table, "%s", ab_probability(&text, comparison->p_adjusted));
    table_cell(table, "%s",
               arm->role == AB_ROLE_CANDIDATE ? ab_live_verdict_names[comparison->verdict] : "");
}

static void print_method(const struct ab_live_comparison *comparisons,
                         const struct ab_experiment *experiment, const struct ab_live_run *runs,
                         size_t run_count, const struct ab_live_plan *plan, FILE *stream)
{
    struct ab_text text;
    size_t ranks = 0;

    for (size_t i = 0; i < run_count; i++) {
        ranks = runs[i].ranks > ranks ? runs[i].ranks : ranks;
    }
    fprintf(stream,
            "%zu blocks in %zu run%s of %zu rank%s; slices of %" PRIu32 " steps, the first %" PRIu32
            " dropped; seed %" PRIu64 "\n",
            comparisons[0].blocks, run_count, run_count == 1 ? "" : "s", ranks,
            ranks == 1 ? "" : "s", plan->slice, plan->drop, plan->seed);
    if (experiment->arm_count > 1 && comparisons[1].nested.these_processes_only) {
        fprintf(stream,
                "The %s intervals are about the processes of %s: what differs from process to "
                "process is not in them; --runs %d or more is.\n",
                ab_percent(&text, 1 - plan->alpha), run_count == 1 ? "this run" : "these runs",
                (int)AB_NESTED_RUNS);
    }
}

void ab_live_print(const struct ab_live_comparison *comparisons,
                   const struct ab_experiment *experiment, const struct ab_live_run *runs,
                   size_t run_count, const struct ab_live_plan *plan, bool wide, FILE *stream)
{
    const struct ab_scale scale =
        ab_scale_of(&step_time, comparisons[0].mean, comparisons[0].deviation);
    struct table *table = table_new();

    print_columns(table, &scale);
    for (size_t arm = 0; arm < experiment->arm_count; arm++) {
        print_row(table, &comparisons[arm], &experiment->arms[arm], &scale);
    }
    table_print(table, stream, wide, "");
    table_free(table);
    print_method(comparisons, experiment, runs, run_count, plan, stream);
}

/* ---- JSON --------------------------------------------------------------------------------------
 */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *arm_json(const struct ab_live_comparison *comparison, const struct ab_arm *arm)
{
    const struct ab_nested *nested = &comparison->nested;
    json_t *object =
        json_pack("{s:s, s:s, s:I, s:o, s:o}", "name", arm->name, "role", ab_role_words[arm->role],
                  "blocks", (json_int_t)comparison->blocks, "mean", number(comparison->mean),
                  "deviation", number(comparison->deviation));

    if (arm->role == AB_ROLE_BASELINE) {
        return object;
    }
    json_object_set_new(object, "ratio", number(nested->ratio));
    json_object_set_new(object, "low", number(nested->low));
    json_object_set_new(object, "high", number(nested->high));
    json_object_set_new(object, "level", number(nested->level));
    json_object_set_new(object, "margin_low", number(comparison->margin_low));
    json_object_set_new(object, "margin_high", number(comparison->margin_high));
    json_object_set_new(object, "p", number(nested->p));
    json_object_set_new(object, "p_adjusted", number(comparison->p_adjusted));
    json_object_set_new(object, "these_processes_only", json_boolean(nested->these_processes_only));
    if (arm->role == AB_ROLE_CANDIDATE) {
        json_object_set_new(object, "verdict",
                            json_string(ab_live_verdict_names[comparison->verdict]));
    }
    return object;
}

static json_t *run_json(const struct ab_live_run *run, size_t arms)
{
    json_t *blocks = json_array();

    for (size_t block = 0; block < run->block_count; block++) {
        json_t *row = json_array();

        for (size_t arm = 0; arm < arms; arm++) {
            json_array_append_new(row, number(run->blocks[block * arms + arm]));
        }
        json_array_append_new(blocks, row);
    }
    return json_pack("{s:I, s:I, s:I, s:o}", "ranks", (json_int_t)run->ranks, "steps",
                     (json_int_t)run->steps, "steps_most", (json_int_t)run->steps_most, "blocks",
                     blocks);
}

json_t *ab_live_json(const struct ab_live_comparison *comparisons,
                     const struct ab_experiment *experiment, const struct ab_live_run *runs,
                     size_t run_count, const struct ab_live_plan *plan)
{
    char *seed = memory_format("%" PRIu64, plan->seed);
    json_t *arms = json_array(), *made = json_array(), *document;

    for (size_t arm = 0; arm < experiment->arm_count; arm++) {
        json_array_append_new(arms, arm_json(&comparisons[arm], &experiment->arms[arm]));
    }
    for (size_t i = 0; i < run_count; i++) {
        json_array_append_new(made, run_json(&runs[i], experiment->arm_count));
    }
    document = json_pack("{s:s, s:i, s:s, s:I, s:I, s:I, s:o, s:f, s:f, s:o, s:o}", "format",
                         "cudapolicy live comparison", "schema", 1, "seed", seed, "slice",
                         (json_int_t)plan->slice, "drop", (json_int_t)plan->drop, "warm_up",
                         (json_int_t)plan->warm_up, "step_kernel",
                         plan->step_kernel != NULL ? json_string(plan->step_kernel) : json_null(),
                         "alpha", plan->alpha, "margin", plan->margin, "arms", arms, "runs", made);
    free(seed);
    return document;
}
