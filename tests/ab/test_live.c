/* SPDX-License-Identifier: Apache-2.0 */
/* Live comparisons: the policy of all arms, slices of all ranks, blocks, and what they show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decide/live.h"
#include "live.h"
#include "live_view.h"
#include "memory.h"
#include "policy/policy.h"
#include "report/report.h"
#include "results.h"

static const struct ab_live_plan plan = {.seed = 1,
                                         .slice = 10,
                                         .drop = 2,
                                         .warm_up = 4,
                                         .step_kernel = "step",
                                         .alpha = 0.05,
                                         .margin = 0.01};

#define assert_near(value, wanted, tolerance) assert_true(fabs((value) - (wanted)) <= (tolerance))

/* ---- The policy ---- */

static char paths[3][64];

static struct ab_experiment *arms_of(const char *const *texts, size_t count)
{
    static struct ab_arm arms[20];
    static struct ab_experiment experiment;
    static const char *const names[] = {"one", "two", "three"};

    experiment = (struct ab_experiment){.arm_count = count, .arms = arms};
    for (size_t i = 0; i < count; i++) {
        FILE *file;

        arms[i] = (struct ab_arm){.name = (char *)(uintptr_t)names[i], .kind = AB_ARM_NONE};
        if (texts[i] == NULL) {
            continue;
        }
        snprintf(paths[i], sizeof paths[i], "/tmp/cudapolicy-live-XXXXXX");
        file = fdopen(mkstemp(paths[i]), "w");
        assert_non_null(file);
        fprintf(file, "[policy]\nversion = 1\n%s", texts[i]);
        fclose(file);
        arms[i].kind = AB_ARM_POLICY;
        arms[i].policy = paths[i];
    }
    return &experiment;
}

static void remove_policies(void)
{
    for (size_t i = 0; i < 3; i++) {
        if (paths[i][0] != '\0') {
            unlink(paths[i]);
        }
        paths[i][0] = '\0';
    }
}

static void rules_of_all_arms_are_in_one_policy(void **state)
{
    const char *const texts[] = {
        "[kernel a]\nname = x*\ngrid_blocks = 1..4\nmem_sync_domain = remote\nfinal = yes\n", NULL,
        "[stream s]\nindex = 0\n[kernel a]\nstream = s\npriority = -1\n"};
    char error[512] = "";

    (void)state;
    char *text = ab_live_policy(arms_of(texts, 3), error, sizeof error);
    assert_string_equal(error, "");
    assert_string_equal(text, "[policy]\nversion = 1\n"
                              "\n[kernel one/a]\nname = x*\ngrid_blocks = 1..4\narm = 0\n"
                              "mem_sync_domain = remote\nfinal = yes\n"
                              "\n[stream three/s]\nindex = 0\nkind = created\n"
                              "\n[kernel three/a]\nstream = three/s\narm = 2\npriority = -1\n");
    /* And it is a policy. */
    struct policy_diagnostics diagnostics;
    policy_diagnostics_init(&diagnostics);
    struct policy *policy = policy_parse(text, strlen(text), "live", &diagnostics);
    assert_non_null(policy);
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
    free(text);
    remove_policies();
}

static void an_arm_that_only_observes_has_no_rule(void **state)
{
    const char *const texts[] = {NULL, "mode = observe\n[kernel a]\npriority = 1\n"};
    char error[512] = "";

    (void)state;
    char *text = ab_live_policy(arms_of(texts, 2), error, sizeof error);
    assert_string_equal(text, "[policy]\nversion = 1\n");
    free(text);
    remove_policies();
}

