/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture on the recording driver. */
#include "test_support.h"

static int setup(void **state)
{
    (void)state;
    fresh_driver();
    return 0;
}

static CUstreamCaptureStatus capture_status(CUstream stream)
{
    CUstreamCaptureStatus status;
    EXPECT(cuStreamIsCapturing(stream, &status));
    return status;
}

static void begin(CUstream stream)
{
    EXPECT(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

/* The only node of a graph. */
static CUgraphNode only_node(CUgraph graph)
{
    CUgraphNode node;
    size_t count = 0;
    EXPECT(cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 1);
    EXPECT(cuGraphGetNodes(graph, &node, &count));
    return node;
}

static void a_captured_node_has_the_attributes_of_stream_and_launch(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUstream stream = new_stream();
    CUgraph graph;
    CUlaunchAttribute map = map_attribute(1, 2), remote = domain_attribute(1);
    EXPECT(cuStreamSetAttribute(stream, map.id, &map.value));
    begin(stream);
    EXPECT(launch_with(function, stream, 4, &remote, 1));
    assert_true(last_call("cuLaunchKernelEx")->capturing);
    EXPECT(cuStreamEndCapture(stream, &graph));
    CUgraphNode node = only_node(graph);
    CUlaunchAttributeValue value;
    EXPECT(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
    assert_int_equal(value.memSyncDomain, 1);
    EXPECT(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value));
    assert_int_equal(value.memSyncDomainMap.default_, 1);
    assert_int_equal(value.memSyncDomainMap.remote, 2);
}

static void a_refused_cluster_invalidates_the_capture(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUstream stream = new_stream();
    CUgraph graph;
    CUlaunchAttribute four = cluster_attribute(4);
    begin(stream);
    EXPECT_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch_with(function, stream, 6, &four, 1));
    assert_int_equal(capture_status(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, launch_plain(function, stream));
    EXPECT_ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    assert_null(graph);
    assert_int_equal(capture_status(stream), CU_STREAM_CAPTURE_STATUS_NONE);
    assert_int_equal(recording_driver_live("graph"), 0);
    EXPECT(launch_plain(function, stream));
}

static void an_invalid_value_leaves_the_capture_intact(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUstream stream = new_stream();
    CUgraph graph;
    CUlaunchAttribute bad = map_attribute(0, 9);
    begin(stream);
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, launch_with(function, stream, 4, &bad, 1));
    assert_int_equal(capture_status(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT(launch_plain(function, stream));
    EXPECT(cuStreamEndCapture(stream, &graph));
    only_node(graph);
}

static void events_bring_other_streams_into_the_capture(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUstream origin = new_stream(), side = new_stream();
    CUevent fork, join;
    CUgraph graph;
    EXPECT(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    EXPECT(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    begin(origin);
    EXPECT(launch_plain(function, origin));
    EXPECT(cuEventRecord(fork, origin));
    EXPECT(cuStreamWaitEvent(side, fork, 0));
    assert_int_equal(capture_status(side), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT(launch_plain(function, side));
    EXPECT(cuEventRecord(join, side));
    EXPECT(cuStreamWaitEvent(origin, join, 0));
    EXPECT_ERROR(CUDA_ERROR_CAPTURED_EVENT, cuEventSynchronize(join));
    EXPECT(launch_plain(function, origin));
    EXPECT(cuStreamEndCapture(origin, &graph));
    assert_int_equal(capture_status(side), CU_STREAM_CAPTURE_STATUS_NONE);
    size_t nodes = 0, edges = 0;
    EXPECT(cuGraphGetNodes(graph, NULL, &nodes));
    EXPECT(cuGraphGetEdges(graph, NULL, NULL, &edges));
    assert_int_equal(nodes, 3);
    assert_int_equal(edges, 3); /* first to second, first and second to third */
}

static void a_stream_that_is_not_joined_fails_the_capture(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUstream origin = new_stream(), side = new_stream();
    CUevent fork;
    CUgraph graph;
    EXPECT(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    begin(origin);
    EXPECT(cuEventRecord(fork, origin));
    EXPECT(cuStreamWaitEvent(side, fork, 0));
    EXPECT(launch_plain(function, side));
    EXPECT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(side, &graph));
    EXPECT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(origin, &graph));
    assert_int_equal(recording_driver_live("graph"), 0);
}

static void the_legacy_stream_breaks_the_capture_of_a_blocking_stream(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUstream blocking, other = new_stream();
    EXPECT(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    begin(other);
    EXPECT(launch_plain(function, NULL));
    begin(blocking);
    EXPECT_ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, launch_plain(function, NULL));
    assert_int_equal(capture_status(blocking), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    assert_int_equal(capture_status(other), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                 cuStreamBeginCapture_v2(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static void allocation_breaks_a_capture_unless_it_is_relaxed(void **state)
{
    (void)state;
    CUstream stream = new_stream();
    CUgraph graph;
    CUdeviceptr memory;
    begin(stream);
    EXPECT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc_v2(&memory, 16));
    EXPECT_ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    begin(stream);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    EXPECT(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT(cuMemAlloc_v2(&memory, 16));
    EXPECT(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT(cuStreamEndCapture(stream, &graph));
    EXPECT(cuMemFree_v2(memory));
}

static void capture_information_shows_and_takes_dependencies(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUstream stream = new_stream();
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph graph, ended;
    const CUgraphNode *tail;
    size_t count;
    CUgraphNode node;
    EXPECT(cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &tail, &count));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT_ERROR(CUDA_ERROR_ILLEGAL_STATE, cuStreamUpdateCaptureDependencies(stream, NULL, 0, 0));
    begin(stream);
    EXPECT(launch_plain(function, stream));
    EXPECT(cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &tail, &count));
    assert_int_equal(count, 1);
    EXPECT(cuGraphAddEmptyNode(&node, graph, tail, count));
    EXPECT(cuStreamUpdateCaptureDependencies(stream, &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    EXPECT(cuStreamGetCaptureInfo_v2(stream, &status, &id, NULL, &tail, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(tail[0], node);
    EXPECT(cuStreamEndCapture(stream, &ended));
    assert_ptr_equal(ended, graph);
}

static void the_node_handle_for_device_updates_is_written_back(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUstream stream = new_stream();
    CUgraph graph;
    CUlaunchAttribute attribute = domain_attribute(0);
    attribute.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
    attribute.value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, launch_with(function, stream, 4, &attribute, 1));
    begin(stream);
    EXPECT(launch_with(function, stream, 4, &attribute, 1));
    assert_non_null(attribute.value.deviceUpdatableKernelNode.devNode);
    EXPECT(cuStreamEndCapture(stream, &graph));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_captured_node_has_the_attributes_of_stream_and_launch, setup),
        cmocka_unit_test_setup(a_refused_cluster_invalidates_the_capture, setup),
        cmocka_unit_test_setup(an_invalid_value_leaves_the_capture_intact, setup),
        cmocka_unit_test_setup(events_bring_other_streams_into_the_capture, setup),
        cmocka_unit_test_setup(a_stream_that_is_not_joined_fails_the_capture, setup),
        cmocka_unit_test_setup(the_legacy_stream_breaks_the_capture_of_a_blocking_stream, setup),
        cmocka_unit_test_setup(allocation_breaks_a_capture_unless_it_is_relaxed, setup),
        cmocka_unit_test_setup(capture_information_shows_and_takes_dependencies, setup),
        cmocka_unit_test_setup(the_node_handle_for_device_updates_is_written_back, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
