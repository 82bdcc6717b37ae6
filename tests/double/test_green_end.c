/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes in green contexts, and how green contexts begin and end. */
#include "test_green_support.h"

static CUcontext primary;

static int setup(void **state)
{
    (void)state;
    primary = fresh_driver();
    return 0;
}

/* --- nodes ----------------------------------------------------------------------------------- */

static CUcontext context_read(CUgraphNode node)
{
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    EXPECT(cuGraphKernelNodeGetParams_v2(node, &params));
    return params.ctx;
}

static void a_node_set_to_what_was_read_leaves_its_partition(void **state)
{
    (void)state;
    CUkernel kernel = load_kernel("kernel k\n", "k");
    CUgreenCtx green = eights(0, 1);
    CUcontext context = context_of(green);
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    CUgraph graph;
    CUgraphNode node = captured((CUfunction)kernel, stream_in(green), &graph);
    EXPECT(cuGraphKernelNodeGetParams_v2(node, &params));
    assert_ptr_equal(params.ctx, context);
    assert_ptr_equal(params.kern, kernel);
    assert_non_null(params.func);
    EXPECT(cuGraphKernelNodeSetParams_v2(node, &params));
    assert_ptr_equal(context_read(node), primary);
    params.func = NULL;
    EXPECT(cuGraphKernelNodeSetParams_v2(node, &params));
    assert_ptr_equal(context_read(node), context);
    /* Without a context it is the current one. */
    params.ctx = NULL;
    EXPECT(cuGraphKernelNodeSetParams_v2(node, &params));
    assert_ptr_equal(context_read(node), primary);
    EXPECT(cuCtxSetCurrent(context));
    EXPECT(cuGraphKernelNodeSetParams_v2(node, &params));
    assert_ptr_equal(context_read(node), context);
    params = node_params((CUfunction)kernel, NULL, NULL);
    EXPECT_ERROR(CUDA_ERROR_INVALID_HANDLE, cuGraphKernelNodeSetParams_v2(node, &params));
}

