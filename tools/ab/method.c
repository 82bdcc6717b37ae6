/* SPDX-License-Identifier: Apache-2.0 */

/* How an experiment was made: the sentences beside its tables. See wording.h. */

#include "wording.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "printable.h"

static const char *baseline_name(const struct ab_experiment *experiment)
{
    return experiment->arms[0].name;
}

char *ab_ratio_legend(const struct ab_experiment *experiment)
{
    const struct ab_metric *metric = &experiment->metrics[0];

    return memory_format("Ratios are %s of the arm / %s of %s; %s 1 is better.", metric->name,
                         metric->name, baseline_name(experiment),
                         metric->direction == AB_LESS_IS_BETTER ? "below" : "above");
}

/* "0.991 .. 1.015" with its level in front, or why there is none. */
static char *ratio_and_interval(const struct ab_comparison *comparison)
{
    int decimals = ab_ratio_decimals(comparison->ratio, comparison->low, comparison->high, 3);
    struct ab_text ratio, interval, level;

    if (!isfinite(comparison->ratio)) {
        return memory_copy("no ratio, as in no block both have a positive value");
    }
    if (!isfinite(comparison->low) || !isfinite(comparison->high)) {
        return memory_format("ratio %s in %zu block%s, too few for an interval",
                             ab_ratio(&ratio, comparison->ratio, decimals), comparison->pairs,
                             comparison->pairs == 1 ? "" : "s");
    }
    return memory_format("ratio %s (%s interval %s)", ab_ratio(&ratio, comparison->ratio, decimals),
                         ab_percent(&level, comparison->level),
                         ab_interval(&interval, comparison->low, comparison->high, decimals));
}

char *ab_noise_floor(const struct ab_experiment *experiment, const struct ab_analysis *analysis)
{
    size_t arm = ab_arm_of_role(experiment, AB_ROLE_REPEAT);
    const struct ab_comparison *comparison =
        arm == SIZE_MAX ? NULL : ab_analysis_comparison(analysis, arm, 0);
    char *numbers, *text;

    if (comparison == NULL) {
        return NULL;
    }
    numbers = ratio_and_interval(comparison);
    text = memory_format("Noise floor, %s against itself (%s): %s.", baseline_name(experiment),
                         experiment->arms[arm].name, numbers);
    free(numbers);
    return text;
}

char *ab_cost(const struct ab_experiment *experiment, const struct ab_analysis *analysis)
{
    size_t arm = ab_arm_of_role(experiment, AB_ROLE_COST);
    const struct ab_comparison *comparison =
        arm == SIZE_MAX ? NULL : ab_analysis_comparison(analysis, arm, 0);
    char *numbers, *verdict, *text;

    if (comparison == NULL) {
        return NULL;
    }
    numbers = ratio_and_interval(comparison);
    verdict = ab_verdict_words(experiment, comparison);
    text = memory_format("The preload's own cost, %s against %s: %s: %s.",
                         experiment->arms[arm].name, baseline_name(experiment), numbers, verdict);
    free(numbers);
    free(verdict);
    return text;
}

static bool lacks_ratio(const struct ab_comparison *comparison)
{
    return !isfinite(comparison->ratio);
}

static bool lacks_interval(const struct ab_comparison *comparison)
{
    return !lacks_ratio(comparison) && (!isfinite(comparison->low) || !isfinite(comparison->high));
}

/* " of time and wall", the metrics in which the arm lacks it, with the most pairs of them; NULL:
 * none. */
static char *lacking_metrics(const struct ab_experiment *experiment,
                             const struct ab_analysis *analysis, size_t arm,
                             bool (*lacks)(const struct ab_comparison *comparison), size_t *pairs)
{
    size_t found = 0, listed = 0;
    char *text = NULL;

    *pairs = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t metric = 0; metric < experiment->metric_count; metric++) {
            const struct ab_comparison *comparison = ab_analysis_comparison(analysis, arm, metric);

            if (comparison == NULL || !lacks(comparison)) {
                continue;
            }
            if (pass == 0) {
                found++;
                *pairs = comparison->pairs > *pairs ? comparison->pairs : *pairs;
                continue;
            }
            listed++;
            ab_append(&text, "%s%s",
                      listed == 1       ? " of "
                      : listed == found ? " and "
                                        : ", ",
                      experiment->metrics[metric].name);
        }
    }
    return text;
}