static void what_needs_process_arms_is_refused_with_its_place(void **state)
{
    static const char *const cases[][3] = {
        {"[stream s]\npriority = -1\n", ":3:",
         "a stream gets its settings when it is created, and keeps them in all arms; this needs "
         "process arms: ab without --live"},
        {"[partition p]\nsm_count = 8\n[kernel k]\nname = x\npartition = p\n", ":7:",
         "a partition cannot change while a program runs; this needs process arms: ab without "
         "--live"},
        {"[kernel k]\nname = x\nlocality_domain = 0\n",
         ":5:", "a partition cannot change while a program runs"},
        {"[kernel k]\nname = x\narm = 1\npriority = 1\n", ":3",
         "[kernel k] has an arm already: a policy of a live comparison is no arm of another one"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const texts[] = {NULL, cases[i][0]};
        char error[512] = "";

        assert_null(ab_live_policy(arms_of(texts, 2), error, sizeof error));
        if (strstr(error, cases[i][1]) == NULL || strstr(error, cases[i][2]) == NULL) {
            fail_msg("%s", error);
        }
        remove_policies();
    }
}

static void rules_are_told_by_their_arms(void **state)
{
    const struct ab_arm plain = {.name = (char *)(uintptr_t) "fast"};
    const struct ab_arm odd = {.name = (char *)(uintptr_t) "a b"};

    (void)state;
    assert_true(ab_live_rule_is_of("fast/x", &plain, 1));
    assert_true(ab_live_rule_is_of("fast/x/y", &plain, 1));
    assert_false(ab_live_rule_is_of("faster/x", &plain, 1));
    assert_false(ab_live_rule_is_of("fas", &plain, 1));
    assert_false(ab_live_rule_is_of("fast", &plain, 1));
    assert_true(ab_live_rule_is_of("a-b-2/x", &odd, 2));
    assert_false(ab_live_rule_is_of("a-b-3/x", &odd, 2));
    assert_false(ab_live_rule_is_of("a-b/x", &odd, 2));
}

static void more_arms_than_alternate_are_refused(void **state)
{
    const char *const none[17] = {NULL};
    struct ab_experiment *experiment = arms_of(none, 3);
    char error[512] = "";

    (void)state;
    experiment->arm_count = 17;
    assert_null(ab_live_policy(experiment, error, sizeof error));
    assert_string_equal(error, "17 arms, with the baseline again; at most 16 can alternate");
}

static void the_variable_is_read_as_it_was_meant(void **state)
{
    struct decide_live_options options;
    char error[200];

    (void)state;
    char *text = ab_live_variable(&plan, 3);
    assert_true(decide_live_parse(text, &options, error, sizeof error));
    assert_int_equal(options.arms, 3);
    assert_int_equal(options.seed, 1);
    assert_int_equal(options.slice, 10);
    assert_int_equal(options.drop, 2);
    assert_int_equal(options.warmup, 4);
    assert_string_equal(options.kernel, "step");
    free(text);
}

/* ---- Reports ---- */

/* How long a step takes, by rank, slice and arm. */
typedef double (*step_time)(int rank, size_t slice, unsigned arm);

static json_t *report_of(int rank, int64_t steps, size_t arms, size_t slices, step_time time)
{
    json_t *list = json_array();

    for (size_t number = 0; number < slices; number++) {
        uint8_t order[POLICY_ARM_LIMIT];
        bool last = number + 1 == slices;

        decide_live_order(plan.seed, number / arms, (unsigned)arms, order);
        double seconds = time(rank, number, order[number % arms]) * (plan.slice - plan.drop);
        json_array_append_new(list,
                              json_pack("[i, i, i, i, o]", (int)number, (int)order[number % arms],
                                        (int)(plan.warm_up + number * plan.slice), (int)plan.slice,
                                        last ? json_null() : json_real(seconds)));
    }
    return json_pack(
        "{s:s, s:i, s:b, s:b, s:{s:s, s:i, s:s, s:I, s:I, s:s, s:s, s:b}, s:s, s:{}, s:[], s:I, "
        "s:[], s:[], s:[], s:[], s:[], s:{}, s:{s:i, s:s, s:I, s:o}}",
        "format", "cudapolicy report", "schema", 1, "complete", 1, "partial", 0, "process", "host",
        "here", "pid", 100 + rank, "argv0", "app", "start_ticks", (json_int_t)(1000 + rank),
        "image", (json_int_t)1, "start", "x", "end", "y", "running", 0, "mode", "enforce", "facts",
        "routes", "launches", (json_int_t)steps, "rules", "kernels", "unmatched", "streams",
        "notes", "overflow", "live", "arms", (int)arms, "seed", "1", "steps", (json_int_t)steps,
        "slices", list);
}

static void add(struct results *results, json_t *document)
{
    const char *error = NULL;

    assert_non_null(document);
    if (!results_add(results, document, &error)) {
        fail_msg("%s", error);
    }
    json_decref(document);
}

static double by_rank(int rank, size_t slice, unsigned arm)
{
    return (double)(1 + slice) + 0.1 * rank + 100 * arm;
}

static void ranks_are_combined_slice_by_slice(void **state)
{
    static const struct {
        enum ab_across across;
        double added;
    } cases[] = {
        {AB_ACROSS_MAX, 0.2}, {AB_ACROSS_MIN, 0}, {AB_ACROSS_MEAN, 0.1}, {AB_ACROSS_MEDIAN, 0.1}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ab_live_plan across = plan;
        struct results results = {.keep_documents = true};
        struct ab_live_run run;
        char error[200] = "";

        across.across = cases[i].across;
        for (int rank = 0; rank < 3; rank++) {
            add(&results, report_of(rank, 64, 2, 6, by_rank));
        }
        assert_true(ab_live_read(&run, &results, &across, 2, error, sizeof error));
        assert_int_equal(run.ranks, 3);
        /* The last slice never ended, and its block with it. */
        assert_int_equal(run.slice_count, 5);
        assert_int_equal(run.block_count, 2);
        for (size_t slice = 0; slice < 5; slice++) {
            assert_near(run.slices[slice].seconds,
                        (double)(1 + slice) + 100 * run.slices[slice].arm + cases[i].added, 1e-9);
        }
        ab_live_run_release(&run);
        results_release(&results);
    }
}

static void only_slices_that_all_ranks_made_count(void **state)
{
    struct results results = {.keep_documents = true};
    struct ab_live_run run;
    char error[200] = "";

    (void)state;
    add(&results, report_of(0, 104, 2, 10, by_rank));
    add(&results, report_of(1, 64, 2, 6, by_rank));
    add(&results, report_of(2, 0, 2, 0, by_rank)); /* makes no steps: a helper */
    assert_true(ab_live_read(&run, &results, &plan, 2, error, sizeof error));
    assert_int_equal(run.ranks, 2);
    assert_int_equal(run.steps, 64);
    assert_int_equal(run.steps_most, 104);
    assert_int_equal(run.slice_count, 5);
    ab_live_run_release(&run);
    results_release(&results);
}

/* From second to second the report's process made its steps. */
static json_t *during(json_t *document, int from, int to)
{
    json_object_set_new(
        json_object_get(document, "live"), "span",
        json_pack("[I, I]", (json_int_t)from * 1000000000, (json_int_t)to * 1000000000));
    return document;
}

static void steps_one_after_the_other_have_blocks_of_their_own(void **state)
{
    struct results results = {.keep_documents = true};
    struct ab_live_run run;
    char error[200] = "";

    (void)state;
    /* Two ranks, and a process that made its steps before. */
    add(&results, during(report_of(0, 64, 2, 6, by_rank), 20, 30));
    add(&results, during(report_of(1, 44, 2, 4, by_rank), 5, 10));
    add(&results, during(report_of(2, 64, 2, 6, by_rank), 21, 31));
    assert_true(ab_live_read(&run, &results, &plan, 2, error, sizeof error));
    assert_int_equal(run.ranks, 2);
    assert_int_equal(run.parts, 2);
    assert_int_equal(run.steps, 44 + 64);
    assert_int_equal(run.block_count, 1 + 2);
    assert_int_equal(run.places[0].part, 0);
    assert_int_equal(run.places[1].part, 1);
    assert_int_equal(run.places[2].block, 1);
    assert_near(run.slices[0].seconds, 1.1 + 100 * run.slices[0].arm, 1e-9);
    assert_near(run.slices[3].seconds, 1.2 + 100 * run.slices[3].arm, 1e-9);
    ab_live_run_release(&run);
    results_release(&results);
}

static void a_helper_with_few_steps_does_not_stand_in_the_way(void **state)
{
    struct results results = {.keep_documents = true};
    struct ab_live_run run;
    char error[200] = "";

    (void)state;
    add(&results, during(report_of(0, 64, 2, 6, by_rank), 20, 30));
    add(&results, during(report_of(1, 9, 2, 1, by_rank), 22, 23));
    assert_true(ab_live_read(&run, &results, &plan, 2, error, sizeof error));
    assert_int_equal(run.ranks, 1);
    assert_int_equal(run.parts, 1);
    assert_int_equal(run.too_short, 1);
    assert_int_equal(run.steps_most, 64);
    ab_live_run_release(&run);
    results_release(&results);
}

static void where_there_is_no_block_it_is_said_why(void **state)
{
    const struct ab_live_plan long_slices = {.slice = REPORT_STEP_LIMIT, .warm_up = 4};
    struct results none = {.keep_documents = true}, few = {.keep_documents = true};
    struct results untimed = {.keep_documents = true};
    struct ab_live_run run;
    char error[200] = "";

    (void)state;
    assert_false(ab_live_read(&run, &none, &plan, 2, error, sizeof error));
    assert_string_equal(error, "no process made a step: the kernel step was never launched under "
                               "the library");
    add(&few, report_of(0, 20, 2, 2, by_rank));
    assert_false(ab_live_read(&run, &few, &plan, 2, error, sizeof error));
    assert_string_equal(error, "20 steps are no whole block: it takes 4 of warm-up and 2 x 10 for "
                               "each block");
    add(&untimed, report_of(0, 5000000, 2, 0, by_rank));
    assert_false(ab_live_read(&run, &untimed, &plan, 2, error, sizeof error));
    assert_string_equal(error, "5000000 steps were made, but the reports do not have their times: "
                               "is there no room where the experiment's folder is?");
    assert_false(ab_live_read(&run, &untimed, &long_slices, 2, error, sizeof error));
    assert_string_equal(error, "a block takes more steps than a process keeps times of, 524288: 4 "
                               "of warm-up and 2 x 524288");
    results_release(&none);
    results_release(&few);
    results_release(&untimed);
}

/* ---- What they show ---- */

static double noise(int rank, size_t slice)
{
    uint64_t value = (uint64_t)rank * 7919 + slice * 104729 + 1;

    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
    value *= UINT64_C(0x9e3779b97f4a7c15);
    return (double)(value >> 40) / (double)(1 << 24) - 0.5;
}

/* Arm 1 is 20 % faster, arm 2 is the baseline again; each process has a mode of its own. */
static double faster(int rank, size_t slice, unsigned arm)
{
    return (1 + rank % 2) * (1 + 0.02 * noise(rank, slice)) * (arm == 1 ? 0.8 : 1);
}

static double equal(int rank, size_t slice, unsigned arm)
{
    (void)arm;
    return (1 + rank % 2) * (1 + 0.001 * noise(rank, slice));
}

static double wild(int rank, size_t slice, unsigned arm)
{
    (void)arm;
    return exp(3 * noise(rank, slice));
}

static struct ab_arm three[] = {
    {.name = (char *)(uintptr_t) "base", .role = AB_ROLE_BASELINE},
    {.name = (char *)(uintptr_t) "new", .role = AB_ROLE_CANDIDATE},
    {.name = (char *)(uintptr_t) "again", .role = AB_ROLE_REPEAT},
};
static const struct ab_experiment experiment = {.arm_count = 3, .arms = three};

static struct ab_live_comparison comparisons[3];
static const struct ab_run_policy *rules; /* of the candidate, in every run; NULL: not known */

static void compare(step_time time, size_t run_count, size_t slices)
{
    struct ab_live_run *runs = memory_allocate(run_count, sizeof *runs);
    char error[200] = "";

    for (size_t i = 0; i < run_count; i++) {
        struct results results = {.keep_documents = true};

        add(&results, report_of((int)i, (int64_t)slices * 10 + 4, 3, slices, time));
        assert_true(ab_live_read(&runs[i], &results, &plan, 3, error, sizeof error));
        results_release(&results);
    }
    for (size_t i = 0; i < run_count && rules != NULL; i++) {
        runs[i].policies = memory_allocate(3, sizeof *runs[i].policies);
        runs[i].policies[1] = *rules;
    }
    ab_live_compare(comparisons, &experiment, runs, run_count, &plan);
    for (size_t i = 0; i < run_count; i++) {
        ab_live_run_release(&runs[i]);
    }
    free(runs);
}

static void a_gain_is_found_whatever_mode_a_process_is_in(void **state)
{
    (void)state;
    compare(faster, 6, 61);
    assert_int_equal(comparisons[1].blocks, 6 * 20);
    assert_near(comparisons[1].nested.ratio, 0.8, 0.01);
    assert_true(comparisons[1].nested.low < 0.8 && comparisons[1].nested.high > 0.8);
    assert_int_equal(comparisons[1].verdict, AB_LIVE_BETTER);
    assert_false(comparisons[1].nested.these_processes_only);
    assert_near(comparisons[2].nested.ratio, 1, 0.01);
    assert_int_equal(ab_live_status(comparisons, &experiment), 0);
}

static void what_changed_nothing_is_not_better(void **state)
{
    const struct ab_run_policy none = {.known = true, .rules = 1};
    const struct ab_run_policy some = {.known = true, .rules = 1, .rules_matched = 1, .applied = 7};

    (void)state;
    three[1].kind = AB_ARM_POLICY;
    rules = &none;
    compare(faster, 6, 61);
    assert_int_equal(comparisons[1].verdict, AB_LIVE_NOT_APPLIED);
    assert_int_equal(ab_live_status(comparisons, &experiment), 1);
    rules = &some;
    compare(faster, 6, 61);
    assert_int_equal(comparisons[1].verdict, AB_LIVE_BETTER);
    rules = NULL;
    three[1].kind = AB_ARM_NONE;
}

static void steps_that_the_counters_had_no_room_for_are_counted(void **state)
{
    struct results results = {.keep_documents = true};
    struct ab_live_run run;
    char error[200] = "";

    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        json_t *document = report_of(rank, 614, 3, 61, faster);

        json_object_set_new(json_object_get(document, "live"), "not_entered",
                            json_integer(4 + rank));
        add(&results, document);
    }
    assert_true(ab_live_read(&run, &results, &plan, 3, error, sizeof error));
    assert_int_equal(run.not_entered, 9);
    results_release(&results);
    ab_live_run_release(&run);
}

