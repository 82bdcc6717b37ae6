/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TESTS_AB_ANALYSIS_SUPPORT_H
#define CUDAPOLICY_TESTS_AB_ANALYSIS_SUPPORT_H

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "memory.h"
#include "sequential.h"
#include "statistics.h"

/* An experiment whose runs are drawn: arms named by what they are, "a" the baseline. */
struct bench {
    struct ab_experiment experiment;
    struct ab_analysis analysis;
    gsl_rng *random;
    double noise; /* deviation of logarithms */
};

static inline void add_arm(struct ab_experiment *experiment, const char *name,
                           enum ab_arm_role role)
{
    struct ab_arm *arm = &experiment->arms[experiment->arm_count++];

    arm->name = memory_copy(name);
    arm->kind = role == AB_ROLE_COST ? AB_ARM_OBSERVE : AB_ARM_POLICY;
    arm->role = role;
}

static inline void begin(struct bench *bench, size_t candidates, size_t metrics)
{
    static const char *const names[] = {"b", "c", "d", "e"};
    struct ab_experiment *experiment = &bench->experiment;
    size_t i;

    memset(bench, 0, sizeof *bench);
    bench->random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(bench->random, 31);
    bench->noise = 0.01;
    experiment->plan = (struct ab_plan){.seed = 5,
                                        .look_count = 3,
                                        .looks = {10, 20, 40},
                                        .claim = AB_CLAIM_BETTER,
                                        .alpha = 0.05,
                                        .margin = 0.02};
    experiment->arms = memory_allocate(8, sizeof *experiment->arms);
    add_arm(experiment, "a", AB_ROLE_BASELINE);
    for (i = 0; i < candidates; i++)
        add_arm(experiment, names[i], AB_ROLE_CANDIDATE);
    experiment->metric_count = metrics;
    experiment->metrics = memory_allocate(metrics, sizeof *experiment->metrics);
    for (i = 0; i < metrics; i++) {
        experiment->metrics[i].name = memory_copy(i == 0 ? "time" : "other");
        experiment->metrics[i].unit = memory_copy("ms");
        experiment->metrics[i].definition = memory_copy("");
    }
    experiment->metrics[0].primary = true;
}

static inline void end(struct bench *bench)
{
    ab_analysis_release(&bench->analysis);
    ab_experiment_release(&bench->experiment);
    gsl_rng_free(bench->random);
}

static inline struct ab_run *add_run(struct bench *bench, uint32_t block, uint32_t arm,
                                     double value)
{
    struct ab_run *run = ab_experiment_add_run(&bench->experiment);
    size_t metric;

    run->block = block;
    run->arm = arm;
    run->position = arm;
    for (metric = 0; metric < bench->experiment.metric_count; metric++)
        run->values[metric].value = value * exp(gsl_ran_gaussian(bench->random, bench->noise));
    return run;
}

/* Blocks first .. last - 1, with these values of the arms, times noise. */
static inline void add_blocks(struct bench *bench, uint32_t first, uint32_t last,
                              const double *values)
{
    uint32_t block, arm;

    for (block = first; block < last; block++) {
        for (arm = 0; arm < bench->experiment.arm_count; arm++)
            add_run(bench, block, arm, values[arm]);
    }
}

static inline const struct ab_comparison *analyse(struct bench *bench, size_t arm)
{
    ab_analysis_release(&bench->analysis);
    ab_analyse(&bench->experiment, &bench->analysis);
    return ab_analysis_comparison(&bench->analysis, arm, 0);
}

static inline struct ab_run *run_of(struct bench *bench, uint32_t block, uint32_t arm)
{
    return &bench->experiment.runs[block * bench->experiment.arm_count + arm];
}
static inline const char *warning(const struct bench *bench, enum ab_warning_kind kind, size_t arm)
{
    size_t i;

    for (i = 0; i < bench->analysis.warning_count; i++) {
        if (bench->analysis.warnings[i].kind == kind && bench->analysis.warnings[i].arm == arm)
            return bench->analysis.warnings[i].text;
    }
    return NULL;
}

static inline void assert_warns(const struct bench *bench, enum ab_warning_kind kind, size_t arm,
                                const char *text)
{
    const char *found = warning(bench, kind, arm);

    assert_non_null(found);
    assert_string_equal(found, text);
}

#endif
