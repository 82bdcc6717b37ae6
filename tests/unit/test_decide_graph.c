/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of kernel nodes that the program adds and changes itself. */
#include "test_decide_graph_support.h"

enum {
    CLUSTER = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
};

static size_t node_calls(void)
{
    return recording_driver_call_count("cuGraphKernelNodeSetAttribute") +
           recording_driver_call_count("cuGraphKernelNodeGetAttribute");
}

/* ---- Added nodes ---- */

static void memory_sync_settings_are_made_on_an_added_node(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = added\nmem_sync_domain = remote\n"
                  "mem_sync_domain_map = 1 2\n");
    CUgraphNode node = program_adds(program_graph(), program_function("added"), 4);
    assert_int_equal(node_has(node, DOMAIN), 1);
    assert_int_equal(node_has(node, MAP), MAP_OF(1, 2));
    assert_counted(1, "added", NODE, MEM_SYNC_DOMAIN, APPLIED, NONE);
}

static void a_node_that_names_a_cukernel_is_known_by_it(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = bykernel\nmem_sync_domain = remote\n");
    CUgraph graph = program_graph();
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(NULL, 4);
    parameters.kern = program_kernel("bykernel");
    EXPECT(cuGraphAddKernelNode(&node, graph, NULL, 0, &parameters));
    decide_node_added(graph, node, as_ours(&parameters), "graph.so");
    assert_int_equal(node_has(node, DOMAIN), 1);
}

static void a_node_that_no_rule_matches_is_left_alone(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = else\nmem_sync_domain = remote\n");
    CUfunction function = program_function("unmatched");
    recording_driver_forget();
    program_adds(program_graph(), function, 4);
    assert_int_equal(node_calls(), 0);
    assert_counted(1, "unmatched", NODE, MEM_SYNC_DOMAIN, NONE, NONE);
}

static void selectors_see_the_nodes_grid(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = shape\ngrid_blocks = 8..\nmem_sync_domain = remote\n");
    CUgraph graph = program_graph();
    CUfunction function = program_function("shape");
    assert_int_equal(node_has(program_adds(graph, function, 4), DOMAIN), 0);
    assert_int_equal(node_has(program_adds(graph, function, 8), DOMAIN), 1);
}

static void priority_needs_graph_nodes(void **state)
{
    (void)state;
    support_begin("[kernel a]\nname = without\npriority = -3\nmem_sync_domain = remote\n"
                  "[kernel b]\nname = with\npriority = -3\ngraph_nodes = yes\n");
    CUgraph graph = program_graph();
    CUgraphNode without = program_adds(graph, program_function("without"), 4);
    CUgraphNode with = program_adds(graph, program_function("with"), 4);
    assert_int_equal(node_has(without, PRIORITY), 0);
    assert_int_equal(node_has(without, DOMAIN), 1);
    assert_counted(1, "without", NODE, PRIORITY, REFUSED, GRAPH);
    assert_int_equal((int32_t)node_has(with, PRIORITY), -3);
}

static void a_cluster_goes_into_a_node_when_a_launch_had_it_before(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = clustered\ncluster_dim = 2\ngraph_nodes = yes\n");
    CUfunction function = program_function("clustered");
    CUgraph graph = program_graph();
    assert_int_equal(node_has(program_adds(graph, function, 4), CLUSTER), 0);
    program_launches(function, program_creates("graph.so"), 4);
    assert_int_equal(node_has(program_adds(graph, function, 4), CLUSTER), 2);
}

static void observing_leaves_the_node_alone(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = observed\nmem_sync_domain = remote\n");
    report_control->part.mode = POLICY_MODE_OBSERVE;
    CUgraphNode node = program_adds(program_graph(), program_function("observed"), 4);
    assert_int_equal(node_has(node, DOMAIN), 0);
    assert_counted(1, "observed", NODE, MEM_SYNC_DOMAIN, APPLIED, OBSERVE);
}

