/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TESTS_AB_SYNTHETIC_H
#define CUDAPOLICY_TESTS_AB_SYNTHETIC_H

/* Runs whose truth is known: logarithms of times with noise of several kinds, block by block. */

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum noise {
    NOISE_NORMAL,       /* deviation 2 % */
    NOISE_HEAVY,        /* Student's with 2.5 degrees of freedom, times 2 % */
    NOISE_BIMODAL,      /* 24 or 38, drawn for each run, with 2 % inside a mode */
    NOISE_BIMODAL_RARE, /* 38 one time in five */
    NOISE_SKEWED,       /* exponential, deviation 5 % */
    NOISE_DRIFT, /* 2 %, and 5 % autoregressive from run to run (0.9): what changes with time */
    NOISE_STATE, /* 2 %, autoregressive (0.3) from each run of an arm to its next: states of
                    the arms' own, which no order can take away */
    NOISE_COUNT,
};

static const char *const noise_names[] = {
    "normal", "heavy-tailed", "bimodal", "bimodal, 1 in 5", "skewed", "drift", "state of an arm"};

enum { SYNTHETIC_ARMS = 16 };

struct synthetic {
    gsl_rng *random;
    enum noise noise;
    double time, states[SYNTHETIC_ARMS];
};

static void synthetic_begin(struct synthetic *synthetic, gsl_rng *random, enum noise noise)
{
    size_t arm;

    synthetic->random = random;
    synthetic->noise = noise;
    synthetic->time = gsl_ran_ugaussian(random);
    for (arm = 0; arm < SYNTHETIC_ARMS; arm++)
        synthetic->states[arm] = gsl_ran_ugaussian(random);
}

static double autoregressive(gsl_rng *random, double *state, double correlation)
{
    *state = correlation * *state + gsl_ran_gaussian(random, sqrt(1 - correlation * correlation));
    return *state;
}

static double synthetic_run(struct synthetic *synthetic, size_t arm)
{
    gsl_rng *random = synthetic->random;

    switch (synthetic->noise) {
    case NOISE_HEAVY:
        return 0.02 * gsl_ran_tdist(random, 2.5);
    case NOISE_BIMODAL:
        return (gsl_rng_uniform(random) < 0.5 ? log(24) : log(38)) + gsl_ran_gaussian(random, 0.02);
    case NOISE_BIMODAL_RARE:
        return (gsl_rng_uniform(random) < 0.8 ? log(24) : log(38)) + gsl_ran_gaussian(random, 0.02);
    case NOISE_SKEWED:
        return gsl_ran_exponential(random, 0.05);
    case NOISE_DRIFT:
        return 0.05 * autoregressive(random, &synthetic->time, 0.9) +
               gsl_ran_gaussian(random, 0.02);
    case NOISE_STATE:
        return 0.02 * autoregressive(random, &synthetic->states[arm], 0.3);
    default:
        return gsl_ran_gaussian(random, 0.02);
    }
}

/* A block: each arm once, in random order. values[arm]: logarithms. */
static void synthetic_block(struct synthetic *synthetic, size_t arms, double *values)
{
    size_t order[SYNTHETIC_ARMS], i;

    for (i = 0; i < arms; i++)
        order[i] = i;
    gsl_ran_shuffle(synthetic->random, order, arms, sizeof *order);
    for (i = 0; i < arms; i++)
        values[order[i]] = synthetic_run(synthetic, order[i]);
}

/* Differences to the first arm over blocks: differences[(arm - 1) * blocks + block]. */
static void synthetic_differences(struct synthetic *synthetic, size_t arms, size_t blocks,
                                  double *differences)
{
    double values[SYNTHETIC_ARMS];
    size_t block, arm;

    for (block = 0; block < blocks; block++) {
        synthetic_block(synthetic, arms, values);
        for (arm = 1; arm < arms; arm++)
            differences[(arm - 1) * blocks + block] = values[arm] - values[0];
    }
}

#endif
