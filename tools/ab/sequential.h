/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_SEQUENTIAL_H
#define CUDAPOLICY_TOOLS_AB_SEQUENTIAL_H

/*
 * When results may be looked at, and what a look may spend.
 *
 * Somebody who looks after every block and stops at the first "significant" result is wrong far
 * more often than one time in twenty. Here the looks are planned, and each has a level of its own:
 * the levels add up to alpha, so that the chance that any look is wrong is at most alpha however
 * the looks depend on each other (union bound). Of alpha, f(t) = alpha log(1 + (e - 1) t) is spent
 * by the time t = blocks / last look (Lan and DeMets' function of Pocock's kind); look k has
 * f(t[k]) - f(t[k - 1]). A plan of one look is an experiment of fixed size, at level alpha.
 *
 * Between looks nothing is decided. Where the user ends the experiment between two looks, what
 * there is is analysed once, at the level of the look that did not come: it takes that look's
 * place, at another number of blocks, and the levels still add up. That is sound as long as the
 * experiment was not ended because of what its results looked like so far, which nobody can check
 * but the user; and as long as it is over. If it is resumed, the next look has its planned level
 * again: at most that one level more than alpha is spent for each time it was ended and resumed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "experiment.h"

/* With fewer blocks no look decides anything. */
enum { AB_LEAST_BLOCKS = 10 };

/* What has been spent of alpha by the time t, 0 .. 1. */
double ab_alpha_spent(double alpha, double t);

/* Where an experiment stands in its plan. */
struct ab_look {
    size_t taken; /* index of the last look that was reached; SIZE_MAX: none */
    size_t next;  /* of the look whose level counts now: taken at a look, else the one to come */
    bool at_look; /* exactly at a look, or past the last one */
    bool last;    /* at or past the last look */
    bool decides; /* verdicts may be given */
    double level; /* of look next */
    double spent; /* over all looks taken, this one included where it decides */
};

/* over: the experiment was ended, no look will follow. */
void ab_look_at(const struct ab_plan *plan, size_t blocks, bool over, struct ab_look *look);

/* The level of the last look of a plan. */
double ab_last_level(const struct ab_plan *plan);

/* Whether a plan is one that this works for: looks ascending, the first with AB_LEAST_BLOCKS at
 * least, 0 < alpha < 0.5, 0 < margin. False with a message in error[size]. */
bool ab_plan_check(const struct ab_plan *plan, char *error, size_t size);

/* Holm's adjusted p-values for count tests; a NaN counts as a test of the family with p = 1, and
 * stays NaN. */
void ab_holm(const double *p, size_t count, double *adjusted);

#endif
