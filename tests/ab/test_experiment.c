/* SPDX-License-Identifier: Apache-2.0 */

/* Experiments in memory and as JSON. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment.h"
#include "memory.h"

enum { ERROR_SIZE = 256 };

static void fill_arms(struct ab_experiment *experiment)
{
    static const struct ab_arm arms[] = {
        {.kind = AB_ARM_NONE, .role = AB_ROLE_BASELINE},
        {.kind = AB_ARM_POLICY, .role = AB_ROLE_CANDIDATE},
        {.kind = AB_ARM_NONE, .role = AB_ROLE_REPEAT},
        {.kind = AB_ARM_OBSERVE, .role = AB_ROLE_COST},
    };
    static const char *const names[] = {"none", "fast", "none-again", "observe"};

    experiment->arm_count = 4;
    experiment->arms = memory_allocate(4, sizeof *experiment->arms);
    for (size_t i = 0; i < 4; i++) {
        experiment->arms[i] = arms[i];
        experiment->arms[i].name = memory_copy(names[i]);
    }
    experiment->arms[1].policy = memory_copy("/p/fast.ini");
    experiment->arms[1].policy_sha256 = memory_copy("00ff");
}

static void fill_metrics(struct ab_experiment *experiment)
{
    experiment->metric_count = 2;
    experiment->metrics = memory_allocate(2, sizeof *experiment->metrics);
    experiment->metrics[0] = (struct ab_metric){.name = memory_copy("rate"),
                                                .unit = memory_copy("img/s"),
                                                .direction = AB_MORE_IS_BETTER,
                                                .source = AB_METRIC_PATTERN,
                                                .definition = memory_copy("rate (\\d+)"),
                                                .primary = true,
                                                .across = AB_ACROSS_SUM,
                                                .skip = 5};
    experiment->metrics[1] = (struct ab_metric){.name = memory_copy("wall"),
                                                .unit = memory_copy("s"),
                                                .source = AB_METRIC_WALL,
                                                .definition = memory_copy(""),
                                                .skip = -1};
}

static void fill(struct ab_experiment *experiment)
{
    *experiment = (struct ab_experiment){
        .started = memory_copy("2026-01-02T03:04:05Z"),
        .host = memory_copy("node1"),
        .plan = {.seed = UINT64_MAX - 1,
                 .warm_up_blocks = 2,
                 .look_count = 3,
                 .looks = {10, 20, 40},
                 .claim = AB_CLAIM_NO_DIFFERENCE,
                 .alpha = 0.05,
                 .margin = 0.1 / 3},
        .interrupted = true,
    };
    experiment->command = memory_allocate(3, sizeof(char *));
    experiment->command[0] = memory_copy("./app");
    experiment->command[1] = memory_copy("{arm} \"\n");
    fill_arms(experiment);
    fill_metrics(experiment);
}

/* A run in which every member has a value of its own. */
static void fill_run(struct ab_experiment *experiment)
{
    struct ab_run *run = ab_experiment_add_run(experiment);

    run->block = 7;
    run->position = 3;
    run->arm = 1;
    run->warm_up = true;
    run->outcome = AB_SIGNALLED;
    run->status = 9;
    run->start_time = INT64_C(1796011880495962358);
    run->seconds = 1.0 / 3;
    run->message = memory_copy("ended by signal 9 (Killed)");
    run->gpu = (struct ab_run_gpu){true, AB_GPU_THROTTLED_POWER | AB_GPU_OTHER_PROCESSES, 1980.5,
                                   66.6, NAN};
    run->policy = (struct ab_run_policy){true, 1, 2, 3, 4, 5, 6, 7, 8};
    run->values[0] = (struct ab_run_value){0.1 + 0.2, 95, 5, -0.25};
}

static json_t *through_text(json_t *document)
{
    char *text = json_dumps(document, JSON_COMPACT);
    json_t *read = json_loads(text, 0, NULL);

    assert_non_null(read);
    free(text);
    json_decref(document);
    return read;
}

