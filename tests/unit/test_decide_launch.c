/* SPDX-License-Identifier: Apache-2.0 */
/* One launch and the settings of one rule: what it gets, what stays, what is counted. */
#include "test_decide_support.h"

static void a_launch_gets_domain_and_map_of_its_rule(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("ncclDevKernel_AllReduce");
    struct trial trial;
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
    struct trial trial;
    start_policy("[kernel nccl]\nname = ncclDevKernel_*\nmem_sync_domain = remote\n");
    const struct decide_verdict *verdict = decide_trial(trial_of(&trial, &function));
    assert_false(verdict->change);
    assert_result(verdict, MEM_SYNC_DOMAIN, NONE, NONE);
    assert_string_equal(kernel_of(verdict), "copy");
}

static void a_cluster_is_injected_when_every_check_passes(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("gemm");
    struct trial trial;
    start_policy("[kernel gemm]\nname = gemm\ncluster_dim = 2,1,1\n");
    const struct decide_verdict *verdict = run_trial(trial_of(&trial, &function));
    assert_int_equal(given(verdict, 4)->value.cluster_dim.x, 2);
    assert_int_equal(given(verdict, 4)->value.cluster_dim.y, 1);
    assert_int_equal(given(verdict, 4)->value.cluster_dim.z, 1);
    assert_result(verdict, CLUSTER_DIM, APPLIED, NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_launch_gets_domain_and_map_of_its_rule),
        TEST(a_launch_without_a_rule_is_left_alone),
        TEST(a_cluster_is_injected_when_every_check_passes),
    };
    return cmocka_run_group_tests_name("decide_launch", tests, start_group, NULL);
}
