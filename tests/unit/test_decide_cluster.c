/* SPDX-License-Identifier: Apache-2.0 */
/* When a launch may get a cluster, and what is remembered of it. */
#include "test_decide_support.h"

#include "decide/cluster.h"
#include "decide/live.h"

static struct trial trial;
static struct fake_function function;

static void start(const char *policy)
{
    function = fake_function_of("gemm");
    start_policy(policy);
    trial_of(&trial, &function);
}

#define CLUSTER "[kernel gemm]\nname = gemm\ncluster_dim = 2\n"

static void it_is_refused_where_the_device_has_none(void **state)
{
    (void)state;
    fake.devices[0].clusters = 0;
    start(CLUSTER);
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, NO_CLUSTERS);
    assert_int_equal(fake.occupancies, 0);
}

static void it_is_refused_when_the_grid_is_not_divisible(void **state)
{
    (void)state;
    start("[kernel gemm]\ncluster_dim = 2,3,1\n");
    trial.config.gridDimY = 4;
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, GRID_NOT_DIVISIBLE);
    trial.config.gridDimY = 6;
    assert_true(run_trial(&trial)->change);
    trial.config.gridDimX = 63;
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, GRID_NOT_DIVISIBLE);
    trial.config.gridDimX = 64;
    trial.config.gridDimY = 4;
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, GRID_NOT_DIVISIBLE);
}

static void compile_time_clusters_are_kept(void **state)
{
    (void)state;
    start("[kernel gemm]\ncluster_dim = 4\nwhen_set = replace\nunsafe_cluster = yes\n");
    function.required[0] = 2;
    function.required[1] = function.required[2] = 1;
    function.must_be_set = 1;
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, KEPT, COMPILE_TIME_CLUSTER);
}

static void a_kernel_that_needs_some_cluster_is_left_to_the_program(void **state)
{
    (void)state;
    start(CLUSTER);
    function.must_be_set = 1; /* but no size given at compile time */
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, KEPT, COMPILE_TIME_CLUSTER);
}

static void more_than_eight_blocks_need_the_functions_permission(void **state)
{
    (void)state;
    start("[kernel gemm]\ncluster_dim = 16\n");
    function.largest_cluster = 16;
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, CLUSTER_TOO_LARGE);
    assert_int_equal(fake.occupancies, 0);
    function.non_portable = 1;
    decide_function_changed(&function);
    assert_true(run_trial(&trial)->change);
}

static void it_is_refused_when_the_driver_says_it_is_too_large(void **state)
{
    (void)state;
    start("[kernel gemm]\ncluster_dim = 8\n");
    function.largest_cluster = 4;
    decide_trial(&trial);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, CLUSTER_TOO_LARGE);
    function.largest_cluster = 8;
    function.active_clusters_result = (CUresult)CUDA_RESULT_INVALID_CLUSTER_SIZE;
    decide_function_changed(&function);
    decide_trial(&trial);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, CLUSTER_TOO_LARGE);
}

static void it_is_refused_when_not_even_one_fits(void **state)
{
    (void)state;
    start(CLUSTER);
    function.active_clusters = 0;
    decide_trial(&trial);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, NO_CLUSTER_FITS);
}

static void a_grid_that_ran_at_once_still_does(void **state)
{
    (void)state;
    start(CLUSTER);
    function.blocks_per_processor = 1; /* 132 blocks at once, */
    function.active_clusters = 62;     /* 124 in clusters of two */
    trial.config.gridDimX = 124;
    assert_true(run_trial(&trial)->change);
    trial.config.gridDimX = 126;
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, NOT_CO_RESIDENT);
    trial.config.gridDimX = 132;
    assert_false(decide_trial(&trial)->change);
    trial.config.gridDimX = 134; /* did not run at once before */
    assert_true(run_trial(&trial)->change);
}

static void a_cooperative_grid_must_fit_in_clusters(void **state)
{
    (void)state;
    start(CLUSTER);
    function.blocks_per_processor = 1;
    function.active_clusters = 62;
    trial.config.gridDimX = 126;
    trial.launch.cooperative = true;
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, COOPERATIVE_CAPACITY);
    trial.launch.cooperative = false;
    add_own(&trial, 2, 1);
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, COOPERATIVE_CAPACITY);
    trial.config.gridDimX = 124;
    assert_true(run_trial(&trial)->change);
}