/* What the arm lacks, without its name; NULL: nothing. */
static char *lacking(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                     size_t arm)
{
    size_t pairs;
    char *ratios = lacking_metrics(experiment, analysis, arm, lacks_ratio, &pairs);
    char *intervals = lacking_metrics(experiment, analysis, arm, lacks_interval, &pairs);
    char *text = NULL;

    if (ratios != NULL) {
        ab_append(&text, "no ratio%s: there is no block in which both have a positive value",
                  ratios);
    }
    if (intervals != NULL) {
        ab_append(&text, "%sno interval%s: %zu block%s with a value of both %s too few",
                  text != NULL ? "; " : "", intervals, pairs, pairs == 1 ? "" : "s",
                  pairs == 1 ? "is" : "are");
    }
    free(ratios);
    free(intervals);
    return text;
}

char *ab_what_is_lacking(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                         size_t *arm)
{
    while (*arm < experiment->arm_count) {
        size_t first = (*arm)++;
        char *what = lacking(experiment, analysis, first), *text = NULL;
        bool said = false;

        for (size_t other = 0; what != NULL && other < experiment->arm_count && !said; other++) {
            char *its = lacking(experiment, analysis, other);

            if (its != NULL && strcmp(its, what) == 0) {
                said = other < first;
                ab_append(&text, "%s%s", text != NULL ? ", " : "", experiment->arms[other].name);
            }
            free(its);
        }
        if (what != NULL && !said) {
            ab_append(&text, " against %s: %s.", baseline_name(experiment), what);
            free(what);
            return text;
        }
        free(what);
        free(text);
    }
    return NULL;
}

/* "10, 14 and 20" */
static char *list_looks(const struct ab_plan *plan)
{
    char *text = memory_copy("");

    for (size_t i = 0; i < plan->look_count; i++) {
        ab_append(&text, "%s%" PRIu32,
                  i == 0                      ? ""
                  : i + 1 == plan->look_count ? " and "
                                              : ", ",
                  plan->looks[i]);
    }
    return text;
}

/* Of arms that alternate inside runs. */
static char *live_method(const struct ab_experiment *experiment)
{
    const struct ab_plan *plan = &experiment->plan;
    const struct ab_live_design *live = experiment->live;
    struct ab_text alpha, margin, level;
    char *text = NULL;

    ab_append(&text,
              "The %zu arms alternated inside each run, by slices of %" PRIu32
              " steps, of which the first %" PRIu32
              " do not count, in an order drawn from the seed. What is compared is %s, slice by "
              "slice with that of %s in the same block. ",
              experiment->arm_count, live->slice, live->drop,
              experiment->metrics[0].source == AB_METRIC_STEP ? "the time of a step"
                                                              : experiment->metrics[0].name,
              baseline_name(experiment));
    if (live->these_processes_only) {
        ab_append(&text,
                  "The %s intervals are about the processes of %s: what differs from process to "
                  "process is not in them; 5 runs or more would have it. ",
                  ab_percent(&level, 1 - plan->alpha),
                  live->runs_made == 1 ? "this run" : "these runs");
    } else {
        ab_append(&text,
                  "Runs are the units: the %s intervals are those of Student for the mean "
                  "over the runs. ",
                  ab_percent(&level, 1 - plan->alpha));
    }
    ab_append(&text,
              "Better and worse are said where such an interval leaves out 1 and the p-value, "
              "adjusted over all arms (Holm), is at most %s; no difference where the interval at "
              "twice that level lies within the margin of %s.",
              ab_percent(&alpha, plan->alpha), ab_percent(&margin, plan->margin));
    if (live->parts > 1) {
        ab_append(&text,
                  " Processes made their steps one after the other, in up to %zu sequences a run: "
                  "each has its own blocks.",
                  live->parts);
    }
    if (live->left_out > 0) {
        ab_append(&text,
                  " Steps of %zu process%s do not count: another one had the same rank at the same "
                  "time, or they are fewer than a block has.",
                  live->left_out, live->left_out == 1 ? "" : "es");
    }
    return text;
}

