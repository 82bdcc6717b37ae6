/* SPDX-License-Identifier: Apache-2.0 */

/* What an experiment shows: verdicts, broken arms, when it is over. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include "analysis_support.h"
#include "sequential.h"
#include "statistics.h"

static void a_large_effect_is_shown_at_the_first_look(void **state)
{
    const struct ab_comparison *comparison;
    struct bench bench;

    (void)state;
    begin(&bench, 1, 1);
    add_blocks(&bench, 0, 10, (const double[]){100, 80});
    comparison = analyse(&bench, 1);
    assert_int_equal(comparison->verdict, AB_VERDICT_BETTER);
    assert_int_equal(comparison->pairs, 10);
    assert_true(comparison->decided_at_look);
    assert_float_equal(comparison->ratio, 0.8, 0.02);
    assert_true(comparison->low < 0.8 && 0.8 < comparison->high);
    assert_float_equal(comparison->level, 1 - ab_alpha_spent(0.05, 0.25), 1e-12);
    assert_float_equal(comparison->margin_level, 1 - 2 * ab_alpha_spent(0.05, 0.25), 1e-12);
    assert_true(comparison->low <= comparison->margin_low);
    assert_float_equal(comparison->p, 2.0 / 1024, 1e-12);
    assert_int_equal(bench.analysis.look, 0);
    assert_int_equal(bench.analysis.blocks, 10);
    assert_int_equal(bench.analysis.winner, 1);
    assert_int_equal(bench.analysis.result, AB_RESULT_SHOWN);
    assert_true(bench.analysis.done);
    end(&bench);
}

static void a_slower_arm_is_worse_and_the_claim_not_shown(void **state)
{
    struct bench bench;

    (void)state;
    begin(&bench, 1, 1);
    add_blocks(&bench, 0, 10, (const double[]){100, 120});
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_WORSE);
    assert_int_equal(bench.analysis.winner, SIZE_MAX);
    assert_int_equal(bench.analysis.result, AB_RESULT_NOT_SHOWN);
    assert_true(bench.analysis.done);
    end(&bench);
}

static void more_is_better_where_the_metric_says_so(void **state)
{
    struct bench bench;

    (void)state;
    begin(&bench, 2, 1);
    bench.experiment.metrics[0].direction = AB_MORE_IS_BETTER;
    add_blocks(&bench, 0, 10, (const double[]){100, 120, 140});
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_BETTER);
    assert_int_equal(bench.analysis.winner, 2);
    assert_true(ab_analysis_comparison(&bench.analysis, 1, 0)->smallest_detectable > 1);
    end(&bench);
}

static void nothing_is_decided_between_looks_unless_the_user_ends(void **state)
{
    const struct ab_comparison *comparison;
    struct bench bench;

    (void)state;
    begin(&bench, 1, 1);
    add_blocks(&bench, 0, 15, (const double[]){100, 80});
    comparison = analyse(&bench, 1);
    assert_int_equal(comparison->verdict, AB_VERDICT_NOT_ENOUGH);
    assert_false(comparison->decided_at_look);
    assert_false(bench.analysis.done);
    assert_int_equal(bench.analysis.result, AB_RESULT_INCONCLUSIVE);
    bench.experiment.interrupted = true;
    comparison = analyse(&bench, 1);
    assert_int_equal(comparison->verdict, AB_VERDICT_BETTER);
    assert_false(comparison->decided_at_look);
    assert_float_equal(comparison->level,
                       1 - ab_alpha_spent(0.05, 0.5) + ab_alpha_spent(0.05, 0.25), 1e-12);
    assert_int_equal(bench.analysis.result, AB_RESULT_SHOWN);
    end(&bench);
}

static void fewer_than_ten_blocks_show_nothing(void **state)
{
    const struct ab_comparison *comparison;
    struct bench bench;

    (void)state;
    begin(&bench, 1, 1);
    bench.experiment.interrupted = true;
    add_blocks(&bench, 0, 9, (const double[]){100, 50});
    comparison = analyse(&bench, 1);
    assert_int_equal(comparison->verdict, AB_VERDICT_NOT_ENOUGH);
    assert_false(isnan(comparison->low));
    end(&bench);

    /* too few for an interval: no number is invented */
    begin(&bench, 1, 1);
    bench.experiment.interrupted = true;
    add_blocks(&bench, 0, 4, (const double[]){100, 50});
    comparison = analyse(&bench, 1);
    assert_float_equal(comparison->ratio, 0.5, 0.02);
    assert_true(isnan(comparison->low) && isnan(comparison->high));
    assert_int_equal(bench.analysis.look, SIZE_MAX);
    end(&bench);

    begin(&bench, 1, 1);
    comparison = analyse(&bench, 1);
    assert_true(isnan(comparison->ratio) && isnan(comparison->p) &&
                isnan(comparison->blocks_for_ratio));
    assert_true(isnan(bench.analysis.arms[1].median));
    assert_int_equal(bench.analysis.result, AB_RESULT_INCONCLUSIVE);
    assert_false(bench.analysis.done);
    end(&bench);
}

