/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

bool ab_run_counts(const struct ab_experiment *experiment, const struct ab_run *run)
{
    return !run->warm_up && run->outcome != AB_INTERRUPTED && run->arm < experiment->arm_count;
}

double ab_run_value_of(const struct ab_run *run, size_t metric)
{
    double value = NAN;

    if (run->outcome == AB_OK && run->values != NULL)
        value = run->values[metric].value;
    return isfinite(value) ? value : NAN;
}

/* By block, then arm, then the order in which they were made: that of their addresses. */
static int compare_runs(const void *left, const void *right)
{
    const struct ab_run *one = *(const struct ab_run *const *)left;
    const struct ab_run *other = *(const struct ab_run *const *)right;

    if (one->block != other->block)
        return one->block < other->block ? -1 : 1;
    if (one->arm != other->arm)
        return one->arm < other->arm ? -1 : 1;
    return one < other ? -1 : one > other;
}

void ab_blocks_of(const struct ab_experiment *experiment, struct ab_blocks *blocks)
{
    const struct ab_run **sorted = memory_allocate(experiment->run_count + 1, sizeof *sorted);
    size_t arms = experiment->arm_count, count = 0, i, next;

    for (i = 0; i < experiment->run_count; i++) {
        if (ab_run_counts(experiment, &experiment->runs[i]))
            sorted[count++] = &experiment->runs[i];
    }
    qsort(sorted, count, sizeof *sorted, compare_runs);
    blocks->count = 0;
    blocks->arm_count = arms;
    blocks->runs = memory_allocate(count + arms + 1, sizeof *blocks->runs);
    for (i = 0; i < count; i = next) {
        const struct ab_run **block = blocks->runs + blocks->count * arms;
        size_t present = 0;

        memset(block, 0, arms * sizeof *block);
        for (next = i; next < count && sorted[next]->block == sorted[i]->block; next++) {
            present += block[sorted[next]->arm] == NULL;
            block[sorted[next]->arm] = sorted[next];
        }
        blocks->count += present == arms;
    }
    free(sorted);
}

void ab_blocks_release(struct ab_blocks *blocks)
{
    free(blocks->runs);
    memset(blocks, 0, sizeof *blocks);
}
