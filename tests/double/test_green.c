/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts: their streams, what fits on them, nodes in them, and how they end. */
#include "test_green_support.h"

static CUcontext primary;

static int setup(void **state)
{
    (void)state;
    primary = fresh_driver();
    return 0;
}

static CUlaunchAttribute cooperative_attribute(void)
{
    CUlaunchAttribute attribute;
    memset(&attribute, 0, sizeof(attribute));
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    return attribute;
}

static void assert_ends(const struct recording_call *call, const char *part)
{
    if (strstr(call->text, part) == NULL)
        fail_msg("no \"%s\" in: %s", part, call->text);
}

/* --- the record ------------------------------------------------------------------------------ */

static void lines_name_the_context_and_its_sms(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUgreenCtx green = eights(1, 2);
    CUstream stream = stream_in(green);
    /* Groups of 8 in GPCs of 18: the SMs 16 and 17 are in none of the first two. */
    assert_ends(last_call("cuGreenCtxCreate"), " sms=16 sm_set=8-15,18-25 ");
    EXPECT(launch_plain(function, stream));
    const struct recording_call *call = last_call("cuLaunchKernel");
    assert_ends(call, " context=context#2 green_context=green_context#1 sms=16 sm_set=8-15,18-25 ");
    assert_ptr_equal(call->context, context_of(green));
    assert_ptr_equal(call->green_context, green);
    assert_int_equal(call->sms, 16);
    EXPECT(launch_plain(function, new_stream()));
    assert_null(last_call("cuLaunchKernel")->green_context);
    assert_sms(last_call("cuLaunchKernel"), 0, 131);
    CUgraph graph;
    CUgraphExec executable;
    EXPECT(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(launch_plain(function, stream));
    EXPECT(cuStreamEndCapture(stream, &graph));
    EXPECT(cuGraphInstantiateWithFlags(&executable, graph, 0));
    EXPECT(cuGraphLaunch(executable, new_stream()));
    assert_ends(last_call("node"), " context=context#2 green_context=green_context#1 sms=16 ");
    assert_ptr_equal(last_call("node")->green_context, green);
}

/* --- what fits ------------------------------------------------------------------------------- */

static int active_clusters(CUfunction function, CUstream stream, unsigned int size, CUresult result)
{
    CUlaunchAttribute attribute = cluster_attribute(size);
    CUlaunchConfig config = {64, 1, 1, 32, 1, 1, 0, stream, &attribute, size == 0 ? 0u : 1u};
    int clusters = -1;
    EXPECT_ERROR(result, cuOccupancyMaxActiveClusters(&clusters, function, &config));
    return clusters;
}

static int largest_cluster(CUfunction function, CUstream stream)
{
    CUlaunchConfig config = {64, 1, 1, 32, 1, 1, 0, stream, NULL, 0};
    int size = -1;
    EXPECT(cuOccupancyMaxPotentialClusterSize(&size, function, &config));
    return size;
}

static CUresult launch_cluster(CUfunction function, CUstream stream, unsigned int size)
{
    CUlaunchAttribute attribute = cluster_attribute(size);
    return launch_with(function, stream, 4 * size, &attribute, 1);
}

/* The figures are those of the H200. */
static void clusters_are_judged_by_the_partition(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUdevResource all = device_resource(), parts[15], rest, single;
    unsigned int groups = 15, one = 1;
    EXPECT(cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, 0, 8));
    EXPECT(cuDevSmResourceSplitByCount(&single, &one, &all, NULL, 1, 2));
    CUdevResource most[13];
    memcpy(most, parts + 3, sizeof(parts) - 3 * sizeof(parts[0]));
    most[12] = rest;
    const struct {
        CUstream stream;
        int largest, active[4]; /* clusters of 1, 2, 4 and 8 */
    } seen[] = {
        {stream_in(green_of(parts, 1)), 8, {64, 32, 16, 8}},
        {stream_in(green_of(parts, 3)), 8, {192, 96, 48, 24}},
        {stream_in(green_of(&rest, 1)), 2, {96, 48, 0, 0}},
        {stream_in(green_of(&single, 1)), 2, {16, 8, 0, 0}},
        {stream_in(green_of(most, 13)), 8, {864, 432, 192, 96}},
        {NULL, 8, {1056, 528, 248, 120}}, /* 124 of 8 in truth */
    };
    for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
        CUstream stream = seen[i].stream;
        assert_int_equal(largest_cluster(function, stream), seen[i].largest);
        assert_int_equal(active_clusters(function, stream, 0, CUDA_SUCCESS), 0);
        for (unsigned int n = 0; n < 4; n++) {
            int active = seen[i].active[n];
            assert_int_equal(active_clusters(function, stream, 1u << n, CUDA_SUCCESS), active);
            EXPECT_ERROR(active == 0 ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS,
                         launch_cluster(function, stream, 1u << n));
        }
        active_clusters(function, stream, 16, CUDA_ERROR_INVALID_CLUSTER_SIZE);
    }
    EXPECT(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    assert_int_equal(active_clusters(function, seen[1].stream, 16, CUDA_SUCCESS), 0);
    assert_int_equal(largest_cluster(function, seen[1].stream), 8);
    assert_int_equal(largest_cluster(function, NULL), 16);
    EXPECT_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch_cluster(function, seen[1].stream, 16));
    EXPECT(launch_cluster(function, NULL, 16));
    /* With no stream the current context is asked. */
    EXPECT(cuCtxSetCurrent(context_of(green_of(&rest, 1))));
    assert_int_equal(largest_cluster(function, NULL), 2);
}