static void an_experiment_comes_back_as_it_was(void **state)
{
    struct ab_experiment experiment, read;
    json_t *document, *again;
    char error[ERROR_SIZE];

    (void)state;
    fill(&experiment);
    document = through_text(ab_experiment_json(&experiment));
    assert_true(ab_experiment_from_json(&read, document, error, sizeof error));
    again = through_text(ab_experiment_json(&read));
    assert_true(json_equal(document, again));
    assert_true(read.plan.seed == UINT64_MAX - 1);
    assert_true(read.plan.margin == 0.1 / 3);
    assert_int_equal(read.plan.looks[2], 40);
    assert_int_equal(read.plan.claim, AB_CLAIM_NO_DIFFERENCE);
    assert_string_equal(read.command[1], "{arm} \"\n");
    assert_null(read.command[2]);
    assert_int_equal(read.arms[3].role, AB_ROLE_COST);
    assert_null(read.arms[0].policy);
    assert_string_equal(read.arms[1].policy_sha256, "00ff");
    assert_int_equal(read.metrics[0].across, AB_ACROSS_SUM);
    assert_int_equal(read.metrics[1].skip, -1);
    assert_true(read.interrupted);
    json_decref(document);
    json_decref(again);
    ab_experiment_release(&experiment);
    ab_experiment_release(&read);
}

static void a_run_comes_back_as_it_was(void **state)
{
    struct ab_experiment experiment;
    const struct ab_run *run;
    json_t *document;
    char error[ERROR_SIZE];

    (void)state;
    fill(&experiment);
    fill_run(&experiment);
    document = through_text(ab_run_json(&experiment, &experiment.runs[0]));
    assert_true(ab_run_from_json(&experiment, document, error, sizeof error));
    assert_int_equal(experiment.run_count, 2);
    run = &experiment.runs[1];
    assert_int_equal(run->block, 7);
    assert_int_equal(run->position, 3);
    assert_int_equal(run->arm, 1);
    assert_true(run->warm_up);
    assert_int_equal(run->outcome, AB_SIGNALLED);
    assert_int_equal(run->status, 9);
    assert_true(run->start_time == INT64_C(1796011880495962358));
    assert_true(run->seconds == 1.0 / 3);
    assert_string_equal(run->message, "ended by signal 9 (Killed)");
    assert_int_equal(run->gpu.flags, AB_GPU_THROTTLED_POWER | AB_GPU_OTHER_PROCESSES);
    assert_true(run->gpu.known && run->gpu.sm_clock_mhz == 1980.5 && isnan(run->gpu.power_watts));
    assert_memory_equal(&run->policy, &experiment.runs[0].policy, sizeof run->policy);
    assert_true(run->values[0].value == 0.1 + 0.2);
    assert_true(run->values[0].count == 95 && run->values[0].warm_up == 5);
    assert_true(run->values[0].autocorrelation == -0.25);
    assert_true(isnan(run->values[1].value) && isnan(run->values[1].autocorrelation));
    json_decref(document);
    ab_experiment_release(&experiment);
}

static void a_new_run_has_no_values(void **state)
{
    struct ab_experiment experiment;
    json_t *document;

    (void)state;
    fill(&experiment);
    ab_experiment_add_run(&experiment);
    assert_true(isnan(experiment.runs[0].values[0].value));
    assert_true(isnan(experiment.runs[0].seconds));
    document = ab_run_json(&experiment, &experiment.runs[0]);
    assert_true(json_is_null(json_object_get(document, "seconds")));
    assert_true(json_is_null(json_object_get(document, "policy")));
    assert_true(json_is_null(json_object_get(document, "gpu")));
    json_decref(document);
    ab_experiment_drop_run(&experiment);
    assert_int_equal(experiment.run_count, 0);
    ab_experiment_release(&experiment);
}

