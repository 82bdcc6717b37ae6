/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of streams and of kernel nodes. Measured on an H200, driver 580.159. */
#include "test_support.h"

#define SHARED_MEMORY_CARVEOUT ((CUlaunchAttributeID)14)
#define NVLINK_UTIL_CENTRIC ((CUlaunchAttributeID)16)

static CUfunction function;
static CUstream stream;
static CUgraph graph;

static int setup(void **state)
{
    (void)state;
    fresh_driver();
    function = load_function("kernel k\n", "k");
    stream = new_stream();
    EXPECT(cuGraphCreate(&graph, 0));
    return 0;
}

static CUDA_KERNEL_NODE_PARAMS_v2 parameters_of(CUfunction of, unsigned int blocks)
{
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    memset(&parameters, 0, sizeof(parameters));
    parameters.func = of;
    parameters.gridDimX = blocks;
    parameters.gridDimY = parameters.gridDimZ = 1;
    parameters.blockDimX = 32;
    parameters.blockDimY = parameters.blockDimZ = 1;
    return parameters;
}

static CUgraphNode new_node(unsigned int blocks)
{
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS_v2 parameters = parameters_of(function, blocks);
    EXPECT(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &parameters));
    return node;
}

/* An attribute whose value is a number. */
static CUlaunchAttribute number_attribute(CUlaunchAttributeID id, int number)
{
    CUlaunchAttribute attribute;
    memset(&attribute, 0, sizeof(attribute));
    attribute.id = id;
    attribute.value.priority = number;
    return attribute;
}

static CUresult set_on_stream(CUstream of, CUlaunchAttribute attribute)
{
    return cuStreamSetAttribute(of, attribute.id, &attribute.value);
}

static CUresult set_on_node(CUgraphNode node, CUlaunchAttribute attribute)
{
    return cuGraphKernelNodeSetAttribute(node, attribute.id, &attribute.value);
}

static CUlaunchAttributeValue of_stream(CUstream of, CUlaunchAttributeID id)
{
    CUlaunchAttributeValue value;
    EXPECT(cuStreamGetAttribute(of, id, &value));
    return value;
}

static CUlaunchAttributeValue of_node(CUgraphNode node, CUlaunchAttributeID id)
{
    CUlaunchAttributeValue value;
    EXPECT(cuGraphKernelNodeGetAttribute(node, id, &value));
    return value;
}

static void the_priority_attribute_is_the_priority_of_the_stream(void **state)
{
    (void)state;
    int priority;
    EXPECT(set_on_stream(stream, number_attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY, -3)));
    EXPECT(cuStreamGetPriority(stream, &priority));
    assert_int_equal(priority, -3);
}

static void priority_domain_and_map_are_copied_between_streams(void **state)
{
    (void)state;
    int priority;
    CUstream copy = new_stream();
    EXPECT(set_on_stream(stream, number_attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY, -2)));
    EXPECT(set_on_stream(stream, domain_attribute(1)));
    EXPECT(set_on_stream(stream, map_attribute(2, 3)));
    EXPECT(cuStreamCopyAttributes(copy, stream));
    EXPECT(cuStreamGetPriority(copy, &priority));
    assert_int_equal(priority, -2);
    assert_int_equal(of_stream(copy, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN).memSyncDomain, 1);
    CUlaunchMemSyncDomainMap map =
        of_stream(copy, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP).memSyncDomainMap;
    assert_int_equal(map.default_, 2);
    assert_int_equal(map.remote, 3);
}

static void a_domain_or_map_out_of_range_is_an_invalid_value(void **state)
{
    (void)state;
    CUgraphNode node = new_node(4);
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, set_on_stream(stream, map_attribute(0, 4)));
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE,
                 set_on_stream(stream, domain_attribute((CUlaunchMemSyncDomain)2)));
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, set_on_node(node, map_attribute(4, 0)));
    EXPECT(set_on_node(node, map_attribute(3, 3)));
}

static void the_nvlink_attribute_is_for_nodes_which_do_not_tell_it(void **state)
{
    (void)state;
    CUlaunchAttribute attribute = number_attribute(NVLINK_UTIL_CENTRIC, 1);
    CUgraphNode node = new_node(4);
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, set_on_stream(stream, attribute));
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE,
                 cuStreamGetAttribute(stream, attribute.id, &attribute.value));
    EXPECT(set_on_node(node, attribute));
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE,
                 cuGraphKernelNodeGetAttribute(node, attribute.id, &attribute.value));
}

