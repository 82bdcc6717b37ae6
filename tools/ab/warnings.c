/* SPDX-License-Identifier: Apache-2.0 */
#include "warnings.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "comparison.h"
#include "memory.h"

/* Takes text. */
static void add(struct ab_analysis *analysis, enum ab_warning_kind kind, size_t arm, char *text)
{
    analysis->warnings = memory_grow(analysis->warnings, analysis->warning_count,
                                     &analysis->warning_capacity, sizeof *analysis->warnings);
    analysis->warnings[analysis->warning_count++] =
        (struct ab_warning){.kind = kind, .arm = arm, .text = text};
}

/* "2 exited, 1 timed out", to be freed. */
static char *list_failures(const struct ab_arm_summary *summary)
{
    char *list = memory_copy("");
    size_t outcome;

    for (outcome = 0; outcome < AB_OUTCOME_COUNT; outcome++) {
        char *longer;

        if (outcome == AB_OK || outcome == AB_INTERRUPTED || summary->outcomes[outcome] == 0)
            continue;
        longer = memory_format("%s%s%zu %s", list, *list != '\0' ? ", " : "",
                               summary->outcomes[outcome], ab_outcome_names[outcome]);
        free(list);
        list = longer;
    }
    return list;
}

static void warn_of_failures(struct ab_analysis *analysis, size_t arm)
{
    const struct ab_arm_summary *summary = &analysis->arms[arm], *baseline = &analysis->arms[0];
    char *list;

    if (summary->runs == summary->ok)
        return;
    list = list_failures(summary);
    if (arm > 0 && summary->fails_more)
        add(analysis, AB_WARNING_FAILURES, arm,
            memory_format("%zu of %zu runs failed (%s), of the baseline's %zu of %zu: it cannot be "
                          "the winner",
                          summary->runs - summary->ok, summary->runs, list,
                          baseline->runs - baseline->ok, baseline->runs));
    else
        add(analysis, AB_WARNING_FAILURES, arm,
            memory_format("%zu of %zu runs failed (%s)", summary->runs - summary->ok, summary->runs,
                          list));
    free(list);
}

static const char *unit_of(const struct ab_experiment *experiment)
{
    const char *unit = experiment->metrics[0].unit;

    return unit != NULL ? unit : "";
}

static void warn_of_values(const struct ab_experiment *experiment, struct ab_analysis *analysis,
                           size_t arm)
{
    const struct ab_arm_summary *summary = &analysis->arms[arm];
    const char *unit = unit_of(experiment), *space = *unit != '\0' ? " " : "";

    if (summary->bimodal)
        add(analysis, AB_WARNING_BIMODAL, arm,
            memory_format("its runs come in two modes, about %.4g and %.4g%s%s: it takes many runs "
                          "to average that out",
                          summary->modes[0], summary->modes[1], space, unit));
    if (summary->outliers > 0)
        add(analysis, AB_WARNING_OUTLIERS, arm,
            memory_format("%zu of %zu runs lie far outside the others: from %.4g to %.4g%s%s, the "
                          "median is %.4g",
                          summary->outliers, summary->ok, summary->least, summary->most, space,
                          unit, summary->median));
    if (summary->drifts)
        add(analysis, AB_WARNING_DRIFT, arm,
            memory_format("its values %s in the course of the experiment (rank correlation %+.2f)",
                          summary->drift > 0 ? "rise" : "fall", summary->drift));
}

static void warn_of_rules(const struct ab_experiment *experiment, struct ab_analysis *analysis,
                          size_t arm)
{
    const struct ab_arm_summary *summary = &analysis->arms[arm];

    if (experiment->arms[arm].kind != AB_ARM_POLICY)
        return;
    if (summary->rules_never_applied)
        add(analysis, AB_WARNING_NOT_APPLIED, arm,
            memory_copy("none of its rules changed anything in any run"));
    else if (summary->rules_unmatched > 0)
        add(analysis, AB_WARNING_NOT_APPLIED, arm,
            memory_format("%zu of its rules matched nothing in any run", summary->rules_unmatched));
}

static void warn_of_flags(const struct ab_experiment *experiment, struct ab_analysis *analysis,
                          size_t arm)
{
    static const char *const names[] = {"throttled by temperature", "throttled by a power limit",
                                        "slowed down by the hardware", "used by other processes",
                                        "clocks unlike those of other runs"};
    size_t counts[sizeof names / sizeof *names] = {0}, i, bit;
    char *list = memory_copy("");

    for (i = 0; i < experiment->run_count; i++) {
        const struct ab_run *run = &experiment->runs[i];

        for (bit = 0; bit < sizeof names / sizeof *names; bit++)
            counts[bit] += ab_run_counts(experiment, run) && run->arm == arm && run->gpu.known &&
                           (run->gpu.flags >> bit & 1) != 0;
    }
    for (bit = 0; bit < sizeof names / sizeof *names; bit++) {
        char *longer;

        if (counts[bit] == 0)
            continue;
        longer = memory_format("%s%s%s in %zu", list, *list != '\0' ? ", " : "", names[bit],
                               counts[bit]);
        free(list);
        list = longer;
    }
    if (*list != '\0')
        add(analysis, AB_WARNING_THROTTLED, arm,
            memory_format("in %zu of %zu %s the GPU was not as it should be: %s",
                          analysis->arms[arm].flagged, analysis->arms[arm].runs,
                          experiment->live != NULL ? "slices" : "runs", list));
    free(list);
}