static void text_that_is_not_utf8_is_still_a_document(void **state)
{
    struct ab_experiment experiment;
    json_t *document;

    (void)state;
    fill(&experiment);
    fill_run(&experiment);
    free(experiment.command[0]);
    experiment.command[0] = memory_copy("\xff/app");
    experiment.runs[0].message[0] = '\xfe';
    document = ab_experiment_json(&experiment);
    assert_string_equal(json_string_value(json_array_get(json_object_get(document, "command"), 0)),
                        "\\xff/app");
    json_decref(document);
    document = ab_run_json(&experiment, &experiment.runs[0]);
    assert_non_null(document);
    json_decref(document);
    ab_experiment_release(&experiment);
}

/* Every member, taken away or of another type, is told by its name. */
static void assert_each_member_is_needed(struct ab_experiment *experiment, json_t *whole, bool run)
{
    const char *key;
    json_t *value;

    json_object_foreach(whole, key, value)
    {
        json_t *broken = json_copy(whole);
        struct ab_experiment read = {0};
        char error[ERROR_SIZE] = "";
        bool good;

        if (strcmp(key, "version") == 0) {
            json_decref(broken);
            continue;
        }
        json_object_set_new(broken, key, json_pack("[[]]"));
        good = run ? ab_run_from_json(experiment, broken, error, sizeof error)
                   : ab_experiment_from_json(&read, broken, error, sizeof error);
        assert_false(good);
        assert_true(error[0] != '\0');
        assert_int_equal(experiment->run_count, 1);
        assert_null(read.arms);
        json_decref(broken);
    }
}

static void documents_with_mistakes_are_refused(void **state)
{
    struct ab_experiment experiment, read;
    json_t *document;
    char error[ERROR_SIZE];

    (void)state;
    fill(&experiment);
    fill_run(&experiment);
    document = ab_experiment_json(&experiment);
    assert_each_member_is_needed(&experiment, document, false);
    json_object_set_new(document, "schema", json_integer(2));
    assert_false(ab_experiment_from_json(&read, document, error, sizeof error));
    assert_string_equal(error, "another version of cudapolicy wrote it");
    json_decref(document);
    document = ab_run_json(&experiment, &experiment.runs[0]);
    assert_each_member_is_needed(&experiment, document, true);
    json_object_set_new(document, "arm", json_string("slow"));
    assert_false(ab_run_from_json(&experiment, document, error, sizeof error));
    assert_string_equal(error, "\"arm\" is no arm of the experiment");
    json_decref(document);
    ab_experiment_release(&experiment);
}

static void looks_have_to_ascend_and_the_first_arm_is_the_baseline(void **state)
{
    struct ab_experiment experiment, read;
    json_t *document;
    char error[ERROR_SIZE];

    (void)state;
    fill(&experiment);
    experiment.plan.looks[1] = 10;
    document = ab_experiment_json(&experiment);
    assert_false(ab_experiment_from_json(&read, document, error, sizeof error));
    assert_string_equal(error, "\"looks\" does not ascend");
    json_decref(document);
    experiment.plan.looks[1] = 20;
    experiment.arms[1].role = AB_ROLE_BASELINE;
    document = ab_experiment_json(&experiment);
    assert_false(ab_experiment_from_json(&read, document, error, sizeof error));
    json_decref(document);
    experiment.arms[1].role = AB_ROLE_CANDIDATE;
    experiment.metrics[1].primary = true;
    document = ab_experiment_json(&experiment);
    assert_false(ab_experiment_from_json(&read, document, error, sizeof error));
    json_decref(document);
    ab_experiment_release(&experiment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_experiment_comes_back_as_it_was),
        cmocka_unit_test(a_run_comes_back_as_it_was),
        cmocka_unit_test(a_new_run_has_no_values),
        cmocka_unit_test(text_that_is_not_utf8_is_still_a_document),
        cmocka_unit_test(documents_with_mistakes_are_refused),
        cmocka_unit_test(looks_have_to_ascend_and_the_first_arm_is_the_baseline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