static void no_difference_is_shown_within_the_margin_only(void **state)
{
    const struct ab_comparison *comparison;
    struct bench bench;

    (void)state;
    begin(&bench, 1, 1);
    bench.noise = 0.005;
    add_blocks(&bench, 0, 20, (const double[]){100, 100});
    comparison = analyse(&bench, 1);
    assert_int_equal(comparison->verdict, AB_VERDICT_NO_DIFFERENCE);
    assert_true(comparison->margin_low >= 1 / 1.02 && comparison->margin_high <= 1.02);
    assert_int_equal(bench.analysis.result, AB_RESULT_NOT_SHOWN);
    assert_true(bench.analysis.done);
    bench.experiment.plan.claim = AB_CLAIM_NO_DIFFERENCE;
    analyse(&bench, 1);
    assert_int_equal(bench.analysis.result, AB_RESULT_SHOWN);
    assert_true(bench.analysis.done);
    bench.experiment.plan.margin = 0.002;
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_NOT_ENOUGH);
    assert_int_equal(bench.analysis.result, AB_RESULT_INCONCLUSIVE);
    assert_false(bench.analysis.done);
    end(&bench);
}

static void a_difference_smaller_than_the_margin_is_no_difference_that_matters(void **state)
{
    struct bench bench;

    (void)state;
    begin(&bench, 1, 1);
    bench.experiment.plan.claim = AB_CLAIM_NO_DIFFERENCE;
    bench.noise = 0.0005;
    add_blocks(&bench, 0, 10, (const double[]){100, 99});
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_BETTER);
    assert_int_equal(bench.analysis.result, AB_RESULT_SHOWN);
    /* shown to differ, and by more than that: the opposite */
    bench.experiment.plan.margin = 0.005;
    analyse(&bench, 1);
    assert_int_equal(bench.analysis.result, AB_RESULT_NOT_SHOWN);
    assert_true(bench.analysis.done);
    end(&bench);
}

static void not_enough_runs_say_how_many_would_do(void **state)
{
    const struct ab_comparison *comparison;
    double deviation = sqrt(2) * 0.05;
    struct bench bench;

    (void)state;
    begin(&bench, 1, 1);
    bench.noise = 0.05;
    add_blocks(&bench, 0, 40, (const double[]){100, 99});
    comparison = analyse(&bench, 1);
    assert_int_equal(comparison->verdict, AB_VERDICT_NOT_ENOUGH);
    assert_int_equal(bench.analysis.result, AB_RESULT_INCONCLUSIVE);
    assert_true(bench.analysis.done);
    /* within the error of a deviation from 40 blocks, and of what is added for correlation */
    assert_float_equal(comparison->blocks_for_margin,
                       ab_blocks_needed_for_none(deviation, log(1.02), 0.019, 0.8), 90);
    assert_true(comparison->blocks_for_ratio > 40);
    assert_true(comparison->smallest_detectable > 0.93 && comparison->smallest_detectable < 0.98);
    end(&bench);
}

static void only_candidates_are_a_family(void **state)
{
    struct bench bench;
    size_t arm;

    (void)state;
    begin(&bench, 2, 2);
    add_arm(&bench.experiment, "again", AB_ROLE_REPEAT);
    add_arm(&bench.experiment, "observe", AB_ROLE_COST);
    add_blocks(&bench, 0, 10, (const double[]){100, 99.2, 98.6, 100, 100});
    analyse(&bench, 1);
    for (arm = 1; arm <= 4; arm++) {
        const struct ab_comparison *primary = ab_analysis_comparison(&bench.analysis, arm, 0);
        const struct ab_comparison *other = ab_analysis_comparison(&bench.analysis, arm, 1);

        assert_float_equal(other->p_adjusted, other->p, 0);
        if (arm > 2)
            assert_float_equal(primary->p_adjusted, primary->p, 0);
    }
    assert_float_equal(fmin(ab_analysis_comparison(&bench.analysis, 1, 0)->p_adjusted,
                            ab_analysis_comparison(&bench.analysis, 2, 0)->p_adjusted),
                       2 * fmin(ab_analysis_comparison(&bench.analysis, 1, 0)->p,
                                ab_analysis_comparison(&bench.analysis, 2, 0)->p),
                       1e-12);
    assert_null(ab_analysis_comparison(&bench.analysis, 0, 0));
    assert_null(ab_analysis_comparison(&bench.analysis, 1, 2));
    end(&bench);
}