char *ab_method(const struct ab_experiment *experiment, const struct ab_analysis *analysis)
{
    const struct ab_plan *plan = &experiment->plan;
    const struct ab_metric *metric = &experiment->metrics[0];
    struct ab_text alpha, margin;
    char *looks, *text = NULL;

    if (experiment->live != NULL) {
        return live_method(experiment);
    }
    looks = list_looks(plan);
    ab_append(&text,
              "In each block each of the %zu arms ran once, in an order drawn from the seed. What "
              "is compared is %s, named beforehand as the primary metric: one number a run, paired "
              "by block with that of %s in the same block. ",
              experiment->arm_count, metric->name, baseline_name(experiment));
    ab_append(&text,
              "Better and worse are said when a paired randomisation test shows a difference, at "
              "an error rate of %s over all arms (Holm) and all looks together. ",
              ab_percent(&alpha, plan->alpha));
    ab_append(&text,
              "No difference is said only when the interval of the ratio that two one-sided tests "
              "at the level of the look call for lies within "
              "1/(1 + %g) .. 1 + %g, the margin of %s. ",
              plan->margin, plan->margin, ab_percent(&margin, plan->margin));
    if (plan->look_count == 1) {
        ab_append(&text, "Results were to be looked at once, after %s blocks", looks);
    } else {
        ab_append(&text, "Results were to be looked at after %s blocks only", looks);
    }
    ab_append(&text, "; %zu %s complete%s. ", analysis->blocks,
              analysis->blocks == 1 ? "block is" : "blocks are",
              experiment->interrupted ? ", then the experiment was interrupted" : "");
    ab_append(&text,
              "An arm that fails more often than %s, or changes results, is never the "
              "winner, however fast it is.",
              baseline_name(experiment));
    free(looks);
    return text;
}

/* ---- Facts ---- */

static void add_fact(struct ab_facts *facts, const char *label, char *value)
{
    if (facts->count == AB_FACT_LIMIT) {
        abort();
    }
    facts->items[facts->count].label = label;
    facts->items[facts->count++].value = value;
}

static char *describe_blocks(const struct ab_experiment *experiment,
                             const struct ab_analysis *analysis)
{
    struct printable_count runs;
    char *text = NULL;

    ab_append(&text, "%zu complete", analysis->blocks);
    if (experiment->plan.warm_up_blocks > 0) {
        ab_append(&text, " after %" PRIu32 " to warm up", experiment->plan.warm_up_blocks);
    }
    ab_append(&text, "; %s runs%s", printable_count(&runs, (int64_t)experiment->run_count),
              experiment->interrupted ? "; interrupted" : "");
    return text;
}

static char *describe_looks(const struct ab_experiment *experiment,
                            const struct ab_analysis *analysis)
{
    const struct ab_plan *plan = &experiment->plan;
    char *looks = list_looks(plan), *text = NULL;

    ab_append(&text, "at %s blocks; ", looks);
    if (analysis->look == SIZE_MAX || analysis->look >= plan->look_count) {
        ab_append(&text, "none taken yet");
    } else {
        ab_append(&text, "the last one at %" PRIu32, plan->looks[analysis->look]);
    }
    if (isfinite(analysis->alpha_spent)) {
        ab_append(&text, "; alpha spent %.3g of %.3g", analysis->alpha_spent, plan->alpha);
    }
    free(looks);
    return text;
}

static void add_to(double *sum, size_t *count, double value)
{
    if (isfinite(value)) {
        *sum += value;
        (*count)++;
    }
}

static void append_lines(char **text, const char *lines)
{
    while (*lines != '\0') {
        size_t length = strcspn(lines, "\n");

        ab_append(text, "%.*s; ", (int)length, lines);
        lines += length + (lines[length] == '\n');
    }
}

static char *describe_gpus(const struct ab_experiment *experiment)
{
    double clock = 0, temperature = 0, power = 0;
    size_t clocks = 0, temperatures = 0, powers = 0, known = 0, flagged = 0;
    struct printable_count megahertz;
    char *text = NULL;

    for (size_t i = 0; i < experiment->run_count; i++) {
        const struct ab_run_gpu *gpu = &experiment->runs[i].gpu;

        if (gpu->known) {
            known++;
            flagged += gpu->flags != 0;
            add_to(&clock, &clocks, gpu->sm_clock_mhz);
            add_to(&temperature, &temperatures, gpu->temperature_celsius);
            add_to(&power, &powers, gpu->power_watts);
        }
    }
    if (known == 0) {
        return memory_copy("state not read (no NVML)");
    }
    if (experiment->gpus != NULL) {
        append_lines(&text, experiment->gpus);
    }
    ab_append(&text, "state read in %zu of %zu %ss, %zu flagged", known, experiment->run_count,
              ab_unit_word(experiment), flagged);
    if (clocks > 0) {
        ab_append(&text, "; SM clock %s MHz",
                  printable_count(&megahertz, (int64_t)lround(clock / (double)clocks)));
    }
    if (temperatures > 0) {
        ab_append(&text, ", %.0f \u00b0C", temperature / (double)temperatures);
    }
    if (powers > 0) {
        ab_append(&text, ", %.0f W", power / (double)powers);
    }
    ab_append(&text, "%s", clocks + temperatures + powers > 0 ? " on average" : "");
    return text;
}

