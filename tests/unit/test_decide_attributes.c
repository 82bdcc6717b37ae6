/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a changed launch: order, what is replaced, kept or taken away, what is written.
 */
#include "test_decide_support.h"

static struct trial trial;

static uint32_t id_at(unsigned index)
{
    return ((const struct cuda_launch_attribute *)(const void *)trial.verdict.config.attrs)[index]
        .id;
}

/* Decides twice: the first time in full, then the short way; both must say the same. */
static const struct decide_verdict *decide_both_ways(void)
{
    struct decide_verdict first;
    decide_trial(&trial);
    memcpy(&first, &trial.verdict, sizeof first);
    decide_trial(&trial);
    assert_int_equal(first.change, trial.verdict.change);
    assert_int_equal(first.cell, trial.verdict.cell);
    if (first.change) {
        assert_int_equal(first.config.numAttrs, trial.verdict.config.numAttrs);
        assert_memory_equal(first.config.attrs ==
                                    (CUlaunchAttribute *)(void *)trial.verdict.attributes
                                ? (void *)first.attributes
                                : (void *)first.config.attrs,
                            trial.verdict.config.attrs, first.config.numAttrs * 72);
    }
    return &trial.verdict;
}

static void ours_follow_the_programs_in_their_order(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\npriority = 1\n");
    trial_of(&trial, &function);
    add_own(&trial, 6, 1);
    add_own(&trial, 1, 7);
    add_own(&trial, 40, 9); /* an id that no header knows yet */
    const struct decide_verdict *verdict = decide_both_ways();
    assert_int_equal(verdict->config.numAttrs, 5);
    uint32_t ids[] = {6, 1, 40, 10, 8};
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(id_at(i), ids[i]);
    assert_int_equal(given(verdict, 1)->value.number, 7);
    assert_int_equal(given(verdict, 40)->value.number, 9);
}

static void the_rest_of_the_launch_stays(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\n");
    trial_of(&trial, &function);
    trial.config.gridDimY = 3;
    trial.config.gridDimZ = 5;
    trial.config.blockDimY = 2;
    trial.config.blockDimZ = 4;
    trial.config.sharedMemBytes = 777;
    trial.config.hStream = (CUstream)0x1230;
    CUlaunchConfig expected = trial.config;
    const struct decide_verdict *verdict = decide_both_ways();
    expected.attrs = verdict->config.attrs;
    expected.numAttrs = 1;
    assert_memory_equal(&verdict->config, &expected, sizeof expected);
}

static void unused_bytes_of_our_attributes_are_zero(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    struct cuda_launch_attribute domain, map;
    memset(&domain, 0, sizeof domain);
    memset(&map, 0, sizeof map);
    domain.id = 10;
    domain.value.number = 1;
    map.id = 9;
    map.value.bytes[1] = 3;
    start_policy("[kernel a]\nmem_sync_domain = remote\nmem_sync_domain_map = 0 3\n");
    trial_of(&trial, &function);
    for (int own = 0; own < 2; own++) {
        const struct decide_verdict *verdict = decide_both_ways();
        assert_memory_equal(given(verdict, 10), &domain, sizeof domain);
        assert_memory_equal(given(verdict, 9), &map, sizeof map);
        add_own(&trial, 10, 0)->value.bytes[60] = 0xee; /* replaced as a whole */
    }
}

static void the_callers_array_is_never_written(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\npriority = unset\n");
    trial_of(&trial, &function);
    add_own(&trial, 10, 0);
    add_own(&trial, 8, 3);
    struct cuda_launch_attribute before[2];
    memcpy(before, trial.own, sizeof before);
    decide_both_ways();
    decide_launch_accepted(&trial.launch, &trial.verdict);
    assert_memory_equal(trial.own, before, sizeof before);
}

static void another_value_is_replaced_in_its_place(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = default\n");
    trial_of(&trial, &function);
    add_own(&trial, 4, 2);
    add_own(&trial, 10, 1);
    add_own(&trial, 5, 1);
    const struct decide_verdict *verdict = decide_both_ways();
    assert_int_equal(verdict->config.numAttrs, 3);
    assert_int_equal(id_at(1), 10);
    assert_int_equal(given(verdict, 10)->value.number, 0);
    assert_result(verdict, MEM_SYNC_DOMAIN, APPLIED, NONE);
}

static void the_same_value_is_already_so_and_nothing_changes(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\nmem_sync_domain_map = 1 2\n");
    trial_of(&trial, &function);
    add_own(&trial, 10, 1);
    struct cuda_launch_attribute *map = add_own(&trial, 9, 0);
    map->value.bytes[0] = 1;
    map->value.bytes[1] = 2;
    map->value.bytes[2] = 0x77; /* not part of the value */
    const struct decide_verdict *verdict = decide_both_ways();
    assert_false(verdict->change);
    assert_result(verdict, MEM_SYNC_DOMAIN, ALREADY_SO, NONE);
    assert_result(verdict, MEM_SYNC_DOMAIN_MAP, ALREADY_SO, NONE);
}

