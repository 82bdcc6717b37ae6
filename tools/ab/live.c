/* SPDX-License-Identifier: Apache-2.0 */
#include "live.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decide/live.h"
#include "memory.h"
#include "policy/policy.h"
#include "results.h"
#include "sequential.h"

const char *const ab_live_verdict_names[] = {"better", "worse", "no difference", "not enough"};

/* ---- Slices of all ranks -----------------------------------------------------------------------
 */

static const json_t *live_of(const struct results_process *process, size_t arms)
{
    const json_t *live = json_object_get(process->document, "live");

    return live != NULL && results_number(live, "steps") > 0 &&
                   results_number(live, "arms") == (int64_t)arms
               ? live
               : NULL;
}

/* The seconds of a slice in one rank's report; NaN where it is not complete. */
static double slice_seconds(const json_t *slice, uint32_t *number)
{
    const json_t *seconds = json_array_get(slice, 4);
    const json_int_t value = json_integer_value(json_array_get(slice, 0));

    *number = value >= 0 && value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
    return json_is_number(seconds) ? json_number_value(seconds) : NAN;
}

static double combine(double *values, size_t count, enum ab_across across)
{
    switch (across) {
    case AB_ACROSS_MAX:
        return gsl_stats_max(values, 1, count);
    case AB_ACROSS_MIN:
        return gsl_stats_min(values, 1, count);
    case AB_ACROSS_SUM:
        return gsl_stats_mean(values, 1, count) * (double)count;
    case AB_ACROSS_MEDIAN:
        gsl_sort(values, 1, count);
        return gsl_stats_median_from_sorted_data(values, 1, count);
    case AB_ACROSS_MEAN:
    default:
        return gsl_stats_mean(values, 1, count);
    }
}

/* Seconds by slice and rank, NaN where a rank has none. */
struct ranks {
    size_t count, slices;
    double *seconds; /* by slice, then by rank */
};

static size_t slices_in(const json_t *live)
{
    const json_t *slices = json_object_get(live, "slices");
    uint32_t number = 0;

    if (json_array_size(slices) == 0) {
        return 0;
    }
    slice_seconds(json_array_get(slices, json_array_size(slices) - 1), &number);
    /* Numbers ascend without a gap, so that the last one is bounded by how many there are. */
    return number < json_array_size(slices) ? number + 1u : json_array_size(slices);
}

static void gather_rank(struct ranks *ranks, size_t rank, const json_t *live)
{
    const json_t *slices = json_object_get(live, "slices");

    for (size_t i = 0; i < json_array_size(slices); i++) {
        uint32_t number;
        const double seconds = slice_seconds(json_array_get(slices, i), &number);

        if (number < ranks->slices) {
            ranks->seconds[number * ranks->count + rank] = seconds;
        }
    }
}

static void gather(struct ranks *ranks, const struct results *results, size_t arms,
                   struct ab_live_run *run)
{
    size_t rank = 0;

    ranks->slices = SIZE_MAX;
    for (size_t i = 0; i < results->process_count; i++) {
        const json_t *live = live_of(&results->processes[i], arms);
        const int64_t steps = live != NULL ? results_number(live, "steps") : 0;

        if (live == NULL) {
            continue;
        }
        ranks->slices = slices_in(live) < ranks->slices ? slices_in(live) : ranks->slices;
        run->steps = ranks->count == 0 || steps < run->steps ? steps : run->steps;
        run->steps_most = steps > run->steps_most ? steps : run->steps_most;
        ranks->count++;
    }
    run->ranks = ranks->count;
    if (ranks->count == 0) {
        return;
    }
    ranks->seconds = memory_allocate(ranks->slices * ranks->count + 1, sizeof(double));
    for (size_t i = 0; i < ranks->slices * ranks->count; i++) {
        ranks->seconds[i] = NAN;
    }
    for (size_t i = 0; i < results->process_count; i++) {
        const json_t *live = live_of(&results->processes[i], arms);

        if (live != NULL) {
            gather_rank(ranks, rank++, live);
        }
    }
}