static char *describe_command(const struct ab_experiment *experiment)
{
    char *text = memory_copy("");

    for (size_t i = 0; experiment->command != NULL && experiment->command[i] != NULL; i++) {
        const char *word = experiment->command[i];
        bool plain = word[0] != '\0';

        /* Quoted for a shell where it has to be, so that it can be pasted into one. */
        for (const char *byte = word; *byte != '\0'; byte++) {
            plain = plain && ((unsigned char)*byte >= 0x80 || strchr("{}@%+=:,./-_", *byte) ||
                              (*byte >= '0' && *byte <= '9') || (*byte >= 'A' && *byte <= 'Z') ||
                              (*byte >= 'a' && *byte <= 'z'));
        }
        ab_append(&text, "%s", i > 0 ? " " : "");
        if (plain) {
            ab_append(&text, "%s", word);
            continue;
        }
        ab_append(&text, "'");
        for (const char *byte = word; *byte != '\0'; byte++) {
            ab_append(&text, *byte == '\'' ? "'\\''" : "%c", *byte);
        }
        ab_append(&text, "'");
    }
    return text;
}

static char *describe_live_runs(const struct ab_experiment *experiment)
{
    const struct ab_live_design *live = experiment->live;
    char *text = NULL;

    ab_append(&text, "%zu of %zu rank%s", live->runs_made, live->ranks,
              live->ranks == 1 ? "" : "s");
    if (live->parts > 1) {
        ab_append(&text, ", up to %zu sequences of steps one after the other", live->parts);
    }
    if (live->left_out > 0) {
        ab_append(&text, ", %zu process%s left out", live->left_out,
                  live->left_out == 1 ? "" : "es");
    }
    ab_append(&text, "; %zu blocks", live->blocks);
    if (live->these_processes_only) {
        ab_append(&text, "; what is said is about the processes of %s",
                  live->runs_made == 1 ? "this run" : "these runs");
    }
    if (live->runs_failed > 0) {
        ab_append(&text, "; %zu more failed", live->runs_failed);
    }
    ab_append(&text, "%s", experiment->interrupted ? "; interrupted" : "");
    return text;
}

static void add_live_facts(struct ab_facts *facts, const struct ab_experiment *experiment)
{
    const struct ab_live_design *live = experiment->live;

    add_fact(facts, "Steps",
             memory_format("slices of %" PRIu32 ", the first %" PRIu32 " dropped, after %" PRIu32
                           " to warm up; %s%s",
                           live->slice, live->drop, live->warm_up,
                           live->step_kernel != NULL ? "kernel " : "launches of graphs",
                           live->step_kernel != NULL ? live->step_kernel : ""));
    add_fact(facts, "Runs", describe_live_runs(experiment));
}

void ab_facts_gather(struct ab_facts *facts, const struct ab_experiment *experiment,
                     const struct ab_analysis *analysis)
{
    facts->count = 0;
    if (experiment->command != NULL) {
        add_fact(facts, "Command", describe_command(experiment));
    }
    add_fact(facts, "Seed", memory_format("%" PRIu64, experiment->plan.seed));
    if (experiment->live != NULL) {
        add_live_facts(facts, experiment);
    } else {
        add_fact(facts, "Blocks", describe_blocks(experiment, analysis));
        add_fact(facts, "Looks", describe_looks(experiment, analysis));
    }
    if (experiment->host != NULL) {
        add_fact(facts, "Host", memory_copy(experiment->host));
    }
    add_fact(facts, "GPUs", describe_gpus(experiment));
    if (experiment->started != NULL) {
        add_fact(facts, "Started", memory_copy(experiment->started));
    }
}

void ab_facts_release(struct ab_facts *facts)
{
    for (size_t i = 0; i < facts->count; i++) {
        free(facts->items[i].value);
    }
    facts->count = 0;
}
