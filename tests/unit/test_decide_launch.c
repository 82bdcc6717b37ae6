/* SPDX-License-Identifier: Apache-2.0 */
/* One launch and the settings of one rule: modes, layers, devices, refusals, what is counted. */
#include "test_decide_support.h"

#include "decide/device.h"
#include "decide/function.h"

static struct trial trial;

static void a_launch_gets_domain_and_map_of_its_rule(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("ncclDevKernel_AllReduce");
    start_policy("[kernel nccl]\nname = ncclDevKernel_*\nmem_sync_domain = remote\n"
                 "mem_sync_domain_map = 0 2\n");
    const struct decide_verdict *verdict = decide_trial(trial_of(&trial, &function));
    assert_true(verdict->change);
    assert_int_equal(verdict->config.numAttrs, 2);
    assert_int_equal(given(verdict, 10)->value.number, 1);
    assert_int_equal(given(verdict, 9)->value.bytes[0], 0);
    assert_int_equal(given(verdict, 9)->value.bytes[1], 2);
    assert_int_equal(verdict->kind, REPORT_LAUNCH_EAGER);
    assert_result(verdict, MEM_SYNC_DOMAIN, APPLIED, NONE);
    assert_result(verdict, MEM_SYNC_DOMAIN_MAP, APPLIED, NONE);
    assert_result(verdict, CLUSTER_DIM, NONE, NONE);
    assert_string_equal(kernel_of(verdict), "ncclDevKernel_AllReduce");
}

static void a_launch_without_a_rule_is_left_alone(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("copy");
    start_policy("[kernel nccl]\nname = ncclDevKernel_*\nmem_sync_domain = remote\n");
    const struct decide_verdict *verdict = decide_trial(trial_of(&trial, &function));
    assert_false(verdict->change);
    assert_result(verdict, MEM_SYNC_DOMAIN, NONE, NONE);
    assert_string_equal(kernel_of(verdict), "copy");
}

static void without_a_policy_nothing_changes(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("copy");
    decide_start(NULL, &this_process, POLICY_MODE_ENFORCE);
    assert_false(decide_trial(trial_of(&trial, &function))->change);
}

/* ---- Modes ---- */

static void observing_says_what_would_be_and_changes_nothing(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\nmem_sync_domain_map = 9 9\n"
                 "cluster_dim = 2\npriority = 1\n");
    report_control->part.mode = POLICY_MODE_OBSERVE;
    trial_of(&trial, &function);
    add_own(&trial, 8, 1);
    for (int round = 0; round < 2; round++) {
        const struct decide_verdict *verdict = decide_trial(&trial);
        assert_false(verdict->change);
        assert_result(verdict, MEM_SYNC_DOMAIN, APPLIED, OBSERVE);
        assert_result(verdict, CLUSTER_DIM, APPLIED, OBSERVE);
        assert_result(verdict, MEM_SYNC_DOMAIN_MAP, REFUSED, NO_SUCH_DOMAIN);
        assert_result(verdict, PRIORITY, ALREADY_SO, NONE);
        assert_false(
            decide_launch_refused(&trial.launch, &trial.verdict, CUDA_ERROR_INVALID_VALUE));
    }
}

static void while_observing_a_capture_would_get_what_a_launch_would_have_got(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\ncluster_dim = 2\ngraph_nodes = yes\n");
    report_control->part.mode = POLICY_MODE_OBSERVE;
    trial_of(&trial, &function);
    trial.config.hStream = (CUstream)0x1000;
    decide_trial(&trial);
    decide_capture_began((CUstream)0x1000, false);
    fake.capturing = true;
    assert_result(decide_trial(&trial), CLUSTER_DIM, APPLIED, OBSERVE);
    report_control->part.mode = POLICY_MODE_ENFORCE; /* no driver has accepted it yet */
    assert_result(decide_trial(&trial), CLUSTER_DIM, REFUSED, CAPTURE_UNPROVEN);
    fake.capturing = false;
    decide_capture_ended((CUstream)0x1000, false);
}

