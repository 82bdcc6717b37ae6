/* SPDX-License-Identifier: Apache-2.0 */

/* Planned looks: what each may spend, and that all of them together are wrong one time in twenty
 * at most. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <stdio.h>

#include "sequential.h"
#include "statistics.h"
#include "synthetic.h"

static const struct ab_plan three_looks = {
    .look_count = 3, .looks = {10, 20, 40}, .alpha = 0.05, .margin = 0.01};
static const struct ab_plan one_look = {
    .look_count = 1, .looks = {12}, .alpha = 0.05, .margin = 0.01};

static void levels_of_looks_add_up_to_alpha(void **state)
{
    /* 0.05 log(1 + (e - 1) t) at 1/4, 1/2, 1 */
    static const double spent[] = {0.0178687, 0.0310057, 0.05};
    double sum = 0;
    size_t i;

    (void)state;
    for (i = 0; i < 3; i++) {
        struct ab_look look;

        ab_look_at(&three_looks, three_looks.looks[i], false, &look);
        assert_int_equal(look.taken, i);
        assert_int_equal(look.next, i);
        assert_true(look.at_look && look.decides);
        assert_int_equal(look.last, i == 2);
        sum += look.level;
        assert_float_equal(look.spent, sum, 1e-12);
        assert_float_equal(look.spent, spent[i], 1e-6);
    }
    assert_float_equal(ab_last_level(&three_looks), spent[2] - spent[1], 1e-6);
}

static void a_plan_of_one_look_has_level_alpha(void **state)
{
    struct ab_look look;

    (void)state;
    ab_look_at(&one_look, 12, false, &look);
    assert_true(look.decides && look.last);
    assert_float_equal(look.level, 0.05, 1e-12);
    assert_float_equal(ab_last_level(&one_look), 0.05, 1e-12);
}

static void nothing_is_decided_between_looks(void **state)
{
    struct ab_look look;

    (void)state;
    ab_look_at(&three_looks, 0, false, &look);
    assert_int_equal(look.taken, SIZE_MAX);
    assert_false(look.decides || look.at_look);
    assert_float_equal(look.spent, 0, 0);
    ab_look_at(&three_looks, 15, false, &look);
    assert_int_equal(look.taken, 0);
    assert_int_equal(look.next, 1);
    assert_false(look.decides || look.at_look || look.last);
    assert_float_equal(look.spent, 0.0178687, 1e-6);
}

static void an_experiment_that_was_ended_has_the_level_of_the_look_that_did_not_come(void **state)
{
    struct ab_look look, next;

    (void)state;
    ab_look_at(&three_looks, 15, true, &look);
    ab_look_at(&three_looks, 20, false, &next);
    assert_true(look.decides);
    assert_false(look.at_look);
    assert_float_equal(look.level, next.level, 0);
    assert_float_equal(look.spent, next.spent, 0);
    /* at a look there is no other one to come */
    ab_look_at(&three_looks, 20, true, &look);
    assert_true(look.at_look);
    assert_float_equal(look.level, next.level, 0);
}

static void fewer_than_ten_blocks_decide_nothing(void **state)
{
    static const struct ab_plan early = {
        .look_count = 2, .looks = {5, 20}, .alpha = 0.05, .margin = 0.01};
    struct ab_look look;

    (void)state;
    ab_look_at(&three_looks, 9, true, &look);
    assert_false(look.decides);
    ab_look_at(&early, 5, false, &look);
    assert_false(look.decides);
}

static void more_blocks_than_planned_are_at_the_last_look(void **state)
{
    struct ab_look look;

    (void)state;
    ab_look_at(&three_looks, 41, false, &look);
    assert_true(look.at_look && look.last && look.decides);
    assert_int_equal(look.taken, 2);
}

static void assert_refused(struct ab_plan plan, const char *message)
{
    char error[200] = "";

    assert_false(ab_plan_check(&plan, error, sizeof error));
    assert_string_equal(error, message);
}

static void plans_that_cannot_work_are_refused(void **state)
{
    struct ab_plan plan = three_looks;
    char error[200];

    (void)state;
    assert_true(ab_plan_check(&plan, error, sizeof error));
    plan.looks[0] = 9;
    assert_refused(plan, "the first look is after 9 blocks: at least 10 are needed");
    plan = three_looks;
    plan.looks[2] = 20;
    assert_refused(plan, "looks have to ascend: 20 stands after 20");
    plan = three_looks;
    plan.look_count = 0;
    assert_refused(plan, "a plan has 1 to 16 looks, not 0");
    plan.look_count = 17;
    assert_refused(plan, "a plan has 1 to 16 looks, not 17");
    plan = three_looks;
    plan.alpha = 0.5;
    assert_refused(plan, "alpha has to lie between 0 and 0.5: 0.5");
    plan = three_looks;
    plan.margin = NAN;
    assert_refused(plan, "the margin has to be more than 0: nan");
}