static void keep_leaves_the_programs_value(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\npriority = 2\nwhen_set = keep\n");
    trial_of(&trial, &function);
    add_own(&trial, 10, 0);
    const struct decide_verdict *verdict = decide_both_ways();
    assert_int_equal(given(verdict, 10)->value.number, 0);
    assert_int_equal(given(verdict, 8)->value.priority, 2);
    assert_result(verdict, MEM_SYNC_DOMAIN, KEPT, OWN_VALUE);
    assert_result(verdict, PRIORITY, APPLIED, NONE);
}

static void of_an_attribute_given_twice_the_last_one_counts(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\n");
    trial_of(&trial, &function);
    add_own(&trial, 10, 1);
    add_own(&trial, 10, 0);
    const struct decide_verdict *verdict = decide_both_ways();
    assert_int_equal(verdict->config.numAttrs, 2);
    assert_int_equal(given(verdict, 10)->value.number, 1); /* given: the last one */
    assert_result(verdict, MEM_SYNC_DOMAIN, APPLIED, NONE);
    trial.own[0].value.number = 0;
    trial.own[1].value.number = 1;
    verdict = decide_both_ways();
    assert_false(verdict->change);
    assert_result(verdict, MEM_SYNC_DOMAIN, ALREADY_SO, NONE);
}

static void unset_takes_every_one_away(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = unset\n");
    trial_of(&trial, &function);
    const struct decide_verdict *verdict = decide_both_ways();
    assert_false(verdict->change);
    assert_result(verdict, MEM_SYNC_DOMAIN, ALREADY_SO, NONE);
    add_own(&trial, 10, 1);
    verdict = decide_both_ways();
    assert_true(verdict->change);
    assert_int_equal(verdict->config.numAttrs, 0);
    assert_result(verdict, MEM_SYNC_DOMAIN, APPLIED, NONE);
    add_own(&trial, 1, 5);
    add_own(&trial, 10, 0);
    add_own(&trial, 6, 1);
    verdict = decide_both_ways();
    assert_int_equal(verdict->config.numAttrs, 2);
    assert_int_equal(id_at(0), 1);
    assert_int_equal(id_at(1), 6);
}

static void programmatic_serialization_is_taken_away_only_where_it_is_on(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nprogrammatic_serialization = unset\n");
    trial_of(&trial, &function);
    add_own(&trial, 6, 0);
    const struct decide_verdict *verdict = decide_both_ways();
    assert_false(verdict->change);
    assert_result(verdict, PROGRAMMATIC_SERIALIZATION, ALREADY_SO, NONE);
    trial.own[0].value.number = 1;
    verdict = decide_both_ways();
    assert_true(verdict->change);
    assert_int_equal(verdict->config.numAttrs, 0);
    assert_result(verdict, PROGRAMMATIC_SERIALIZATION, APPLIED, NONE);
}

static void a_cooperative_launch_that_is_changed_says_so_in_its_attributes(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nname = k\nmem_sync_domain = remote\n");
    trial_of(&trial, &function);
    trial.launch.cooperative = true;
    const struct decide_verdict *verdict = decide_both_ways();
    assert_int_equal(verdict->config.numAttrs, 2);
    assert_int_equal(given(verdict, 2)->value.number, 1);
    struct fake_function other = fake_function_of("other");
    trial_of(&trial, &other);
    trial.launch.cooperative = true;
    assert_false(decide_both_ways()->change);
}

static void the_attribute_that_asks_for_a_cooperative_launch_stays(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\n");
    trial_of(&trial, &function);
    add_own(&trial, 2, 1);
    const struct decide_verdict *verdict = decide_both_ways();
    assert_int_equal(verdict->config.numAttrs, 2);
    assert_int_equal(given(verdict, 2)->value.number, 1);
}

static void what_the_driver_writes_reaches_the_programs_array(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\npriority = unset\n");
    for (int removed = 0; removed < 2; removed++) {
        trial_of(&trial, &function);
        if (removed)
            add_own(&trial, 8, 1);
        struct cuda_launch_attribute *own = add_own(&trial, 13, 0);
        own->value.device_updatable.device_updatable = 1;
        const struct decide_verdict *verdict = decide_both_ways();
        assert_int_equal(verdict->output_index[0], 0);
        assert_int_equal(verdict->output_index[1], removed);
        assert_int_equal(given(verdict, 13)->value.device_updatable.device_updatable, 1);
        trial.verdict.attributes[0].value.device_updatable.device_node = &function;
        decide_launch_accepted(&trial.launch, &trial.verdict);
        assert_ptr_equal(own->value.device_updatable.device_node, &function);
    }
}

