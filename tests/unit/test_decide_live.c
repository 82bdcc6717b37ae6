/* SPDX-License-Identifier: Apache-2.0 */
/* Live comparisons: the order of arms, what their rules decide, steps and switches. */
#include "test_decide_support.h"

#include <pthread.h>

#include "decide/live.h"
#include "report/layout.h"

/* Arm 0 has no rule. */
static const char arm_1[] = "[kernel a]\nname = axpy\narm = 1\nmem_sync_domain = remote\n";

static struct trial trial;
static struct fake_function axpy, step;

static void start_live(const char *rules, const char *text)
{
    struct decide_live_options options = {0};
    char error[200] = "";

    fake_driver_reset();
    if (text && !decide_live_parse(text, &options, error, sizeof error))
        fail_msg("%s: %s", text, error);
    decide_live_options_set(&options);
    start_policy(rules);
    axpy = fake_function_of("axpy");
    step = fake_function_of("step_begins");
    trial_of(&trial, &axpy);
}

static bool changed(void)
{
    return run_trial(&trial)->change;
}

static void begin_step(void)
{
    static struct trial other;

    run_trial(trial_of(&other, &step));
}

static const struct report_step_row *row(size_t number)
{
    return (const struct report_step_row *)report_image_region(REPORT_REGION_STEPS) + number;
}

/* ---- The schedule ---- */