static void one_run_speaks_of_its_processes_only(void **state)
{
    (void)state;
    compare(faster, 1, 61);
    assert_int_equal(comparisons[1].verdict, AB_LIVE_BETTER);
    assert_true(comparisons[1].nested.these_processes_only);
}

static void no_difference_is_shown_within_the_margin(void **state)
{
    (void)state;
    compare(equal, 6, 61);
    assert_int_equal(comparisons[1].verdict, AB_LIVE_NO_DIFFERENCE);
    assert_int_equal(ab_live_status(comparisons, &experiment), 1);
}

static void nothing_is_said_of_what_is_too_noisy_or_too_little(void **state)
{
    (void)state;
    compare(wild, 6, 61);
    assert_int_equal(comparisons[1].verdict, AB_LIVE_NOT_ENOUGH);
    assert_int_equal(ab_live_status(comparisons, &experiment), 2);
    compare(faster, 1, 13); /* four blocks */
    assert_int_equal(comparisons[1].verdict, AB_LIVE_NOT_ENOUGH);
}

/* ---- As an experiment ---- */

static struct ab_live_run shown_runs[2];
static struct ab_run_policy shown_policies[3] = {{.known = true}, {.known = true, .rules = 2}};
static struct ab_live_view view;

static void show(size_t most)
{
    for (int i = 0; i < 2; i++) {
        struct results results = {.keep_documents = true};
        char error[200] = "";

        add(&results, report_of(i, 1204, 3, 121, faster));
        assert_true(ab_live_read(&shown_runs[i], &results, &plan, 3, error, sizeof error));
        results_release(&results);
    }
    shown_runs[0].policies = memory_allocate(3, sizeof shown_policies[0]);
    memcpy(shown_runs[0].policies, shown_policies, sizeof shown_policies);
    shown_runs[1].gpu = (struct ab_run_gpu){.known = true,
                                            .flags = AB_GPU_THROTTLED_POWER,
                                            .sm_clock_mhz = 1000,
                                            .temperature_celsius = 50,
                                            .power_watts = 600};
    ab_live_compare(comparisons, &experiment, shown_runs, 2, &plan);
    ab_live_view_make(&view, comparisons, &experiment, shown_runs, 2, &plan, most);
}

