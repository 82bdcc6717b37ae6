/* SPDX-License-Identifier: Apache-2.0 */
/* The shortest way of a changed launch: which functions take it, what it adds, and when it ends. */
#include "test_decide_support.h"

#include "decide/decide.h"

static const char remote[] = "[kernel a]\nname = axpy\nmem_sync_domain = remote\n";

static struct trial trial;
static struct fake_function function;

static void start(const char *rules)
{
    fake_driver_reset();
    start_policy(rules);
    function = fake_function_of("axpy");
    trial_of(&trial, &function);
}

/* A launch, and one more: at the second the outcome is known beforehand, and the function is
 * entered. */
static void launch_twice(void)
{
    for (int i = 0; i < 2; i++)
        decide_launch(&trial.launch, &trial.verdict);
}

static const struct decide_prepared *prepared(void)
{
    return decide_prepared_for(trial.launch.function);
}

static void nothing_is_prepared_before_the_outcome_is_known(void **state)
{
    (void)state;
    start(remote);
    assert_null(prepared());
}

static void prepared_launches_get_what_the_long_way_adds(void **state)
{
    (void)state;
    start(remote);
    launch_twice();
    assert_true(trial.verdict.change);
    assert_non_null(prepared());
    assert_int_equal(prepared()->count, trial.verdict.config.numAttrs);
    assert_memory_equal(prepared()->attributes, trial.verdict.config.attrs,
                        prepared()->count * sizeof *prepared()->attributes);
    assert_int_equal(prepared()->count_offset,
                     offsetof(struct report_shard, launches) +
                         trial.verdict.cell * sizeof(uint64_t) * REPORT_LAUNCH_KIND_COUNT);
}

static unsigned merge(struct cuda_launch_attribute *list)
{
    return decide_prepared_merge(prepared(), &trial.config, list);
}

static void own_attributes_come_first_and_ours_behind_them(void **state)
{
    struct cuda_launch_attribute list[DECIDE_PREPARED_LIMIT];

    (void)state;
    start(remote);
    launch_twice();
    add_own(&trial, CU_LAUNCH_ATTRIBUTE_PRIORITY, 3);
    add_own(&trial, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, 0x0100);
    add_own(&trial, 1000, 1); /* not known: the driver says so */
    assert_int_equal(merge(list), 4);
    assert_memory_equal(list, trial.own, 3 * sizeof *list);
    assert_memory_equal(&list[3], prepared()->attributes, sizeof *list);
}

static void attributes_that_a_rule_is_about_and_outputs_go_the_long_way(void **state)
{
    static const uint32_t ids[] = {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
                                   CUDA_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE};
    struct cuda_launch_attribute list[DECIDE_PREPARED_LIMIT];

    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        start(remote);
        launch_twice();
        add_own(&trial, CU_LAUNCH_ATTRIBUTE_PRIORITY, 0);
        add_own(&trial, ids[i], 0);
        assert_int_equal(merge(list), 0);
    }
}

static void more_attributes_than_have_room_go_the_long_way(void **state)
{
    struct cuda_launch_attribute list[DECIDE_PREPARED_LIMIT];

    (void)state;
    start(remote);
    launch_twice();
    for (int i = 0; i < DECIDE_PREPARED_LIMIT - 1; i++)
        add_own(&trial, CU_LAUNCH_ATTRIBUTE_PRIORITY, 0);
    assert_int_equal(merge(list), DECIDE_PREPARED_LIMIT);
    add_own(&trial, CU_LAUNCH_ATTRIBUTE_PRIORITY, 0);
    assert_int_equal(merge(list), 0);
    trial.config.numAttrs = UINT32_MAX;
    assert_int_equal(merge(list), 0);
    trial.config.numAttrs = 1;
    trial.config.attrs = NULL;
    assert_int_equal(merge(list), 0);
}

static void rules_that_ask_about_the_launch_are_not_prepared(void **state)
{
    static const char *const selectors[] = {
        "grid_blocks = 1..1000\n", "block_threads = 1..1024\n",
        "shared_memory = 0..\n",   "captured = no\n",
        "library = *\n",           "launch_stream = 0\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        char rules[200];

        snprintf(rules, sizeof rules, "%s%s", remote, selectors[i]);
        start(rules);
        launch_twice();
        launch_twice();
        assert_null(prepared());
    }
}

