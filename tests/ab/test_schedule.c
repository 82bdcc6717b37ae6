/* SPDX-License-Identifier: Apache-2.0 */

/* The order of the arms in a block. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <gsl/gsl_cdf.h>
#include <string.h>

#include "schedule.h"

enum { ARMS = 4, ORDERS = 24 };

static void every_arm_stands_once_in_a_block(void **state)
{
    (void)state;
    for (size_t arms = 1; arms <= 20; arms++) {
        for (uint32_t block = 0; block < 50; block++) {
            uint32_t order[20], seen = 0;

            ab_schedule_block(3, block, false, arms, order);
            for (size_t i = 0; i < arms; i++) {
                assert_true(order[i] < arms);
                seen |= UINT32_C(1) << order[i];
            }
            assert_int_equal(seen, (UINT32_C(1) << arms) - 1);
        }
    }
}

static void the_order_depends_on_nothing_but_its_arguments(void **state)
{
    uint32_t first[ARMS], again[ARMS], other[ARMS];

    (void)state;
    for (uint32_t block = 0; block < 20; block++) {
        ab_schedule_block(7, block, false, ARMS, first);
        ab_schedule_block(8, block + 1, true, ARMS, other);
        ab_schedule_block(7, block, false, ARMS, again);
        assert_memory_equal(first, again, sizeof first);
    }
}

/* How many of 200 blocks have another order when one argument is another. */
static int differences(uint64_t seed, uint64_t other_seed, uint32_t shift, bool other_warm_up)
{
    uint32_t first[8], second[8];
    int count = 0;

    for (uint32_t block = 0; block < 200; block++) {
        ab_schedule_block(seed, block, false, 8, first);
        ab_schedule_block(other_seed, block + shift, other_warm_up, 8, second);
        count += memcmp(first, second, sizeof first) != 0;
    }
    return count;
}

static void seed_block_and_warm_up_each_give_another_order(void **state)
{
    (void)state;
    assert_int_equal(differences(1, 1, 0, false), 0);
    assert_true(differences(1, 2, 0, false) > 190);
    assert_true(differences(1, 1 + (UINT64_C(1) << 40), 0, false) > 190);
    assert_true(differences(1, 1, 1, false) > 190);
    assert_true(differences(1, 1, 0, true) > 190);
}

static int number_of(const uint32_t *order)
{
    int number = 0;

    for (int i = 0; i < ARMS; i++) {
        int smaller = 0;

        for (int j = i + 1; j < ARMS; j++) {
            smaller += order[j] < order[i];
        }
        number = number * (ARMS - i) + smaller;
    }
    return number;
}

/* Chi-squared over blocks of one seed, and over seeds of one block. The seeds are fixed, so the
 * test always ends the same. */
static void all_orders_are_equally_likely(void **state)
{
    enum { DRAWS = 24000 };

    (void)state;
    for (int by_seed = 0; by_seed < 2; by_seed++) {
        int counts[ORDERS] = {0};
        double chi_squared = 0;

        for (uint32_t i = 0; i < DRAWS; i++) {
            uint32_t order[ARMS];

            ab_schedule_block(by_seed ? i + 1 : 5, by_seed ? 0 : i, false, ARMS, order);
            counts[number_of(order)]++;
        }
        for (int i = 0; i < ORDERS; i++) {
            double expected = (double)DRAWS / ORDERS;

            chi_squared += (counts[i] - expected) * (counts[i] - expected) / expected;
        }
        assert_true(gsl_cdf_chisq_Q(chi_squared, ORDERS - 1) > 0.001);
    }
}

static void a_drawn_seed_can_be_typed_and_is_not_zero(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint64_t seed = ab_schedule_seed();

        assert_true(seed >= 1 && seed <= 1000000000);
    }
    assert_true(ab_schedule_seed() != ab_schedule_seed() ||
                ab_schedule_seed() != ab_schedule_seed());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_arm_stands_once_in_a_block),
        cmocka_unit_test(the_order_depends_on_nothing_but_its_arguments),
        cmocka_unit_test(seed_block_and_warm_up_each_give_another_order),
        cmocka_unit_test(all_orders_are_equally_likely),
        cmocka_unit_test(a_drawn_seed_can_be_typed_and_is_not_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