static void hide(void)
{
    ab_live_view_release(&view);
    ab_live_run_release(&shown_runs[0]);
    ab_live_run_release(&shown_runs[1]);
}

static void a_slice_stands_for_a_run(void **state)
{
    const struct ab_comparison *comparison;

    (void)state;
    show(0);
    assert_int_equal(view.experiment.run_count, 2 * 40 * 3);
    for (size_t i = 0; i < view.experiment.run_count; i++) {
        const struct ab_run *slice = &view.experiment.runs[i];
        uint8_t order[POLICY_ARM_LIMIT];

        decide_live_order(plan.seed, i / 3 % 40, 3, order);
        assert_int_equal(slice->block, i / 3);
        assert_int_equal(slice->position, i % 3);
        assert_int_equal(slice->arm, order[i % 3]);
        assert_int_equal(slice->live_run, i / 120);
        assert_true(slice->values[0].value ==
                    shown_runs[i / 120].blocks[i / 3 % 40 * 3 + slice->arm]);
        assert_int_equal(slice->gpu.known, i / 120);
    }
    comparison = ab_analysis_comparison(&view.analysis, 1, 0);
    assert_true(comparison->ratio == comparisons[1].nested.ratio);
    assert_true(comparison->low == comparisons[1].nested.low);
    assert_int_equal(comparison->verdict, AB_VERDICT_BETTER);
    assert_int_equal(view.analysis.winner, 1);
    assert_int_equal(view.analysis.result, AB_RESULT_SHOWN);
    assert_int_equal(view.analysis.arms[1].runs, 80);
    assert_int_equal(view.analysis.arms[1].flagged, 40);
    hide();
}

