/* SPDX-License-Identifier: Apache-2.0 */
#include "live_view.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

#include "blocks.h"
#include "decide/live.h"
#include "memory.h"
#include "metric.h"
#include "policy/policy.h"
#include "sequential.h"
#include "statistics.h"
#include "warnings.h"

static const double power = 0.8; /* as elsewhere, for how much would do */

/* ---- Slices as runs ---- */

static bool is_flagged(const struct ab_live_run *run)
{
    return run->gpu.known && run->gpu.flags != 0;
}

/* Position of the arm in the block; by its number where that is not known. */
static uint32_t position_of(const struct ab_live_run *run, const struct ab_live_plan *plan,
                            size_t block, size_t arm, size_t arms)
{
    uint8_t order[POLICY_ARM_LIMIT];
    uint32_t position = 0;

    if (run->places == NULL || arms > POLICY_ARM_LIMIT) {
        return (uint32_t)arm;
    }
    decide_live_order(plan->seed, run->places[block].block, (unsigned)arms, order);
    while (position + 1 < arms && order[position] != arm) {
        position++;
    }
    return position;
}

/* The mean of an arm's slices in count blocks from first on. */
static double mean_of(const struct ab_live_run *run, size_t first, size_t count, size_t arm,
                      size_t arms)
{
    return gsl_stats_mean(&run->blocks[first * arms + arm], arms, count);
}

/* The slices of a block, or of several that are shown as one, in their order. */
static void add_block(struct ab_live_view *view, const struct ab_live_run *run, uint32_t number,
                      size_t first, size_t count, const struct ab_live_plan *plan, uint32_t block)
{
    const size_t arms = view->experiment.arm_count;

    for (size_t position = 0; position < arms; position++) {
        for (size_t arm = 0; arm < arms; arm++) {
            struct ab_run *slice;

            if (position_of(run, plan, first, arm, arms) != position) {
                continue;
            }
            slice = ab_experiment_add_run(&view->experiment);
            slice->block = block;
            slice->position = (uint32_t)position;
            slice->arm = (uint32_t)arm;
            slice->live_run = number;
            slice->gpu = run->gpu;
            slice->values[0] =
                (struct ab_run_value){.value = mean_of(run, first, count, arm, arms),
                                      .count = (int64_t)count * (plan->slice - plan->drop),
                                      .warm_up = (int64_t)count * plan->drop,
                                      .autocorrelation = NAN};
            if (plan->metric == NULL) {
                slice->seconds = slice->values[0].value * (double)slice->values[0].count;
            }
        }
    }
}

static void add_slices(struct ab_live_view *view, const struct ab_live_run *runs, size_t run_count,
                       const struct ab_live_plan *plan)
{
    const size_t together = view->design.together;
    uint32_t block = 0;

    for (size_t i = 0; i < run_count; i++) {
        for (size_t first = 0; first < runs[i].block_count; first += together) {
            const size_t left = runs[i].block_count - first;

            add_block(view, &runs[i], (uint32_t)i, first, left < together ? left : together, plan,
                      block++);
        }
    }
}

/* ---- What was made ---- */

static void fill_design(struct ab_live_view *view, const struct ab_experiment *experiment,
                        const struct ab_live_comparison *comparisons,
                        const struct ab_live_run *runs, size_t run_count,
                        const struct ab_live_plan *plan, size_t most)
{
    struct ab_live_design *design = &view->design;

    *design = experiment->live != NULL ? *experiment->live
                                       : (struct ab_live_design){.slice = plan->slice,
                                                                 .drop = plan->drop,
                                                                 .warm_up = plan->warm_up,
                                                                 .runs = (uint32_t)run_count};
    design->step_kernel = plan->step_kernel;
    design->runs_made = run_count;
    design->ranks = design->parts = design->left_out = design->blocks = 0;
    for (size_t i = 0; i < run_count; i++) {
        design->ranks = runs[i].ranks > design->ranks ? runs[i].ranks : design->ranks;
        design->parts = runs[i].parts > design->parts ? runs[i].parts : design->parts;
        design->left_out += runs[i].shared_rank + runs[i].too_short;
        design->blocks += runs[i].block_count;
    }
    design->together = most == 0 || design->blocks <= most ? 1 : (design->blocks + most - 1) / most;
    design->these_processes_only =
        experiment->arm_count > 1 && comparisons[1].nested.these_processes_only;
}