static void cooperative_grids_have_to_be_resident_on_the_partition(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUstream stream = stream_in(eights(0, 1));
    CUlaunchAttribute attributes[2] = {cooperative_attribute(), cluster_attribute(2)};
    EXPECT(launch_with(function, stream, 8 * 32, attributes, 1));
    EXPECT_ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                 launch_with(function, stream, 8 * 32 + 1, attributes, 1));
    EXPECT(launch_with(function, NULL, 8 * 32 + 1, attributes, 1));
    /* Clusters leave fewer blocks on an SM. */
    EXPECT(launch_with(function, stream, 8 * 8, attributes, 2));
    EXPECT_ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                 launch_with(function, stream, 8 * 8 + 2, attributes, 2));
}

static void a_cluster_that_does_not_fit_breaks_a_capture(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUdevResource all = device_resource(), part;
    unsigned int one = 1;
    EXPECT(cuDevSmResourceSplitByCount(&part, &one, &all, NULL, 1, 2));
    CUstream stream = stream_in(green_of(&part, 1));
    CUstreamCaptureStatus status;
    EXPECT(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch_cluster(function, stream, 4));
    EXPECT(cuStreamIsCapturing(stream, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
}

/* --- streams --------------------------------------------------------------------------------- */

#if CUDA_VERSION >= 12080
static void a_stream_tells_its_green_context(void **state)
{
    (void)state;
    CUgreenCtx green = eights(0, 2), read = NULL;
    CUcontext context = NULL;
    CUstream stream = stream_in(green), ordinary = new_stream();
    CUdevice device;
    unsigned int flags;
    EXPECT(cuStreamGetCtx(stream, &context));
    assert_ptr_equal(context, context_of(green));
    EXPECT(cuStreamGetCtx_v2(stream, &context, &read));
    assert_ptr_equal(context, primary);
    assert_ptr_equal(read, green);
    EXPECT(cuStreamGetCtx_v2(stream, NULL, &read));
    EXPECT(cuStreamGetCtx_v2(ordinary, &context, &read));
    assert_ptr_equal(context, primary);
    assert_null(read);
    EXPECT(cuStreamGetDevice(stream, &device));
    assert_int_equal(device, 0);
    EXPECT(cuStreamGetFlags(stream, &flags));
    assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
    unsigned long long green_id, context_id;
    EXPECT(cuGreenCtxGetId(green, &green_id));
    EXPECT(cuCtxGetId(context_of(green), &context_id));
    assert_int_equal(green_id, context_id);
    EXPECT_ERROR(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxGetId(NULL, &green_id));
}

static void with_a_green_context_current_streams_belong_to_it(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUgreenCtx green = eights(0, 2), read = NULL;
    CUcontext context = NULL;
    CUstream stream;
    unsigned int flags;
    unsigned long long id;
    EXPECT(cuCtxSetCurrent(context_of(green)));
    EXPECT(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    EXPECT(cuStreamGetFlags(stream, &flags));
    assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
    EXPECT(cuStreamGetGreenCtx(stream, &read));
    assert_ptr_equal(read, green);
    EXPECT(cuStreamGetCtx_v2(NULL, &context, &read));
    assert_ptr_equal(context, primary);
    assert_ptr_equal(read, green);
    EXPECT(cuStreamGetGreenCtx(NULL, &read));
    assert_ptr_equal(read, green);
    EXPECT(cuGreenCtxGetId(NULL, &id));
    EXPECT(launch_plain(function, NULL));
    assert_ptr_equal(last_call("cuLaunchKernel")->green_context, green);
    EXPECT_ERROR(CUDA_ERROR_INVALID_HANDLE, cuStreamGetCtx(CU_STREAM_PER_THREAD, &context));
    EXPECT_ERROR(CUDA_ERROR_INVALID_HANDLE, launch_plain(function, CU_STREAM_PER_THREAD));
}
#endif

static void the_null_stream_of_a_green_context_waits_for_no_capture(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUgreenCtx green = eights(0, 1);
    CUstream blocking;
    CUstreamCaptureStatus status;
    EXPECT(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    EXPECT(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(cuCtxSetCurrent(context_of(green)));
    EXPECT(launch_plain(function, NULL));
    EXPECT(cuStreamIsCapturing(blocking, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

static void created_streams_need_no_current_context(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUgreenCtx green = eights(0, 1);
    CUstream stream = stream_in(green), ordinary = new_stream(), other;
    CUevent event;
    CUcontext context;
    EXPECT(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    EXPECT(cuCtxSetCurrent(NULL));
    EXPECT(launch_plain(function, stream));
    EXPECT(launch_plain(function, ordinary));
    EXPECT(cuEventRecord(event, stream));
    EXPECT(cuStreamWaitEvent(ordinary, event, 0));
    EXPECT(cuStreamGetCtx(stream, &context));
    EXPECT(cuGreenCtxStreamCreate(&other, green, CU_STREAM_NON_BLOCKING, 0));
    EXPECT_ERROR(CUDA_ERROR_INVALID_CONTEXT, cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    EXPECT_ERROR(CUDA_ERROR_INVALID_CONTEXT, launch_plain(function, NULL));
}

static void attributes_and_events_of_another_context_are_refused(void **state)
{
    (void)state;
    CUgreenCtx green = eights(0, 1);
    CUstream one = stream_in(green), two = stream_in(green), other = stream_in(eights(1, 1));
    CUstream ordinary = new_stream();
    EXPECT(cuStreamCopyAttributes(one, two));
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, cuStreamCopyAttributes(one, other));
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, cuStreamCopyAttributes(one, ordinary));
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, cuStreamCopyAttributes(ordinary, one));
    CUcontext created;
    CUevent event, foreign;
    EXPECT(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    EXPECT(cuEventRecord(event, one));
    EXPECT(cuCtxCreate_v2(&created, 0, 0));
    EXPECT(cuEventCreate(&foreign, CU_EVENT_DISABLE_TIMING));
    EXPECT_ERROR(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(foreign, one));
}

static void a_stream_tells_the_sms_it_has(void **state)
{
    (void)state;
    CUdevResource resource;
    recording_driver_configure("VERSION", "13010");
    CUstream stream = stream_in(eights(0, 3));
    EXPECT(cuStreamGetDevResource(stream, &resource, CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(look(&resource)->of.sm.sm_count, 24);
    EXPECT(cuStreamGetDevResource_ptsz(NULL, &resource, CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(look(&resource)->of.sm.sm_count, 132);
    EXPECT_ERROR(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuStreamGetDevResource(stream, &resource, 1000));
}

/* --- captures and synchronization ------------------------------------------------------------ */

static CUstreamCaptureStatus status_of(CUstream stream)
{
    CUstreamCaptureStatus status;
    EXPECT(cuStreamIsCapturing(stream, &status));
    return status;
}

static void synchronizing_the_primary_context_covers_green_ones(void **state)
{
    (void)state;
    CUgreenCtx green = eights(0, 1);
    CUstream stream = stream_in(green), ordinary = new_stream();
    CUcontext context = context_of(green);
    CUgraph graph;
    EXPECT(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
    assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT(cuCtxSetCurrent(context));
    EXPECT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
    assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    cuStreamEndCapture(stream, &graph);
    /* But not the other way round. */
    EXPECT(cuStreamBeginCapture_v2(ordinary, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(cuCtxSynchronize());
    assert_int_equal(status_of(ordinary), CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

static void events_of_a_green_context_break_its_captures(void **state)
{
    (void)state;
    CUgreenCtx green = eights(0, 1);
    CUstream stream = stream_in(green), ordinary = new_stream();
    CUevent event;
    EXPECT(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    EXPECT(cuStreamBeginCapture_v2(ordinary, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(cuGreenCtxRecordEvent(green, event));
    EXPECT(cuGreenCtxWaitEvent(green, event));
    assert_int_equal(status_of(ordinary), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuGreenCtxRecordEvent(green, event));
    assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
}

/* --- nodes ----------------------------------------------------------------------------------- */

static CUDA_KERNEL_NODE_PARAMS_v2 node_params(CUfunction function, CUkernel kernel,
                                              CUcontext context)
{
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    memset(&params, 0, sizeof(params));
    params.func = function;
    params.kern = kernel;
    params.ctx = context;
    params.gridDimX = 4;
    params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
    params.blockDimX = 32;
    return params;
}

/* The graph of one launch in the stream, and its node. */
static CUgraphNode captured(CUfunction function, CUstream stream, CUgraph *graph)
{
    CUgraphNode node;
    size_t count = 1;
    EXPECT(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(launch_plain(function, stream));
    EXPECT(cuStreamEndCapture(stream, graph));
    EXPECT(cuGraphGetNodes(*graph, &node, &count));
    return node;
}

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
        cmocka_unit_test_setup(lines_name_the_context_and_its_sms, setup),
        cmocka_unit_test_setup(clusters_are_judged_by_the_partition, setup),
        cmocka_unit_test_setup(cooperative_grids_have_to_be_resident_on_the_partition, setup),
        cmocka_unit_test_setup(a_cluster_that_does_not_fit_breaks_a_capture, setup),
#if CUDA_VERSION >= 12080
        cmocka_unit_test_setup(a_stream_tells_its_green_context, setup),
        cmocka_unit_test_setup(with_a_green_context_current_streams_belong_to_it, setup),
#endif
        cmocka_unit_test_setup(the_null_stream_of_a_green_context_waits_for_no_capture, setup),
        cmocka_unit_test_setup(created_streams_need_no_current_context, setup),
        cmocka_unit_test_setup(attributes_and_events_of_another_context_are_refused, setup),
        cmocka_unit_test_setup(a_stream_tells_the_sms_it_has, setup),
        cmocka_unit_test_setup(synchronizing_the_primary_context_covers_green_ones, setup),
        cmocka_unit_test_setup(events_of_a_green_context_break_its_captures, setup),
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