static void on_a_page_neighbouring_blocks_are_one(void **state)
{
    (void)state;
    show(21); /* of 80 blocks: 4 are one */
    assert_int_equal(view.design.together, 4);
    assert_int_equal(view.experiment.run_count, 2 * 10 * 3);
    for (size_t arm = 0; arm < 3; arm++) {
        double sum = 0;

        for (size_t block = 0; block < 4; block++) {
            sum += shown_runs[0].blocks[block * 3 + arm];
        }
        for (size_t i = 0; i < 3; i++) {
            if (view.experiment.runs[i].arm == arm) {
                assert_near(view.experiment.runs[i].values[0].value, sum / 4, 1e-12);
            }
        }
    }
    assert_int_equal(view.analysis.arms[1].runs, 80);
    hide();
}

static void throttled_runs_and_idle_rules_are_warned_of(void **state)
{
    bool throttled = false, idle = false;

    (void)state;
    show(0);
    for (size_t i = 0; i < view.analysis.warning_count; i++) {
        const struct ab_warning *warning = &view.analysis.warnings[i];

        if (warning->kind == AB_WARNING_THROTTLED) {
            assert_false(throttled); /* said once, not for each arm */
            throttled = true;
            assert_string_equal(warning->text, "in 40 of 80 slices the GPU was not as it should "
                                               "be: throttled by a power limit in 40");
        }
        idle |= warning->kind == AB_WARNING_NOT_APPLIED;
    }
    assert_true(throttled);
    /* The arms of this experiment are without policies. */
    assert_false(idle);
    hide();
    three[1].kind = AB_ARM_POLICY;
    show(0);
    for (size_t i = 0; i < view.analysis.warning_count; i++) {
        idle |= view.analysis.warnings[i].kind == AB_WARNING_NOT_APPLIED &&
                view.analysis.warnings[i].arm == 1;
    }
    three[1].kind = AB_ARM_NONE;
    assert_true(idle);
    hide();
}

