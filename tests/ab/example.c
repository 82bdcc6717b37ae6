/* SPDX-License-Identifier: Apache-2.0 */
#include "example.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

static const struct {
    const char *name;
    enum ab_arm_kind kind;
    enum ab_arm_role role;
    double ratio;
    enum ab_verdict verdict;
} arms_of_example[EXAMPLE_ARMS] = {
    {"none", AB_ARM_NONE, AB_ROLE_BASELINE, 1, AB_VERDICT_COUNT},
    {"none-again", AB_ARM_NONE, AB_ROLE_REPEAT, 1, AB_VERDICT_NO_DIFFERENCE},
    {"observe", AB_ARM_OBSERVE, AB_ROLE_COST, 1.004, AB_VERDICT_NO_DIFFERENCE},
    {"fast", AB_ARM_POLICY, AB_ROLE_CANDIDATE, 0.7, AB_VERDICT_BETTER},
    {"slow", AB_ARM_POLICY, AB_ROLE_CANDIDATE, 1.15, AB_VERDICT_WORSE},
    {"same", AB_ARM_POLICY, AB_ROLE_CANDIDATE, 1.001, AB_VERDICT_NO_DIFFERENCE},
    {"few", AB_ARM_POLICY, AB_ROLE_CANDIDATE, 0.98, AB_VERDICT_NOT_ENOUGH},
    {"broken", AB_ARM_POLICY, AB_ROLE_CANDIDATE, 0.5, AB_VERDICT_BROKEN},
};

static void make_plan(struct ab_experiment *experiment, unsigned blocks)
{
    static const char *const command[] = {"mpirun",
                                          "-n",
                                          "2",
                                          "./train",
                                          "--note=<script>alert('1')</script> & \"more\"",
                                          "--cache=/tmp/{arm}"};
    size_t words = sizeof command / sizeof *command;

    experiment->command = memory_allocate(words + 1, sizeof *experiment->command);
    for (size_t i = 0; i < words; i++) {
        experiment->command[i] = memory_copy(command[i]);
    }
    experiment->started = memory_copy("2026-03-04T05:06:07Z");
    experiment->host = memory_copy("node<7>");
    experiment->plan = (struct ab_plan){
        .seed = 20260304,
        .warm_up_blocks = 2,
        .look_count = 2,
        .looks = {blocks / 2, blocks},
        .alpha = 0.05,
        .margin = 0.03,
    };
}

static void make_arms(struct ab_experiment *experiment, unsigned arms)
{
    experiment->arm_count = arms;
    experiment->arms = memory_allocate(arms, sizeof *experiment->arms);
    for (unsigned i = 0; i < arms; i++) {
        struct ab_arm *arm = &experiment->arms[i];

        arm->name = memory_copy(arms_of_example[i].name);
        arm->kind = arms_of_example[i].kind;
        arm->role = arms_of_example[i].role;
        if (arm->kind == AB_ARM_POLICY) {
            arm->policy = memory_format("/policies/<b>%s</b>.ini", arm->name);
            arm->policy_sha256 =
                memory_copy("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08");
        }
    }
}

static void make_metrics(struct ab_experiment *experiment)
{
    experiment->metric_count = 2;
    experiment->metrics = memory_allocate(2, sizeof *experiment->metrics);
    experiment->metrics[0] = (struct ab_metric){
        .name = memory_copy("step"),
        .unit = memory_copy("s"),
        .direction = AB_LESS_IS_BETTER,
        .source = AB_METRIC_PATTERN,
        .definition = memory_copy("step=([0-9.]+) <s>"),
        .primary = true,
    };
    experiment->metrics[1] = (struct ab_metric){
        .name = memory_copy("rate"),
        .unit = memory_copy("img/s"),
        .direction = AB_MORE_IS_BETTER,
        .source = AB_METRIC_JSON,
        .definition = memory_copy("/rate"),
    };
}