static void an_executable_node_stays_in_its_context(void **state)
{
    (void)state;
    CUkernel kernel = load_kernel("kernel k\n", "k");
    CUfunction function;
    EXPECT(cuKernelGetFunction(&function, kernel));
    CUgreenCtx green = eights(0, 1), other = eights(1, 1);
    CUgraph graph;
    CUgraphExec executable;
    CUgraphNode node = captured((CUfunction)kernel, stream_in(green), &graph);
    EXPECT(cuGraphInstantiateWithFlags(&executable, graph, 0));
    const struct {
        CUDA_KERNEL_NODE_PARAMS_v2 params;
        CUresult result;
    } cases[] = {
        {node_params(NULL, kernel, context_of(green)), CUDA_SUCCESS},
        {node_params(NULL, kernel, context_of(other)), CUDA_ERROR_INVALID_VALUE},
        {node_params(NULL, kernel, primary), CUDA_ERROR_INVALID_VALUE},
        {node_params(NULL, kernel, NULL), CUDA_ERROR_INVALID_VALUE},
        {node_params(function, NULL, NULL), CUDA_ERROR_INVALID_VALUE},
        {node_params(function, kernel, context_of(green)), CUDA_ERROR_INVALID_VALUE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        EXPECT_ERROR(cases[i].result,
                     cuGraphExecKernelNodeSetParams_v2(executable, node, &cases[i].params));
        EXPECT(cuGraphLaunch(executable, NULL));
        assert_ptr_equal(last_call("node")->green_context, green);
    }
    EXPECT(cuCtxSetCurrent(context_of(green)));
    EXPECT(cuGraphExecKernelNodeSetParams_v2(executable, node, &cases[4].params));
    EXPECT(cuGraphExecKernelNodeSetParams_v2(executable, node, &cases[3].params));
}

static void a_cooperative_node_that_is_too_large_would_hang(void **state)
{
    (void)state;
    CUkernel kernel = load_kernel("kernel k\n", "k");
    CUDA_KERNEL_NODE_PARAMS_v2 params = node_params(NULL, kernel, context_of(eights(0, 1)));
    CUlaunchAttribute attribute = cooperative_attribute();
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec executable;
    for (unsigned int more = 0; more < 2; more++) {
        params.gridDimX = 8 * 32 + more;
        EXPECT(cuGraphCreate(&graph, 0));
        EXPECT(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
        EXPECT(cuGraphKernelNodeSetAttribute(node, attribute.id, &attribute.value));
        EXPECT(cuGraphInstantiateWithFlags(&executable, graph, 0));
        EXPECT(cuGraphLaunch(executable, NULL));
        assert_int_equal(strstr(last_call("node")->text, " hangs=1") != NULL, more);
    }
}

/* --- the end --------------------------------------------------------------------------------- */

static void a_destroyed_green_context_refuses_all(void **state)
{
    (void)state;
    CUgreenCtx green = eights(0, 1);
    CUcontext context = context_of(green), read;
    CUdevResource resource;
    CUstream stream;
    CUdevice device;
    unsigned long long id;
    EXPECT(cuCtxSetCurrent(context));
    EXPECT(cuGreenCtxDestroy(green));
    EXPECT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGreenCtxDestroy(green));
    EXPECT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGreenCtxGetId(green, &id));
    EXPECT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxFromGreenCtx(&read, green));
    EXPECT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED,
                 cuGreenCtxGetDevResource(green, &resource, CU_DEV_RESOURCE_TYPE_SM));
    EXPECT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED,
                 cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    /* It stays current, tells its device, and does nothing else. */
    EXPECT(cuCtxGetCurrent(&read));
    assert_ptr_equal(read, context);
    EXPECT(cuCtxGetDevice(&device));
    EXPECT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    EXPECT(cuCtxSetCurrent(primary));
    EXPECT(cuCtxSetCurrent(context));
    EXPECT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxGetId(context, &id));
}

static void streams_outlive_their_green_context_in_name_only(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUgreenCtx green = eights(0, 1);
    CUstream stream = stream_in(green);
    CUcontext context;
    EXPECT_ERROR(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(context_of(green)));
    EXPECT(cuGreenCtxDestroy(green));
    EXPECT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, launch_plain(function, stream));
    EXPECT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamGetCtx(stream, &context));
    EXPECT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamDestroy_v2(stream));
    assert_int_equal(recording_driver_live("stream"), 1);
    recording_driver_configure("VERSION", "13010");
    EXPECT_ERROR(STREAM_DETACHED, launch_plain(function, stream));
    EXPECT(cuStreamDestroy_v2(stream));
    assert_int_equal(recording_driver_live("stream"), 0);
}

static void a_capture_survives_a_joined_green_context_until_13_1(void **state)
{
    (void)state;
    static const char *const versions[] = {"13000", "13010"};
    CUfunction function = load_function("kernel k\n", "k");
    CUevent forked, joined;
    EXPECT(cuEventCreate(&forked, CU_EVENT_DISABLE_TIMING));
    EXPECT(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < 2; i++) {
        recording_driver_configure("VERSION", versions[i]);
        CUgreenCtx green = eights(0, 1);
        CUstream origin = new_stream(), side = stream_in(green);
        CUgraph graph;
        EXPECT(cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
        EXPECT(cuEventRecord(forked, origin));
        EXPECT(cuStreamWaitEvent(side, forked, 0));
        EXPECT(launch_plain(function, side));
        EXPECT(cuEventRecord(joined, side));
        EXPECT(cuStreamWaitEvent(origin, joined, 0));
        EXPECT(cuGreenCtxDestroy(green));
        EXPECT_ERROR(i == 0 ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                     cuStreamEndCapture(origin, &graph));
    }
}

static void graphs_keep_running_without_their_green_context(void **state)
{
    (void)state;
    CUkernel kernel = load_kernel("kernel k\n", "k");
    CUgreenCtx green = eights(0, 1);
    CUgraph graph;
    CUgraphExec executable, again;
    CUgraphNode node = captured((CUfunction)kernel, stream_in(green), &graph);
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    EXPECT(cuGraphInstantiateWithFlags(&executable, graph, 0));
    EXPECT(cuGreenCtxDestroy(green));
    EXPECT(cuGraphLaunch(executable, new_stream()));
    EXPECT(cuGraphKernelNodeGetParams_v2(node, &params));
    EXPECT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGraphInstantiateWithFlags(&again, graph, 0));
    EXPECT(cuGraphExecDestroy(executable));
}