static void exploratory_metrics_make_no_winner(void **state)
{
    struct bench bench;
    uint32_t block;

    (void)state;
    begin(&bench, 1, 2);
    add_blocks(&bench, 0, 40, (const double[]){100, 100});
    for (block = 0; block < 40; block++)
        run_of(&bench, block, 1)->values[1].value = 50;
    analyse(&bench, 1);
    assert_int_equal(ab_analysis_comparison(&bench.analysis, 1, 1)->verdict, AB_VERDICT_BETTER);
    assert_int_equal(bench.analysis.winner, SIZE_MAX);
    assert_int_not_equal(bench.analysis.result, AB_RESULT_SHOWN);
    end(&bench);
}

static void the_winner_is_the_best_of_those_that_are_better(void **state)
{
    struct bench bench;

    (void)state;
    begin(&bench, 3, 1);
    add_blocks(&bench, 0, 20, (const double[]){100, 90, 80, 110});
    analyse(&bench, 1);
    assert_int_equal(bench.analysis.winner, 2);
    assert_int_equal(bench.analysis.result, AB_RESULT_SHOWN);
    end(&bench);
}

static void an_arm_that_changes_results_is_broken_at_once(void **state)
{
    struct bench bench;

    (void)state;
    begin(&bench, 1, 1);
    add_blocks(&bench, 0, 2, (const double[]){100, 50});
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_NOT_ENOUGH);
    run_of(&bench, 1, 1)->outcome = AB_OUTPUT_DIFFERS;
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_BROKEN);
    assert_int_equal(bench.analysis.result, AB_RESULT_BROKEN);
    assert_true(bench.analysis.done);
    assert_warns(
        &bench, AB_WARNING_FAILURES, 1,
        "1 of 2 runs failed (1 output differs), of the baseline's 0 of 2: it cannot be the "
        "winner");
    end(&bench);
}

static void an_arm_that_fails_more_often_is_broken_or_no_winner(void **state)
{
    struct bench bench;
    uint32_t block;

    (void)state;
    begin(&bench, 1, 1);
    add_blocks(&bench, 0, 20, (const double[]){100, 50});
    run_of(&bench, 3, 1)->outcome = AB_TIMED_OUT;
    /* 1 of 20 against 0 of 20 shows nothing, but who fails more does not win */
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_BETTER);
    assert_float_equal(bench.analysis.arms[1].failure_p, 0.5, 1e-12);
    assert_true(bench.analysis.arms[1].fails_more);
    assert_int_equal(bench.analysis.winner, SIZE_MAX);
    assert_int_equal(bench.analysis.result, AB_RESULT_INCONCLUSIVE);
    /* as often as the baseline is not more */
    run_of(&bench, 4, 0)->outcome = AB_TIMED_OUT;
    assert_int_equal(analyse(&bench, 1)->pairs, 18);
    assert_int_equal(bench.analysis.winner, 1);
    /* 6 of 20 against 1 of 20: p = 0.046 */
    for (block = 5; block < 10; block++)
        run_of(&bench, block, 1)->outcome = AB_EXITED;
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_BROKEN);
    assert_float_equal(bench.analysis.arms[1].failure_p, 0.0457, 1e-4);
    assert_int_equal(bench.analysis.result, AB_RESULT_BROKEN);
    assert_warns(
        &bench, AB_WARNING_FAILURES, 1,
        "6 of 20 runs failed (5 exited, 1 timed out), of the baseline's 1 of 20: it cannot "
        "be the winner");
    end(&bench);
}

static void an_arm_that_never_works_is_broken(void **state)
{
    struct bench bench;
    uint32_t block;

    (void)state;
    begin(&bench, 2, 1);
    add_blocks(&bench, 0, 10, (const double[]){100, 50, 70});
    for (block = 0; block < 10; block++)
        run_of(&bench, block, 1)->outcome = AB_NOT_ATTACHED;
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_BROKEN);
    assert_int_equal(bench.analysis.winner, 2);
    assert_int_equal(bench.analysis.result, AB_RESULT_BROKEN);
    assert_true(bench.analysis.done);
    end(&bench);
}

static void a_baseline_that_never_works_is_a_broken_experiment(void **state)
{
    struct bench bench;
    uint32_t block;

    (void)state;
    begin(&bench, 1, 1);
    add_blocks(&bench, 0, 10, (const double[]){100, 50});
    for (block = 0; block < 10; block++)
        run_of(&bench, block, 0)->outcome = AB_EXITED;
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_NOT_ENOUGH);
    assert_int_equal(bench.analysis.result, AB_RESULT_BROKEN);
    end(&bench);
}