static void the_driver_is_asked_about_the_launchs_own_shape(void **state)
{
    (void)state;
    start("[kernel gemm]\ncluster_dim = 2,1,4\n");
    trial.config.gridDimZ = 8;
    trial.config.blockDimY = 3;
    trial.config.sharedMemBytes = 4096;
    assert_true(decide_trial(&trial)->change);
    assert_int_equal(fake.occupancy_config.blockDimX, 128);
    assert_int_equal(fake.occupancy_config.blockDimY, 3);
    assert_int_equal(fake.occupancy_config.sharedMemBytes, 4096);
    assert_int_equal(fake.occupancy_config.numAttrs, 1);
    assert_int_equal(fake.occupancy_attribute.id, 4);
    assert_int_equal(fake.occupancy_attribute.value.cluster_dim.x, 2);
    assert_int_equal(fake.occupancy_attribute.value.cluster_dim.z, 4);
    assert_int_equal(fake.occupancy_config.gridDimX, 2);
    assert_int_equal(fake.occupancy_config.gridDimZ, 4);
}

static void a_shape_is_asked_about_once(void **state)
{
    (void)state;
    start(CLUSTER);
    run_trial(&trial);
    int occupancies = fake.occupancies, attributes = fake.attributes;
    for (unsigned grid = 2; grid < 200; grid++) {
        trial.config.gridDimX = grid;
        run_trial(&trial);
    }
    assert_int_equal(fake.occupancies, occupancies);
    assert_int_equal(fake.attributes, attributes);
    trial.config.sharedMemBytes = 1;
    run_trial(&trial);
    assert_true(fake.occupancies > occupancies);
}

static void a_refusal_is_remembered_with_the_shape(void **state)
{
    (void)state;
    start(CLUSTER);
    assert_true(decide_trial(&trial)->change);
    assert_true(decide_launch_refused(&trial.launch, &trial.verdict,
                                      (CUresult)CUDA_RESULT_INVALID_CLUSTER_SIZE));
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, REFUSED_BY_DRIVER);
    decide_launch_repeated(&trial.launch, &trial.verdict, CUDA_SUCCESS);
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, REFUSED_BY_DRIVER);
    trial.config.blockDimX = 64; /* another shape */
    assert_true(decide_trial(&trial)->change);
}

static void a_shape_accepted_and_refused_later_is_not_tried_again(void **state)
{
    (void)state;
    start(CLUSTER);
    run_trial(&trial);
    assert_true(decide_trial(&trial)->change);
    assert_true(decide_launch_refused(&trial.launch, &trial.verdict,
                                      (CUresult)CUDA_RESULT_LAUNCH_OUT_OF_RESOURCES));
    assert_false(decide_trial(&trial)->change);
}

static void a_launch_that_fails_anyway_does_not_blame_the_cluster(void **state)
{
    (void)state;
    start(CLUSTER);
    decide_trial(&trial);
    assert_true(decide_launch_refused(&trial.launch, &trial.verdict, CUDA_ERROR_INVALID_VALUE));
    decide_launch_repeated(&trial.launch, &trial.verdict, CUDA_ERROR_INVALID_VALUE);
    assert_true(decide_trial(&trial)->change);
}

static void a_refused_cluster_leaves_the_other_settings(void **state)
{
    (void)state;
    start("[kernel gemm]\ncluster_dim = 2\nmem_sync_domain = remote\n");
    decide_trial(&trial);
    decide_launch_refused(&trial.launch, &trial.verdict,
                          (CUresult)CUDA_RESULT_INVALID_CLUSTER_SIZE);
    assert_result(&trial.verdict, MEM_SYNC_DOMAIN, REFUSED, REFUSED_BY_DRIVER);
    assert_true(decide_trial(&trial)->change);
    assert_null(given(&trial.verdict, 4));
    assert_non_null(given(&trial.verdict, 10));
    assert_result(&trial.verdict, MEM_SYNC_DOMAIN, APPLIED, NONE);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, REFUSED_BY_DRIVER);
}

static void capture(bool on)
{
    CUstream stream = (CUstream)0x1000;
    trial.config.hStream = stream;
    fake.capturing = on;
    if (on)
        decide_capture_began(stream, false);
    else
        decide_capture_ended(stream, false);
}

static void a_capture_gets_only_a_cluster_accepted_before(void **state)
{
    (void)state;
    start("[kernel gemm]\ncluster_dim = 2\ngraph_nodes = yes\n");
    capture(true);
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, CAPTURE_UNPROVEN);
    assert_int_equal(fake.occupancies, 0); /* nothing is asked while capturing */
    capture(false);
    decide_trial(&trial); /* asked, but not accepted yet */
    capture(true);
    assert_false(decide_trial(&trial)->change);
    capture(false);
    run_trial(&trial);
    capture(true);
    assert_true(decide_trial(&trial)->change);
    trial.config.gridDimX = 63;
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, GRID_NOT_DIVISIBLE);
    trial.config.gridDimX = 64;
    trial.config.sharedMemBytes = 16;
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, CAPTURE_UNPROVEN);
    capture(false);
}

