/* SPDX-License-Identifier: Apache-2.0 */

/* What the reports of one run say of its steps. */

#include "live.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decide/live.h"
#include "live_ranks.h"
#include "memory.h"
#include "metric_parts.h"
#include "policy/policy.h"
#include "report/report.h"
#include "results.h"
#include "summary.h"
#include "trial.h"

/* ---- Sequences of steps, and which of them ran side by side ---- */

/* A sequence and the report that it is from. They are sorted together. */
struct sequences {
    size_t count;
    struct ab_live_sequence *items;
    const struct results *results;
};

static const json_t *live_of(const struct results_process *process, size_t arms)
{
    const json_t *live = json_object_get(process->document, "live");

    return live != NULL && results_number(live, "steps") > 0 &&
                   results_number(live, "arms") == (int64_t)arms
               ? live
               : NULL;
}

static int64_t rank_of(const struct results_process *process)
{
    const json_t *facts = json_object_get(process->document, "facts");
    const char *text = results_text(json_object_get(facts, "job"), "rank");
    char *end;
    const long long rank = strtoll(text, &end, 10);

    return end != text && *end == '\0' && rank >= 0 ? rank : -1;
}

static void gather(struct sequences *sequences, const struct results *results, size_t arms)
{
    sequences->items = memory_allocate(results->process_count + 1, sizeof *sequences->items);
    for (size_t i = 0; i < results->process_count; i++) {
        const struct results_process *process = &results->processes[i];
        const json_t *live = live_of(process, arms), *span;

        if (live == NULL) {
            continue;
        }
        span = json_object_get(live, "span");
        sequences->items[sequences->count++] = (struct ab_live_sequence){
            .begin = json_integer_value(json_array_get(span, 0)),
            .end = json_integer_value(json_array_get(span, 1)),
            .timed = json_array_size(span) == 2,
            .process = process->number,
            .image = process->image,
            .rank = rank_of(process),
            .steps = (uint64_t)results_number(live, "steps"),
            .index = i,
        };
    }
}

/* ---- Slices of a part ---- */

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

/* The next sequence of the part that counts, after *place; NULL: no more. */
static const json_t *next_of(const struct sequences *sequences, size_t part, size_t *place)
{
    while (*place < sequences->count) {
        const struct ab_live_sequence *sequence = &sequences->items[(*place)++];

        if (sequence->part == part && !sequence->left_out) {
            const struct results_process *process = &sequences->results->processes[sequence->index];

            return json_object_get(process->document, "live");
        }
    }
    return NULL;
}

static void gather_part(struct ranks *ranks, const struct sequences *sequences, size_t part,
                        struct ab_live_run *run)
{
    int64_t fewest = INT64_MAX, most = 0;
    const json_t *live;
    size_t rank = 0, place = 0;

