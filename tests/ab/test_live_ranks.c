/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes of a live comparison are ranks that make the same steps, and which come one after
 * the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "live_ranks.h"

static struct ab_live_sequence sequence(size_t process, int64_t image, int64_t begin, int64_t end,
                                        int64_t rank, uint64_t steps)
{
    return (struct ab_live_sequence){.begin = begin,
                                     .end = end,
                                     .timed = end > 0,
                                     .process = process,
                                     .image = image,
                                     .rank = rank,
                                     .steps = steps};
}

/* As "0 0 1": the parts in the order of begin; x: left out. */
static char *arrangement(struct ab_live_sequence *sequences, size_t count)
{
    static char text[64];
    struct ab_live_parts parts;

    ab_live_arrange(sequences, count, 10, &parts);
    for (size_t i = 0; i < count; i++) {
        snprintf(text + 2 * i, 3, "%c ",
                 sequences[i].left_out ? 'x' : (char)('0' + sequences[i].part));
    }
    return text;
}

static void processes_that_step_at_the_same_time_are_ranks(void **state)
{
    struct ab_live_sequence sequences[] = {
        sequence(0, 1, 100, 200, 0, 50), sequence(1, 1, 110, 210, 1, 50),
        sequence(2, 1, 130, 190, -1, 50),
        sequence(3, 1, 0, 0, -1, 50), /* of an older library: no times */
    };

    (void)state;
    assert_string_equal(arrangement(sequences, 4), "0 0 0 0 ");
}

static void images_of_one_process_follow_each_other(void **state)
{
    struct ab_live_sequence timed[] = {sequence(0, 2, 201, 300, 0, 50),
                                       sequence(0, 1, 100, 200, 0, 50)};
    struct ab_live_sequence untimed[] = {sequence(0, 2, 0, 0, -1, 50),
                                         sequence(0, 1, 0, 0, -1, 50)};

    (void)state;
    assert_string_equal(arrangement(timed, 2), "0 1 ");
    assert_int_equal(timed[0].image, 1);
    assert_string_equal(arrangement(untimed, 2), "0 1 ");
    assert_int_equal(untimed[0].image, 1);
}

static void ranks_that_all_go_on_as_another_program_do_so_together(void **state)
{
    struct ab_live_sequence sequences[] = {
        sequence(0, 1, 100, 200, 0, 50),
        sequence(1, 1, 100, 220, 1, 50), /* still at it when rank 0 goes on */
        sequence(0, 2, 210, 400, 0, 80),
        sequence(1, 2, 230, 410, 1, 80),
    };

    (void)state;
    assert_string_equal(arrangement(sequences, 4), "0 0 1 1 ");
}

static void of_one_rank_the_one_with_most_steps_counts(void **state)
{
    struct ab_live_sequence sequences[] = {
        sequence(0, 1, 100, 200, 0, 20), sequence(1, 1, 101, 200, 1, 50),
        sequence(2, 1, 102, 200, 0, 50), /* a child beside its parent */
    };
    struct ab_live_sequence restarted[] = {
        sequence(0, 1, 100, 200, 0, 50),  /* one rank goes on as another program, */
        sequence(1, 1, 101, 300, 1, 100), /* the other one does not */
        sequence(0, 2, 201, 300, 0, 40),
    };

    (void)state;
    assert_string_equal(arrangement(sequences, 3), "x 0 0 ");
    assert_string_equal(arrangement(restarted, 3), "0 0 x ");
}

static void fewer_steps_than_a_block_has_do_not_count_beside_more(void **state)
{
    struct ab_live_sequence sequences[] = {
        sequence(0, 1, 100, 200, -1, 50), sequence(1, 1, 150, 160, -1, 9),
        sequence(2, 1, 300, 310, -1, 9), /* alone: it says why there is no block */
    };

    (void)state;
    assert_string_equal(arrangement(sequences, 3), "0 x 1 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_that_step_at_the_same_time_are_ranks),
        cmocka_unit_test(images_of_one_process_follow_each_other),
        cmocka_unit_test(ranks_that_all_go_on_as_another_program_do_so_together),
        cmocka_unit_test(of_one_rank_the_one_with_most_steps_counts),
        cmocka_unit_test(fewer_steps_than_a_block_has_do_not_count_beside_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
