/* SPDX-License-Identifier: Apache-2.0 */

/* How often the statistics of experiments are right, on synthetic runs of which the truth is known.
 * Prints the tables of docs/statistics.md. Not a test: it takes minutes. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics.h>

#include "analysis.h"
#include "sample.h"
#include "sequential.h"
#include "statistics.h"
#include "synthetic.h"

enum { DRAWS = 1999, MOST_BLOCKS = 160 };

static const struct ab_plan three_looks = {
    .look_count = 3, .looks = {10, 20, 40}, .alpha = 0.05, .margin = 0.01};

/* Covered and width of the interval at a level, and whether the test rejects the truth. */
static void interval_of(double *values, size_t count, double level, bool widen, double *low,
                        double *high, double *p)
{
    struct ab_subsets subsets;

    if (widen)
        ab_widen(values, count);
    ab_subsets_make(&subsets, values, count, DRAWS, 1);
    ab_subsets_interval(&subsets, level, low, high);
    *p = ab_subsets_p(&subsets, 0);
    ab_subsets_release(&subsets);
}

static void study_coverage(gsl_rng *random, size_t experiments)
{
    static const size_t counts[] = {10, 20, 40};
    double values[MOST_BLOCKS], low, high, p;
    size_t i, n, noise, widen;

    printf("\nCoverage of 95 %% intervals, and their mean width in logarithms\n\n"
           "| noise | blocks | covers | width | without widening | width |\n"
           "|---|---|---|---|---|---|\n");
    for (noise = 0; noise < NOISE_COUNT; noise++) {
        for (n = 0; n < 3; n++) {
            size_t covers[2] = {0};
            double width[2] = {0};

            for (i = 0; i < experiments; i++) {
                struct synthetic synthetic;
                double copy[MOST_BLOCKS];

                synthetic_begin(&synthetic, random, (enum noise)noise);
                synthetic_differences(&synthetic, 2, counts[n], values);
                for (widen = 0; widen < 2; widen++) {
                    memcpy(copy, values, sizeof copy);
                    interval_of(copy, counts[n], 0.95, widen == 0, &low, &high, &p);
                    covers[widen] += low <= 0 && high >= 0;
                    width[widen] += high - low;
                }
            }
            printf("| %s | %zu | %.1f %% | %.4f | %.1f %% | %.4f |\n", noise_names[noise],
                   counts[n], 100.0 * (double)covers[0] / (double)experiments,
                   width[0] / (double)experiments, 100.0 * (double)covers[1] / (double)experiments,
                   width[1] / (double)experiments);
            fflush(stdout);
        }
    }
}

/* Whether any of the arms is shown to differ at any look. */
static bool shown_at_some_look(struct synthetic *synthetic, size_t arms, double effect,
                               size_t *blocks)
{
    double values[SYNTHETIC_ARMS * 40], p[SYNTHETIC_ARMS], low, high;
    size_t look, arm, i;

    synthetic_differences(synthetic, arms + 1, 40, values);
    for (i = 0; i < arms * 40; i++)
        values[i] += effect;
    for (look = 0; look < three_looks.look_count; look++) {
        struct ab_look here;

        *blocks = three_looks.looks[look];
        ab_look_at(&three_looks, *blocks, false, &here);
        for (arm = 0; arm < arms; arm++) {
            double copy[40];

            memcpy(copy, values + arm * 40, sizeof copy);
            interval_of(copy, *blocks, 1 - here.level, true, &low, &high, &p[arm]);
        }
        ab_holm(p, arms, p);
        for (arm = 0; arm < arms; arm++) {
            if (p[arm] <= here.level)
                return true;
        }
    }
    return false;
}

static void study_false_positives(gsl_rng *random, size_t experiments)
{
    size_t noise, i, arms, blocks;

    printf(
        "\nUseless arms of which one at least is called better or worse at one of the looks\n"
        "after 10, 20 and 40 blocks\n\n| noise | 1 arm | 3 arms | 12 arms |\n|---|---|---|---|\n");
    for (noise = 0; noise < NOISE_COUNT; noise++) {
        printf("| %s ", noise_names[noise]);
        for (arms = 1; arms <= 12; arms = arms == 1 ? 3 : arms * 4) {
            size_t wrong = 0;

            for (i = 0; i < experiments; i++) {
                struct synthetic synthetic;

                synthetic_begin(&synthetic, random, (enum noise)noise);
                wrong += shown_at_some_look(&synthetic, arms, 0, &blocks);
            }
            printf("| %.1f %% ", 100.0 * (double)wrong / (double)experiments);
            fflush(stdout);
        }
        printf("|\n");
    }
}

