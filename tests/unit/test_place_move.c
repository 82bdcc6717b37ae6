/* SPDX-License-Identifier: Apache-2.0 */
/* A launch moved to a partition: the calls and their order, alone, in captures, and where one
 * fails. */
#include "test_place_support.h"

/* ---- One launch --------------------------------------------------------------------------------
 */

static void launch_forks_and_joins(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    program_retains(0);
    CUstream stream = program_stream(0, -3);
    launch_moved(stream, &sides, 0, SIDE);
    forget_calls();
    struct launch made = launch_moved(stream, &sides, 0, SIDE);
    assert_moved(made);
    assert_int_equal(fake.calls, 4);
    const void *fork = fake.call[0].first, *join = fake.call[2].first;
    assert_ptr_not_equal(fork, join);
    assert_call(0, "cuEventRecord", fork, stream);
    assert_call(1, "cuStreamWaitEvent", made.went_to, fork);
    assert_call(2, "cuEventRecord", join, made.went_to);
    assert_call(3, "cuStreamWaitEvent", stream, join);
    const struct fake_object *side = (const struct fake_object *)made.went_to;
    assert_ptr_equal(side->green, place_partition_find(0, SIDE)->green);
    assert_int_equal(side->priority, -3);
    assert_int_equal(fake.misuses, 0);
}

static void default_streams_keep_their_handles(void **state)
{
    (void)state;
    CUstream streams[] = {CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};
    program_retains(0);
    for (int i = 0; i < 2; i++) {
        struct place_sides sides = {NULL};
        launch_moved(streams[i], &sides, 0, SIDE);
        forget_calls();
        assert_moved(launch_moved(streams[i], &sides, 0, SIDE));
        assert_ptr_equal(fake.call[0].second, streams[i]);
        assert_ptr_equal(fake.call[3].first, streams[i]);
    }
    assert_int_equal(fake.misuses, 0);
}

static void nothing_is_made_for_a_launch(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    program_retains(0);
    CUstream stream = program_stream(0, 0);
    launch_moved(stream, &sides, 0, SIDE);
    launch_moved(stream, &sides, 0, MAIN);
    launch_moved(stream, &sides, 0, PLACE_WHOLE_DEVICE);
    int streams = fake.made[FAKE_STREAM], events = fake.made[FAKE_EVENT];
    assert_int_equal(events, 2);
    forget_calls();
    for (int i = 0; i < 1000; i++) {
        unsigned index = i % 3 == 2 ? PLACE_WHOLE_DEVICE : (unsigned)i % 3;
        assert_moved(launch_moved(stream, &sides, 0, index));
    }
    assert_int_equal(fake.calls, 4 * 1000);
    assert_int_equal(fake.made[FAKE_STREAM], streams);
    assert_int_equal(fake.made[FAKE_EVENT], events);
    assert_int_equal(fake.misuses, 0);
}

static void partition_that_is_not_there_moves_nothing(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    CUstream stream = program_stream(0, 0);
    assert_int_equal(launch_moved(stream, &sides, 0, SIDE).reason, REPORT_REASON_NO_PARTITION);
    program_retains(0);
    assert_int_equal(launch_moved(stream, &sides, 0, 9).reason, REPORT_REASON_NO_PARTITION);
    forget_calls();
    assert_int_equal(launch_moved(stream, NULL, 0, SIDE).reason, REPORT_REASON_OUT_OF_MEMORY);
    assert_int_equal(fake.calls, 0);
}

static void launch_may_leave_its_partition_for_the_whole_device(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    CUstream stream;
    program_retains(0);
    assert_int_equal(place_partition_stream(place_partition_find(0, SIDE), -1, &stream),
                     CUDA_SUCCESS);
    struct launch made = launch_moved(stream, &sides, 0, PLACE_WHOLE_DEVICE);
    assert_moved(made);
    assert_null(((const struct fake_object *)made.went_to)->green);
    assert_int_equal(((const struct fake_object *)made.went_to)->priority, -1);
}

/* ---- Captures ----------------------------------------------------------------------------------
 */

/* The stream begins to capture, and depends on a node of its own. */
static CUstream capturing_stream(void)
{
    CUstream stream = program_stream(0, 0);
    fake_stream_of(stream)->capturing = true;
    fake_launch(stream);
    return stream;
}

static void captured_launch_stands_for_all_before_it(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    program_retains(0);
    CUstream stream = capturing_stream();
    fake_stream_of(stream)->nodes |= 1 << fake.node_count++; /* joined from elsewhere */
    struct launch wanted = {.stream = stream,
                            .sides = &sides,
                            .partition = place_partition_find(0, SIDE),
                            .capturing = true};
    assert_moved(launch(wanted));
    assert_int_equal(fake.edges[2], 1 << 0 | 1 << 1);
    assert_int_equal(fake_stream_of(stream)->nodes, 1 << 2);
    forget_calls();
    struct launch made = launch(wanted);
    assert_moved(made);
    assert_int_equal(fake.edges[3], 1 << 2);
    assert_int_equal(fake_stream_of(stream)->nodes, 1 << 3);
    assert_int_equal(fake.calls, 7);
    assert_call(4, "cuStreamGetCaptureInfo", made.went_to, NULL);
    assert_call(5, "cuStreamUpdateCaptureDependencies", stream, NULL);
    assert_call(6, "cuStreamUpdateCaptureDependencies", made.went_to, NULL);
    assert_int_equal(fake_stream_of(made.went_to)->nodes, 0);
    fake_launch(stream);
    assert_int_equal(fake.edges[4], 1 << 3);
    assert_int_equal(fake.misuses, 0);
}