static void a_zero_cluster_takes_the_cluster_of_a_node_away(void **state)
{
    (void)state;
    CUgraphNode node = new_node(6);
    CUDA_KERNEL_NODE_PARAMS_v2 indivisible = parameters_of(function, 7);
    CUlaunchAttribute none = cluster_attribute(0);
    none.value.clusterDim.y = none.value.clusterDim.z = 0;
    EXPECT(set_on_node(node, cluster_attribute(2)));
    assert_int_equal(of_node(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim.x, 2);
    EXPECT(set_on_node(node, none));
    assert_int_equal(of_node(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim.x, 0);
    EXPECT(cuGraphKernelNodeSetParams_v2(node, &indivisible));
}

static void an_indivisible_cluster_is_refused_when_it_is_set_on_a_node(void **state)
{
    (void)state;
    CUgraphNode node = new_node(6);
    EXPECT(set_on_node(node, cluster_attribute(2)));
    EXPECT_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, set_on_node(node, cluster_attribute(4)));
    assert_int_equal(of_node(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim.x, 2);
}

static void a_carveout_of_minus_one_is_an_invalid_value_for_a_node(void **state)
{
    (void)state;
    CUgraphNode node = new_node(4);
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE,
                 set_on_node(node, number_attribute(SHARED_MEMORY_CARVEOUT, -1)));
    EXPECT(set_on_node(node, number_attribute(SHARED_MEMORY_CARVEOUT, 50)));
}

static void another_kernel_keeps_the_attributes_of_its_node(void **state)
{
    (void)state;
    CUfunction other = load_function("kernel other\n", "other");
    CUgraphNode node = new_node(4);
    CUDA_KERNEL_NODE_PARAMS_v2 fits = parameters_of(other, 8);
    CUDA_KERNEL_NODE_PARAMS_v2 does_not_fit = parameters_of(other, 7);
    EXPECT(set_on_node(node, cluster_attribute(4)));
    EXPECT(set_on_node(node, domain_attribute(1)));
    EXPECT(cuGraphKernelNodeSetParams_v2(node, &fits));
    assert_int_equal(of_node(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim.x, 4);
    assert_int_equal(of_node(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN).memSyncDomain, 1);
    EXPECT_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                 cuGraphKernelNodeSetParams_v2(node, &does_not_fit));
}

static void captured_nodes_tell_the_spread_policy_and_explicit_ones_none(void **state)
{
    (void)state;
    const CUlaunchAttributeID policy = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
    CUgraph captured;
    CUgraphNode node;
    size_t count = 1;
    EXPECT(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(launch_plain(function, stream));
    EXPECT(cuStreamEndCapture(stream, &captured));
    EXPECT(cuGraphGetNodes(captured, &node, &count));
    assert_int_equal(of_node(node, policy).clusterSchedulingPolicyPreference, 1);
    assert_int_equal(of_node(new_node(4), policy).clusterSchedulingPolicyPreference, 0);
}

static void nodes_are_found_in_embedded_graphs_as_in_clones(void **state)
{
    (void)state;
    CUgraphNode node = new_node(4), owner, in_copy, in_embedded;
    CUgraph outer, copy, embedded;
    EXPECT(cuGraphCreate(&outer, 0));
    EXPECT(cuGraphAddChildGraphNode(&owner, outer, NULL, 0, graph));
    EXPECT(cuGraphChildGraphNodeGetGraph(owner, &embedded));
    EXPECT(cuGraphClone(&copy, graph));
    EXPECT(cuGraphNodeFindInClone(&in_copy, node, copy));
    EXPECT(cuGraphNodeFindInClone(&in_embedded, node, embedded));
    assert_ptr_not_equal(in_copy, node);
    assert_ptr_not_equal(in_embedded, node);
    assert_ptr_not_equal(in_embedded, in_copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_priority_attribute_is_the_priority_of_the_stream, setup),
        cmocka_unit_test_setup(priority_domain_and_map_are_copied_between_streams, setup),
        cmocka_unit_test_setup(a_domain_or_map_out_of_range_is_an_invalid_value, setup),
        cmocka_unit_test_setup(the_nvlink_attribute_is_for_nodes_which_do_not_tell_it, setup),
        cmocka_unit_test_setup(a_zero_cluster_takes_the_cluster_of_a_node_away, setup),
        cmocka_unit_test_setup(an_indivisible_cluster_is_refused_when_it_is_set_on_a_node, setup),
        cmocka_unit_test_setup(a_carveout_of_minus_one_is_an_invalid_value_for_a_node, setup),
        cmocka_unit_test_setup(another_kernel_keeps_the_attributes_of_its_node, setup),
        cmocka_unit_test_setup(captured_nodes_tell_the_spread_policy_and_explicit_ones_none, setup),
        cmocka_unit_test_setup(nodes_are_found_in_embedded_graphs_as_in_clones, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