/* Arms that differ by exactly the margin, and are called no different at one of the looks. */
static void study_equivalence(gsl_rng *random, size_t experiments)
{
    static const double margins[] = {0.02, 0.05, 0.2};
    size_t noise, m, i, look;

    printf("\nArms that differ by the margin, called no different at one of the looks after 10, 20 "
           "and 40\nblocks\n\n| noise | margin 2 %% | 5 %% | 20 %% |\n|---|---|---|---|\n");
    for (noise = 0; noise < NOISE_COUNT; noise++) {
        printf("| %s ", noise_names[noise]);
        for (m = 0; m < 3; m++) {
            size_t wrong = 0;

            for (i = 0; i < experiments; i++) {
                double values[40], copy[40], low, high, p, margin = log1p(margins[m]);
                struct synthetic synthetic;
                bool within = false;
                size_t j;

                synthetic_begin(&synthetic, random, (enum noise)noise);
                synthetic_differences(&synthetic, 2, 40, values);
                for (j = 0; j < 40; j++)
                    values[j] += margin;
                for (look = 0; look < three_looks.look_count; look++) {
                    struct ab_look here;

                    ab_look_at(&three_looks, three_looks.looks[look], false, &here);
                    memcpy(copy, values, sizeof copy);
                    interval_of(copy, three_looks.looks[look], 1 - 2 * here.level, true, &low,
                                &high, &p);
                    within = within || (low >= -margin && high <= margin);
                }
                wrong += within;
            }
            printf("| %.1f %% ", 100.0 * (double)wrong / (double)experiments);
            fflush(stdout);
        }
        printf("|\n");
    }
}

static void study_power(gsl_rng *random, size_t experiments)
{
    static const size_t counts[] = {10, 20, 40, 80, 160};
    static const double effects[] = {0.01, 0.02, 0.05, 0.1, 0.3};
    static const enum noise noises[] = {NOISE_NORMAL, NOISE_BIMODAL, NOISE_BIMODAL_RARE};
    double values[MOST_BLOCKS], low, high, p;
    size_t noise, effect, n, i, j;

    printf("\nPower: one arm that takes this much less time, shown by one look (level 0.05)\n\n"
           "| noise | gain | 10 blocks | 20 | 40 | 80 | 160 |\n|---|---|---|---|---|---|---|\n");
    for (noise = 0; noise < 3; noise++) {
        for (effect = 0; effect < 5; effect++) {
            printf("| %s | %g %% ", noise_names[noises[noise]], 100 * effects[effect]);
            for (n = 0; n < 5; n++) {
                size_t shown = 0;

                for (i = 0; i < experiments; i++) {
                    struct synthetic synthetic;

                    synthetic_begin(&synthetic, random, noises[noise]);
                    synthetic_differences(&synthetic, 2, counts[n], values);
                    for (j = 0; j < counts[n]; j++)
                        values[j] += log1p(-effects[effect]);
                    interval_of(values, counts[n], 0.95, true, &low, &high, &p);
                    shown += p <= 0.05 && high < 0;
                }
                printf("| %.0f %% ", 100.0 * (double)shown / (double)experiments);
                fflush(stdout);
            }
            printf("|\n");
        }
    }
}

static void study_modes(gsl_rng *random, size_t experiments)
{
    static const size_t counts[] = {10, 20, 40, 160};
    static const char *const names[] = {"normal",  "even",          "exponential",  "Student's, 2",
                                        "Laplace", "24/38, 1 in 2", "24/38, 1 in 5"};
    double values[MOST_BLOCKS];
    size_t kind, n, i, j;

    printf(
        "\nRuns called bimodal\n\n| runs are | 10 runs | 20 | 40 | 160 |\n|---|---|---|---|---|\n");
    for (kind = 0; kind < 7; kind++) {
        printf("| %s ", names[kind]);
        for (n = 0; n < 4; n++) {
            size_t called = 0;

            for (i = 0; i < experiments; i++) {
                struct synthetic synthetic;
                struct ab_modes modes;

                synthetic_begin(&synthetic, random, kind == 5 ? NOISE_BIMODAL : NOISE_BIMODAL_RARE);
                for (j = 0; j < counts[n]; j++)
                    values[j] = kind == 0   ? 50 + gsl_ran_ugaussian(random)
                                : kind == 1 ? 50 + gsl_rng_uniform(random)
                                : kind == 2 ? 50 + gsl_ran_exponential(random, 1)
                                : kind == 3 ? 50 + 0.1 * gsl_ran_tdist(random, 2)
                                : kind == 4 ? 50 + gsl_ran_laplace(random, 1)
                                            : exp(synthetic_run(&synthetic, 0));
                ab_modes_find(values, counts[n], &modes);
                called += modes.bimodal;
            }
            printf("| %.1f %% ", 100.0 * (double)called / (double)experiments);
        }
        printf("|\n");
    }
}