static void a_graph_gets_a_cluster_only_when_the_rule_says_so(void **state)
{
    (void)state;
    start("[kernel gemm]\ncluster_dim = 2\nmem_sync_domain = remote\npriority = 1\n");
    run_trial(&trial);
    capture(true);
    decide_trial(&trial);
    assert_null(given(&trial.verdict, 4));
    assert_null(given(&trial.verdict, 8));
    assert_non_null(given(&trial.verdict, 10));
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, GRAPH);
    assert_result(&trial.verdict, PRIORITY, REFUSED, GRAPH);
    assert_result(&trial.verdict, MEM_SYNC_DOMAIN, APPLIED, NONE);
    assert_int_equal(trial.verdict.kind, REPORT_LAUNCH_CAPTURED);
    capture(false);
}

static void a_node_is_decided_like_a_captured_launch(void **state)
{
    (void)state;
    start("[kernel gemm]\ncluster_dim = 2\nmem_sync_domain = remote\n");
    decide_node(&trial.launch, &trial.verdict, DECIDE_ARM_NONE);
    assert_int_equal(trial.verdict.kind, REPORT_LAUNCH_NODE);
    assert_null(given(&trial.verdict, 4));
    assert_non_null(given(&trial.verdict, 10));
    assert_ptr_equal(trial.verdict.config.attrs, trial.verdict.attributes);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, GRAPH);
}

static void the_programs_own_cluster_is_kept(void **state)
{
    (void)state;
    start(CLUSTER);
    add_own_cluster(&trial, 4, 4, 1, 1);
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, KEPT, OWN_CLUSTER);
    trial.own[0].value.cluster_dim.x = 2;
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, ALREADY_SO, NONE);
}

static void the_programs_own_cluster_is_replaced_only_when_called_unsafe(void **state)
{
    (void)state;
    start("[kernel gemm]\ncluster_dim = 2\nwhen_set = replace\nunsafe_cluster = yes\n");
    add_own_cluster(&trial, 4, 4, 1, 1);
    assert_int_equal(given(run_trial(&trial), 4)->value.cluster_dim.x, 2);
    assert_int_equal(trial.verdict.config.numAttrs, 1);
    assert_result(&trial.verdict, CLUSTER_DIM, APPLIED, NONE);
}

static void the_programs_own_cluster_is_taken_away_only_when_called_unsafe(void **state)
{
    (void)state;
    start("[kernel gemm]\ncluster_dim = unset\nunsafe_cluster = yes\n");
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, ALREADY_SO, NONE);
    add_own_cluster(&trial, 4, 4, 1, 1);
    assert_int_equal(run_trial(&trial)->config.numAttrs, 0);
    assert_result(&trial.verdict, CLUSTER_DIM, APPLIED, NONE);
    function.must_be_set = 1;
    decide_function_changed(&function);
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, KEPT, COMPILE_TIME_CLUSTER);
}

/* The parser refuses such a rule; the engine does not rely on it. */
static void without_the_word_unsafe_even_a_replacing_rule_keeps_it(void **state)
{
    (void)state;
    static const char *rules[] = {
        "[kernel gemm]\ncluster_dim = 2\nwhen_set = replace\nunsafe_cluster = yes\n",
        "[kernel gemm]\ncluster_dim = unset\nunsafe_cluster = yes\n"};
    for (int i = 0; i < 2; i++) {
        struct policy *policy = parse_policy(rules[i]);
        struct policy_rule *rule = malloc(sizeof *rule);
        assert_non_null(rule);
        *rule = policy->rules[0];
        rule->unsafe_cluster = false;
        const struct policy_rule *checked = policy->rules;
        policy->rules = rule;
        start_parsed(policy);
        function = fake_function_of("gemm");
        add_own_cluster(trial_of(&trial, &function), 4, 4, 1, 1);
        assert_false(decide_trial(&trial)->change);
        assert_result(&trial.verdict, CLUSTER_DIM, KEPT, OWN_CLUSTER);
        decide_start(NULL, &this_process, POLICY_MODE_ENFORCE);
        policy->rules = checked;
        free(rule);
    }
}