static void make_run(struct ab_experiment *experiment, unsigned block, unsigned position,
                     unsigned arm, bool warm_up, const gsl_rng *random)
{
    /* Two modes, drawn for each run, as one sees them from process to process. */
    double mode = gsl_rng_uniform(random) < 0.1 ? 1.06 : 1;
    double value = 0.0123 * arms_of_example[arm].ratio * mode *
                   exp(gsl_ran_gaussian(random, arm == EXAMPLE_FEW ? 0.05 : 0.008));
    struct ab_run *run = ab_experiment_add_run(experiment);

    run->block = block;
    run->position = position;
    run->arm = arm;
    run->warm_up = warm_up;
    run->start_time = 1772600767000000000 + (int64_t)experiment->run_count * 1000000000;
    run->seconds = 100 * value + 1;
    run->gpu = (struct ab_run_gpu){
        .known = true,
        .flags = !warm_up && block == 4 && position == 1 ? AB_GPU_THROTTLED_THERMAL : 0,
        .sm_clock_mhz = 1755,
        .temperature_celsius = 61,
        .power_watts = 412,
    };
    if (arms_of_example[arm].kind == AB_ARM_POLICY) {
        run->policy = (struct ab_run_policy){.known = true,
                                             .processes = 2,
                                             .launches = 1000,
                                             .applied = 800,
                                             .kept = 200,
                                             .rules = 3,
                                             .rules_matched = 2};
    }
    run->values[0] = (struct ab_run_value){value, 500, 20, 0.1};
    run->values[1] = (struct ab_run_value){64 / value, 1, 0, NAN};
    if (!warm_up && arm == EXAMPLE_BROKEN && block % 3 == 1) {
        run->outcome = block % 2 == 1 ? AB_CHECK_FAILED : AB_SIGNALLED;
        run->status = block % 2 == 1 ? 0 : 11;
        run->message = memory_copy("the check said: <b>loss is nan</b>, \"expected\" 0.5\n=> bad");
        run->values[0].value = NAN;
        run->values[1].value = NAN;
    }
    if (!warm_up && arm == EXAMPLE_NONE && block == 7) {
        run->outcome = AB_TIMED_OUT;
        run->message = memory_copy("no end after 12 s");
        run->values[0].value = NAN;
        run->values[1].value = NAN;
    }
}

static void make_runs(struct ab_experiment *experiment, unsigned blocks)
{
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    unsigned order[EXAMPLE_ARMS];

    gsl_rng_set(random, 7);
    for (unsigned i = 0; i < EXAMPLE_ARMS; i++) {
        order[i] = i;
    }
    for (unsigned block = 0; block < blocks + 2; block++) {
        gsl_ran_shuffle(random, order, experiment->arm_count, sizeof *order);
        for (unsigned position = 0; position < experiment->arm_count; position++) {
            make_run(experiment, block < 2 ? block : block - 2, position, order[position],
                     block < 2, random);
        }
    }
    gsl_rng_free(random);
}

/* The value of an arm in a block that counts; NaN: none. */
static double value_in(const struct ab_experiment *experiment, unsigned block, unsigned arm,
                       unsigned metric)
{
    for (size_t i = 0; i < experiment->run_count; i++) {
        const struct ab_run *run = &experiment->runs[i];

        if (!run->warm_up && run->block == block && run->arm == arm && run->outcome == AB_OK) {
            return run->values[metric].value;
        }
    }
    return NAN;
}

static struct ab_comparison compare(const struct ab_experiment *experiment, unsigned blocks,
                                    unsigned arm, unsigned metric)
{
    double *differences = memory_allocate(blocks, sizeof *differences), mean, error;
    struct ab_comparison comparison = {.arm = arm, .metric = metric};

    for (unsigned block = 0; block < blocks; block++) {
        double difference = log(value_in(experiment, block, arm, metric) /
                                value_in(experiment, block, EXAMPLE_NONE, metric));

        if (isfinite(difference)) {
            differences[comparison.pairs++] = difference;
        }
    }
    mean = gsl_stats_mean(differences, 1, comparison.pairs);
    error = gsl_stats_sd(differences, 1, comparison.pairs) / sqrt((double)comparison.pairs);
    comparison.ratio = exp(mean);
    comparison.low = exp(mean - 2 * error);
    comparison.high = exp(mean + 2 * error);
    comparison.level = 0.95;
    comparison.margin_low = exp(mean - 1.7 * error);
    comparison.margin_high = exp(mean + 1.7 * error);
    comparison.margin_level = 0.9;
    comparison.p = 0.001;
    comparison.p_adjusted = 0.004;
    comparison.verdict = metric == 0 ? arms_of_example[arm].verdict : AB_VERDICT_NOT_ENOUGH;
    comparison.decided_at_look = true;
    comparison.blocks_for_ratio = 64;
    comparison.blocks_for_margin = 210;
    comparison.smallest_detectable = 0.97;
    free(differences);
    return comparison;
}

