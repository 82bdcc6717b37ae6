/* SPDX-License-Identifier: Apache-2.0 */

/* What a reader of an experiment is warned of. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include "analysis_support.h"

static void a_baseline_that_differs_from_itself_is_a_warning(void **state)
{
    struct bench bench;

    (void)state;
    begin(&bench, 1, 1);
    add_arm(&bench.experiment, "again", AB_ROLE_REPEAT);
    add_arm(&bench.experiment, "observe", AB_ROLE_COST);
    add_blocks(&bench, 0, 10, (const double[]){100, 95, 120, 130});
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_BETTER);
    assert_non_null(warning(&bench, AB_WARNING_NOISE_FLOOR, 1));
    assert_non_null(warning(&bench, AB_WARNING_NOISE_FLOOR, 2));
    assert_non_null(warning(&bench, AB_WARNING_COST, 3));
    assert_int_equal(bench.analysis.winner, 1);
    end(&bench);
}

static void zero_has_no_ratio(void **state)
{
    struct bench bench;

    (void)state;
    begin(&bench, 1, 1);
    add_blocks(&bench, 0, 10, (const double[]){100, 80});
    run_of(&bench, 3, 1)->values[0].value = 0;
    assert_true(isnan(analyse(&bench, 1)->ratio));
    assert_int_equal(ab_analysis_comparison(&bench.analysis, 1, 0)->verdict, AB_VERDICT_NOT_ENOUGH);
    assert_warns(
        &bench, AB_WARNING_NOT_COMPARABLE, 1,
        "time is zero or negative in 1 runs: there is no ratio of such values, and nothing "
        "is said about them");
    end(&bench);
}

static void flagged_runs_are_counted_and_said_to_matter_where_they_do(void **state)
{
    struct bench bench;
    uint32_t block;

    (void)state;
    begin(&bench, 1, 1);
    bench.noise = 0.02;
    add_blocks(&bench, 0, 20, (const double[]){100, 100});
    for (block = 0; block < 20; block++) {
        run_of(&bench, block, 0)->gpu.known = true;
        if (block % 2 == 0)
            continue;
        run_of(&bench, block, 0)->gpu.flags = AB_GPU_THROTTLED_POWER | AB_GPU_OTHER_PROCESSES;
        run_of(&bench, block, 0)->values[0].value *= 1.3;
    }
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_BETTER);
    assert_int_equal(bench.analysis.arms[0].flagged, 10);
    assert_warns(&bench, AB_WARNING_THROTTLED, 0,
                 "in 10 of 20 runs the GPU was not as it should be: throttled by a power limit in "
                 "10, used by other processes in 10");
    assert_warns(
        &bench, AB_WARNING_FLAGGED_MATTERS, 1,
        "without the blocks in which the GPU was not as it should be, 10 of 20 remain, and "
        "the verdict would be \"not enough runs\"");
    end(&bench);

    begin(&bench, 1, 1);
    add_blocks(&bench, 0, 20, (const double[]){100, 80});
    run_of(&bench, 3, 1)->gpu.known = true;
    run_of(&bench, 3, 1)->gpu.flags = AB_GPU_THROTTLED_THERMAL;
    analyse(&bench, 1);
    assert_null(warning(&bench, AB_WARNING_FLAGGED_MATTERS, 1));
    end(&bench);
}

static void modes_and_outliers_are_told(void **state)
{
    struct bench bench;
    uint32_t block;

    (void)state;
    begin(&bench, 1, 1);
    add_blocks(&bench, 0, 20, (const double[]){24, 24});
    for (block = 0; block < 20; block += 3)
        run_of(&bench, block, 0)->values[0].value = 38;
    run_of(&bench, 5, 1)->values[0].value = 90;
    analyse(&bench, 1);
    assert_true(bench.analysis.arms[0].bimodal);
    assert_float_equal(bench.analysis.arms[0].modes[0], 24, 0.3);
    assert_float_equal(bench.analysis.arms[0].modes[1], 38, 0.3);
    assert_int_equal(bench.analysis.arms[0].outliers, 0);
    assert_non_null(warning(&bench, AB_WARNING_BIMODAL, 0));
    assert_false(bench.analysis.arms[1].bimodal);
    assert_int_equal(bench.analysis.arms[1].outliers, 1);
    assert_non_null(warning(&bench, AB_WARNING_OUTLIERS, 1));
    assert_null(warning(&bench, AB_WARNING_DRIFT, 1));
    end(&bench);
}

static void rules_that_never_applied_are_told(void **state)
{
    struct bench bench;
    uint32_t block;

    (void)state;
    begin(&bench, 3, 1);
    add_blocks(&bench, 0, 10, (const double[]){100, 100, 100, 100});
    for (block = 0; block < 10; block++) {
        run_of(&bench, block, 1)->policy =
            (struct ab_run_policy){.known = true, .launches = 50, .rules = 2};
        run_of(&bench, block, 2)->policy = (struct ab_run_policy){
            .known = true, .launches = 50, .applied = 9, .rules = 3, .rules_matched = 2};
        /* a rule about streams */
        run_of(&bench, block, 3)->policy =
            (struct ab_run_policy){.known = true, .launches = 50, .rules = 1, .rules_matched = 1};
    }
    analyse(&bench, 1);
    assert_true(bench.analysis.arms[1].rules_never_applied);
    assert_warns(&bench, AB_WARNING_NOT_APPLIED, 1,
                 "none of its rules changed anything in any run");
    assert_false(bench.analysis.arms[2].rules_never_applied);
    assert_int_equal(bench.analysis.arms[2].rules_unmatched, 1);
    assert_warns(&bench, AB_WARNING_NOT_APPLIED, 2, "1 of its rules matched nothing in any run");
    assert_null(warning(&bench, AB_WARNING_NOT_APPLIED, 3));
    end(&bench);
}