static void holm_is_as_by_hand(void **state)
{
    double adjusted[4];

    (void)state;
    /* 3 * 0.01; then 2 * 0.03; then 0.04, but not less than the one before */
    ab_holm((const double[]){0.01, 0.04, 0.03}, 3, adjusted);
    assert_float_equal(adjusted[0], 0.03, 1e-12);
    assert_float_equal(adjusted[1], 0.06, 1e-12);
    assert_float_equal(adjusted[2], 0.06, 1e-12);
    /* what is not known counts in the family, and stays unknown */
    ab_holm((const double[]){0.02, NAN, 0.9, 0.005}, 4, adjusted);
    assert_float_equal(adjusted[0], 0.06, 1e-12);
    assert_true(isnan(adjusted[1]));
    assert_float_equal(adjusted[2], 1, 1e-12);
    assert_float_equal(adjusted[3], 0.02, 1e-12);
    ab_holm(NULL, 0, adjusted);
}

/* Whether one of three useless arms is called better or worse at any look. naive: as somebody does
 * who looks when it suits, at 0.05 an arm. */
static bool wrong(struct synthetic *synthetic, bool naive, uint64_t seed)
{
    double values[3 * 40], p[3];
    size_t look, arm;

    synthetic_differences(synthetic, 4, 40, values);
    for (look = 0; look < 3; look++) {
        struct ab_look here;

        ab_look_at(&three_looks, three_looks.looks[look], false, &here);
        for (arm = 0; arm < 3; arm++) {
            struct ab_subsets subsets;
            double copy[40];

            memcpy(copy, values + arm * 40, sizeof copy);
            ab_widen(copy, three_looks.looks[look]);
            ab_subsets_make(&subsets, copy, three_looks.looks[look], 1999, seed);
            p[arm] = ab_subsets_p(&subsets, 0);
            ab_subsets_release(&subsets);
        }
        if (!naive)
            ab_holm(p, 3, p);
        for (arm = 0; arm < 3; arm++) {
            if (p[arm] <= (naive ? 0.05 : here.level))
                return true;
        }
    }
    return false;
}

static double part_wrong(enum noise noise, bool naive, size_t experiments)
{
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    size_t count = 0, i;

    gsl_rng_set(random, 11 + (unsigned long)noise);
    for (i = 0; i < experiments; i++) {
        struct synthetic synthetic;

        synthetic_begin(&synthetic, random, noise);
        count += wrong(&synthetic, naive, i);
    }
    gsl_rng_free(random);
    print_message("# %s%s: %.3f\n", noise_names[noise], naive ? ", naive" : "",
                  (double)count / (double)experiments);
    return (double)count / (double)experiments;
}

static void useless_arms_are_called_better_or_worse_one_time_in_twenty_at_most(void **state)
{
    static const enum noise noises[] = {NOISE_NORMAL, NOISE_HEAVY, NOISE_BIMODAL,
                                        NOISE_BIMODAL_RARE, NOISE_DRIFT};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof noises / sizeof *noises; i++)
        assert_true(part_wrong(noises[i], false, 1000) <= 0.05);
}

/* That the test above is able to fail. */
static void looking_when_it_suits_is_wrong_far_more_often(void **state)
{
    (void)state;
    assert_true(part_wrong(NOISE_BIMODAL, true, 500) > 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_of_looks_add_up_to_alpha),
        cmocka_unit_test(a_plan_of_one_look_has_level_alpha),
        cmocka_unit_test(nothing_is_decided_between_looks),
        cmocka_unit_test(an_experiment_that_was_ended_has_the_level_of_the_look_that_did_not_come),
        cmocka_unit_test(fewer_than_ten_blocks_decide_nothing),
        cmocka_unit_test(more_blocks_than_planned_are_at_the_last_look),
        cmocka_unit_test(plans_that_cannot_work_are_refused),
        cmocka_unit_test(holm_is_as_by_hand),
        cmocka_unit_test(useless_arms_are_called_better_or_worse_one_time_in_twenty_at_most),
        cmocka_unit_test(looking_when_it_suits_is_wrong_far_more_often),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