static void switched_off_nothing_changes_and_on_again_it_does(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\n");
    trial_of(&trial, &function);
    assert_true(decide_trial(&trial)->change);
    report_control->part.mode = POLICY_MODE_OFF;
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, MEM_SYNC_DOMAIN, NONE, NONE);
    report_control->part.mode = POLICY_MODE_ENFORCE;
    assert_true(decide_trial(&trial)->change);
}

static void a_mode_changed_from_outside_holds_although_the_gate_says_so(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\n");
    trial_of(&trial, &function);
    assert_true(decide_trial(&trial)->change);
    report_control->part.generation++;
    assert_true(decide_trial(&trial)->change);
    report_control->part.mode = POLICY_MODE_OBSERVE;
    assert_false(decide_trial(&trial)->change);
    report_control->part.generation--;
}

/* ---- Devices ---- */

static void a_device_with_one_domain_is_left_alone(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    fake.devices[0].domains = 1;
    start_policy("[kernel a]\nmem_sync_domain = remote\nmem_sync_domain_map = 0 0\n");
    assert_false(decide_trial(trial_of(&trial, &function))->change);
    assert_result(&trial.verdict, MEM_SYNC_DOMAIN, REFUSED, ONE_DOMAIN);
    assert_result(&trial.verdict, MEM_SYNC_DOMAIN_MAP, REFUSED, ONE_DOMAIN);
}

static void a_domain_that_the_device_lacks_never_reaches_the_driver(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\nmem_sync_domain_map = 0 4\n");
    const struct decide_verdict *verdict = decide_trial(trial_of(&trial, &function));
    assert_null(given(verdict, 9));
    assert_non_null(given(verdict, 10));
    assert_result(verdict, MEM_SYNC_DOMAIN_MAP, REFUSED, NO_SUCH_DOMAIN);
}

static void a_device_that_does_not_say_how_many_domains_it_has_gets_none(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    fake.devices[0].domains = -1;
    start_policy("[kernel a]\nmem_sync_domain = remote\n");
    decide_trial(trial_of(&trial, &function));
    assert_result(&trial.verdict, MEM_SYNC_DOMAIN, REFUSED, QUERY_FAILED);
}

static void a_silent_driver_is_asked_a_few_times_only(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    fake.device_count = 0;
    start_policy("[kernel a]\nmem_sync_domain = remote\npriority = 1\n");
    trial_of(&trial, &function);
    for (int i = 0; i < 20; i++)
        decide_trial(&trial);
    assert_result(&trial.verdict, MEM_SYNC_DOMAIN, REFUSED, DEVICE_UNKNOWN);
    assert_result(&trial.verdict, PRIORITY, APPLIED, NONE);
    assert_true(fake.counts <= 3);
}

static void devices_alike_need_no_question_at_a_launch(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    fake.device_count = 4;
    start_policy("[kernel a]\nmem_sync_domain = remote\n");
    trial_of(&trial, &function);
    decide_trial(&trial);
    int asked = fake.current_devices;
    assert_true(decide_trial(&trial)->change);
    assert_int_equal(fake.current_devices, asked);
}

static void unlike_devices_are_told_apart_at_each_launch(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    fake.device_count = 2;
    fake.devices[1].domains = 1;
    start_policy("[kernel a]\nmem_sync_domain = remote\n");
    trial_of(&trial, &function);
    for (int round = 0; round < 2; round++) {
        fake.current_device = 0;
        assert_true(decide_trial(&trial)->change);
        fake.current_device = 1;
        assert_false(decide_trial(&trial)->change);
        assert_result(&trial.verdict, MEM_SYNC_DOMAIN, REFUSED, ONE_DOMAIN);
    }
}

/* ---- The runtime layer ---- */