static void a_node_with_a_refused_setting_is_as_the_program_made_it(void **state)
{
    (void)state;
    static const int codes[] = {1, 801, 912, 2, 999};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        char rule[80], name[16], policy[160];
        recording_driver_reset();
        snprintf(name, sizeof name, "refused%zu", i);
        snprintf(policy, sizeof policy,
                 "[kernel k]\nname = %s\nmem_sync_domain = remote\nmem_sync_domain_map = 1 2\n",
                 name);
        support_begin(policy);
        CUfunction function = program_function(name);
        snprintf(rule, sizeof rule, "cuGraphKernelNodeSetAttribute:2=%d", codes[i]);
        recording_driver_configure("FAIL", rule);
        CUgraphNode node = program_adds(program_graph(), function, 4);
        recording_driver_configure("FAIL", "");
        assert_int_equal(node_has(node, DOMAIN), 0);
        assert_int_equal(node_has(node, MAP), MAP_OF(0, 1));
        assert_counted(1, name, NODE, MEM_SYNC_DOMAIN, REFUSED, REFUSED_BY_DRIVER);
        assert_counted(0, name, NODE, MEM_SYNC_DOMAIN, APPLIED, NONE);
        support_teardown(NULL);
    }
}

/* ---- Attributes that the program sets ---- */

static void replace_sets_the_rules_value_again(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = replace\nmem_sync_domain = remote\n");
    CUgraphNode node = program_adds(program_graph(), program_function("replace"), 4);
    program_sets_on_node(node, DOMAIN, 0);
    assert_int_equal(node_has(node, DOMAIN), 1);
    assert_int_equal(counted("replace", REPORT_LAUNCH_NODE), 1);
}

static void keep_leaves_what_the_program_set(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = keep\nmem_sync_domain_map = 1 2\nwhen_set = keep\n");
    CUgraphNode node = program_adds(program_graph(), program_function("keep"), 4);
    assert_int_equal(node_has(node, MAP), MAP_OF(1, 2));
    program_sets_on_node(node, MAP, MAP_OF(3, 3));
    assert_int_equal(node_has(node, MAP), MAP_OF(3, 3));
}

static void attributes_without_a_setting_are_none_of_ours(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = foreign\nmem_sync_domain = remote\n");
    CUgraphNode node = program_adds(program_graph(), program_function("foreign"), 4);
    recording_driver_forget();
    decide_node_attribute_set(node, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
    assert_int_equal(recording_driver_call_count(NULL), 0);
}

static void a_copy_does_not_carry_a_rules_setting_along(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = ruled\nmem_sync_domain = remote\n");
    CUgraph graph = program_graph();
    CUgraphNode ruled = program_adds(graph, program_function("ruled"), 4);
    CUgraphNode plain = program_adds(graph, program_function("plain"), 4);
    program_sets_on_node(ruled, MAP, MAP_OF(2, 2));
    program_copies_to_node(plain, ruled);
    assert_int_equal(node_has(plain, DOMAIN), 0);
    assert_int_equal(node_has(plain, MAP), MAP_OF(2, 2));
    program_copies_to_node(ruled, plain);
    assert_int_equal(node_has(ruled, DOMAIN), 1);
}

/* ---- Changed parameters ---- */

static void another_kernel_loses_the_first_ones_settings(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = before\nmem_sync_domain = remote\npriority = -2\n"
                  "graph_nodes = yes\n");
    CUgraphNode node = program_adds(program_graph(), program_function("before"), 4);
    assert_int_equal(node_has(node, DOMAIN), 1);
    assert_int_equal((int32_t)node_has(node, PRIORITY), -2);
    program_changes(node, program_function("after"), 4);
    assert_int_equal(node_has(node, DOMAIN), 0);
    assert_int_equal(node_has(node, PRIORITY), 0);
    assert_counted(1, "after", NODE, MEM_SYNC_DOMAIN, NONE, NONE);
}

static void what_the_program_had_set_comes_back(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = mapped\nmem_sync_domain_map = 1 2\n");
    CUgraphNode node = program_adds(program_graph(), program_function("mapped"), 4);
    program_sets_on_node(node, MAP, MAP_OF(3, 2));
    program_sets_on_node(node, DOMAIN, 1);
    assert_int_equal(node_has(node, MAP), MAP_OF(1, 2));
    program_changes(node, program_function("unmapped"), 4);
    assert_int_equal(node_has(node, MAP), MAP_OF(3, 2));
    assert_int_equal(node_has(node, DOMAIN), 1);
}

