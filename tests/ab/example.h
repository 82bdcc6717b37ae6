/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TEST_AB_EXAMPLE_H
#define CUDAPOLICY_TEST_AB_EXAMPLE_H

/*
 * An experiment that was never made, and an analysis of it by hand: one arm of each verdict, a run
 * of each outcome, flags, warnings, names that nobody should trust. The intervals are simple ones:
 * what is tested with it is how they are shown.
 */

#include "analysis.h"
#include "experiment.h"

enum example_arm {
    EXAMPLE_NONE, /* the baseline */
    EXAMPLE_AGAIN,
    EXAMPLE_OBSERVE,
    EXAMPLE_FAST,
    EXAMPLE_SLOW,
    EXAMPLE_SAME,
    EXAMPLE_FEW,
    EXAMPLE_BROKEN,
    EXAMPLE_ARMS,
};

struct example {
    struct ab_experiment experiment;
    struct ab_analysis analysis;
};

/* arms: how many of them, at least two; blocks: after two to warm up, at least 10. */
void example_make(struct example *example, unsigned arms, unsigned blocks);
void example_release(struct example *example);

/* The comparison, to be changed. */
struct ab_comparison *example_comparison(struct example *example, unsigned arm, unsigned metric);

#endif