static void where_only_the_runtime_is_seen_nothing_is_set_that_can_be_refused(void **state)
{
    (void)state;
    int symbol;
    start_policy("[kernel a]\nname = k\nmem_sync_domain = remote\nmem_sync_domain_map = 0 1\n"
                 "priority = 1\ncluster_dim = 2\ncluster_scheduling = spread\n"
                 "shared_memory_carveout = 10\nnvlink_util_centric = yes\n");
    decide_function_named(&symbol, "k", NULL);
    trial_of(&trial, (struct fake_function *)(void *)&symbol);
    trial.launch.layer = DECIDE_LAYER_RUNTIME;
    for (int round = 0; round < 2; round++) {
        const struct decide_verdict *verdict = decide_trial(&trial);
        assert_int_equal(verdict->config.numAttrs, 3);
        assert_result(verdict, MEM_SYNC_DOMAIN, APPLIED, NONE);
        assert_result(verdict, MEM_SYNC_DOMAIN_MAP, APPLIED, NONE);
        assert_result(verdict, PRIORITY, APPLIED, NONE);
        assert_result(verdict, CLUSTER_DIM, REFUSED, RUNTIME_LAYER);
        assert_result(verdict, CLUSTER_SCHEDULING, REFUSED, RUNTIME_LAYER);
        assert_result(verdict, SHARED_MEMORY_CARVEOUT, REFUSED, RUNTIME_LAYER);
        assert_result(verdict, NVLINK_UTIL_CENTRIC, REFUSED, RUNTIME_LAYER);
    }
    assert_int_equal(fake.names, 0);
}

/* ---- Refusals ---- */

static void only_errors_that_a_change_can_cause_bring_the_launch_back(void **state)
{
    (void)state;
    static const int caused[] = {1, 701, 720, 801, 912};
    static const int others[] = {2, 3, 4, 98, 201, 400, 500, 700, 702, 719, 900, 901, 906, 999};
    struct fake_function function = fake_function_of("k");
    for (unsigned i = 0; i < sizeof caused / sizeof *caused; i++) {
        start_policy("[kernel a]\nshared_memory_carveout = 10\n");
        decide_trial(trial_of(&trial, &function));
        assert_true(decide_launch_refused(&trial.launch, &trial.verdict, (CUresult)caused[i]));
        assert_result(&trial.verdict, SHARED_MEMORY_CARVEOUT, REFUSED, REFUSED_BY_DRIVER);
    }
    start_policy("[kernel a]\nshared_memory_carveout = 10\n");
    decide_trial(trial_of(&trial, &function));
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(decide_launch_refused(&trial.launch, &trial.verdict, (CUresult)others[i]));
}

static void the_error_is_counted_with_the_refusal(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    const struct report_cell_row *cells = report_image_region(REPORT_REGION_CELLS);
    start_policy("[kernel a]\nshared_memory_carveout = 10\n");
    decide_trial(trial_of(&trial, &function));
    uint32_t applied = trial.verdict.cell;
    decide_launch_refused(&trial.launch, &trial.verdict, CUDA_ERROR_NOT_SUPPORTED);
    assert_int_not_equal(trial.verdict.cell, applied);
    assert_int_equal(cells[trial.verdict.cell].detail, CUDA_ERROR_NOT_SUPPORTED);
    decide_trial(&trial);
    assert_int_equal(cells[trial.verdict.cell].detail, CUDA_ERROR_NOT_SUPPORTED);
}

static void a_refused_hint_is_not_tried_again_and_other_settings_are(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\nshared_memory_carveout = 10\n");
    trial_of(&trial, &function);
    decide_trial(&trial);
    assert_true(decide_launch_refused(&trial.launch, &trial.verdict, CUDA_ERROR_INVALID_VALUE));
    decide_launch_repeated(&trial.launch, &trial.verdict, CUDA_SUCCESS);
    for (int round = 0; round < 10; round++) {
        assert_true(decide_trial(&trial)->change);
        assert_null(given(&trial.verdict, 14));
        assert_non_null(given(&trial.verdict, 10));
        assert_result(&trial.verdict, SHARED_MEMORY_CARVEOUT, REFUSED, REFUSED_BY_DRIVER);
    }
    /* Decided once before the refusal and once after it. */
    assert_int_equal(decide_function_find(&function, NULL, false).variant->recipe_count, 2);
}