static void an_unknown_attribute_is_blamed_before_the_cluster(void **state)
{
    (void)state;
    start("[kernel gemm]\ncluster_dim = 2\nshared_memory_carveout = 10\n");
    decide_trial(&trial);
    decide_launch_refused(&trial.launch, &trial.verdict, CUDA_ERROR_INVALID_VALUE);
    assert_non_null(given(decide_trial(&trial), 4));
    assert_null(given(&trial.verdict, 14));
    decide_launch_refused(&trial.launch, &trial.verdict, CUDA_ERROR_INVALID_VALUE);
    assert_false(decide_trial(&trial)->change);
}

static void shapes_go_with_their_function(void **state)
{
    (void)state;
    start(CLUSTER);
    decide_function_named(&function, "gemm", &fake);
    run_trial(&trial);
    trial.config.sharedMemBytes = 16;
    run_trial(&trial);
    assert_int_equal(decide_shapes_count(), 2);
    decide_function_changed(&function);
    assert_int_equal(decide_shapes_count(), 0);
    run_trial(&trial);
    assert_int_equal(decide_shapes_count(), 1);
    decide_container_gone(&fake);
    assert_int_equal(decide_shapes_count(), 0);
}

static void a_replaced_cluster_still_divides_the_programs_preferred_one(void **state)
{
    (void)state;
    start("[kernel gemm]\ncluster_dim = 4\nwhen_set = replace\nunsafe_cluster = yes\n");
    add_own_cluster(&trial, 4, 2, 1, 1);
    add_own_cluster(&trial, 11, 6, 1, 1);
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, NOT_A_MULTIPLE);
    trial.own[1].value.cluster_dim.x = 8;
    assert_true(run_trial(&trial)->change);
}

#define PREFERRED "[kernel gemm]\npreferred_cluster_dim = 4\n"

static void a_preferred_cluster_needs_compute_capability_10(void **state)
{
    (void)state;
    start(PREFERRED);
    add_own_cluster(&trial, 4, 2, 1, 1);
    decide_trial(&trial);
    assert_result(&trial.verdict, PREFERRED_CLUSTER_DIM, REFUSED, COMPUTE_CAPABILITY);
    fake.devices[0].major = 10;
    start(PREFERRED);
    add_own_cluster(&trial, 4, 2, 1, 1);
    assert_int_equal(given(run_trial(&trial), 11)->value.cluster_dim.x, 4);
    assert_result(&trial.verdict, PREFERRED_CLUSTER_DIM, APPLIED, NONE);
}

static void a_preferred_cluster_is_a_multiple_of_the_launchs(void **state)
{
    (void)state;
    fake.devices[0].major = 10;
    start(PREFERRED);
    decide_trial(&trial); /* no cluster at all */
    assert_result(&trial.verdict, PREFERRED_CLUSTER_DIM, REFUSED, NOT_A_MULTIPLE);
    add_own_cluster(&trial, 4, 3, 1, 1);
    decide_trial(&trial);
    assert_result(&trial.verdict, PREFERRED_CLUSTER_DIM, REFUSED, NOT_A_MULTIPLE);
    trial.own[0].value.cluster_dim.x = 2;
    trial.own[0].value.cluster_dim.z = 2;
    decide_trial(&trial);
    assert_result(&trial.verdict, PREFERRED_CLUSTER_DIM, REFUSED, NOT_A_MULTIPLE);
    trial.own[0].value.cluster_dim.z = 1;
    trial.config.gridDimX = 66;
    decide_trial(&trial);
    assert_result(&trial.verdict, PREFERRED_CLUSTER_DIM, REFUSED, GRID_NOT_DIVISIBLE);
    trial.config.gridDimX = 64;
    assert_true(run_trial(&trial)->change);
}

static void a_preferred_cluster_goes_with_a_compile_time_one(void **state)
{
    (void)state;
    fake.devices[0].major = 10;
    start(PREFERRED);
    function.required[0] = 2;
    function.required[1] = function.required[2] = 1;
    function.must_be_set = 1;
    assert_non_null(given(run_trial(&trial), 11));
}

static void a_preferred_cluster_goes_with_the_cluster_that_we_inject(void **state)
{
    (void)state;
    fake.devices[0].major = 10;
    start("[kernel gemm]\ncluster_dim = 2\npreferred_cluster_dim = 4\n");
    run_trial(&trial);
    assert_non_null(given(&trial.verdict, 4));
    assert_non_null(given(&trial.verdict, 11));
    trial.config.gridDimX = 63; /* no cluster, so no preferred one either */
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, GRID_NOT_DIVISIBLE);
    assert_result(&trial.verdict, PREFERRED_CLUSTER_DIM, REFUSED, NOT_A_MULTIPLE);
}