static void where_runs_are_flagged_and_matter_it_is_said(void **state)
{
    struct ab_live_run *runs = shown_runs;
    bool said = false;

    (void)state;
    show(0);
    /* Without the second run there are too few blocks. */
    runs[0].block_count = 9;
    ab_live_view_release(&view);
    ab_live_compare(comparisons, &experiment, runs, 2, &plan);
    assert_int_equal(comparisons[1].verdict, AB_LIVE_BETTER);
    ab_live_view_make(&view, comparisons, &experiment, runs, 2, &plan, 0);
    for (size_t i = 0; i < view.analysis.warning_count; i++) {
        if (view.analysis.warnings[i].kind == AB_WARNING_FLAGGED_MATTERS) {
            said = true;
            assert_string_equal(view.analysis.warnings[i].text,
                                "without the runs in which the GPU was not as it should be, 1 of "
                                "2 remain, and the verdict would be \"not enough\"");
        }
    }
    assert_true(said);
    hide();
}

static void a_run_goes_through_the_journal_as_it_was(void **state)
{
    struct ab_live_run read;
    json_t *document, *again;

    (void)state;
    show(0);
    document = ab_live_run_json(&shown_runs[0], 3);
    assert_true(ab_live_run_from_json(&read, document, 3));
    again = ab_live_run_json(&read, 3);
    assert_true(json_equal(document, again));
    json_decref(again);
    ab_live_run_release(&read);
    assert_false(ab_live_run_from_json(&read, document, 2));
    json_array_clear(json_object_get(document, "blocks"));
    assert_false(ab_live_run_from_json(&read, document, 3));
    json_decref(document);
    hide();
}

