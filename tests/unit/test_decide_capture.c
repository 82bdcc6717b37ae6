/* SPDX-License-Identifier: Apache-2.0 */
/* Which streams capture, and that asking never ends a capture. */
#include "test_decide_stream_support.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "decide/device.h"

static void program_begins(CUstream stream)
{
    EXPECT(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    decide_capture_began(stream, false);
}

static CUresult program_ends(CUstream stream)
{
    CUgraph graph;
    CUresult result = cuStreamEndCapture(stream, &graph);
    decide_capture_ended(stream, false);
    if (result == CUDA_SUCCESS)
        EXPECT(cuGraphDestroy(graph));
    return result;
}

static CUstreamCaptureStatus status_of(CUstream stream)
{
    CUstreamCaptureStatus status;
    EXPECT(cuStreamIsCapturing(stream, &status));
    return status;
}

static void nothing_is_asked_while_nothing_captures(void **state)
{
    (void)state;
    support_begin("");
    CUstream stream = program_creates("c.so");
    recording_driver_forget();
    assert_false(decide_stream_is_capturing(stream, false));
    assert_false(decide_stream_is_capturing(NULL, true));
    assert_int_equal(recording_driver_call_count(NULL), 0);
}

static void the_gate_is_raised_while_a_stream_captures(void **state)
{
    (void)state;
    support_begin("");
    CUstream one = program_creates("c.so"), other = program_creates("c.so");
    uint32_t before = gate();
    program_begins(one);
    assert_int_equal(gate(), before + 1);
    assert_true(decide_stream_is_capturing(one, false));
    assert_false(decide_stream_is_capturing(other, false));
    program_begins(other);
    assert_int_equal(gate(), before + 2);
    EXPECT(program_ends(one));
    assert_int_equal(gate(), before + 1);
    assert_true(decide_captures_exist());
    EXPECT(program_ends(other));
    assert_int_equal(gate(), before);
    assert_false(decide_captures_exist());
}

static void a_stream_that_joins_a_capture_is_seen(void **state)
{
    (void)state;
    CUevent fork_event, join_event;
    support_begin("");
    CUstream origin = program_creates("c.so"), joined = program_creates("c.so");
    EXPECT(cuEventCreate(&fork_event, 0));
    EXPECT(cuEventCreate(&join_event, 0));
    program_begins(origin);
    EXPECT(cuEventRecord(fork_event, origin));
    EXPECT(cuStreamWaitEvent(joined, fork_event, 0));
    assert_true(decide_stream_is_capturing(joined, false));
    EXPECT(cuEventRecord(join_event, joined));
    EXPECT(cuStreamWaitEvent(origin, join_event, 0));
    EXPECT(program_ends(origin));
    assert_false(decide_stream_is_capturing(joined, false));
}

static void the_legacy_stream_is_never_asked(void **state)
{
    (void)state;
    support_begin("");
    CUstream blocking = program_creates_with(&(struct decide_stream_request){.library = "c.so"});
    program_begins(blocking);
    recording_driver_forget();
    assert_false(decide_stream_is_capturing(NULL, false));
    assert_false(decide_stream_is_capturing(CU_STREAM_LEGACY, true));
    assert_int_equal(recording_driver_call_count(NULL), 0);
    assert_int_equal(status_of(blocking), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT(program_ends(blocking));
}

static void an_unknown_stream_is_not_asked_about_during_a_capture(void **state)
{
    (void)state;
    CUstream unknown;
    recording_driver_configure("DEVICES", "2");
    support_begin("[stream s]\nmem_sync_domain = remote\n");
    EXPECT(cuStreamCreate(&unknown, CU_STREAM_NON_BLOCKING));
    program_begins(unknown);
    decide_device_count(); /* asks about the devices, which is legal, once */
    recording_driver_forget();
    assert_int_equal(decide_stream_find(unknown, false, NULL)->kind, DECIDE_STREAM_UNKNOWN);
    assert_int_equal(decide_stream_find(unknown, false, NULL)->device, -1);
    assert_int_equal(recording_driver_call_count(NULL), 0);
    assert_int_equal(status_of(unknown), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT(program_ends(unknown));
    assert_int_equal(decide_stream_find(unknown, false, NULL)->device, 0);
}

static void streams_are_created_while_another_captures_globally(void **state)
{
    (void)state;
    support_begin("[stream s]\nmem_sync_domain = remote\npriority = -1\n");
    CUstream blocking = program_creates_with(&(struct decide_stream_request){.library = "c.so"});
    EXPECT(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_GLOBAL));
    decide_capture_began(blocking, false);
    CUstream other = program_creates("c.so");
    assert_int_equal(stream_has(other, DOMAIN), 1);
    program_sets(other, DOMAIN, 0);
    program_copies(other, program_creates("c.so"));
    program_destroys(other);
    assert_int_equal(status_of(blocking), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT(program_ends(blocking));
}

/* ---- Ends ---- */

static void a_capture_that_ends_in_an_error_is_over(void **state)
{
    (void)state;
    CUevent event;
    support_begin("");
    CUstream origin = program_creates("c.so"), joined = program_creates("c.so");
    uint32_t before = gate();
    EXPECT(cuEventCreate(&event, 0));
    program_begins(origin);
    EXPECT(cuEventRecord(event, origin));
    EXPECT(cuStreamWaitEvent(joined, event, 0));
    CUmodule module;
    CUfunction function;
    EXPECT(cuModuleLoadData(&module, "kernel k\n"));
    EXPECT(cuModuleGetFunction(&function, module, "k"));
    EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, joined, NULL, NULL));
    assert_int_equal(program_ends(origin), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    assert_int_equal(gate(), before);
}

static void an_end_that_failed_before_it_did_anything_leaves_the_gate_raised(void **state)
{
    (void)state;
    support_begin("");
    CUstream stream = program_creates("c.so");
    uint32_t before = gate();
    program_begins(stream);
    recording_driver_configure("FAIL", "cuStreamEndCapture:*=2");
    assert_int_equal(program_ends(stream), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gate(), before + 1);
    assert_true(decide_stream_is_capturing(stream, false));
    recording_driver_configure("FAIL", "");
    EXPECT(program_ends(stream));
    assert_int_equal(gate(), before);
}

static void an_invalidated_capture_still_has_to_be_ended(void **state)
{
    (void)state;
    support_begin("");
    CUstream stream = program_creates("c.so");
    uint32_t before = gate();
    program_begins(stream);
    assert_int_not_equal(cuStreamSynchronize(stream), CUDA_SUCCESS);
    assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    assert_true(decide_stream_is_capturing(stream, false));
    assert_int_equal(program_ends(stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_int_equal(gate(), before);
}

static void the_end_of_the_stream_ends_its_capture(void **state)
{
    (void)state;
    support_begin("");
    CUstream stream = program_creates("c.so");
    uint32_t before = gate();
    program_begins(stream);
    decide_stream_gone(stream);
    assert_int_equal(gate(), before);
    cuStreamDestroy(stream);
}

static void the_end_of_the_context_ends_its_captures(void **state)
{
    (void)state;
    CUcontext context;
    support_begin("");
    EXPECT(cuCtxGetCurrent(&context));
    uint32_t before = gate();
    CUstream one = program_creates("c.so"), other = program_creates("c.so");
    program_begins(one);
    program_begins(other);
    decide_stream_context_gone(context);
    assert_int_equal(gate(), before);
    EXPECT(program_ends(one));
    EXPECT(program_ends(other));
    assert_int_equal(gate(), before);
}

static void a_capture_whose_end_was_not_seen_is_counted_once(void **state)
{
    (void)state;
    CUgraph graph;
    support_begin("");
    CUstream stream = program_creates("c.so");
    uint32_t before = gate();
    program_begins(stream);
    EXPECT(cuStreamEndCapture(stream, &graph));
    program_begins(stream);
    assert_int_equal(gate(), before + 1);
    EXPECT(program_ends(stream));
    assert_int_equal(gate(), before);
}

static void many_rounds_leave_the_gate_as_it_was(void **state)
{
    (void)state;
    enum { STREAMS = 40 };
    CUstream streams[STREAMS];
    support_begin("");
    uint32_t before = gate();
    for (int i = 0; i < STREAMS; i++)
        streams[i] = program_creates("c.so");
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < STREAMS; i++)
            program_begins(streams[i]);
        assert_int_equal(gate(), before + STREAMS);
        for (int i = 0; i < STREAMS; i++)
            EXPECT(program_ends(streams[(i * 7) % STREAMS]));
        assert_int_equal(gate(), before);
    }
}

static void a_child_after_fork_captures_nothing(void **state)
{
    (void)state;
    int status;
    support_begin("");
    uint32_t before = gate();
    CUstream stream = program_creates("c.so");
    program_begins(stream);
    pid_t child = fork();
    if (child == 0) {
        const struct decide_process process = {.rank = -1, .local_rank = -1, .world_size = -1};
        report_after_fork(NULL);
        decide_start(support_policy, &process, POLICY_MODE_ENFORCE);
        _exit(decide_captures_exist() || gate() != before);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(gate(), before + 1);
    EXPECT(program_ends(stream));
}

/* ---- Per-thread streams ---- */

static pthread_barrier_t barrier;
static CUcontext thread_context;

static void *capture_in_a_thread(void *unused)
{
    CUgraph graph;
    (void)unused;
    cuCtxSetCurrent(thread_context);
    CUresult result =
        cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    decide_capture_began(NULL, true);
    bool captures = decide_stream_is_capturing(NULL, true);
    pthread_barrier_wait(&barrier); /* both capture; the main thread looks at the gate */
    pthread_barrier_wait(&barrier);
    if (result == CUDA_SUCCESS)
        result = cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph);
    decide_capture_ended(CU_STREAM_PER_THREAD, false);
    return (void *)(uintptr_t)(result != CUDA_SUCCESS || !captures);
}

static void per_thread_streams_capture_for_themselves(void **state)
{
    (void)state;
    pthread_t threads[2];
    support_begin("");
    EXPECT(cuCtxGetCurrent(&thread_context));
    uint32_t before = gate();
    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, capture_in_a_thread, NULL), 0);
    pthread_barrier_wait(&barrier);
    uint32_t during = gate();
    bool captures = decide_stream_is_capturing(NULL, true);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 2; i++) {
        void *failure;
        pthread_join(threads[i], &failure);
        assert_null(failure);
    }
    pthread_barrier_destroy(&barrier);
    assert_int_equal(during, before + 2);
    assert_false(captures);
    assert_int_equal(gate(), before);
}