/* Slices inside runs: autoregressive, with an effect of each process's own. */
static void study_nested(gsl_rng *random, size_t experiments)
{
    static const double correlations[] = {0, 0.3, 0.6};
    static const size_t runs[] = {1, 2, 4, 5, 10}, slices[] = {20, 50, 200};
    size_t c, r, s, i, run, slice;

    printf("\nCoverage of 95 %% intervals for arms that alternate inside runs; with fewer than %d "
           "runs, of\nthe mean of these processes\n\n"
           "| correlation of slices | slices a run | 1 run | 2 | 4 | 5 | 10 |\n"
           "|---|---|---|---|---|---|---|\n",
           AB_NESTED_RUNS);
    for (c = 0; c < 3; c++) {
        for (s = 0; s < 3; s++) {
            printf("| %g | %zu ", correlations[c], slices[s]);
            for (r = 0; r < 5; r++) {
                size_t covers = 0, counts[10];
                double values[10 * 200];

                for (i = 0; i < experiments; i++) {
                    struct ab_nested nested;
                    double truth = 0;

                    for (run = 0; run < runs[r]; run++) {
                        double process = gsl_ran_gaussian(random, 0.01);
                        double state = gsl_ran_ugaussian(random);

                        counts[run] = slices[s];
                        truth += process / (double)runs[r];
                        for (slice = 0; slice < slices[s]; slice++)
                            values[run * slices[s] + slice] =
                                process + 0.05 * autoregressive(random, &state, correlations[c]);
                    }
                    ab_nested_compare(&nested, values, counts, runs[r], 0.95);
                    if (!nested.these_processes_only)
                        truth = 0;
                    covers += log(nested.low) <= truth && truth <= log(nested.high);
                }
                printf("| %.1f %% ", 100.0 * (double)covers / (double)experiments);
            }
            printf("|\n");
            fflush(stdout);
        }
    }
}

/* How long the analysis of a thousand runs takes: three arms, two metrics. */
static void study_cost(gsl_rng *random)
{
    struct ab_arm arms[] = {{.role = AB_ROLE_BASELINE, .kind = AB_ARM_POLICY},
                            {.role = AB_ROLE_CANDIDATE, .kind = AB_ARM_POLICY},
                            {.role = AB_ROLE_CANDIDATE, .kind = AB_ARM_POLICY}};
    struct ab_metric metrics[2] = {{.primary = true}};
    struct ab_experiment experiment = {.plan = {.look_count = 1,
                                                .looks = {333},
                                                .claim = AB_CLAIM_BETTER,
                                                .alpha = 0.05,
                                                .margin = 0.01},
                                       .arm_count = 3,
                                       .arms = arms,
                                       .metric_count = 2,
                                       .metrics = metrics};
    struct timespec start, end;
    struct ab_analysis analysis;
    uint32_t i;

    for (i = 0; i < 999; i++) {
        struct ab_run *run = ab_experiment_add_run(&experiment);

        run->block = i / 3;
        run->arm = i % 3;
        run->values[0].value = exp(gsl_ran_gaussian(random, 0.02));
        run->values[1].value = exp(gsl_ran_gaussian(random, 0.02));
        run->gpu.known = true;
        run->gpu.flags = i % 50 == 0;
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    ab_analyse(&experiment, &analysis);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("\n%zu runs of 3 arms with 2 metrics analysed in %.0f ms\n", experiment.run_count,
           1e3 * (double)(end.tv_sec - start.tv_sec) +
               1e-6 * (double)(end.tv_nsec - start.tv_nsec));
    ab_analysis_release(&analysis);
    for (i = 0; i < 999; i++)
        free(experiment.runs[i].values);
    free(experiment.runs);
}

int main(int argc, char **argv)
{
    size_t experiments = argc > 1 ? strtoul(argv[1], NULL, 10) : 4000;
    const char *only = argc > 2 ? argv[2] : "cfepmna";
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);

    gsl_rng_set(random, 20240229);
    if (strchr(only, 'c') != NULL)
        study_coverage(random, experiments);
    if (strchr(only, 'f') != NULL)
        study_false_positives(random, experiments);
    if (strchr(only, 'e') != NULL)
        study_equivalence(random, experiments);
    if (strchr(only, 'p') != NULL)
        study_power(random, experiments);
    if (strchr(only, 'm') != NULL)
        study_modes(random, experiments);
    if (strchr(only, 'n') != NULL)
        study_nested(random, experiments);
    if (strchr(only, 'a') != NULL)
        study_cost(random);
    gsl_rng_free(random);
    return 0;
}