/* ---- What was claimed ---- */

static void the_claim_decides_the_status(void **state)
{
    struct ab_experiment claims = experiment;

    (void)state;
    claims.plan.margin = 0.01;
    compare(faster, 6, 61);
    claims.plan.claim = AB_CLAIM_NO_DIFFERENCE;
    assert_int_equal(ab_live_status(comparisons, &claims), 1);
    claims.plan.claim = AB_CLAIM_NONE;
    assert_int_equal(ab_live_status(comparisons, &claims), 0);
    compare(equal, 6, 61);
    claims.plan.claim = AB_CLAIM_NO_DIFFERENCE;
    assert_int_equal(ab_live_status(comparisons, &claims), 0);
    compare(wild, 6, 61);
    assert_int_equal(ab_live_status(comparisons, &claims), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_of_all_arms_are_in_one_policy),
        cmocka_unit_test(an_arm_that_only_observes_has_no_rule),
        cmocka_unit_test(what_needs_process_arms_is_refused_with_its_place),
        cmocka_unit_test(rules_are_told_by_their_arms),
        cmocka_unit_test(more_arms_than_alternate_are_refused),
        cmocka_unit_test(the_variable_is_read_as_it_was_meant),
        cmocka_unit_test(ranks_are_combined_slice_by_slice),
        cmocka_unit_test(only_slices_that_all_ranks_made_count),
        cmocka_unit_test(steps_one_after_the_other_have_blocks_of_their_own),
        cmocka_unit_test(a_helper_with_few_steps_does_not_stand_in_the_way),
        cmocka_unit_test(where_there_is_no_block_it_is_said_why),
        cmocka_unit_test(a_gain_is_found_whatever_mode_a_process_is_in),
        cmocka_unit_test(what_changed_nothing_is_not_better),
        cmocka_unit_test(steps_that_the_counters_had_no_room_for_are_counted),
        cmocka_unit_test(one_run_speaks_of_its_processes_only),
        cmocka_unit_test(no_difference_is_shown_within_the_margin),
        cmocka_unit_test(nothing_is_said_of_what_is_too_noisy_or_too_little),
        cmocka_unit_test(a_slice_stands_for_a_run),
        cmocka_unit_test(on_a_page_neighbouring_blocks_are_one),
        cmocka_unit_test(throttled_runs_and_idle_rules_are_warned_of),
        cmocka_unit_test(where_runs_are_flagged_and_matter_it_is_said),
        cmocka_unit_test(a_run_goes_through_the_journal_as_it_was),
        cmocka_unit_test(the_claim_decides_the_status),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