/* ---- The analysis ---- */

static void summarise(struct ab_live_view *view, const struct ab_live_comparison *comparison,
                      const struct ab_live_run *runs, size_t run_count, size_t arm)
{
    const size_t arms = view->experiment.arm_count;
    struct ab_arm_summary *summary = &view->analysis.arms[arm];
    double *values = memory_allocate(comparison->blocks + 1, sizeof *values);
    size_t count = 0;

    for (size_t i = 0; i < run_count; i++) {
        for (size_t block = 0; block < runs[i].block_count; block++) {
            values[count++] = runs[i].blocks[block * arms + arm];
        }
        summary->flagged += is_flagged(&runs[i]) ? runs[i].block_count : 0;
    }
    gsl_sort(values, 1, count);
    summary->runs = summary->ok = summary->outcomes[AB_OK] = count;
    summary->failure_p = summary->drift = NAN;
    summary->mean = comparison->mean;
    summary->deviation = comparison->deviation;
    summary->median = count > 0 ? gsl_stats_median_from_sorted_data(values, 1, count) : NAN;
    summary->least = count > 0 ? values[0] : NAN;
    summary->most = count > 0 ? values[count - 1] : NAN;
    ab_live_summarise_rules(summary, runs, run_count, arm);
    free(values);
}

/* How many runs, or with few of them how many blocks, would do: the units of the interval. */
static void add_needed(struct ab_comparison *made, const struct ab_nested *nested,
                       const struct ab_live_plan *plan)
{
    const double units =
        nested->these_processes_only ? (double)nested->slices : (double)nested->runs;
    const double deviation = nested->deviation * sqrt(units);

    made->blocks_for_ratio = made->blocks_for_margin = made->smallest_detectable = NAN;
    if (!isfinite(deviation) || !(deviation > 0)) {
        return;
    }
    made->blocks_for_ratio = ab_blocks_needed(deviation, nested->mean, plan->alpha, power);
    made->blocks_for_margin =
        ab_blocks_needed_for_none(deviation, log1p(plan->margin), plan->alpha, power);
    made->smallest_detectable = exp(ab_difference_seen(deviation, units, plan->alpha, power));
}

static void add_comparison(struct ab_comparison *made, const struct ab_live_comparison *comparison,
                           const struct ab_live_plan *plan, size_t arm)
{
    static const enum ab_verdict verdicts[] = {
        [AB_LIVE_BETTER] = AB_VERDICT_BETTER,
        [AB_LIVE_WORSE] = AB_VERDICT_WORSE,
        [AB_LIVE_NO_DIFFERENCE] = AB_VERDICT_NO_DIFFERENCE,
        [AB_LIVE_NOT_ENOUGH] = AB_VERDICT_NOT_ENOUGH,
        [AB_LIVE_NOT_APPLIED] = AB_VERDICT_NOT_APPLIED,
    };
    const struct ab_nested *nested = &comparison->nested;

    *made = (struct ab_comparison){.arm = arm,
                                   .pairs = comparison->blocks,
                                   .ratio = nested->ratio,
                                   .low = nested->low,
                                   .high = nested->high,
                                   .level = nested->level,
                                   .margin_low = comparison->margin_low,
                                   .margin_high = comparison->margin_high,
                                   .margin_level = 1 - 2 * plan->alpha,
                                   .p = nested->p,
                                   .p_adjusted = comparison->p_adjusted,
                                   .verdict = verdicts[comparison->verdict],
                                   .decided_at_look = true};
    add_needed(made, nested, plan);
}