static void set_policies(struct bench *bench, int64_t baseline, int64_t candidate)
{
    for (uint32_t block = 0; block < 10; block++) {
        run_of(bench, block, 0)->policy =
            (struct ab_run_policy){.known = true, .launches = 50, .applied = baseline, .rules = 1};
        run_of(bench, block, 1)->policy =
            (struct ab_run_policy){.known = true, .launches = 50, .applied = candidate, .rules = 2};
    }
}

static void what_changed_nothing_is_not_better(void **state)
{
    struct bench bench;

    (void)state;
    begin(&bench, 1, 1);
    add_blocks(&bench, 0, 10, (const double[]){100, 80});
    bench.experiment.arms[0].kind = AB_ARM_NONE;
    set_policies(&bench, 0, 0);
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_NOT_APPLIED);
    assert_int_equal(bench.analysis.winner, SIZE_MAX);
    assert_int_equal(bench.analysis.result, AB_RESULT_NOT_SHOWN);

    /* one launch is enough */
    set_policies(&bench, 0, 1);
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_BETTER);
    assert_int_equal(bench.analysis.winner, 1);

    /* so are variables */
    set_policies(&bench, 0, 0);
    bench.experiment.arms[1].sets_variables = true;
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_BETTER);
    bench.experiment.arms[1].sets_variables = false;

    /* and to be rid of the baseline's rules */
    bench.experiment.arms[0].kind = AB_ARM_POLICY;
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_NOT_APPLIED);
    set_policies(&bench, 3, 0);
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_BETTER);
    end(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_baseline_that_differs_from_itself_is_a_warning),
        cmocka_unit_test(zero_has_no_ratio),
        cmocka_unit_test(flagged_runs_are_counted_and_said_to_matter_where_they_do),
        cmocka_unit_test(modes_and_outliers_are_told),
        cmocka_unit_test(rules_that_never_applied_are_told),
        cmocka_unit_test(what_changed_nothing_is_not_better),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
