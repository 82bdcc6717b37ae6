/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "command.h"
#include "memory.h"

/* The finaliser of splitmix64: every bit of the input changes about half of the output's. */
static uint64_t mixed(uint64_t value)
{
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

void ab_schedule_block(uint64_t seed, uint32_t block, bool warm_up, size_t arm_count,
                       uint32_t *order)
{
    gsl_rng *generator = gsl_rng_alloc(gsl_rng_mt19937);

    if (generator == NULL) {
        command_error("out of memory");
        exit(memory_failure_status);
    }
    for (size_t i = 0; i < arm_count; i++) {
        order[i] = (uint32_t)i;
    }
    /* The generator takes 32 bits of seed, so that they have to depend on all of ours. */
    gsl_rng_set(generator, mixed(mixed(seed) ^ ((uint64_t)block << 1 | warm_up)) >> 32);
    gsl_ran_shuffle(generator, order, arm_count, sizeof *order);
    gsl_rng_free(generator);
}

uint64_t ab_schedule_seed(void)
{
    uint32_t seed;

    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        seed = (uint32_t)mixed((uint64_t)time(NULL));
    }
    /* Short enough to be typed again; 0 stands for "none chosen". */
    return seed % 1000000000 + 1;
}