static void failed_launch_is_joined_and_is_no_node(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    program_retains(0);
    CUstream stream = capturing_stream();
    struct launch wanted = {.stream = stream,
                            .sides = &sides,
                            .partition = place_partition_find(0, SIDE),
                            .capturing = true,
                            .fails = true};
    launch(wanted);
    forget_calls();
    struct launch made = launch(wanted);
    assert_moved(made);
    assert_int_equal(fake.calls, 5);
    assert_int_equal(fake_stream_of(stream)->nodes, 1 << 0);
    assert_int_equal(fake_stream_of(made.went_to)->nodes, 0);
}

/* What the side stream did before is no dependency where the program took it back. */
static void captured_launch_depends_on_nothing_else(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    program_retains(0);
    CUstream stream = capturing_stream();
    struct launch wanted = {.stream = stream,
                            .sides = &sides,
                            .partition = place_partition_find(0, SIDE),
                            .capturing = true};
    assert_moved(launch(wanted));
    fake_stream_of(stream)->nodes = 1 << 0; /* cuStreamUpdateCaptureDependencies */
    assert_moved(launch(wanted));
    assert_int_equal(fake.edges[2], 1 << 0);
    fake_stream_of(stream)->nodes = 0;
    assert_moved(launch(wanted));
    assert_int_equal(fake.edges[3], 0);
    assert_int_equal(fake_stream_of(stream)->nodes, 1 << 3);
    assert_int_equal(fake.misuses, 0);
}

static void dependencies_that_stay_wide_are_no_failure(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    program_retains(0);
    CUstream stream = capturing_stream();
    struct launch wanted = {.stream = stream,
                            .sides = &sides,
                            .partition = place_partition_find(0, SIDE),
                            .capturing = true};
    launch(wanted);
    for (int number = 5; number <= 7; number++) { /* behind the order itself */
        uint64_t before = fake_stream_of(stream)->nodes;
        fail_call(number, CUDA_ERROR_NOT_SUPPORTED);
        assert_moved(launch(wanted));
        assert_non_null(fake.failed);
        int node = fake.node_count - 1;
        assert_int_equal(fake.edges[node] & before, before);
        assert_int_equal(fake_stream_of(stream)->nodes & UINT64_C(1) << node, UINT64_C(1) << node);
    }
    cuda_driver.cuStreamUpdateCaptureDependencies = NULL;
    assert_moved(launch(wanted));
}