static bool complete(const double *seconds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(seconds[i]) || seconds[i] <= 0) {
            return false;
        }
    }
    return true;
}

static void make_slices(struct ab_live_run *run, const struct ranks *ranks,
                        const struct ab_live_plan *plan, size_t arms)
{
    run->slices = memory_allocate(ranks->slices + 1, sizeof *run->slices);
    for (size_t number = 0; number < ranks->slices; number++) {
        double *seconds = &ranks->seconds[number * ranks->count];
        uint8_t order[POLICY_ARM_LIMIT];

        if (!complete(seconds, ranks->count)) {
            continue;
        }
        decide_live_order(plan->seed, number / arms, (unsigned)arms, order);
        run->slices[run->slice_count++] = (struct ab_live_slice){
            .number = (uint32_t)number,
            .arm = order[number % arms],
            .seconds = combine(seconds, ranks->count, plan->across) / (plan->slice - plan->drop),
        };
    }
}

/* Blocks in which every arm has its slice. */
static void make_blocks(struct ab_live_run *run, size_t arms)
{
    size_t first = 0;

    run->blocks = memory_allocate(run->slice_count + 1, sizeof(double));
    while (first < run->slice_count) {
        const size_t block = run->slices[first].number / arms;
        size_t end = first;

        while (end < run->slice_count && run->slices[end].number / arms == block) {
            end++;
        }
        if (end - first == arms) {
            for (size_t i = first; i < end; i++) {
                run->blocks[run->block_count * arms + run->slices[i].arm] = run->slices[i].seconds;
            }
            run->block_count++;
        }
        first = end;
    }
}

bool ab_live_read(struct ab_live_run *run, const struct results *results,
                  const struct ab_live_plan *plan, size_t arms, char *error, size_t size)
{
    struct ranks ranks = {0};

    *run = (struct ab_live_run){0};
    gather(&ranks, results, arms, run);
    if (ranks.count == 0) {
        snprintf(error, size, "no process made a step: %s%s was never launched under the library",
                 plan->step_kernel != NULL ? "the kernel " : "a graph",
                 plan->step_kernel != NULL ? plan->step_kernel : "");
        return false;
    }
    make_slices(run, &ranks, plan, arms);
    make_blocks(run, arms);
    free(ranks.seconds);
    if (run->block_count == 0) {
        snprintf(
            error, size,
            "%lld steps are no whole block: it takes %u of warm-up and %zu x %u for each block",
            (long long)run->steps, plan->warm_up, arms, plan->slice);
        ab_live_run_release(run);
        return false;
    }
    return true;
}

void ab_live_run_release(struct ab_live_run *run)
{
    free(run->slices);
    free(run->blocks);
    *run = (struct ab_live_run){0};
}

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
        return comparison->nested.high < 1 ? AB_LIVE_BETTER : AB_LIVE_WORSE;
    }
    if (comparison->margin_low >= 1 / (1 + plan->margin) &&
        comparison->margin_high <= 1 + plan->margin) {
        return AB_LIVE_NO_DIFFERENCE;
    }
    return AB_LIVE_NOT_ENOUGH;
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
}

int ab_live_status(const struct ab_live_comparison *comparisons,
                   const struct ab_experiment *experiment)
{
    bool open = false, any = false;

    for (size_t arm = 1; arm < experiment->arm_count; arm++) {
        if (experiment->arms[arm].role != AB_ROLE_CANDIDATE) {
            continue;
        }
        any = true;
        open |= comparisons[arm].verdict == AB_LIVE_NOT_ENOUGH;
        if (comparisons[arm].verdict == AB_LIVE_BETTER) {
            return 0;
        }
    }
    return !any ? 0 : open ? 2 : 1;
}