static void a_launch_that_would_get_too_many_attributes_is_left_alone(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\n");
    trial_of(&trial, &function);
    for (unsigned i = 0; i < DECIDE_ATTRIBUTE_LIMIT - 1; i++)
        add_own(&trial, 1, i);
    assert_int_equal(decide_both_ways()->config.numAttrs, DECIDE_ATTRIBUTE_LIMIT);
    add_own(&trial, 1, 0);
    const struct decide_verdict *verdict = decide_both_ways();
    assert_false(verdict->change);
    assert_result(verdict, MEM_SYNC_DOMAIN, REFUSED, TOO_MANY_ATTRIBUTES);
    trial.own[4].id = 10; /* nothing is to be appended then */
    trial.own[4].value.number = 0;
    verdict = decide_both_ways();
    assert_int_equal(verdict->config.numAttrs, DECIDE_ATTRIBUTE_LIMIT);
    assert_int_equal(given(verdict, 10)->value.number, 1);
    for (unsigned i = 0; i < 7; i++)
        add_own(&trial, 1, 0);
    verdict = decide_both_ways();
    assert_false(verdict->change);
    assert_result(verdict, MEM_SYNC_DOMAIN, REFUSED, TOO_MANY_ATTRIBUTES);
    trial.config.numAttrs = UINT32_MAX; /* nor is it read */
    verdict = decide_both_ways();
    assert_false(verdict->change);
    assert_result(verdict, MEM_SYNC_DOMAIN, REFUSED, TOO_MANY_ATTRIBUTES);
}

static void an_array_that_is_missing_is_left_for_the_driver_to_refuse(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\n");
    trial_of(&trial, &function);
    decide_trial(&trial);
    trial.config.attrs = NULL;
    trial.config.numAttrs = 2;
    assert_false(decide_both_ways()->change);
    assert_result(&trial.verdict, MEM_SYNC_DOMAIN, NONE, NONE);
}

static void every_simple_setting_has_its_attribute(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nphysical_domain = 2\npriority = -1\ncluster_scheduling = spread\n"
                 "shared_memory_carveout = max_shared\nnvlink_util_centric = yes\n");
    const struct decide_verdict *verdict = (trial_of(&trial, &function), decide_both_ways());
    assert_int_equal(verdict->config.numAttrs, 5);
    assert_int_equal(given(verdict, 9)->value.bytes[0], 2);
    assert_int_equal(given(verdict, 9)->value.bytes[1], 2);
    assert_int_equal(given(verdict, 5)->value.number, 1);
    assert_int_equal(given(verdict, 8)->value.priority, -1);
    assert_int_equal(given(verdict, 14)->value.number, 100);
    assert_int_equal(given(verdict, 16)->value.number, 1);
}

/* NCCL's launch, and a rule that wants it elsewhere. */
static void a_launch_like_nccls_is_changed_in_place(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    start_policy("[kernel a]\nname = ncclDevKernel_*\nmem_sync_domain = default\n"
                 "mem_sync_domain_map = 2 3\n");
    trial_of(&trial, &function);
    add_own_cluster(&trial, 4, 4, 1, 1);
    add_own(&trial, 5, 1);
    add_own(&trial, 10, 1);
    const struct decide_verdict *verdict = decide_both_ways();
    assert_int_equal(verdict->config.numAttrs, 4);
    assert_int_equal(given(verdict, 4)->value.cluster_dim.x, 4);
    assert_int_equal(given(verdict, 5)->value.number, 1);
    assert_int_equal(given(verdict, 10)->value.number, 0);
    assert_int_equal(given(verdict, 9)->value.bytes[1], 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ours_follow_the_programs_in_their_order),
        TEST(the_rest_of_the_launch_stays),
        TEST(unused_bytes_of_our_attributes_are_zero),
        TEST(the_callers_array_is_never_written),
        TEST(another_value_is_replaced_in_its_place),
        TEST(the_same_value_is_already_so_and_nothing_changes),
        TEST(keep_leaves_the_programs_value),
        TEST(of_an_attribute_given_twice_the_last_one_counts),
        TEST(unset_takes_every_one_away),
        TEST(programmatic_serialization_is_taken_away_only_where_it_is_on),
        TEST(a_cooperative_launch_that_is_changed_says_so_in_its_attributes),
        TEST(the_attribute_that_asks_for_a_cooperative_launch_stays),
        TEST(what_the_driver_writes_reaches_the_programs_array),
        TEST(a_launch_that_would_get_too_many_attributes_is_left_alone),
        TEST(an_array_that_is_missing_is_left_for_the_driver_to_refuse),
        TEST(every_simple_setting_has_its_attribute),
        TEST(a_launch_like_nccls_is_changed_in_place),
    };
    return cmocka_run_group_tests_name("decide_attributes", tests, start_group, NULL);
}