static void a_kernel_handle_is_asked_through_its_function(void **state)
{
    (void)state;
    start(CLUSTER);
    struct fake_function kernel = {.name = "gemm", .kernel = true, .function = &function};
    trial_of(&trial, &kernel);
    assert_true(run_trial(&trial)->change);
    kernel.function = NULL; /* cannot be loaded on the current context */
    decide_function_changed(&kernel);
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, FUNCTION_UNKNOWN);
}

static void a_driver_that_does_not_answer_gets_no_cluster(void **state)
{
    (void)state;
    start(CLUSTER);
    cuda_driver.cuOccupancyMaxActiveClusters = NULL;
    assert_false(decide_trial(&trial)->change);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, QUERY_FAILED);
}

static void a_function_remembers_a_bounded_number_of_shapes(void **state)
{
    (void)state;
    start(CLUSTER);
    for (unsigned shared = 0; shared < 300; shared++) {
        trial.config.sharedMemBytes = shared;
        assert_true(run_trial(&trial)->change);
    }
    assert_int_equal(decide_shapes_count(), DECIDE_SHAPES_OF_A_FUNCTION);
    int occupancies = fake.occupancies;
    trial.config.sharedMemBytes = 299;
    assert_true(run_trial(&trial)->change);
    assert_int_equal(fake.occupancies, occupancies);
}

static void devices_of_another_kind_have_shapes_of_their_own(void **state)
{
    (void)state;
    fake.device_count = 2;
    fake.devices[1].processors = 66;
    start(CLUSTER);
    function.blocks_per_processor = 1;
    function.active_clusters = 62;
    trial.config.gridDimX = 126;
    decide_trial(&trial);
    assert_result(&trial.verdict, CLUSTER_DIM, REFUSED, NOT_CO_RESIDENT);
    fake.current_device = 1; /* 66 blocks at once: 126 never were */
    assert_true(run_trial(&trial)->change);
    fake.current_device = 0;
    assert_false(decide_trial(&trial)->change);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_refused_where_the_device_has_none),
        TEST(it_is_refused_when_the_grid_is_not_divisible),
        TEST(compile_time_clusters_are_kept),
        TEST(a_kernel_that_needs_some_cluster_is_left_to_the_program),
        TEST(more_than_eight_blocks_need_the_functions_permission),
        TEST(it_is_refused_when_the_driver_says_it_is_too_large),
        TEST(it_is_refused_when_not_even_one_fits),
        TEST(a_grid_that_ran_at_once_still_does),
        TEST(a_cooperative_grid_must_fit_in_clusters),
        TEST(the_driver_is_asked_about_the_launchs_own_shape),
        TEST(a_shape_is_asked_about_once),
        TEST(a_refusal_is_remembered_with_the_shape),
        TEST(a_shape_accepted_and_refused_later_is_not_tried_again),
        TEST(a_launch_that_fails_anyway_does_not_blame_the_cluster),
        TEST(a_refused_cluster_leaves_the_other_settings),
        TEST(a_capture_gets_only_a_cluster_accepted_before),
        TEST(a_graph_gets_a_cluster_only_when_the_rule_says_so),
        TEST(a_node_is_decided_like_a_captured_launch),
        TEST(the_programs_own_cluster_is_kept),
        TEST(the_programs_own_cluster_is_replaced_only_when_called_unsafe),
        TEST(the_programs_own_cluster_is_taken_away_only_when_called_unsafe),
        TEST(without_the_word_unsafe_even_a_replacing_rule_keeps_it),
        TEST(an_unknown_attribute_is_blamed_before_the_cluster),
        TEST(shapes_go_with_their_function),
        TEST(a_replaced_cluster_still_divides_the_programs_preferred_one),
        TEST(a_preferred_cluster_needs_compute_capability_10),
        TEST(a_preferred_cluster_is_a_multiple_of_the_launchs),
        TEST(a_preferred_cluster_goes_with_a_compile_time_one),
        TEST(a_preferred_cluster_goes_with_the_cluster_that_we_inject),
        TEST(a_kernel_handle_is_asked_through_its_function),
        TEST(a_driver_that_does_not_answer_gets_no_cluster),
        TEST(a_function_remembers_a_bounded_number_of_shapes),
        TEST(devices_of_another_kind_have_shapes_of_their_own),
    };
    return cmocka_run_group_tests_name("decide_cluster", tests, start_group, NULL);
}