/* One failed question must not leave the gate raised for good. */
static void a_per_thread_capture_is_over_though_its_context_was_not_told(void **state)
{
    (void)state;
    static const char *const failures[] = {"cuCtxGetCurrent:1=999", "cuCtxGetCurrent:2=999",
                                           "cuCtxGetCurrent:*=999"};
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        CUgraph graph;
        recording_driver_reset();
        support_begin("");
        uint32_t before = gate();
        recording_driver_configure("FAIL", failures[i]);
        EXPECT(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
        decide_capture_began(NULL, true);
        assert_int_equal(gate(), before + 1);
        EXPECT(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
        decide_capture_ended(NULL, true);
        assert_int_equal(gate(), before);
        support_teardown(NULL);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, support_setup, support_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_asked_while_nothing_captures),
        TEST(the_gate_is_raised_while_a_stream_captures),
        TEST(a_stream_that_joins_a_capture_is_seen),
        TEST(the_legacy_stream_is_never_asked),
        TEST(an_unknown_stream_is_not_asked_about_during_a_capture),
        TEST(streams_are_created_while_another_captures_globally),
        TEST(a_capture_that_ends_in_an_error_is_over),
        TEST(an_end_that_failed_before_it_did_anything_leaves_the_gate_raised),
        TEST(an_invalidated_capture_still_has_to_be_ended),
        TEST(the_end_of_the_stream_ends_its_capture),
        TEST(the_end_of_the_context_ends_its_captures),
        TEST(a_capture_whose_end_was_not_seen_is_counted_once),
        TEST(many_rounds_leave_the_gate_as_it_was),
        TEST(a_child_after_fork_captures_nothing),
        TEST(per_thread_streams_capture_for_themselves),
        TEST(a_per_thread_capture_is_over_though_its_context_was_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