/* The repeated baseline, or NULL. */
static const struct ab_comparison *find_repeat(const struct ab_experiment *experiment,
                                               const struct ab_analysis *analysis)
{
    size_t arm;

    for (arm = 1; arm < experiment->arm_count; arm++) {
        if (experiment->arms[arm].role == AB_ROLE_REPEAT)
            return &analysis->comparisons[arm - 1];
    }
    return NULL;
}

static void warn_of_noise(const struct ab_experiment *experiment, struct ab_analysis *analysis)
{
    const struct ab_comparison *repeat = find_repeat(experiment, analysis);
    size_t arm;

    if (repeat == NULL || isnan(repeat->ratio))
        return;
    if (repeat->low > 1 || repeat->high < 1)
        add(analysis, AB_WARNING_NOISE_FLOOR, repeat->arm,
            memory_format("the baseline differs from itself: ratio %.4f (%.4f .. %.4f), which "
                          "chance alone makes one time in %.0f; the other ratios are no better",
                          repeat->ratio, repeat->low, repeat->high, 1 / (1 - repeat->level)));
    for (arm = 1; arm < experiment->arm_count; arm++) {
        const struct ab_comparison *comparison = &analysis->comparisons[arm - 1];

        if (experiment->arms[arm].role == AB_ROLE_CANDIDATE &&
            comparison->verdict == AB_VERDICT_BETTER &&
            fabs(log(repeat->ratio)) >= fabs(log(comparison->ratio)))
            add(analysis, AB_WARNING_NOISE_FLOOR, arm,
                memory_format("the baseline differs from itself by more (ratio %.4f) than this arm "
                              "does from it (%.4f)",
                              repeat->ratio, comparison->ratio));
    }
}

static void warn_of_cost(const struct ab_experiment *experiment, struct ab_analysis *analysis)
{
    size_t arm;

    for (arm = 1; arm < experiment->arm_count; arm++) {
        const struct ab_comparison *comparison = &analysis->comparisons[arm - 1];

        if (experiment->arms[arm].role == AB_ROLE_COST &&
            (comparison->verdict == AB_VERDICT_BETTER || comparison->verdict == AB_VERDICT_WORSE))
            add(analysis, AB_WARNING_COST, arm,
                memory_format("the preload alone, without a policy, makes a difference: ratio %.4f "
                              "(%.4f .. %.4f)",
                              comparison->ratio, comparison->low, comparison->high));
    }
}

static void warn_where_flags_matter(const struct ab_experiment *experiment,
                                    const struct ab_blocks *blocks, const struct ab_look *look,
                                    struct ab_analysis *analysis)
{
    size_t others = experiment->arm_count - 1, flagged = 0, arm, block;
    struct ab_comparison *without;

    for (block = 0; block < blocks->count; block++) {
        for (arm = 1; arm <= others; arm++)
            flagged += ab_block_flagged(blocks, block, arm);
    }
    if (!look->decides || flagged == 0)
        return;
    without = memory_allocate(others, sizeof *without);
    ab_compare_arms(experiment, blocks, look, 0, true, without);
    for (arm = 1; arm <= others; arm++) {
        const struct ab_comparison *with = &analysis->comparisons[arm - 1];

        if (experiment->arms[arm].role != AB_ROLE_CANDIDATE || with->verdict == AB_VERDICT_BROKEN ||
            with->verdict == AB_VERDICT_NOT_APPLIED ||
            with->verdict == without[arm - 1].verdict)
            continue;
        add(analysis, AB_WARNING_FLAGGED_MATTERS, arm,
            memory_format("without the blocks in which the GPU was not as it should be, %zu of %zu "
                          "remain, and the verdict would be \"%s\"",
                          without[arm - 1].pairs, with->pairs,
                          ab_verdict_names[without[arm - 1].verdict]));
    }
    free(without);
}

/* Values of which there is no ratio. */
static void warn_of_signs(const struct ab_experiment *experiment, struct ab_analysis *analysis,
                          size_t metric)
{
    size_t *counts = memory_allocate(experiment->arm_count, sizeof *counts), arm, i;

    for (i = 0; i < experiment->run_count; i++) {
        const struct ab_run *run = &experiment->runs[i];

        if (ab_run_counts(experiment, run))
            counts[run->arm] += ab_run_value_of(run, metric) <= 0;
    }
    for (arm = 0; arm < experiment->arm_count; arm++) {
        if (counts[arm] > 0)
            add(analysis, AB_WARNING_NOT_COMPARABLE, arm,
                memory_format("%s is zero or negative in %zu runs: there is no ratio of such "
                              "values, and nothing is said about them",
                              experiment->metrics[metric].name, counts[arm]));
    }
    free(counts);
}

void ab_warn(const struct ab_experiment *experiment, const struct ab_blocks *blocks,
             const struct ab_look *look, struct ab_analysis *analysis)
{
    size_t arm, metric;

    for (arm = 0; arm < experiment->arm_count; arm++) {
        warn_of_failures(analysis, arm);
        warn_of_rules(experiment, analysis, arm);
        /* Arms that alternate inside runs have the same GPUs. */
        if (experiment->live == NULL || arm == 0)
            warn_of_flags(experiment, analysis, arm);
        warn_of_values(experiment, analysis, arm);
    }
    for (metric = 0; metric < experiment->metric_count; metric++)
        warn_of_signs(experiment, analysis, metric);
    if (experiment->arm_count < 2 || experiment->metric_count == 0)
        return;
    warn_of_noise(experiment, analysis);
    warn_of_cost(experiment, analysis);
    warn_where_flags_matter(experiment, blocks, look, analysis);
}
