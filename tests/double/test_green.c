/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts: what the record says of them, what fits on them, and their streams. */
#include "test_green_support.h"

static CUcontext primary;

static int setup(void **state)
{
    (void)state;
    primary = fresh_driver();
    return 0;
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
