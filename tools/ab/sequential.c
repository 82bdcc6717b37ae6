/* SPDX-License-Identifier: Apache-2.0 */
#include "sequential.h"

#include <gsl/gsl_sort.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

double ab_alpha_spent(double alpha, double t)
{
    return alpha * log1p((M_E - 1) * fmax(0, fmin(1, t)));
}

/* What is spent by a look, all before it included. */
static double spent_by(const struct ab_plan *plan, size_t look)
{
    return ab_alpha_spent(plan->alpha,
                          (double)plan->looks[look] / plan->looks[plan->look_count - 1]);
}

static double level_of(const struct ab_plan *plan, size_t look)
{
    return spent_by(plan, look) - (look > 0 ? spent_by(plan, look - 1) : 0);
}

double ab_last_level(const struct ab_plan *plan)
{
    return plan->look_count > 0 ? level_of(plan, plan->look_count - 1) : plan->alpha;
}

void ab_look_at(const struct ab_plan *plan, size_t blocks, bool over, struct ab_look *look)
{
    size_t reached = 0;

    memset(look, 0, sizeof *look);
    look->taken = SIZE_MAX;
    look->level = plan->alpha;
    if (plan->look_count == 0)
        return;
    while (reached < plan->look_count && plan->looks[reached] <= blocks)
        reached++;
    if (reached > 0)
        look->taken = reached - 1;
    look->last = reached == plan->look_count;
    look->at_look = look->last || (reached > 0 && plan->looks[reached - 1] == blocks);
    look->next = look->at_look ? reached - 1 : reached;
    look->decides = (look->at_look || over) && blocks >= AB_LEAST_BLOCKS;
    look->level = level_of(plan, look->next);
    if (look->decides)
        look->spent = spent_by(plan, look->next);
    else if (reached > 0)
        look->spent = spent_by(plan, reached - 1);
}

bool ab_plan_check(const struct ab_plan *plan, char *error, size_t size)
{
    size_t room = sizeof plan->looks / sizeof *plan->looks, i;

    if (plan->look_count == 0 || plan->look_count > room) {
        snprintf(error, size, "a plan has 1 to %zu looks, not %zu", room, plan->look_count);
        return false;
    }
    if (plan->looks[0] < AB_LEAST_BLOCKS) {
        snprintf(error, size, "the first look is after %" PRIu32 " blocks: at least %d are needed",
                 plan->looks[0], AB_LEAST_BLOCKS);
        return false;
    }
    for (i = 1; i < plan->look_count; i++) {
        if (plan->looks[i] <= plan->looks[i - 1]) {
            snprintf(error, size, "looks have to ascend: %" PRIu32 " stands after %" PRIu32,
                     plan->looks[i], plan->looks[i - 1]);
            return false;
        }
    }
    if (!(plan->alpha > 0 && plan->alpha < 0.5)) {
        snprintf(error, size, "alpha has to lie between 0 and 0.5: %g", plan->alpha);
        return false;
    }
    if (!(plan->margin > 0 && isfinite(plan->margin))) {
        snprintf(error, size, "the margin has to be more than 0: %g", plan->margin);
        return false;
    }
    return true;
}

void ab_holm(const double *p, size_t count, double *adjusted)
{
    double *known = memory_allocate(count + 1, sizeof *known);
    size_t *order = memory_allocate(count + 1, sizeof *order);
    double most = 0;
    size_t i;

    for (i = 0; i < count; i++)
        known[i] = isnan(p[i]) ? 1 : p[i];
    gsl_sort_index(order, known, 1, count);
    for (i = 0; i < count; i++) {
        most = fmax(most, fmin(1, (double)(count - i) * known[order[i]]));
        adjusted[order[i]] = isnan(p[order[i]]) ? NAN : most;
    }
    free(known);
    free(order);
}