static void what_was_not_made_does_not_count(void **state)
{
    struct bench bench;
    struct ab_run *run;

    (void)state;
    begin(&bench, 1, 1);
    run = add_run(&bench, 11, 0, 1);
    run->warm_up = true;
    run = add_run(&bench, 11, 1, 1000);
    run->warm_up = true;
    /* interrupted, and made again */
    run = add_run(&bench, 0, 1, 1000);
    run->outcome = AB_INTERRUPTED;
    run = add_run(&bench, 0, 1, 1000);
    add_blocks(&bench, 0, 10, (const double[]){100, 80});
    /* a block that is not complete */
    add_run(&bench, 10, 0, 1000);
    analyse(&bench, 1);
    assert_int_equal(bench.analysis.blocks, 10);
    assert_float_equal(ab_analysis_comparison(&bench.analysis, 1, 0)->ratio, 0.8, 0.02);
    assert_int_equal(bench.analysis.arms[1].outcomes[AB_INTERRUPTED], 1);
    assert_int_equal(bench.analysis.arms[1].runs, 11);
    end(&bench);
}

static void blocks_are_pairs_in_whatever_order_their_runs_came(void **state)
{
    struct bench bench;
    uint32_t block;

    (void)state;
    begin(&bench, 1, 1);
    bench.noise = 0.001;
    for (block = 10; block-- > 0;) {
        double drift = 100 * (1 + block);

        add_run(&bench, block, block % 2, drift * (block % 2 != 0 ? 0.9 : 1));
        add_run(&bench, block, 1 - block % 2, drift * (block % 2 != 0 ? 1 : 0.9));
    }
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_BETTER);
    assert_float_equal(ab_analysis_comparison(&bench.analysis, 1, 0)->ratio, 0.9, 0.002);
    assert_true(bench.analysis.arms[1].drifts);
    assert_float_equal(bench.analysis.arms[1].drift, 1, 1e-12);
    assert_non_null(warning(&bench, AB_WARNING_DRIFT, 1));
    end(&bench);
}

static void measuring_alone_goes_on_to_the_end(void **state)
{
    struct bench bench;

    (void)state;
    begin(&bench, 1, 1);
    bench.experiment.plan.claim = AB_CLAIM_NONE;
    add_blocks(&bench, 0, 10, (const double[]){100, 80});
    analyse(&bench, 1);
    assert_false(bench.analysis.done);
    assert_int_equal(bench.analysis.result, AB_RESULT_SHOWN);
    add_blocks(&bench, 10, 40, (const double[]){100, 80});
    analyse(&bench, 1);
    assert_true(bench.analysis.done);
    end(&bench);
}

static void a_thousand_runs_give_the_same_answer_twice(void **state)
{
    struct ab_analysis again;
    struct bench bench;
    size_t i;

    (void)state;
    begin(&bench, 2, 2);
    bench.experiment.plan.looks[2] = 333;
    add_blocks(&bench, 0, 333, (const double[]){100, 99, 100.1});
    assert_int_equal(bench.experiment.run_count, 999);
    assert_int_equal(analyse(&bench, 1)->verdict, AB_VERDICT_BETTER);
    ab_analyse(&bench.experiment, &again);
    for (i = 0; i < bench.analysis.comparison_count; i++) {
        assert_float_equal(again.comparisons[i].low, bench.analysis.comparisons[i].low, 0);
        assert_float_equal(again.comparisons[i].p, bench.analysis.comparisons[i].p, 0);
    }
    ab_analysis_release(&again);
    end(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_effect_is_shown_at_the_first_look),
        cmocka_unit_test(a_slower_arm_is_worse_and_the_claim_not_shown),
        cmocka_unit_test(more_is_better_where_the_metric_says_so),
        cmocka_unit_test(nothing_is_decided_between_looks_unless_the_user_ends),
        cmocka_unit_test(fewer_than_ten_blocks_show_nothing),
        cmocka_unit_test(no_difference_is_shown_within_the_margin_only),
        cmocka_unit_test(a_difference_smaller_than_the_margin_is_no_difference_that_matters),
        cmocka_unit_test(not_enough_runs_say_how_many_would_do),
        cmocka_unit_test(only_candidates_are_a_family),
        cmocka_unit_test(exploratory_metrics_make_no_winner),
        cmocka_unit_test(the_winner_is_the_best_of_those_that_are_better),
        cmocka_unit_test(an_arm_that_changes_results_is_broken_at_once),
        cmocka_unit_test(an_arm_that_fails_more_often_is_broken_or_no_winner),
        cmocka_unit_test(an_arm_that_never_works_is_broken),
        cmocka_unit_test(a_baseline_that_never_works_is_a_broken_experiment),
        cmocka_unit_test(what_was_not_made_does_not_count),
        cmocka_unit_test(blocks_are_pairs_in_whatever_order_their_runs_came),
        cmocka_unit_test(measuring_alone_goes_on_to_the_end),
        cmocka_unit_test(a_thousand_runs_give_the_same_answer_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