static void clusters_and_launches_left_alone_are_not_prepared(void **state)
{
    (void)state;
    start("[kernel a]\nname = axpy\ncluster_dim = 2\n");
    launch_twice();
    assert_null(prepared());
    start("[kernel a]\nname = axpy\nmem_sync_domain = leave\n");
    launch_twice();
    assert_null(prepared());
}

static void nothing_is_prepared_while_a_default_stream_has_settings(void **state)
{
    (void)state;
    start("[kernel a]\nname = axpy\nmem_sync_domain = remote\n"
          "[stream s]\nkind = legacy\npriority = -1\n");
    launch_twice();
    launch_twice();
    assert_null(prepared());
}

static void it_ends_with_the_function(void **state)
{
    (void)state;
    start(remote);
    launch_twice();
    assert_non_null(prepared());
    decide_container_gone(&fake.version);
    assert_null(prepared());

    start(remote);
    launch_twice();
    decide_context_gone(NULL);
    assert_null(prepared());
}

static void it_ends_while_a_stream_captures(void **state)
{
    (void)state;
    start(remote);
    launch_twice();
    report_gate_raise();
    assert_null(prepared());
    report_gate_lower();
    assert_non_null(prepared());
}

static void it_ends_when_the_driver_refuses(void **state)
{
    (void)state;
    start(remote);
    launch_twice();
    assert_non_null(prepared());
    decide_launch(&trial.launch, &trial.verdict);
    assert_true(decide_launch_refused(&trial.launch, &trial.verdict, CUDA_ERROR_INVALID_VALUE));
    assert_null(prepared());
}

/* The program's own mistake, and one launch of another thread before that is known. */
static void launch_in_vain(bool another)
{
    static struct trial meanwhile;

    decide_launch(&trial.launch, &trial.verdict);
    assert_true(decide_launch_refused(&trial.launch, &trial.verdict, CUDA_ERROR_INVALID_VALUE));
    trial_of(&meanwhile, &function);
    if (another) {
        decide_launch(&meanwhile.launch, &meanwhile.verdict);
        assert_false(meanwhile.verdict.change);
    }
    decide_launch_repeated(&trial.launch, &trial.verdict, CUDA_ERROR_INVALID_VALUE);
}

static void it_goes_on_after_a_launch_that_fails_by_itself(void **state)
{
    (void)state;
    for (int another = 0; another < 2; another++) {
        start(remote);
        launch_twice();
        launch_in_vain(another);
        launch_twice();
        assert_true(trial.verdict.change);
        assert_non_null(prepared());
    }
}

static void observing_prepares_nothing(void **state)
{
    (void)state;
    start(remote);
    launch_twice();
    report_control->part.mode = POLICY_MODE_OBSERVE;
    assert_null(prepared());
    report_control->part.mode = POLICY_MODE_ENFORCE;
    assert_non_null(prepared());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_prepared_before_the_outcome_is_known),
        cmocka_unit_test(prepared_launches_get_what_the_long_way_adds),
        cmocka_unit_test(own_attributes_come_first_and_ours_behind_them),
        cmocka_unit_test(attributes_that_a_rule_is_about_and_outputs_go_the_long_way),
        cmocka_unit_test(more_attributes_than_have_room_go_the_long_way),
        cmocka_unit_test(rules_that_ask_about_the_launch_are_not_prepared),
        cmocka_unit_test(clusters_and_launches_left_alone_are_not_prepared),
        cmocka_unit_test(nothing_is_prepared_while_a_default_stream_has_settings),
        cmocka_unit_test(it_ends_with_the_function),
        cmocka_unit_test(it_ends_while_a_stream_captures),
        cmocka_unit_test(it_ends_when_the_driver_refuses),
        cmocka_unit_test(it_goes_on_after_a_launch_that_fails_by_itself),
        cmocka_unit_test(observing_prepares_nothing),
    };

    return cmocka_run_group_tests(tests, start_group, NULL);
}
