/* SPDX-License-Identifier: Apache-2.0 */
/* What streams tell, and permit, while they or others capture. Measured on an H200, driver 580.159.
 */
#include "test_support.h"
#include <pthread.h>

static CUstream stream;

static CUresult ask_flags(CUstream of)
{
    unsigned int flags;
    return cuStreamGetFlags(of, &flags);
}

static CUresult ask_id(CUstream of)
{
    unsigned long long id;
    return cuStreamGetId(of, &id);
}

static CUresult ask_priority(CUstream of)
{
    int priority;
    return cuStreamGetPriority(of, &priority);
}

static CUresult ask_context(CUstream of)
{
    CUcontext context;
    return cuStreamGetCtx(of, &context);
}

static CUresult ask_attribute(CUstream of)
{
    CUlaunchAttributeValue value;
    return cuStreamGetAttribute(of, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value);
}

static CUresult set_attribute(CUstream of)
{
    CUlaunchAttribute remote = domain_attribute(1);
    return cuStreamSetAttribute(of, remote.id, &remote.value);
}

#if CUDA_VERSION >= 12080
static CUresult ask_device(CUstream of)
{
    CUdevice device;
    return cuStreamGetDevice(of, &device);
}
#endif

static CUstreamCaptureStatus status_of(CUstream of)
{
    CUstreamCaptureStatus status;
    EXPECT(cuStreamIsCapturing(of, &status));
    return status;
}

static int begin(unsigned int flags)
{
    fresh_driver();
    EXPECT(cuStreamCreate(&stream, flags));
    EXPECT(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    return 0;
}

static int begin_non_blocking(void **state)
{
    (void)state;
    return begin(CU_STREAM_NON_BLOCKING);
}

static int begin_blocking(void **state)
{
    (void)state;
    return begin(CU_STREAM_DEFAULT);
}

static void expect_prohibited(CUresult (*question)(CUstream))
{
    begin(CU_STREAM_NON_BLOCKING);
    EXPECT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, question(stream));
    assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
}

static void a_capturing_stream_that_is_asked_for_its_flags_or_id_is_invalid(void **state)
{
    (void)state;
    expect_prohibited(ask_flags);
    expect_prohibited(ask_id);
#if CUDA_VERSION >= 12080
    expect_prohibited(ask_device);
#endif
}

static void a_capturing_stream_tells_its_priority_context_and_attributes(void **state)
{
    (void)state;
    EXPECT(ask_priority(stream));
    EXPECT(ask_context(stream));
    EXPECT(ask_attribute(stream));
    EXPECT(set_attribute(stream));
    assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

static void the_legacy_stream_can_be_asked_whether_it_captures_beside_a_blocking_one(void **state)
{
    (void)state;
    CUstreamCaptureStatus status;
    EXPECT_ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(NULL, &status));
    assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

static void other_questions_to_the_legacy_stream_invalidate_a_blocking_capture(void **state)
{
    (void)state;
    CUresult (*const questions[])(CUstream) = {ask_attribute, set_attribute, ask_context,
                                               ask_priority, ask_flags};
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        begin(CU_STREAM_DEFAULT);
        EXPECT_ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, questions[i](NULL));
        assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    }
}

static void the_legacy_stream_tells_all_beside_a_non_blocking_capture(void **state)
{
    (void)state;
    EXPECT(ask_attribute(NULL));
    EXPECT(ask_context(NULL));
    EXPECT(ask_priority(NULL));
    EXPECT(ask_flags(NULL));
    assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

static void *end_capture(void *result)
{
    CUgraph graph;
    CUcontext context;
    EXPECT(cuDevicePrimaryCtxRetain(&context, 0));
    EXPECT(cuCtxSetCurrent(context));
    *(CUresult *)result = cuStreamEndCapture(stream, &graph);
    return NULL;
}

static void a_capture_that_another_thread_ends_is_over(void **state)
{
    (void)state;
    pthread_t thread;
    CUresult result;
    CUgraph graph;
    assert_int_equal(pthread_create(&thread, NULL, end_capture, &result), 0);
    pthread_join(thread, NULL);
    assert_int_equal(result, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT_ERROR(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream, &graph));
    assert_int_equal(recording_driver_live("graph"), 0);
}

static void a_capture_that_is_not_joined_is_over(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUstream side = new_stream();
    CUevent fork;
    CUgraph graph;
    EXPECT(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    EXPECT(cuEventRecord(fork, stream));
    EXPECT(cuStreamWaitEvent(side, fork, 0));
    EXPECT(launch_plain(function, side));
    EXPECT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(stream, &graph));
    assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
    assert_int_equal(status_of(side), CU_STREAM_CAPTURE_STATUS_NONE);
}

static void a_capturing_stream_can_be_destroyed(void **state)
{
    (void)state;
    EXPECT(cuStreamDestroy_v2(stream));
    assert_int_equal(recording_driver_live("graph"), 0);
}

static void a_graph_is_not_launched_into_a_capturing_stream(void **state)
{
    (void)state;
    CUgraph graph;
    CUgraphExec executable;
    EXPECT(cuGraphCreate(&graph, 0));
    EXPECT(cuGraphInstantiateWithFlags(&executable, graph, 0));
    EXPECT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuGraphLaunch(executable, stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_capturing_stream_that_is_asked_for_its_flags_or_id_is_invalid),
        cmocka_unit_test_setup(a_capturing_stream_tells_its_priority_context_and_attributes,
                               begin_non_blocking),
        cmocka_unit_test_setup(
            the_legacy_stream_can_be_asked_whether_it_captures_beside_a_blocking_one,
            begin_blocking),
        cmocka_unit_test_setup(other_questions_to_the_legacy_stream_invalidate_a_blocking_capture,
                               begin_blocking),
        cmocka_unit_test_setup(the_legacy_stream_tells_all_beside_a_non_blocking_capture,
                               begin_non_blocking),
        cmocka_unit_test_setup(a_capture_that_another_thread_ends_is_over, begin_non_blocking),
        cmocka_unit_test_setup(a_capture_that_is_not_joined_is_over, begin_non_blocking),
        cmocka_unit_test_setup(a_capturing_stream_can_be_destroyed, begin_non_blocking),
        cmocka_unit_test_setup(a_graph_is_not_launched_into_a_capturing_stream, begin_non_blocking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