static void summarise(const struct ab_experiment *experiment, unsigned arm,
                      struct ab_arm_summary *summary)
{
    double *values = memory_allocate(experiment->run_count, sizeof *values);

    *summary = (struct ab_arm_summary){.failure_p = 0.5, .drift = 0.1};
    for (size_t i = 0; i < experiment->run_count; i++) {
        const struct ab_run *run = &experiment->runs[i];

        if (run->warm_up || run->arm != arm) {
            continue;
        }
        summary->runs++;
        summary->outcomes[run->outcome]++;
        if (run->outcome == AB_OK) {
            values[summary->ok++] = run->values[0].value;
        }
    }
    gsl_sort(values, 1, summary->ok);
    summary->mean = gsl_stats_mean(values, 1, summary->ok);
    summary->median = gsl_stats_median_from_sorted_data(values, 1, summary->ok);
    summary->deviation = gsl_stats_sd(values, 1, summary->ok);
    summary->least = values[0];
    summary->most = values[summary->ok - 1];
    summary->modes[0] = summary->modes[1] = NAN;
    free(values);
}

static void warn(struct ab_analysis *analysis, enum ab_warning_kind kind, size_t arm,
                 const char *text)
{
    analysis->warnings = memory_grow(analysis->warnings, analysis->warning_count,
                                     &analysis->warning_capacity, sizeof *analysis->warnings);
    analysis->warnings[analysis->warning_count++] =
        (struct ab_warning){kind, arm, memory_copy(text)};
}

static void make_analysis(struct example *example, unsigned blocks)
{
    struct ab_experiment *experiment = &example->experiment;
    struct ab_analysis *analysis = &example->analysis;

    analysis->blocks = blocks;
    analysis->look = 1;
    analysis->alpha_spent = 0.05;
    analysis->alpha_here = 0.0451;
    analysis->done = true;
    analysis->comparisons = memory_allocate(experiment->arm_count * experiment->metric_count,
                                            sizeof *analysis->comparisons);
    for (unsigned metric = 0; metric < experiment->metric_count; metric++) {
        for (unsigned arm = 1; arm < experiment->arm_count; arm++) {
            analysis->comparisons[analysis->comparison_count++] =
                compare(experiment, blocks, arm, metric);
        }
    }
    analysis->arms = memory_allocate(experiment->arm_count, sizeof *analysis->arms);
    for (unsigned arm = 0; arm < experiment->arm_count; arm++) {
        summarise(experiment, arm, &analysis->arms[arm]);
    }
    warn(analysis, AB_WARNING_BIMODAL, 0,
         "its runs fall into two groups, around 12.3 ms and 13.1 ms");
    warn(analysis, AB_WARNING_OUTLIERS, 1, "a value of <b>99 s</b> is far from the others");
    analysis->winner = experiment->arm_count > EXAMPLE_FAST ? EXAMPLE_FAST : SIZE_MAX;
    analysis->result = AB_RESULT_SHOWN;
}

void example_make(struct example *example, unsigned arms, unsigned blocks)
{
    memset(example, 0, sizeof *example);
    make_plan(&example->experiment, blocks);
    make_arms(&example->experiment, arms);
    make_metrics(&example->experiment);
    make_runs(&example->experiment, blocks);
    make_analysis(example, blocks);
}

void example_release(struct example *example)
{
    ab_analysis_release(&example->analysis);
    ab_experiment_release(&example->experiment);
}

struct ab_comparison *example_comparison(struct example *example, unsigned arm, unsigned metric)
{
    struct ab_analysis *analysis = &example->analysis;

    for (size_t i = 0; i < analysis->comparison_count; i++) {
        if (analysis->comparisons[i].arm == arm && analysis->comparisons[i].metric == metric) {
            return &analysis->comparisons[i];
        }
    }
    return NULL;
}
