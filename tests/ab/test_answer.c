/* SPDX-License-Identifier: Apache-2.0 */

/* The one-line answer about many candidates. About few: test_export.c. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "memory.h"
#include "print.h"

enum { MOST_ARMS = 40 };

struct many {
    struct ab_experiment experiment;
    struct ab_analysis analysis;
    struct ab_arm arms[MOST_ARMS];
    struct ab_arm_summary summaries[MOST_ARMS];
    struct ab_comparison comparisons[MOST_ARMS];
    struct ab_metric metric;
    char names[MOST_ARMS][16];
};

/* A baseline and so many candidates, c1 …, for which 10 blocks of ratio 1 are not enough. */
static void fill(struct many *many, size_t candidates)
{
    *many = (struct many){0};
    many->metric =
        (struct ab_metric){.name = many->names[0], .unit = many->names[0], .primary = true};
    many->experiment.metrics = &many->metric;
    many->experiment.metric_count = 1;
    many->experiment.plan = (struct ab_plan){.margin = 0.01, .alpha = 0.05};
    many->experiment.arms = many->arms;
    many->experiment.arm_count = candidates + 1;
    many->analysis.arms = many->summaries;
    many->analysis.comparisons = many->comparisons;
    many->analysis.comparison_count = candidates;
    many->analysis.winner = SIZE_MAX;
    for (size_t arm = 0; arm <= candidates; arm++) {
        snprintf(many->names[arm], sizeof many->names[arm], arm == 0 ? "none" : "c%zu", arm);
        many->arms[arm].name = many->names[arm];
        many->arms[arm].role = arm == 0 ? AB_ROLE_BASELINE : AB_ROLE_CANDIDATE;
        many->summaries[arm] = (struct ab_arm_summary){.runs = 10, .ok = 10};
    }
    for (size_t i = 0; i < candidates; i++) {
        many->comparisons[i] = (struct ab_comparison){.arm = i + 1,
                                                      .ratio = 1,
                                                      .low = 0.9,
                                                      .high = 1.1,
                                                      .level = 0.95,
                                                      .pairs = 10,
                                                      .decided_at_look = true,
                                                      .verdict = AB_VERDICT_NOT_ENOUGH};
    }
}

static void set(struct many *many, size_t arm, enum ab_verdict verdict, double ratio)
{
    many->comparisons[arm - 1].verdict = verdict;
    many->comparisons[arm - 1].ratio = ratio;
    many->comparisons[arm - 1].low = ratio * 0.99;
    many->comparisons[arm - 1].high = ratio * 1.01;
}

static void assert_answer(const struct many *many, const char *expected)
{
    char *answer = ab_answer(&many->experiment, &many->analysis);

    assert_string_equal(answer, expected);
    free(answer);
}

static void of_many_the_best_few_are_named_and_the_others_counted(void **state)
{
    static struct many many;

    (void)state;
    fill(&many, 30);
    set(&many, 30, AB_VERDICT_BETTER, 0.5);
    set(&many, 7, AB_VERDICT_BETTER, 0.8);
    set(&many, 9, AB_VERDICT_BETTER, 0.6);
    set(&many, 2, AB_VERDICT_WORSE, 1.5);
    set(&many, 12, AB_VERDICT_NOT_ENOUGH, 0.97);
    many.analysis.winner = 30;
    assert_answer(&many, "c30 is 2.000 times as fast as none (95 % interval 1.980 .. 2.020, 10 "
                         "blocks); c9: better (ratio 0.600); c7: better (ratio 0.800); c12: not "
                         "enough runs (ratio 0.970); 26 others: 25 not enough runs, 1 worse");
}

static void where_none_is_better_it_is_said_first(void **state)
{
    static struct many many;

    (void)state;
    fill(&many, 30);
    set(&many, 20, AB_VERDICT_NOT_ENOUGH, 0.95);
    assert_answer(&many, "none of the 30 candidates is shown to be better than none: c20: not "
                         "enough runs (ratio 0.950); c1: not enough runs (ratio 1.000); c2: not "
                         "enough runs (ratio 1.000); c3: not enough runs (ratio 1.000); 26 "
                         "others: not enough runs");
}

static void what_is_broken_is_named_since_the_exit_status_comes_from_it(void **state)
{
    static struct many many;

    (void)state;
    fill(&many, 8);
    set(&many, 8, AB_VERDICT_BROKEN, 0.1);
    many.summaries[8] = (struct ab_arm_summary){.runs = 10, .ok = 6, .outcomes = {[AB_EXITED] = 4}};
    set(&many, 4, AB_VERDICT_BETTER, 0.5);
    many.analysis.winner = 4;
    assert_answer(&many, "c4 is 2.000 times as fast as none (95 % interval 1.980 .. 2.020, 10 "
                         "blocks); c8: broken (4 of 10 runs failed); c1: not enough runs (ratio "
                         "1.000); c2: not enough runs (ratio 1.000); 4 others: not enough runs");
}

static void more_can_be_better(void **state)
{
    static struct many many;

    (void)state;
    fill(&many, 10);
    many.metric.direction = AB_MORE_IS_BETTER;
    set(&many, 5, AB_VERDICT_NOT_ENOUGH, 1.05);
    set(&many, 6, AB_VERDICT_NOT_ENOUGH, 0.95);
    assert_answer(&many, "none of the 10 candidates is shown to be better than none: c5: not "
                         "enough runs (ratio 1.050); c1: not enough runs (ratio 1.000); c2: not "
                         "enough runs (ratio 1.000); c3: not enough runs (ratio 1.000); 6 "
                         "others: not enough runs");
}

static void few_are_all_named_as_they_were_given(void **state)
{
    static struct many many;

    (void)state;
    fill(&many, 6);
    set(&many, 6, AB_VERDICT_NOT_ENOUGH, 0.9);
    assert_answer(&many, "none of the 6 candidates is shown to be better than none: c1: not enough "
                         "runs (ratio 1.000); c2: not enough runs (ratio 1.000); c3: not enough "
                         "runs (ratio 1.000); c4: not enough runs (ratio 1.000); c5: not enough "
                         "runs (ratio 1.000); c6: not enough runs (ratio 0.900)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_many_the_best_few_are_named_and_the_others_counted),
        cmocka_unit_test(where_none_is_better_it_is_said_first),
        cmocka_unit_test(what_is_broken_is_named_since_the_exit_status_comes_from_it),
        cmocka_unit_test(more_can_be_better),
        cmocka_unit_test(few_are_all_named_as_they_were_given),
    };

    return cmocka_run_group_tests_name("the answer about many candidates", tests, NULL, NULL);
}