static void another_kernel_gets_its_own_rules_settings(void **state)
{
    (void)state;
    support_begin("[kernel a]\nname = first\nmem_sync_domain = remote\n"
                  "[kernel b]\nname = second\nmem_sync_domain_map = 2 2\n");
    CUgraphNode node = program_adds(program_graph(), program_function("first"), 4);
    program_changes(node, program_function("second"), 4);
    assert_int_equal(node_has(node, DOMAIN), 0);
    assert_int_equal(node_has(node, MAP), MAP_OF(2, 2));
    program_changes(node, program_function("first"), 4);
    assert_int_equal(node_has(node, DOMAIN), 1);
    assert_int_equal(node_has(node, MAP), MAP_OF(0, 1));
}

static void the_same_kernel_in_another_shape_is_decided_anew(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = resized\ngrid_blocks = ..4\nmem_sync_domain = remote\n");
    CUfunction function = program_function("resized");
    CUgraphNode node = program_adds(program_graph(), function, 4);
    assert_int_equal(node_has(node, DOMAIN), 1);
    program_changes(node, function, 5);
    assert_int_equal(node_has(node, DOMAIN), 0);
    program_changes(node, function, 3);
    assert_int_equal(node_has(node, DOMAIN), 1);
}

static void a_node_not_seen_being_added_is_decided_when_it_changes(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = unseen\nmem_sync_domain = remote\n");
    CUgraphNode node;
    CUfunction function = program_function("unseen");
    CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(function, 4);
    EXPECT(cuGraphAddKernelNode(&node, program_graph(), NULL, 0, &parameters));
    assert_int_equal(node_has(node, DOMAIN), 0);
    program_changes(node, function, 4);
    assert_int_equal(node_has(node, DOMAIN), 1);
}

static void a_captured_nodes_settings_are_taken_back_too(void **state)
{
    (void)state;
    support_begin("[stream s]\nmem_sync_domain_map = 2 3\n"
                  "[kernel k]\nname = captured\nmem_sync_domain_map = 1 1\n"
                  "mem_sync_domain = remote\n");
    CUgraphNode nodes[2];
    size_t count = 2;
    CUstream stream = program_creates("graph.so");
    CUfunction other = program_function("other");
    program_begins_capture(stream);
    program_launches(program_function("captured"), stream, 4);
    CUgraph graph = program_ends_capture(stream);
    EXPECT(cuGraphGetNodes(graph, nodes, &count));
    assert_int_equal(count, 1);
    assert_int_equal(node_has(nodes[0], DOMAIN), 1);
    assert_int_equal(node_has(nodes[0], MAP), MAP_OF(1, 1));
    program_changes(nodes[0], other, 4);
    assert_int_equal(node_has(nodes[0], DOMAIN), 0);
    assert_int_equal(node_has(nodes[0], MAP), MAP_OF(2, 3)); /* the stream's, by its own rule */
}

static void a_captured_launchs_own_value_comes_back(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = own\nmem_sync_domain_map = 1 1\n");
    CUgraphNode nodes[1];
    size_t count = 1;
    CUlaunchAttribute attribute;
    CUstream stream = program_creates("graph.so");
    memset(&attribute, 0, sizeof attribute);
    attribute.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP;
    attribute.value.memSyncDomainMap.default_ = 3;
    attribute.value.memSyncDomainMap.remote = 2;
    CUfunction function = program_function("own"), other = program_function("others");
    program_begins_capture(stream);
    EXPECT(program_launches_with(function, stream, 4, &attribute, 1));
    CUgraph graph = program_ends_capture(stream);
    EXPECT(cuGraphGetNodes(graph, nodes, &count));
    assert_int_equal(node_has(nodes[0], MAP), MAP_OF(1, 1));
    program_changes(nodes[0], other, 4);
    assert_int_equal(node_has(nodes[0], MAP), MAP_OF(3, 2));
}