    *ranks = (struct ranks){.slices = SIZE_MAX};
    while ((live = next_of(sequences, part, &place)) != NULL) {
        const int64_t steps = results_number(live, "steps");
        const size_t slices = slices_in(live);

        ranks->slices = slices < ranks->slices ? slices : ranks->slices;
        fewest = steps < fewest ? steps : fewest;
        most = steps > most ? steps : most;
        run->not_entered += results_number(live, "not_entered");
        ranks->count++;
    }
    run->ranks = ranks->count > run->ranks ? ranks->count : run->ranks;
    run->steps += fewest;
    run->steps_most += most;
    ranks->seconds = memory_allocate(ranks->slices * ranks->count + 1, sizeof(double));
    for (size_t i = 0; i < ranks->slices * ranks->count; i++) {
        ranks->seconds[i] = NAN;
    }
    place = 0;
    while ((live = next_of(sequences, part, &place)) != NULL) {
        gather_rank(ranks, rank++, live);
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

static void make_slices(struct ab_live_run *run, const struct ranks *ranks, size_t part,
                        const struct ab_live_plan *plan, size_t arms)
{
    for (size_t number = 0; number < ranks->slices; number++) {
        double *seconds = &ranks->seconds[number * ranks->count];
        uint8_t order[POLICY_ARM_LIMIT];

        if (!complete(seconds, ranks->count)) {
            continue;
        }
        run->slices =
            memory_grow(run->slices, run->slice_count, &run->slice_capacity, sizeof *run->slices);
        decide_live_order(plan->seed, number / arms, (unsigned)arms, order);
        run->slices[run->slice_count++] = (struct ab_live_slice){
            .part = (uint32_t)part,
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
    run->places = memory_allocate(run->slice_count / arms + 1, sizeof *run->places);
    while (first < run->slice_count) {
        const struct ab_live_slice *begin = &run->slices[first];
        const uint32_t block = begin->number / (uint32_t)arms;
        size_t end = first;

        while (end < run->slice_count && run->slices[end].part == begin->part &&
               run->slices[end].number / arms == block) {
            end++;
        }
        if (end - first == arms) {
            for (size_t i = first; i < end; i++) {
                run->blocks[run->block_count * arms + run->slices[i].arm] = run->slices[i].seconds;
            }
            run->places[run->block_count++] =
                (struct ab_live_place){.part = begin->part, .block = block};
        }
        first = end;
    }
}

/* ---- Values of a metric, one a step ---- */

static void sum_values(struct ranks *ranks, const struct ab_values *values,
                       const struct ab_live_plan *plan)
{
    for (size_t number = 0; number < ranks->slices; number++) {
        const size_t first = plan->warm_up + number * plan->slice;

        for (size_t rank = 0; rank < ranks->count; rank++) {
            const double *step = &values->ranks[rank].values[first];
            double sum = 0;

            for (size_t i = plan->drop; i < plan->slice; i++) {
                sum += step[i];
            }
            ranks->seconds[number * ranks->count + rank] = sum;
        }
    }
}

/* One value a step of every rank that has values. */
static bool values_fit(const struct ab_live_run *run, const struct ab_values *values,
                       const struct ab_metric *metric, char *error, size_t size)
{
    if (run->parts > 1) {
        snprintf(error, size,
                 "%s: steps were made in %zu sequences one after the other, of which its values "
                 "cannot be told apart",
                 metric->name, run->parts);
        return false;
    }
    for (size_t rank = 0; rank < values->rank_count; rank++) {
        if (values->ranks[rank].count != (size_t)run->steps || run->steps != run->steps_most) {
            snprintf(error, size,
                     "%s: %zu values%s and %lld steps; only with one value for each step is it "
                     "known of which arm it is (without --metric the time of a step is compared)",
                     metric->name, values->ranks[rank].count,
                     values->rank_count > 1 ? " of a rank" : "", (long long)run->steps_most);
            return false;
        }
    }
    return true;
}

bool ab_live_read_values(struct ab_live_run *run, const struct ab_run_files *files,
                         const struct ab_live_plan *plan, size_t arms, char *error, size_t size)
{
    const bool json = plan->metric->source == AB_METRIC_JSON;
    struct ab_values values = {0};
    char reason[400] = "no value";
    bool read = json ? ab_json_values(plan->metric, files, &values, reason, sizeof reason)
                     : ab_pattern_values(plan->metric, files, &values, reason, sizeof reason);

    if (!read || values.count == 0) {
        snprintf(error, size, "%s: %s", plan->metric->name, reason);
        read = false;
    } else {
        read = values_fit(run, &values, plan->metric, error, size);
    }
    if (read) {
        struct ranks ranks = {.count = values.rank_count,
                              .slices = ((size_t)run->steps - plan->warm_up) / plan->slice};

        ranks.seconds = memory_allocate(ranks.slices * ranks.count + 1, sizeof(double));
        sum_values(&ranks, &values, plan);
        free(run->blocks);
        free(run->places);
        run->slice_count = run->block_count = 0;
        make_slices(run, &ranks, 0, plan, arms);
        make_blocks(run, arms);
        free(ranks.seconds);
        read = run->block_count > 0;
        if (!read) {
            snprintf(error, size, "%s: no block has values above 0 alone, which ratios need",
                     plan->metric->name);
        }
    }
    ab_values_release(&values);
    return read;
}

/* ---- Rules of the arms ---- */

/* The rules of each arm, which begin with its name, as ab_live_policy wrote them. */
static void read_rules(struct ab_live_run *run, const struct results *results,
                       const struct ab_arm *arms, size_t arm_count)
{
    run->policies = memory_allocate(arm_count, sizeof *run->policies);
    for (size_t arm = 0; arm < arm_count; arm++) {
        struct ab_run_policy *policy = &run->policies[arm];

        policy->known = true;
        policy->processes = (int64_t)results->number_count;
        for (size_t i = 0; i < results->rule_count; i++) {
            const struct results_rule *rule = &results->rules[i];

            if (strcmp(rule->section, "kernel") != 0 ||
                !ab_live_rule_is_of(rule->name, &arms[arm], arm)) {
                continue;
            }
            policy->rules++;
            policy->launches += rule->launches.total;
            policy->rules_matched += summary_has_matched(rule);
            ab_trial_add_outcomes(policy, &rule->launch_outcomes);
        }
    }
}

void ab_live_read_rules(struct ab_live_run *run, const struct results *results,
                        const struct ab_experiment *experiment)
{
    read_rules(run, results, experiment->arms, experiment->arm_count);
}

/* ---- The run ---- */

/* Why there is no block. least: steps after which the first one is complete. */
static void say_no_block(const struct ab_live_run *run, const struct ab_live_parts *parts,
                         const struct ab_live_plan *plan, size_t arms, uint64_t least, char *error,
                         size_t size)
{
    if (parts->count == 0) {
        snprintf(error, size, "no process made a step: %s%s was never launched under the library",
                 plan->step_kernel != NULL ? "the kernel " : "a graph",
                 plan->step_kernel != NULL ? plan->step_kernel : "");
    } else if (least > REPORT_STEP_LIMIT) {
        snprintf(error, size,
                 "a block takes more steps than a process keeps times of, %d: %u of warm-up and "
                 "%zu x %u",
                 (int)REPORT_STEP_LIMIT, plan->warm_up, arms, plan->slice);
    } else if (parts->count > 1 || (uint64_t)run->steps < least) {
        snprintf(
            error, size,
            "%lld steps are no whole block: it takes %u of warm-up and %zu x %u for each block",
            (long long)run->steps, plan->warm_up, arms, plan->slice);
    } else {
        snprintf(error, size,
                 "%lld steps were made, but the reports do not have their times: is there no room "
                 "where the experiment's folder is?",
                 (long long)run->steps);
    }
}

bool ab_live_read(struct ab_live_run *run, const struct results *results,
                  const struct ab_live_plan *plan, size_t arms, char *error, size_t size)
{
    /* A slice is complete when the next one begins. */
    const uint64_t least = plan->warm_up + (uint64_t)arms * plan->slice + 1;
    struct sequences sequences = {.results = results};
    struct ab_live_parts parts;

    *run = (struct ab_live_run){0};
    gather(&sequences, results, arms);
    ab_live_arrange(sequences.items, sequences.count, least, &parts);
    for (size_t part = 0; part < parts.count; part++) {
        struct ranks ranks;

        gather_part(&ranks, &sequences, part, run);
        make_slices(run, &ranks, part, plan, arms);
        free(ranks.seconds);
    }
    make_blocks(run, arms);
    run->parts = parts.count;
    run->shared_rank = parts.shared_rank;
    run->too_short = parts.too_short;
    free(sequences.items);
    if (run->block_count > 0) {
        return true;
    }
    say_no_block(run, &parts, plan, arms, least, error, size);
    ab_live_run_release(run);
    return false;
}

void ab_live_run_release(struct ab_live_run *run)
{
    free(run->slices);
    free(run->blocks);
    free(run->places);
    free(run->policies);
    *run = (struct ab_live_run){0};
}