static void a_refusal_of_a_launch_with_attributes_of_its_own_is_remembered_too(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\nshared_memory_carveout = 10\n");
    trial_of(&trial, &function);
    add_own(&trial, 10, 0);
    add_own(&trial, 14, 3);
    decide_trial(&trial);
    decide_trial(&trial);
    assert_true(decide_launch_refused(&trial.launch, &trial.verdict, CUDA_ERROR_INVALID_VALUE));
    assert_result(&trial.verdict, MEM_SYNC_DOMAIN, REFUSED, REFUSED_BY_DRIVER);
    assert_true(decide_trial(&trial)->change);
    assert_int_equal(given(&trial.verdict, 14)->value.number, 3);
    assert_int_equal(given(&trial.verdict, 10)->value.number, 1);
}

static void a_launch_that_fails_as_it_came_blames_nothing(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nshared_memory_carveout = 10\n");
    decide_trial(trial_of(&trial, &function));
    decide_launch_refused(&trial.launch, &trial.verdict, CUDA_ERROR_INVALID_VALUE);
    decide_launch_repeated(&trial.launch, &trial.verdict, CUDA_ERROR_INVALID_VALUE);
    assert_true(decide_trial(&trial)->change);
}

/* ---- Default streams ---- */

#define LEGACY "[stream l]\nkind = legacy\nmem_sync_domain = remote\n"

static void the_setting_of_a_default_stream_travels_with_its_launches(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy(LEGACY);
    trial_of(&trial, &function);
    assert_int_equal(given(decide_trial(&trial), 10)->value.number, 1);
    assert_result(&trial.verdict, MEM_SYNC_DOMAIN, APPLIED, NONE);
    trial.config.hStream = CU_STREAM_LEGACY;
    assert_true(decide_trial(&trial)->change);
    trial.config.hStream = CU_STREAM_PER_THREAD;
    assert_false(decide_trial(&trial)->change);
    trial.config.hStream = NULL;
    trial.launch.per_thread_default = true;
    assert_false(decide_trial(&trial)->change);
    trial.config.hStream = (CUstream)0x1000;
    assert_false(decide_trial(&trial)->change);
}

static void the_programs_launch_attribute_beats_a_default_streams_rule(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy(LEGACY);
    trial_of(&trial, &function);
    add_own(&trial, 10, 0);
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, MEM_SYNC_DOMAIN, KEPT, OWN_VALUE);
    trial.own[0].value.number = 1;
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, MEM_SYNC_DOMAIN, ALREADY_SO, NONE);
}

static void a_kernel_rule_beats_a_default_streams_rule(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy(LEGACY
                 "mem_sync_domain_map = 0 3\n[kernel k]\nname = k\nmem_sync_domain = default\n");
    const struct decide_verdict *verdict = decide_trial(trial_of(&trial, &function));
    assert_int_equal(given(verdict, 10)->value.number, 0);
    assert_int_equal(given(verdict, 9)->value.bytes[1], 3);
    assert_int_equal(result_of(verdict, POLICY_SETTING_MEM_SYNC_DOMAIN).rule, 1);
    assert_int_equal(result_of(verdict, POLICY_SETTING_MEM_SYNC_DOMAIN_MAP).rule, 0);
}

static void what_a_kernel_rule_leaves_or_unsets_the_default_stream_may_give(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy(LEGACY "[kernel k]\nname = k\nmem_sync_domain = leave\n");
    assert_int_equal(given(decide_trial(trial_of(&trial, &function)), 10)->value.number, 1);
    start_policy(LEGACY "[kernel k]\nname = k\nmem_sync_domain = unset\n");
    trial_of(&trial, &function);
    add_own(&trial, 10, 0);
    const struct decide_verdict *verdict = decide_trial(&trial);
    assert_int_equal(verdict->config.numAttrs, 1);
    assert_int_equal(given(verdict, 10)->value.number, 1);
}