static int active(void)
{
    unsigned int flags;
    int value;
    EXPECT(cuDevicePrimaryCtxGetState(0, &flags, &value));
    return value;
}

static void green_contexts_hold_the_primary_context(void **state)
{
    (void)state;
    EXPECT(cuDevicePrimaryCtxRelease_v2(0));
    assert_int_equal(active(), 0);
    CUgreenCtx green = eights(0, 1);
    assert_int_equal(active(), 1);
    EXPECT(cuGreenCtxDestroy(green));
    assert_int_equal(active(), 0);
    EXPECT(cuDevicePrimaryCtxRetain(&primary, 0));
    green = eights(0, 1);
    EXPECT(cuDevicePrimaryCtxRelease_v2(0));
    assert_int_equal(active(), 1);
    EXPECT(cuGreenCtxDestroy(green));
    assert_int_equal(active(), 0);
}

static void no_reset_or_release_takes_it_from_them(void **state)
{
    (void)state;
    CUgreenCtx green = eights(0, 1);
    CUstream stream = stream_in(green);
    EXPECT_ERROR(CUDA_ERROR_NOT_PERMITTED, cuDevicePrimaryCtxReset_v2(0));
    assert_int_equal(active(), 1);
    EXPECT(cuStreamQuery(stream));
    EXPECT(cuDevicePrimaryCtxRelease_v2(0));
    EXPECT_ERROR(CUDA_ERROR_NOT_PERMITTED, cuDevicePrimaryCtxRelease_v2(0));
    EXPECT_ERROR(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
    EXPECT(cuStreamQuery(stream));
    EXPECT(cuGreenCtxDestroy(green));
    assert_int_equal(active(), 1);
    EXPECT(cuDevicePrimaryCtxReset_v2(0));
    assert_int_equal(active(), 0);
}

static void flags_other_than_the_default_stream_come_with_13_3(void **state)
{
    (void)state;
    CUdevResource all = device_resource();
    CUdevResourceDesc description;
    CUgreenCtx green;
    EXPECT(cuDevResourceGenerateDesc(&description, &all, 1));
    for (unsigned int flags = 0; flags < 4; flags++)
        EXPECT_ERROR(flags == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
                     cuGreenCtxCreate(&green, description, 0, flags));
    recording_driver_configure("VERSION", "13030");
    EXPECT(cuGreenCtxCreate(&green, description, 0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_node_set_to_what_was_read_leaves_its_partition, setup),
        cmocka_unit_test_setup(an_executable_node_stays_in_its_context, setup),
        cmocka_unit_test_setup(a_cooperative_node_that_is_too_large_would_hang, setup),
        cmocka_unit_test_setup(a_destroyed_green_context_refuses_all, setup),
        cmocka_unit_test_setup(streams_outlive_their_green_context_in_name_only, setup),
        cmocka_unit_test_setup(a_capture_survives_a_joined_green_context_until_13_1, setup),
        cmocka_unit_test_setup(graphs_keep_running_without_their_green_context, setup),
        cmocka_unit_test_setup(green_contexts_hold_the_primary_context, setup),
        cmocka_unit_test_setup(no_reset_or_release_takes_it_from_them, setup),
        cmocka_unit_test_setup(flags_other_than_the_default_stream_come_with_13_3, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