/* Whether the verdict would be another one without the runs in which a GPU was flagged. */
static void warn_where_flags_matter(struct ab_live_view *view,
                                    const struct ab_live_comparison *comparisons,
                                    const struct ab_experiment *experiment,
                                    const struct ab_live_run *runs, size_t run_count,
                                    const struct ab_live_plan *plan)
{
    struct ab_live_comparison *without = memory_allocate(experiment->arm_count, sizeof *without);
    struct ab_live_run *kept = memory_allocate(run_count + 1, sizeof *kept);
    struct ab_analysis *analysis = &view->analysis;
    size_t count = 0;

    for (size_t i = 0; i < run_count; i++) {
        if (!is_flagged(&runs[i])) {
            kept[count++] = runs[i];
        }
    }
    if (count < run_count) {
        ab_live_compare(without, experiment, kept, count, plan);
    }
    for (size_t arm = 1; arm < experiment->arm_count && count < run_count; arm++) {
        if (experiment->arms[arm].role != AB_ROLE_CANDIDATE ||
            without[arm].verdict == comparisons[arm].verdict) {
            continue;
        }
        analysis->warnings = memory_grow(analysis->warnings, analysis->warning_count,
                                         &analysis->warning_capacity, sizeof *analysis->warnings);
        analysis->warnings[analysis->warning_count++] = (struct ab_warning){
            .kind = AB_WARNING_FLAGGED_MATTERS,
            .arm = arm,
            .text = memory_format("without the runs in which the GPU was not as it should be, %zu "
                                  "of %zu remain, and the verdict would be \"%s\"",
                                  count, run_count, ab_live_verdict_names[without[arm].verdict])};
    }
    free(kept);
    free(without);
}

static size_t winner_of(const struct ab_live_comparison *comparisons,
                        const struct ab_experiment *experiment)
{
    const bool more = experiment->metrics[0].direction == AB_MORE_IS_BETTER;
    size_t winner = SIZE_MAX;

    for (size_t arm = 1; arm < experiment->arm_count; arm++) {
        if (experiment->arms[arm].role == AB_ROLE_CANDIDATE &&
            comparisons[arm].verdict == AB_LIVE_BETTER &&
            (winner == SIZE_MAX ||
             (comparisons[arm].nested.mean < comparisons[winner].nested.mean) != more)) {
            winner = arm;
        }
    }
    return winner;
}

static void analyse(struct ab_live_view *view, const struct ab_live_comparison *comparisons,
                    const struct ab_live_run *runs, size_t run_count,
                    const struct ab_live_plan *plan)
{
    const size_t arms = view->experiment.arm_count;
    const struct ab_look look = {.taken = 0, .at_look = true, .last = true};
    const struct ab_blocks none = {0};
    struct ab_analysis *analysis = &view->analysis;

    *analysis = (struct ab_analysis){
        .blocks = view->design.blocks,
        .alpha_spent = plan->alpha,
        .alpha_here = plan->alpha,
        .done = true,
        .comparison_count = arms - 1,
        .comparisons = memory_allocate(arms, sizeof *analysis->comparisons),
        .arms = memory_allocate(arms, sizeof *analysis->arms),
    };
    for (size_t arm = 0; arm < arms; arm++) {
        summarise(view, &comparisons[arm], runs, run_count, arm);
        if (arm > 0) {
            add_comparison(&analysis->comparisons[arm - 1], &comparisons[arm], plan, arm);
        }
    }
    analysis->winner = winner_of(comparisons, &view->experiment);
    analysis->result = (enum ab_result)ab_live_status(comparisons, &view->experiment);
    ab_warn(&view->experiment, &none, &look, analysis);
}

void ab_live_view_make(struct ab_live_view *view, const struct ab_live_comparison *comparisons,
                       const struct ab_experiment *experiment, const struct ab_live_run *runs,
                       size_t run_count, const struct ab_live_plan *plan, size_t most)
{
    *view = (struct ab_live_view){.experiment = *experiment};
    fill_design(view, experiment, comparisons, runs, run_count, plan, most);
    if (plan->metric != NULL) {
        view->metric = ab_metric_copy(plan->metric);
    } else {
        ab_metric_step(&view->metric, plan->step_kernel);
    }
    view->metric.primary = true;
    view->metric.across = plan->across;
    view->experiment.live = &view->design;
    view->experiment.metrics = &view->metric;
    view->experiment.metric_count = 1;
    view->experiment.plan.seed = plan->seed;
    view->experiment.plan.alpha = plan->alpha;
    view->experiment.plan.margin = plan->margin;
    view->experiment.run_count = view->experiment.run_capacity = 0;
    view->experiment.runs = NULL;
    add_slices(view, runs, run_count, plan);
    analyse(view, comparisons, runs, run_count, plan);
    warn_where_flags_matter(view, comparisons, experiment, runs, run_count, plan);
}

void ab_live_view_release(struct ab_live_view *view)
{
    while (view->experiment.run_count > 0) {
        ab_experiment_drop_run(&view->experiment);
    }
    free(view->experiment.runs);
    ab_metric_release(&view->metric);
    ab_analysis_release(&view->analysis);
}