static void what_the_program_set_on_the_stream_is_kept_where_the_rule_says_keep(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel k]\nmem_sync_domain = remote\nwhen_set = keep\n");
    struct decide_stream_request request = {0};
    CUstream stream = (CUstream)0x1000;
    decide_stream_created(stream, &request);
    trial_of(&trial, &function)->config.hStream = stream;
    assert_true(decide_trial(&trial)->change);
    decide_stream_attribute_set(stream, false, 10);
    for (int round = 0; round < 2; round++) {
        assert_false(decide_trial(&trial)->change);
        assert_result(&trial.verdict, MEM_SYNC_DOMAIN, KEPT, OWN_VALUE);
    }
    trial.config.hStream = (CUstream)0x2000; /* another one */
    decide_stream_created(trial.config.hStream, &request);
    assert_true(decide_trial(&trial)->change);
    add_own(&trial, 10, 0);
    assert_false(decide_trial(&trial)->change);
    trial.config.hStream = stream;
    trial.config.numAttrs = 0;
    assert_false(decide_trial(&trial)->change);
}

/* ---- Counting ---- */

static void each_combination_of_outcomes_has_one_cell(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\n");
    trial_of(&trial, &function);
    uint32_t applied = decide_trial(&trial)->cell;
    add_own(&trial, 10, 1);
    uint32_t already = decide_trial(&trial)->cell;
    assert_int_not_equal(applied, already);
    assert_int_equal(decide_trial(&trial)->cell, already);
    trial.config.numAttrs = 0;
    assert_int_equal(decide_trial(&trial)->cell, applied);
}

static void kernels_of_one_name_share_their_cells(void **state)
{
    (void)state;
    struct fake_function one = fake_function_of("k"), two = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\n");
    uint32_t cell = decide_trial(trial_of(&trial, &one))->cell;
    assert_int_equal(decide_trial(trial_of(&trial, &two))->cell, cell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_launch_gets_domain_and_map_of_its_rule),
        TEST(a_launch_without_a_rule_is_left_alone),
        TEST(without_a_policy_nothing_changes),
        TEST(observing_says_what_would_be_and_changes_nothing),
        TEST(while_observing_a_capture_would_get_what_a_launch_would_have_got),
        TEST(switched_off_nothing_changes_and_on_again_it_does),
        TEST(a_mode_changed_from_outside_holds_although_the_gate_says_so),
        TEST(a_device_with_one_domain_is_left_alone),
        TEST(a_domain_that_the_device_lacks_never_reaches_the_driver),
        TEST(a_device_that_does_not_say_how_many_domains_it_has_gets_none),
        TEST(a_silent_driver_is_asked_a_few_times_only),
        TEST(devices_alike_need_no_question_at_a_launch),
        TEST(unlike_devices_are_told_apart_at_each_launch),
        TEST(where_only_the_runtime_is_seen_nothing_is_set_that_can_be_refused),
        TEST(only_errors_that_a_change_can_cause_bring_the_launch_back),
        TEST(the_error_is_counted_with_the_refusal),
        TEST(a_refused_hint_is_not_tried_again_and_other_settings_are),
        TEST(a_refusal_of_a_launch_with_attributes_of_its_own_is_remembered_too),
        TEST(a_launch_that_fails_as_it_came_blames_nothing),
        TEST(the_setting_of_a_default_stream_travels_with_its_launches),
        TEST(the_programs_launch_attribute_beats_a_default_streams_rule),
        TEST(a_kernel_rule_beats_a_default_streams_rule),
        TEST(what_a_kernel_rule_leaves_or_unsets_the_default_stream_may_give),
        TEST(what_the_program_set_on_the_stream_is_kept_where_the_rule_says_keep),
        TEST(each_combination_of_outcomes_has_one_cell),
        TEST(kernels_of_one_name_share_their_cells),
    };
    return cmocka_run_group_tests_name("decide_launch", tests, start_group, NULL);
}
