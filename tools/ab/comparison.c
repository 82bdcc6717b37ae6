/* SPDX-License-Identifier: Apache-2.0 */
#include "comparison.h"

#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>

#include "memory.h"
#include "statistics.h"

static const double wanted_power = 0.8;

bool ab_block_flagged(const struct ab_blocks *blocks, size_t block, size_t arm)
{
    const struct ab_run *const *runs = blocks->runs + block * blocks->arm_count;

    return (runs[arm]->gpu.known && runs[arm]->gpu.flags != 0) ||
           (runs[0]->gpu.known && runs[0]->gpu.flags != 0);
}

bool ab_within_margin(const struct ab_plan *plan, const struct ab_comparison *comparison)
{
    return comparison->margin_low >= 1 / (1 + plan->margin) &&
           comparison->margin_high <= 1 + plan->margin;
}

bool ab_beyond_margin(const struct ab_plan *plan, const struct ab_comparison *comparison)
{
    return comparison->high < 1 / (1 + plan->margin) || comparison->low > 1 + plan->margin;
}

/* The logarithms of the ratios, to be freed. None where a value is not positive: to leave such
 * blocks out would be to choose among them, so there is no ratio at all. */
static double *log_ratios(const struct ab_blocks *blocks, size_t arm, size_t metric,
                          bool without_flagged, size_t *count)
{
    double *logs = memory_allocate(blocks->count + 1, sizeof *logs);
    size_t block;

    *count = 0;
    for (block = 0; block < blocks->count; block++) {
        const struct ab_run *const *runs = blocks->runs + block * blocks->arm_count;
        double value = ab_run_value_of(runs[arm], metric);
        double baseline = ab_run_value_of(runs[0], metric);

        if (isnan(value) || isnan(baseline))
            continue;
        if (without_flagged && ab_block_flagged(blocks, block, arm))
            continue;
        if (value <= 0 || baseline <= 0) {
            *count = 0;
            return logs;
        }
        logs[(*count)++] = log(value) - log(baseline);
    }
    return logs;
}

static size_t family_size(const struct ab_experiment *experiment, size_t metric)
{
    size_t size = 0, arm;

    if (metric != 0)
        return 1;
    for (arm = 1; arm < experiment->arm_count; arm++)
        size += experiment->arms[arm].role == AB_ROLE_CANDIDATE;
    return size > 0 ? size : 1;
}

/* How many blocks would do. They can't be fewer than a look has, and one that nothing but an
 * infinite number would do for has none. */
static double blocks_or_nan(double blocks)
{
    return isfinite(blocks) ? ceil(fmax(blocks, AB_LEAST_BLOCKS)) : NAN;
}

static void look_ahead(const struct ab_experiment *experiment, const double *logs, size_t count,
                       struct ab_comparison *comparison)
{
    const struct ab_plan *plan = &experiment->plan;
    bool candidate = experiment->arms[comparison->arm].role == AB_ROLE_CANDIDATE;
    double level = ab_last_level(plan), margin = log1p(plan->margin), deviation, seen;
    double each = candidate ? level / (double)family_size(experiment, comparison->metric) : level;

    if (count < 3 || plan->look_count == 0)
        return;
    deviation = gsl_stats_sd(logs, 1, count);
    comparison->blocks_for_ratio =
        blocks_or_nan(ab_blocks_needed(deviation, log(comparison->ratio), each, wanted_power));
    if (fabs(log(comparison->ratio)) < margin)
        comparison->blocks_for_margin =
            blocks_or_nan(ab_blocks_needed_for_none(deviation, margin, level, wanted_power));
    seen = ab_difference_seen(deviation, plan->looks[plan->look_count - 1], each, wanted_power);
    if (experiment->metrics[comparison->metric].direction == AB_LESS_IS_BETTER)
        seen = -seen;
    comparison->smallest_detectable = exp(seen);
}

static uint64_t seed_of(const struct ab_experiment *experiment, size_t arm, size_t metric)
{
    return experiment->plan.seed + 0x9e3779b97f4a7c15ULL * (arm + 1) +
           0xbf58476d1ce4e5b9ULL * (metric + 1);
}