static void first_use_while_capturing_is_relaxed(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    program_retains(0);
    CUstream stream = capturing_stream();
    fake.captures_globally = true;
    assert_moved(launch((struct launch){.stream = stream,
                                        .sides = &sides,
                                        .partition = place_partition_find(0, SIDE),
                                        .capturing = true}));
    assert_int_equal(fake_mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* An event that stands for a captured place is recorded anew before it is waited for. */
static void thread_may_launch_eagerly_while_it_captures(void **state)
{
    (void)state;
    struct place_sides sides[2] = {{NULL}};
    program_retains(0);
    CUstream captured = capturing_stream(), eager = program_stream(0, 0);
    assert_moved(launch((struct launch){.stream = captured,
                                        .sides = &sides[0],
                                        .partition = place_partition_find(0, SIDE),
                                        .capturing = true}));
    struct launch made = launch_moved(eager, &sides[1], 0, SIDE);
    assert_moved(made);
    assert_false(fake_stream_of(eager)->capturing);
    assert_false(fake_stream_of(made.went_to)->capturing);
}

/* ---- Failures ----------------------------------------------------------------------------------
 */

static void failing_call_leaves_the_launch_where_it_was(void **state)
{
    program_retains(0);
    struct place_sides first = {NULL};
    CUstream stream = program_stream(0, 0);
    forget_calls();
    launch_moved(stream, &first, 0, SIDE);
    int calls = fake.calls;
    for (int number = 1; number <= calls; number++) {
        struct place_sides sides = {NULL};
        fresh(state);
        program_retains(0);
        stream = program_stream(0, 0);
        fail_call(number, CUDA_ERROR_INVALID_DEVICE);
        struct launch made = launch_moved(stream, &sides, 0, SIDE);
        assert_non_null(fake.failed);
        bool ask = strstr(fake.failed, "Attribute") || strstr(fake.failed, "GetPriority");
        bool join = number > calls - 2;
        if (ask) {
            assert_moved(made);
        } else if (join) {
            assert_int_equal(made.reason, REPORT_REASON_NONE);
            assert_int_equal(made.joined, CUDA_ERROR_INVALID_DEVICE);
        } else {
            assert_int_equal(made.reason, REPORT_REASON_REFUSED_BY_DRIVER);
            assert_ptr_equal(made.went_to, stream);
        }
        /* What cannot be made is not tried at every launch; what failed in use is used again. */
        bool creation = strstr(fake.failed, "Create") != NULL;
        int streams = fake.made[FAKE_STREAM], events = fake.made[FAKE_EVENT];
        made = launch_moved(stream, &sides, 0, SIDE);
        assert_int_equal(made.reason,
                         creation ? REPORT_REASON_REFUSED_BY_DRIVER : REPORT_REASON_NONE);
        assert_int_equal(fake.made[FAKE_STREAM], streams);
        assert_int_equal(fake.made[FAKE_EVENT], events);
        place_sides_end(&sides);
        assert_string_equal(end_all(0), "clean");
        assert_int_equal(fake.live[FAKE_STREAM], 1); /* the program's */
    }
}

static void creation_is_tried_again_after_a_capture_refused_it(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    program_retains(0);
    CUstream stream = program_stream(0, 0);
    cuda_driver.cuThreadExchangeStreamCaptureMode = NULL;
    fake.captures_globally = true;
    assert_int_equal(launch_moved(stream, &sides, 0, SIDE).reason, REPORT_REASON_REFUSED_BY_DRIVER);
    fake.captures_globally = false;
    assert_moved(launch_moved(stream, &sides, 0, SIDE));
}

static void driver_without_a_function_moves_nothing(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    program_retains(0);
    CUstream stream = program_stream(0, 0);
    cuda_driver.cuStreamWaitEvent = NULL;
    for (int i = 0; i < 2; i++)
        assert_int_equal(launch_moved(stream, &sides, 0, SIDE).reason,
                         REPORT_REASON_DRIVER_TOO_OLD);
    assert_int_equal(fake.made[FAKE_EVENT], 0);
}

/* ---- Attributes --------------------------------------------------------------------------------
 */

static void set_all(struct fake_object *stream, char value)
{
    for (int id = 0; id < FAKE_ATTRIBUTES; id++)
        stream->attributes[id] = value;
}

static void assert_mirrored(const struct fake_object *side, char value, char priority)
{
    static const int mirrored[] = {1, 3, 9, 10, 16};
    for (int i = 0; i < 5; i++)
        assert_int_equal(side->attributes[mirrored[i]], value);
    assert_int_equal(side->attributes[8], priority);
    assert_int_equal(side->attributes[2], 0);
}

static void side_streams_are_like_their_stream(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    program_retains(0);
    CUstream stream = program_stream(0, 0);
    set_all((struct fake_object *)stream, 7);
    struct launch one = launch_moved(stream, &sides, 0, SIDE);
    assert_mirrored((const struct fake_object *)one.went_to, 7, 0);
    struct launch two = launch_moved(stream, &sides, 0, MAIN);
    set_all((struct fake_object *)stream, 9);
    place_sides_mirror(&sides, stream);
    assert_mirrored((const struct fake_object *)one.went_to, 9, 9);
    assert_mirrored((const struct fake_object *)two.went_to, 9, 9);
}

static void attributes_that_are_the_same_are_not_set(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    program_retains(0);
    CUstream stream = program_stream(0, 0);
    ((struct fake_object *)stream)->attributes[9] = 3;
    fake.knows_no_nvlink = true;
    ((struct fake_object *)stream)->attributes[16] = 1;
    forget_calls();
    struct launch made = launch_moved(stream, &sides, 0, SIDE);
    int sets = 0;
    for (int i = 0; i < fake.calls; i++)
        sets += strcmp(fake.call[i].name, "cuStreamSetAttribute") == 0;
    assert_int_equal(sets, 1);
    assert_int_equal(((const struct fake_object *)made.went_to)->attributes[9], 3);
    assert_int_equal(((const struct fake_object *)made.went_to)->attributes[16], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(launch_forks_and_joins),
        TEST(default_streams_keep_their_handles),
        TEST(nothing_is_made_for_a_launch),
        TEST(partition_that_is_not_there_moves_nothing),
        TEST(launch_may_leave_its_partition_for_the_whole_device),
        TEST(captured_launch_stands_for_all_before_it),
        TEST(failed_launch_is_joined_and_is_no_node),
        TEST(captured_launch_depends_on_nothing_else),
        TEST(dependencies_that_stay_wide_are_no_failure),
        TEST(first_use_while_capturing_is_relaxed),
        TEST(thread_may_launch_eagerly_while_it_captures),
        TEST(failing_call_leaves_the_launch_where_it_was),
        TEST(creation_is_tried_again_after_a_capture_refused_it),
        TEST(driver_without_a_function_moves_nothing),
        TEST(side_streams_are_like_their_stream),
        TEST(attributes_that_are_the_same_are_not_set),
    };
    return cmocka_run_group_tests(tests, start_group, end_group);
}