/* ---- Failures ---- */

static void no_failing_call_of_ours_changes_what_the_program_gets(void **state)
{
    (void)state;
    static const char *const names[] = {"cuGraphKernelNodeSetAttribute",
                                        "cuGraphKernelNodeGetAttribute",
                                        "cuGraphKernelNodeGetParams*",
                                        "cuCtxGetDevice",
                                        "cuDeviceGetAttribute",
                                        "cuFuncGetAttribute",
                                        "cuStreamGetCaptureInfo*",
                                        "cuGraphGetNodes",
                                        "cuGraphNodeGetType"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char rule[64];
        recording_driver_reset();
        support_begin("[kernel k]\nname = f*\nmem_sync_domain = remote\n");
        CUfunction one = program_function("fail1"), two = program_function("gone2");
        snprintf(rule, sizeof rule, "%s:*=999", names[i]);
        CUgraph graph = program_graph();
        CUgraphNode node;
        CUgraphExec executable;
        CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(one, 4);
        CUstream stream = program_creates("graph.so");
        EXPECT(cuGraphAddKernelNode(&node, graph, NULL, 0, &parameters));
        recording_driver_configure("FAIL", rule);
        decide_node_added(graph, node, as_ours(&parameters), "graph.so");
        decide_node_attribute_set(node, DOMAIN);
        program_changes(node, two, 4);
        EXPECT(cuGraphInstantiate(&executable, graph, 0));
        decide_graph_instantiated(executable, graph);
        program_launches_graph(executable, stream);
        program_begins_capture(stream);
        EXPECT(program_launches_with(one, stream, 4, NULL, 0));
        program_destroys_graph(program_ends_capture(stream));
        program_destroys_executable(executable);
        program_destroys_graph(graph);
        support_teardown(NULL);
    }
}

/* The program's change of the node, which only our cluster makes impossible, hangs on it. */
static void a_cluster_is_given_back_though_the_driver_fails_once(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = given_back\ncluster_dim = 2\ngraph_nodes = yes\n");
    CUfunction function = program_function("given_back");
    program_launches(function, program_creates("graph.so"), 4);
    CUgraphNode node = program_adds(program_graph(), function, 4);
    assert_int_equal(node_has(node, CLUSTER), 2);
    CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(function, 3);
    CUresult result = cuGraphKernelNodeSetParams(node, &parameters);
    assert_int_equal(result, 912);
    recording_driver_configure("FAIL", "cuGraphKernelNodeSetAttribute:1=999");
    assert_true(decide_node_give_back(node, result));
    assert_int_equal(node_has(node, CLUSTER), 0);
    EXPECT(cuGraphKernelNodeSetParams(node, &parameters));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, support_setup, support_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(memory_sync_settings_are_made_on_an_added_node),
        TEST(a_node_that_names_a_cukernel_is_known_by_it),
        TEST(a_node_that_no_rule_matches_is_left_alone),
        TEST(selectors_see_the_nodes_grid),
        TEST(priority_needs_graph_nodes),
        TEST(a_cluster_goes_into_a_node_when_a_launch_had_it_before),
        TEST(observing_leaves_the_node_alone),
        TEST(a_node_with_a_refused_setting_is_as_the_program_made_it),
        TEST(replace_sets_the_rules_value_again),
        TEST(keep_leaves_what_the_program_set),
        TEST(attributes_without_a_setting_are_none_of_ours),
        TEST(a_copy_does_not_carry_a_rules_setting_along),
        TEST(another_kernel_loses_the_first_ones_settings),
        TEST(what_the_program_had_set_comes_back),
        TEST(another_kernel_gets_its_own_rules_settings),
        TEST(the_same_kernel_in_another_shape_is_decided_anew),
        TEST(a_node_not_seen_being_added_is_decided_when_it_changes),
        TEST(a_captured_nodes_settings_are_taken_back_too),
        TEST(a_captured_launchs_own_value_comes_back),
        TEST(no_failing_call_of_ours_changes_what_the_program_gets),
        TEST(a_cluster_is_given_back_though_the_driver_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