static void the_order_is_that_of_splitmix64_and_fisher_yates(void **state)
{
    static const struct {
        uint64_t seed;
        unsigned arms;
        uint8_t orders[6][5];
    } known[] = {
        {1, 2, {{1, 0}, {0, 1}, {0, 1}, {1, 0}, {0, 1}, {1, 0}}},
        {123, 3, {{0, 2, 1}, {2, 0, 1}, {0, 2, 1}, {2, 0, 1}, {0, 2, 1}, {2, 1, 0}}},
        {UINT64_MAX,
         5,
         {{4, 2, 3, 1, 0},
          {2, 0, 1, 3, 4},
          {1, 4, 0, 2, 3},
          {1, 2, 4, 3, 0},
          {1, 2, 3, 4, 0},
          {4, 0, 3, 2, 1}}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        for (uint64_t block = 0; block < 6; block++) {
            uint8_t order[POLICY_ARM_LIMIT] = {0};

            decide_live_order(known[i].seed, block, known[i].arms, order);
            assert_memory_equal(order, known[i].orders[block], known[i].arms);
        }
}

static void every_arm_is_in_every_block_once(void **state)
{
    (void)state;
    for (uint64_t block = 0; block < 1000; block++) {
        uint8_t order[POLICY_ARM_LIMIT];
        unsigned seen = 0;

        decide_live_order(block * 7, block, POLICY_ARM_LIMIT, order);
        for (unsigned i = 0; i < POLICY_ARM_LIMIT; i++)
            seen |= 1u << order[i];
        assert_int_equal(seen, (1u << POLICY_ARM_LIMIT) - 1);
    }
}

static void every_order_is_as_likely_as_any_other(void **state)
{
    unsigned counts[27] = {0}, orders = 0;

    (void)state;
    for (uint64_t block = 0; block < 6000; block++) {
        uint8_t order[3];

        decide_live_order(7, block, 3, order);
        counts[order[0] * 9 + order[1] * 3 + order[2]]++;
    }
    for (unsigned i = 0; i < 27; i++) {
        orders += counts[i] != 0;
        assert_true(counts[i] == 0 || (counts[i] > 850 && counts[i] < 1150));
    }
    assert_int_equal(orders, 6);
}

/* ---- The text ---- */

static void the_text_gives_the_options(void **state)
{
    struct decide_live_options options;
    char error[200];

    (void)state;
    assert_true(decide_live_parse("arms=3 seed=18446744073709551615  slice=20 drop=5 warmup=7 "
                                  "step=kernel:void ns::a b*",
                                  &options, error, sizeof error));
    assert_int_equal(options.arms, 3);
    assert_true(options.seed == UINT64_MAX);
    assert_int_equal(options.slice, 20);
    assert_int_equal(options.drop, 5);
    assert_int_equal(options.warmup, 7);
    assert_int_equal(options.step, DECIDE_LIVE_STEP_KERNEL);
    assert_string_equal(options.kernel, "void ns::a b*");
    assert_true(
        decide_live_parse("seed=0 slice=2 arms=16 step=graph", &options, error, sizeof error));
    assert_int_equal(options.arms, 16);
    assert_int_equal(options.step, DECIDE_LIVE_STEP_GRAPH);
    assert_string_equal(options.kernel, "");
}

static void a_malformed_text_is_told_apart(void **state)
{
    static const char *const texts[][2] = {
        {"", "arms is missing: arms=N, from 2 to 16 arms can alternate"},
        {"arms=1 seed=1 slice=4 step=graph", "\"arms=1\": from 2 to 16 arms can alternate"},
        {"arms=17 seed=1 slice=4 step=graph", "\"arms=17\": from 2 to 16 arms can alternate"},
        {"arms=2 seed=1 slice=1 step=graph", "\"slice=1\": from 2 to 2147483647 steps"},
        {"arms=2 seed=1 slice=4 drop=4 step=graph", "drop=4 leaves nothing of a slice of 4 steps"},
        {"arms=2 slice=4 step=graph", "seed is missing: seed=N, a whole number below 2^64"},
        {"arms=2 seed=1 slice=4", "step is missing: step=graph or step=kernel:GLOB"},
        {"arms=2 seed=1 slice=4 step=x",
         "\"step=x\": step=graph or step=kernel:GLOB, of up to 255 bytes, as the last"},
        {"arms=2 seed=1 slice=4 step=kernel:",
         "\"step=kernel:\": step=graph or step=kernel:GLOB, of up to 255 bytes, as the last"},
        {"arms=2 seed=1 slice=4 step=graph drop=1",
         "\"step=graph drop=1\": step=graph or step=kernel:GLOB, of up to 255 bytes, as the last"},
        {"arms=2 seed=1 slice=-4 step=graph", "\"slice=-4\": from 2 to 2147483647 steps"},
        {"arms=2 seed=1 slices=4 step=graph",
         "\"slices=4\" is none of arms=, seed=, slice=, drop=, warmup= and, as the last, step="},
        {"arms=2 seed=18446744073709551616 slice=4 step=graph",
         "\"seed=18446744073709551616\": a whole number below 2^64"},
        {"arms= seed=1 slice=4 step=graph", "\"arms=\": from 2 to 16 arms can alternate"},
        {"arms=2 seed=1 arms=3 slice=4 step=graph", "\"arms=3\": arms is there twice"},
        {"arms=2 seed=1 slice=4 drop=0 drop=0 step=graph", "\"drop=0\": drop is there twice"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct decide_live_options options;
        char error[200] = "";

        assert_false(decide_live_parse(texts[i][0], &options, error, sizeof error));
        assert_string_equal(error, texts[i][1]);
    }
}

/* ---- Rules ---- */

static void without_a_live_comparison_no_rule_with_an_arm_matches(void **state)
{
    (void)state;
    start_live("[kernel a]\nname = axpy\narm = 0..15\nmem_sync_domain = remote\n", NULL);
    assert_false(changed());
    assert_false(changed());
    /* And it costs nothing: the function is one that no rule can match. */
    const uint64_t handle = (uintptr_t)&axpy;
    assert_true(
        decide_pass_table[handle * DECIDE_PASS_MULTIPLIER >> (64 - DECIDE_PASS_BITS)].handle ==
        handle);
}

static void launches_go_by_the_arm_of_their_step(void **state)
{
    static const bool wanted[] = {true, false, false, true, false, true};

    (void)state;
    start_live(arm_1, "arms=2 seed=1 slice=3 step=kernel:step_*");
    for (unsigned slice = 0; slice < 6; slice++)
        for (unsigned i = 0; i < 3; i++) {
            begin_step();
            for (int launch = 0; launch < 4; launch++)
                assert_int_equal(changed(), wanted[slice]);
        }
}

static void before_the_first_step_and_during_the_warm_up_it_is_arm_0(void **state)
{
    (void)state;
    start_live(arm_1, "arms=2 seed=1 slice=3 warmup=4 step=kernel:step_*");
    assert_false(changed());
    for (unsigned i = 0; i < 4; i++) {
        begin_step();
        assert_false(changed());
        assert_int_equal(row(i)->slice, REPORT_SLICE_NONE);
    }
    begin_step();
    assert_true(changed());
    assert_int_equal(row(4)->slice, 0);
    assert_int_equal(row(4)->arm, 1);
}

static void the_step_kernel_itself_belongs_to_its_step(void **state)
{
    struct trial mine;

    (void)state;
    start_live("[kernel a]\nname = step_*\narm = 1\nmem_sync_domain = remote\n",
               "arms=2 seed=1 slice=2 step=kernel:step_*");
    trial_of(&mine, &step);
    for (unsigned i = 0; i < 12; i++)
        assert_int_equal(run_trial(&mine)->change, "110000110011"[i] == '1' ? 1 : 0);
}

static void rules_that_ask_about_shape_and_arm_hold_by_both(void **state)
{
    (void)state;
    start_live("[kernel a]\nname = axpy\narm = 1\ngrid_blocks = 64\nmem_sync_domain = remote\n"
               "[kernel b]\nname = axpy\narm = 0\ngrid_blocks = 32\nmem_sync_domain = remote\n",
               "arms=2 seed=1 slice=2 step=kernel:step_*");
    for (unsigned i = 0; i < 12; i++) {
        const bool arm = "110000110011"[i] == '1';

        begin_step();
        for (unsigned launch = 0; launch < 6; launch++) {
            trial.config.gridDimX = launch % 2 ? 32 : 64;
            assert_int_equal(changed(), arm == (trial.config.gridDimX == 64));
        }
    }
}

static void rules_without_an_arm_hold_in_all(void **state)
{
    (void)state;
    start_live("[kernel a]\nname = axpy\nmem_sync_domain = remote\n",
               "arms=2 seed=1 slice=2 step=kernel:step_*");
    for (unsigned i = 0; i < 8; i++) {
        begin_step();
        assert_true(changed());
        /* The shortest way is open to them in every arm. */
        assert_true(i < 2 || decide_prepared_for(trial.launch.function) != NULL);
    }
}

static void launches_with_an_arm_are_not_prepared(void **state)
{
    (void)state;
    start_live(arm_1, "arms=2 seed=1 slice=2 step=kernel:step_*");
    for (unsigned i = 0; i < 4; i++) {
        begin_step();
        changed();
        changed();
        assert_null(decide_prepared_for(trial.launch.function));
    }
}

static void nodes_and_captured_launches_are_in_no_arm(void **state)
{
    (void)state;
    start_live("[kernel a]\nname = axpy\narm = 0..15\nmem_sync_domain = remote\n",
               "arms=2 seed=1 slice=2 step=kernel:step_*");
    assert_true(changed());
    memset(&trial.verdict, 0, sizeof trial.verdict);
    decide_node(&trial.launch, &trial.verdict, DECIDE_ARM_NONE);
    assert_false(trial.verdict.change);
    decide_node(&trial.launch, &trial.verdict, 1);
    assert_true(trial.verdict.change);
}

static void what_the_driver_refuses_in_one_arm_stays_refused(void **state)
{
    (void)state;
    start_live(arm_1, "arms=2 seed=1 slice=2 step=kernel:step_*");
    begin_step();
    decide_trial(&trial);
    assert_true(trial.verdict.change);
    assert_true(decide_launch_refused(&trial.launch, &trial.verdict, CUDA_ERROR_INVALID_VALUE));
    decide_launch_repeated(&trial.launch, &trial.verdict, CUDA_SUCCESS);
    assert_false(changed());
    assert_false(changed());
}

/* ---- Steps ---- */

static void steps_are_entered_with_slice_arm_and_time(void **state)
{
    (void)state;
    start_live(arm_1, "arms=2 seed=1 slice=2 step=kernel:step_*");
    for (unsigned i = 0; i < 8; i++)
        begin_step();
    assert_int_equal(report_image_header()->steps, 8);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(row(i)->slice, i / 2);
        assert_int_equal(row(i)->arm, "11000011"[i] - '0');
        assert_true(i == 0 || row(i)->time >= row(i - 1)->time);
    }
}

static void other_kernels_begin_no_step(void **state)
{
    (void)state;
    start_live(arm_1, "arms=2 seed=1 slice=2 step=kernel:step_*");
    for (unsigned i = 0; i < 8; i++)
        changed();
    assert_true(report_image_header()->steps < 9); /* of the test before */
    begin_step();
    assert_int_equal(row(0)->slice, 0);
}

enum { THREADS = 4, STEPS = 3000 };

static void *make_steps(void *unused)
{
    struct trial mine;

    (void)unused;
    trial_of(&mine, &step);
    for (unsigned i = 0; i < STEPS; i++)
        decide_launch(&mine.launch, &mine.verdict);
    return NULL;
}

/* A thread that comes late must not bring an earlier slice's arm back. */
static void threads_that_begin_steps_leave_the_last_slice_s_arm(void **state)
{
    pthread_t threads[THREADS];
    uint8_t order[2];

    (void)state;
    start_live(arm_1, "arms=2 seed=9 slice=3 step=kernel:step_*");
    fake.many_threads = true;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_steps, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    fake.many_threads = false;
    assert_int_equal(report_image_header()->steps, THREADS * STEPS);
    for (unsigned i = 0; i < THREADS * STEPS; i++) {
        decide_live_order(9, i / 6, 2, order);
        assert_int_equal(row(i)->slice, i / 3);
        assert_int_equal(row(i)->arm, order[i / 3 % 2]);
    }
    assert_int_equal(report_control->part.arm, row(THREADS * STEPS - 1)->arm);
    assert_int_equal(report_control->whole, report_control_expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_that_of_splitmix64_and_fisher_yates),
        cmocka_unit_test(every_arm_is_in_every_block_once),
        cmocka_unit_test(every_order_is_as_likely_as_any_other),
        cmocka_unit_test(the_text_gives_the_options),
        cmocka_unit_test(a_malformed_text_is_told_apart),
        cmocka_unit_test(without_a_live_comparison_no_rule_with_an_arm_matches),
        cmocka_unit_test(launches_go_by_the_arm_of_their_step),
        cmocka_unit_test(before_the_first_step_and_during_the_warm_up_it_is_arm_0),
        cmocka_unit_test(the_step_kernel_itself_belongs_to_its_step),
        cmocka_unit_test(rules_that_ask_about_shape_and_arm_hold_by_both),
        cmocka_unit_test(rules_without_an_arm_hold_in_all),
        cmocka_unit_test(launches_with_an_arm_are_not_prepared),
        cmocka_unit_test(nodes_and_captured_launches_are_in_no_arm),
        cmocka_unit_test(what_the_driver_refuses_in_one_arm_stays_refused),
        cmocka_unit_test(steps_are_entered_with_slice_arm_and_time),
        cmocka_unit_test(other_kernels_begin_no_step),
        cmocka_unit_test(threads_that_begin_steps_leave_the_last_slice_s_arm),
    };

    return cmocka_run_group_tests(tests, start_group, NULL);
}
