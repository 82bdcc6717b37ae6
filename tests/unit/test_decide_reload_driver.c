/* SPDX-License-Identifier: Apache-2.0 */
/* Another policy while the process runs: streams, graph nodes and partitions that the driver has.
 */
#include "test_decide_place_support.h"

static struct policy *in_force;

static void reload(const char *rules)
{
    static struct policy *kept[32];
    static unsigned count;
    const struct decide_process process = {
        .rank = 3, .local_rank = 1, .world_size = 8, .host = "node7"};
    struct policy_diagnostics diagnostics = {0};
    char text[4096], error[256] = "";
    snprintf(text, sizeof text, "[policy]\nversion = 1\n" PLACE_PARTITIONS "%s", rules);
    struct policy *policy = policy_parse(text, strlen(text), "test", &diagnostics);
    if (!policy)
        policy_diagnostics_print(&diagnostics, stderr);
    assert_non_null(policy);
    policy_diagnostics_release(&diagnostics);
    assert_true(count < sizeof kept / sizeof kept[0]);
    kept[count++] = policy;
    if (!decide_reload(policy, in_force, &process, error, sizeof error))
        fail_msg("%s", error);
    in_force = policy;
}

static void begin(const char *rules)
{
    place_begin(rules);
    in_force = support_policy;
}

static const struct place_partition *moved_to(CUfunction function, CUstream stream, unsigned blocks,
                                              bool cooperative)
{
    const CUlaunchConfig config = {blocks, 1, 1, 64, 1, 1, 0, stream, NULL, 0};
    const struct decide_launch launch = {
        .function = function, .config = &config, .cooperative = cooperative};
    struct decide_verdict verdict;
    decide_launch(&launch, &verdict);
    return verdict.change ? verdict.move.partition : NULL;
}

/* Use of both partitions, which a policy would otherwise be told off for. */
#define USED "[kernel used]\nname = used\npartition = side\n"

static void nodes_added_after_a_reload_get_the_new_settings(void **state)
{
    (void)state;
    begin(USED "[kernel k]\nname = added\nmem_sync_domain = remote\n");
    CUfunction function = program_function("added");
    CUgraph graph = program_graph();
    CUgraphNode before = program_adds(graph, function, 4);
    reload(USED "[kernel k]\nname = added\nmem_sync_domain_map = 1 2\n");
    CUgraphNode after = program_adds(graph, function, 4);
    assert_int_equal(node_has(before, DOMAIN), 1);
    assert_int_equal(node_has(after, DOMAIN), 0);
    assert_int_equal(node_has(after, MAP), MAP_OF(1, 2));
}

static void a_node_that_is_changed_after_a_reload_loses_what_the_old_rule_gave(void **state)
{
    (void)state;
    begin(USED "[kernel k]\nname = changed\nmem_sync_domain = remote\n");
    CUfunction function = program_function("changed");
    CUgraphNode node = program_adds(program_graph(), function, 4);
    assert_int_equal(node_has(node, DOMAIN), 1);
    reload(USED);
    program_changes(node, function, 8);
    assert_int_equal(node_has(node, DOMAIN), 0);
    reload(USED "[kernel k]\nname = changed\nmem_sync_domain_map = 1 2\n");
    program_changes(node, function, 4);
    assert_int_equal(node_has(node, MAP), MAP_OF(1, 2));
}

static void streams_keep_their_settings_and_new_ones_get_the_new(void **state)
{
    (void)state;
    begin(USED "[stream s]\nmem_sync_domain = remote\n");
    CUstream before = program_creates("s1.so");
    reload(USED "[stream s]\nmem_sync_domain_map = 1 2\npriority = -3\n");
    CUstream after = program_creates("s2.so");
    assert_int_equal(stream_has(before, DOMAIN), 1);
    assert_int_equal(stream_has(after, DOMAIN), 0);
    assert_int_equal(stream_has(after, MAP), MAP_OF(1, 2));
    assert_int_equal(stream_priority(after), -3);
    /* The rule of its creation goes on watching over the old one. */
    program_sets(before, DOMAIN, 0);
    assert_int_equal(stream_has(before, DOMAIN), 1);
    program_destroys(before);
    program_destroys(after);
}

static CUstream create_placed(void)
{
    struct decide_stream_request request = {.flags = CU_STREAM_NON_BLOCKING,
                                            .library = "placed.so"};
    CUstream stream;
    request.rules = decide_rules_in_force();
    request.place = decide_stream_place(&request);
    if (request.place.partition)
        EXPECT(place_partition_stream(request.place.partition, 0, &stream));
    else
        EXPECT(cuStreamCreate(&stream, request.flags));
    decide_stream_created(stream, &request);
    return stream;
}

static void a_stream_goes_to_its_partition_by_a_rule_that_came_later(void **state)
{
    (void)state;
    begin(USED);
    CUfunction function = program_function("any");
    CUstream before = create_placed();
    assert_null(decide_stream_partition(before));
    assert_null(moved_to(function, before, 513, true));
    reload(USED "[stream s]\npartition = side\n");
    CUstream after = create_placed();
    assert_ptr_equal(decide_stream_partition(after), place_side());
    assert_null(moved_to(function, before, 513, true));
    assert_null(moved_to(function, after, 512, true));
    assert_int_equal(moved_to(function, after, 513, true)->index, PLACE_WHOLE_DEVICE);
    decide_stream_gone(after);
    decide_stream_gone(before);
}

static void launches_on_a_partition_stay_safe_when_its_rule_is_gone(void **state)
{
    (void)state;
    begin(USED "[stream s]\npartition = side\n");
    CUfunction function = program_function("any");
    CUstream stream = create_placed();
    CUcontext context = NULL;
    assert_ptr_equal(decide_stream_partition(stream), place_side());
    reload(USED);
    assert_null(moved_to(function, stream, 512, true));
    assert_int_equal(moved_to(function, stream, 513, true)->index, PLACE_WHOLE_DEVICE);
    assert_true(decide_stream_asked(stream, &context, NULL, NULL));
    assert_ptr_equal(context, place_primary_context(0));
    CUstream after = create_placed();
    assert_null(decide_stream_partition(after));
    decide_stream_gone(after);
    decide_stream_gone(stream);
}

static void a_kernel_goes_where_the_new_rule_says(void **state)
{
    (void)state;
    begin("[kernel k]\nname = goes\npartition = main\n" USED);
    CUfunction function = program_function("goes");
    CUstream stream = program_creates("a.so");
    assert_int_equal(moved_to(function, stream, 4, false)->index, 1);
    reload("[kernel k]\nname = goes\npartition = side\n" USED);
    assert_int_equal(moved_to(function, stream, 4, false)->index, 0);
    reload(USED);
    assert_null(moved_to(function, stream, 4, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(nodes_added_after_a_reload_get_the_new_settings),
        PLACE_TEST(a_node_that_is_changed_after_a_reload_loses_what_the_old_rule_gave),
        PLACE_TEST(streams_keep_their_settings_and_new_ones_get_the_new),
        PLACE_TEST(a_stream_goes_to_its_partition_by_a_rule_that_came_later),
        PLACE_TEST(launches_on_a_partition_stay_safe_when_its_rule_is_gone),
        PLACE_TEST(a_kernel_goes_where_the_new_rule_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
