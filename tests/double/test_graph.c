/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and green contexts on the recording driver. */
#include "test_support.h" /* first: it makes cuda.h declare every variant */

#include "driver/newer.h"

static CUcontext primary;

static int setup(void **state)
{
    (void)state;
    primary = fresh_driver();
    return 0;
}

static CUDA_KERNEL_NODE_PARAMS_v2 node_params(CUfunction function, unsigned int blocks)
{
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    memset(&params, 0, sizeof(params));
    params.func = function;
    params.gridDimX = blocks;
    params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = 32;
    params.blockDimY = params.blockDimZ = 1;
    return params;
}

static CUgraphNode add_kernel(CUgraph graph, CUfunction function, unsigned int blocks)
{
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS_v2 params = node_params(function, blocks);
    EXPECT(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
    return node;
}

static CUgraph new_graph(void)
{
    CUgraph graph;
    EXPECT(cuGraphCreate(&graph, 0));
    return graph;
}

static CUgraphExec instantiate(CUgraph graph)
{
    CUgraphExec executable;
    EXPECT(cuGraphInstantiateWithFlags(&executable, graph, 0));
    return executable;
}

static void set(CUgraphNode node, CUlaunchAttribute attribute)
{
    EXPECT(cuGraphKernelNodeSetAttribute(node, attribute.id, &attribute.value));
}

/* A context of `groups` groups of 8 SMs and a stream in it. */
static CUstream green_stream(unsigned int groups, CUgreenCtx *green)
{
    CUdevResource all, parts[16];
    CUdevResourceDesc description;
    CUstream stream;
    unsigned int count = 16;
    EXPECT(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    EXPECT(cuDevSmResourceSplitByCount(parts, &count, &all, NULL, 0, 8));
    EXPECT(cuDevResourceGenerateDesc(&description, parts, groups));
    EXPECT(cuGreenCtxCreate(green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    EXPECT(cuGreenCtxStreamCreate(&stream, *green, CU_STREAM_NON_BLOCKING, 0));
    return stream;
}

static void each_launch_records_the_kernel_nodes_with_their_attributes(void **state)
{
    (void)state;
    CUfunction one = load_function("kernel one\n", "one");
    CUfunction two = load_function("kernel two\n", "two");
    CUgraph graph = new_graph();
    CUgraphNode first = add_kernel(graph, one, 4), second = add_kernel(graph, two, 8);
    EXPECT(cuGraphAddDependencies(graph, &first, &second, 1));
    set(second, domain_attribute(1));
    CUgraphExec executable = instantiate(graph);
    EXPECT(cuGraphLaunch(executable, NULL));
    EXPECT(cuGraphLaunch_ptsz(executable, NULL));
    assert_int_equal(recording_driver_call_count("node"), 4);
    assert_string_equal(recording_driver_call_named("node", 1)->text,
                        "node=2 executable=executable#1 kernel=two handle=function grid=8,1,1 "
                        "block=32,1,1 shared=0 context=primary#0 sms=132 sm_set=0-131 "
                        "attributes=MEM_SYNC_DOMAIN:1");
    /* Later changes of the graph do not reach what was instantiated. */
    set(second, domain_attribute(0));
    EXPECT(cuGraphDestroy(graph));
    EXPECT(cuGraphLaunch(executable, NULL));
    assert_non_null(
        strstr(recording_driver_call_named("node", 5)->text, "attributes=MEM_SYNC_DOMAIN:1"));
}

static void a_cluster_on_a_node_refuses_a_later_indivisible_grid(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUgraph graph = new_graph();
    CUgraphNode node = add_kernel(graph, function, 8);
    CUDA_KERNEL_NODE_PARAMS_v2 params = node_params(function, 6);
    CUgraphExec without = instantiate(graph);
    EXPECT(cuGraphExecKernelNodeSetParams_v2(without, node, &params));
    set(node, cluster_attribute(4));
    CUgraphExec executable = instantiate(graph);
    EXPECT_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                 cuGraphExecKernelNodeSetParams_v2(executable, node, &params));
    CUgraphNodeParams generic;
    memset(&generic, 0, sizeof(generic));
    generic.type = CU_GRAPH_NODE_TYPE_KERNEL;
    memcpy(&generic.kernel, &params, sizeof(params));
    EXPECT_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                 cuGraphExecNodeSetParams(executable, node, &generic));
    EXPECT(cuGraphLaunch(executable, NULL));
    assert_int_equal(recording_driver_call_named("node", 0)->grid[0], 8);
}

static void an_update_may_change_domains_and_clusters(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUgraph plain = new_graph(), changed = new_graph();
    add_kernel(plain, function, 8);
    CUgraphNode node = add_kernel(changed, function, 8);
    set(node, cluster_attribute(2));
    set(node, domain_attribute(1));
    CUgraphExec executable = instantiate(plain);
    CUgraphExecUpdateResultInfo info;
    EXPECT(cuGraphExecUpdate_v2(executable, changed, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    set(node, cluster_attribute(4));
    EXPECT(cuGraphExecUpdate_v2(executable, changed, &info));
    EXPECT(cuGraphLaunch(executable, NULL));
    assert_non_null(strstr(recording_driver_call_named("node", 0)->text,
                           "attributes=CLUSTER_DIMENSION:4/1/1,MEM_SYNC_DOMAIN:1"));
    add_kernel(changed, function, 8);
    EXPECT_ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
                 cuGraphExecUpdate_v2(executable, changed, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

static void an_update_to_another_context_is_an_unsupported_function_change(void **state)
{
    (void)state;
    CUkernel kernel = load_kernel("kernel k\n", "k");
    CUgreenCtx green;
    CUgraph graphs[2];
    CUstream streams[2] = {new_stream(), green_stream(2, &green)};
    for (int i = 0; i < 2; i++) {
        EXPECT(cuStreamBeginCapture_v2(streams[i], CU_STREAM_CAPTURE_MODE_GLOBAL));
        EXPECT(launch_plain((CUfunction)kernel, streams[i]));
        EXPECT(cuStreamEndCapture(streams[i], &graphs[i]));
    }
    CUgraphExecUpdateResultInfo info;
    EXPECT_ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
                 cuGraphExecUpdate_v2(instantiate(graphs[0]), graphs[1], &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE);
}

static void a_node_keeps_its_context_only_with_a_kernel(void **state)
{
    (void)state;
    CUkernel kernel = load_kernel("kernel k\n", "k");
    CUfunction function;
    CUgreenCtx green;
    CUcontext context;
    green_stream(2, &green);
    EXPECT(cuCtxFromGreenCtx(&context, green));
    EXPECT(cuKernelGetFunction(&function, kernel));
    CUDA_KERNEL_NODE_PARAMS_v2 params = node_params(function, 4), read;
    CUgraphNode node;
    CUgraph graph = new_graph();
    params.ctx = context;
    EXPECT(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
    EXPECT(cuGraphKernelNodeGetParams_v2(node, &read));
    assert_ptr_equal(read.ctx, primary);
    params.func = NULL;
    params.kern = kernel;
    EXPECT(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
    EXPECT(cuGraphKernelNodeGetParams_v2(node, &read));
    assert_ptr_equal(read.ctx, context);
    /* An update with a function, as the runtime makes it, loses the partition. */
    params = node_params(function, 4);
    EXPECT(cuGraphKernelNodeSetParams_v2(node, &params));
    EXPECT(cuGraphKernelNodeGetParams_v2(node, &read));
    assert_ptr_equal(read.ctx, primary);
}

static void arguments_of_known_size_are_copied_into_the_node(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k params=4,8\n", "k");
    CUgraph graph = new_graph();
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS_v2 params = node_params(function, 4), read;
    int number = 7;
    double other = 1.5;
    void *pointers[] = {&number, &other};
    params.kernelParams = pointers;
    EXPECT(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
    number = 0;
    EXPECT(cuGraphKernelNodeGetParams_v2(node, &read));
    assert_int_equal(*(int *)read.kernelParams[0], 7);
    /* What was read back may be passed in again. */
    EXPECT(cuGraphKernelNodeSetParams_v2(node, &read));
    EXPECT(cuGraphKernelNodeGetParams_v2(node, &read));
    assert_int_equal(*(int *)read.kernelParams[0], 7);
}

static void copies_are_replayed_and_child_graphs_run(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUstream stream = new_stream();
    CUgraph inner, outer = new_graph();
    CUgraphNode child, node;
    char from[4] = "one", to[4] = "";
    EXPECT(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(cuMemcpyHtoDAsync_v2((CUdeviceptr)(uintptr_t)to, from, 4, stream));
    EXPECT(launch_plain(function, stream));
    EXPECT(cuStreamEndCapture(stream, &inner));
    assert_string_equal(to, "");
    EXPECT(cuGraphAddChildGraphNode(&child, outer, NULL, 0, inner));
    EXPECT(cuGraphAddEmptyNode(&node, outer, &child, 1));
    CUgraphExec executable = instantiate(outer);
    EXPECT(cuGraphLaunch(executable, stream));
    assert_string_equal(to, "one");
    strcpy(from, "two");
    EXPECT(cuGraphLaunch(executable, stream));
    assert_string_equal(to, "two");
    assert_int_equal(recording_driver_call_count("node"), 2);
    EXPECT(cuGraphExecDestroy(executable));
    EXPECT(cuGraphDestroy(outer));
    EXPECT(cuGraphDestroy(inner));
    assert_int_equal(recording_driver_live("node"), 0);
}

static void a_clone_knows_its_originals(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUgraph graph = new_graph(), clone;
    CUgraphNode first = add_kernel(graph, function, 4), second = add_kernel(graph, function, 4);
    CUgraphNode found, dependency;
    size_t count = 1;
    EXPECT(cuGraphAddDependencies(graph, &second, &first, 1));
    EXPECT(cuGraphClone(&clone, graph));
    EXPECT(cuGraphNodeFindInClone(&found, first, clone));
    assert_ptr_not_equal(found, first);
    EXPECT(cuGraphNodeGetDependencies(found, &dependency, &count));
    EXPECT(cuGraphNodeFindInClone(&found, second, clone));
    assert_ptr_equal(dependency, found);
}

static void a_new_node_at_an_old_address_is_another_node(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUgraph graph = new_graph();
    CUgraphNode node = add_kernel(graph, function, 4);
    CUgraphExec executable = instantiate(graph);
    CUDA_KERNEL_NODE_PARAMS_v2 params = node_params(function, 2);
    EXPECT(cuGraphDestroyNode(node));
    assert_ptr_equal(add_kernel(graph, function, 8), node);
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE,
                 cuGraphExecKernelNodeSetParams_v2(executable, node, &params));
}

static void partitions_are_granted_in_steps_of_eight(void **state)
{
    (void)state;
    static const unsigned int pairs[][2] = {{1, 8}, {16, 16}, {20, 24}, {66, 72}};
    CUdevResource all, part, rest, parts[16];
    unsigned int count;
    EXPECT(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(all.sm.smCount, 132);
    for (size_t i = 0; i < 4; i++) {
        count = 1;
        EXPECT(cuDevSmResourceSplitByCount(&part, &count, &all, &rest, 0, pairs[i][0]));
        assert_int_equal(part.sm.smCount, pairs[i][1]);
    }
    count = 16;
    EXPECT(cuDevSmResourceSplitByCount(parts, &count, &all, &rest, 0, 8));
    assert_int_equal(count, 15);
    assert_int_equal(rest.sm.smCount, 12);
    count = 1;
    EXPECT_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 cuDevSmResourceSplitByCount(&part, &count, &parts[0], NULL, 0, 8));
    EXPECT_ERROR(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDeviceGetDevResource(0, &all, 1000));
}

static void green_streams_run_functions_of_the_primary_context(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUgreenCtx green, read;
    CUcontext context;
    CUstream other, stream = green_stream(3, &green);
    EXPECT(launch_plain(function, stream));
    EXPECT(cuStreamGetCtx(stream, &context));
    assert_ptr_not_equal(context, primary);
    EXPECT(cuStreamGetGreenCtx(stream, &read));
    assert_ptr_equal(read, green);
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, cuGreenCtxStreamCreate(&other, green, 0, 0));
    /* 24 SMs, two blocks of 1024 threads on each */
    EXPECT(cuLaunchCooperativeKernel(function, 48, 1, 1, 1024, 1, 1, 0, stream, NULL));
    EXPECT_ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                 cuLaunchCooperativeKernel(function, 49, 1, 1, 1024, 1, 1, 0, stream, NULL));
    EXPECT(cuGreenCtxDestroy(green));
    EXPECT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, launch_plain(function, stream));
    EXPECT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamDestroy_v2(stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_launch_records_the_kernel_nodes_with_their_attributes, setup),
        cmocka_unit_test_setup(a_cluster_on_a_node_refuses_a_later_indivisible_grid, setup),
        cmocka_unit_test_setup(an_update_may_change_domains_and_clusters, setup),
        cmocka_unit_test_setup(an_update_to_another_context_is_an_unsupported_function_change,
                               setup),
        cmocka_unit_test_setup(a_node_keeps_its_context_only_with_a_kernel, setup),
        cmocka_unit_test_setup(arguments_of_known_size_are_copied_into_the_node, setup),
        cmocka_unit_test_setup(copies_are_replayed_and_child_graphs_run, setup),
        cmocka_unit_test_setup(a_clone_knows_its_originals, setup),
        cmocka_unit_test_setup(a_new_node_at_an_old_address_is_another_node, setup),
        cmocka_unit_test_setup(partitions_are_granted_in_steps_of_eight, setup),
        cmocka_unit_test_setup(green_streams_run_functions_of_the_primary_context, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