static void compare_arm(const struct ab_experiment *experiment, const struct ab_blocks *blocks,
                        const struct ab_look *look, bool without_flagged,
                        struct ab_comparison *comparison)
{
    size_t arm = comparison->arm, metric = comparison->metric, count;
    double *logs = log_ratios(blocks, arm, metric, without_flagged, &count);
    struct ab_subsets subsets;
    double low, high;

    comparison->pairs = count;
    if (count > 0) {
        comparison->ratio = exp(gsl_stats_mean(logs, 1, count));
        ab_widen(logs, count);
        look_ahead(experiment, logs, count, comparison);
        ab_subsets_make(&subsets, logs, count, 0, seed_of(experiment, arm, metric));
        comparison->p = ab_subsets_p(&subsets, 0);
        if (ab_subsets_interval(&subsets, comparison->level, &low, &high)) {
            comparison->low = exp(low);
            comparison->high = exp(high);
        }
        if (ab_subsets_interval(&subsets, comparison->margin_level, &low, &high)) {
            comparison->margin_low = exp(low);
            comparison->margin_high = exp(high);
        }
        ab_subsets_release(&subsets);
    }
    comparison->p_adjusted = comparison->p;
    comparison->decided_at_look = look->at_look;
    free(logs);
}

static void adjust(const struct ab_experiment *experiment, struct ab_comparison *comparisons)
{
    size_t others = experiment->arm_count - 1, count = 0, i;
    double *p = memory_allocate(others + 1, sizeof *p);

    for (i = 0; i < others; i++) {
        if (experiment->arms[i + 1].role == AB_ROLE_CANDIDATE)
            p[count++] = comparisons[i].p;
    }
    ab_holm(p, count, p);
    for (i = others; i > 0; i--) {
        if (experiment->arms[i].role == AB_ROLE_CANDIDATE)
            comparisons[i - 1].p_adjusted = p[--count];
    }
    free(p);
}

static enum ab_verdict decide(const struct ab_experiment *experiment, const struct ab_look *look,
                              const struct ab_comparison *comparison)
{
    bool less = experiment->metrics[comparison->metric].direction == AB_LESS_IS_BETTER;

    if (!look->decides || comparison->pairs < AB_LEAST_PAIRS)
        return AB_VERDICT_NOT_ENOUGH;
    if (comparison->p_adjusted <= look->level && (comparison->high < 1 || comparison->low > 1))
        return (comparison->high < 1) == less ? AB_VERDICT_BETTER : AB_VERDICT_WORSE;
    if (ab_within_margin(&experiment->plan, comparison))
        return AB_VERDICT_NO_DIFFERENCE;
    return AB_VERDICT_NOT_ENOUGH;
}

void ab_compare_arms(const struct ab_experiment *experiment, const struct ab_blocks *blocks,
                     const struct ab_look *look, size_t metric, bool without_flagged,
                     struct ab_comparison *comparisons)
{
    size_t arm;

    for (arm = 1; arm < experiment->arm_count; arm++) {
        comparisons[arm - 1] = (struct ab_comparison){
            .arm = arm,
            .metric = metric,
            .ratio = NAN,
            .low = NAN,
            .high = NAN,
            .level = 1 - look->level,
            .margin_low = NAN,
            .margin_high = NAN,
            .margin_level = 1 - 2 * look->level,
            .p = NAN,
            .p_adjusted = NAN,
            .verdict = AB_VERDICT_NOT_ENOUGH,
            .blocks_for_ratio = NAN,
            .blocks_for_margin = NAN,
            .smallest_detectable = NAN,
        };
        compare_arm(experiment, blocks, look, without_flagged, &comparisons[arm - 1]);
    }
    if (metric == 0 && experiment->arm_count > 1)
        adjust(experiment, comparisons);
    for (arm = 1; arm < experiment->arm_count; arm++)
        comparisons[arm - 1].verdict = decide(experiment, look, &comparisons[arm - 1]);
}
