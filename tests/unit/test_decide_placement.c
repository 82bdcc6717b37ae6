/* SPDX-License-Identifier: Apache-2.0 */
/* Where launches go that a rule, or their stream, has a partition for. */
#include "test_decide_place_support.h"

static struct decide_verdict decided(CUfunction function, CUstream stream, unsigned blocks,
                                     bool cooperative)
{
    const CUlaunchConfig config = {blocks, 1, 1, 64, 1, 1, 0, stream, NULL, 0};
    const struct decide_launch launch = {
        .function = function, .config = &config, .cooperative = cooperative};
    struct decide_verdict verdict;
    decide_launch(&launch, &verdict);
    return verdict;
}

static CUstream stream_on_partition(unsigned flags)
{
    struct decide_stream_request request = {.flags = flags, .library = "placed.so"};
    CUstream stream;
    request.place = decide_stream_place(&request);
    if (!request.place.partition)
        EXPECT(cuStreamCreate(&stream, flags & CU_STREAM_NON_BLOCKING));
    else
        EXPECT(place_partition_stream(request.place.partition, 0, &stream));
    decide_stream_created(stream, &request);
    return stream;
}

static void assert_moved(const struct decide_verdict *verdict, unsigned index)
{
    assert_true(verdict->change);
    assert_non_null(verdict->move.partition);
    assert_int_equal(verdict->move.partition->index, index);
    assert_non_null(verdict->move.sides);
}

static void a_kernel_goes_to_the_partition_of_its_rule(void **state)
{
    (void)state;
    place_begin("[kernel k]\nname = goes\npartition = main\n");
    CUfunction function = program_function("goes");
    CUstream stream = program_creates("a.so");
    struct decide_verdict verdict = decided(function, stream, 4, false);
    assert_moved(&verdict, 1);
    assert_ptr_equal(verdict.move.stream, stream);
    verdict = decided(function, CU_STREAM_PER_THREAD, 4, false);
    assert_moved(&verdict, 1);
    assert_false(decided(function, NULL, 4, false).change); /* the legacy stream */
    assert_false(decided(program_function("stays"), stream, 4, false).change);
}

static void a_stream_s_partition_is_left_by_what_does_not_fit_in_every_mode(void **state)
{
    (void)state;
    place_begin("[stream s]\npartition = side\n");
    CUfunction function = program_function("any");
    CUstream stream = stream_on_partition(CU_STREAM_NON_BLOCKING);
    const uint8_t modes[] = {POLICY_MODE_ENFORCE, POLICY_MODE_OBSERVE, POLICY_MODE_OFF};
    for (size_t i = 0; i < sizeof modes; i++) {
        report_control->part.mode = modes[i];
        assert_false(decided(function, stream, 512, true).change);
        struct decide_verdict verdict = decided(function, stream, 513, true);
        assert_moved(&verdict, PLACE_WHOLE_DEVICE);
        verdict = decided(function, stream, 513, false);
        assert_moved(&verdict, PLACE_WHOLE_DEVICE);
        assert_false(decided(function, stream, 100000, false).change);
    }
}

static void a_kernel_rule_that_is_refused_or_leaves_does_not_make_a_launch_unsafe(void **state)
{
    (void)state;
    place_begin("[stream s]\npartition = side\n"
                "[kernel k]\nname = refused\npartition = side\n"
                "[kernel l]\nname = left\npartition = leave\n");
    CUstream stream = stream_on_partition(CU_STREAM_NON_BLOCKING);
    struct decide_verdict verdict = decided(program_function("refused"), stream, 513, true);
    assert_moved(&verdict, PLACE_WHOLE_DEVICE);
    verdict = decided(program_function("left"), stream, 513, true);
    assert_moved(&verdict, PLACE_WHOLE_DEVICE);
    assert_false(decided(program_function("left"), stream, 4, true).change);
}

static void a_launch_that_only_the_runtime_layer_sees_stays(void **state)
{
    (void)state;
    place_begin("[kernel k]\nname = goes\npartition = main\n");
    CUfunction function = program_function("goes");
    const CUlaunchConfig config = {4, 1, 1, 64, 1, 1, 0, program_creates("a.so"), NULL, 0};
    struct decide_launch launch = {.function = function, .config = &config};
    struct decide_verdict verdict;
    decide_launch(&launch, &verdict);
    assert_moved(&verdict, 1);
    launch.layer = DECIDE_LAYER_RUNTIME;
    decide_launch(&launch, &verdict);
    assert_false(verdict.change);
}

static void a_stream_that_cannot_be_there_says_why(void **state)
{
    (void)state;
    place_begin("[stream s]\npartition = side\n");
    struct decide_stream_request request = {.flags = 0};
    assert_int_equal(decide_stream_place(&request).reason, REPORT_REASON_BLOCKING_STREAM);
    request.flags = CU_STREAM_NON_BLOCKING;
    assert_ptr_equal(decide_stream_place(&request).partition, place_side());
    request.flags = CU_STREAM_NON_BLOCKING | 2;
    assert_int_equal(decide_stream_place(&request).reason, REPORT_REASON_REFUSED_BY_DRIVER);
    request = (struct decide_stream_request){.flags = CU_STREAM_NON_BLOCKING, .green = true};
    assert_int_equal(decide_stream_place(&request).reason, REPORT_REASON_OTHER_CONTEXT);
    request = (struct decide_stream_request){.flags = CU_STREAM_NON_BLOCKING,
                                             .layer = DECIDE_LAYER_RUNTIME};
    assert_int_equal(decide_stream_place(&request).reason, REPORT_REASON_RUNTIME_LAYER);
    EXPECT(cuCtxSetCurrent(NULL));
    request = (struct decide_stream_request){.flags = CU_STREAM_NON_BLOCKING};
    assert_null(decide_stream_place(&request).partition);
}

static void a_stream_answers_as_it_was_asked_for(void **state)
{
    (void)state;
    place_begin("[stream s]\npartition = side\nallow_blocking = yes\n");
    CUcontext primary, context = NULL;
    unsigned flags = 9;
    int device = 9;
    EXPECT(cuCtxGetCurrent(&primary));
    CUstream stream = stream_on_partition(CU_STREAM_DEFAULT);
    assert_true(decide_stream_asked(stream, &context, &flags, &device));
    assert_ptr_equal(context, primary);
    assert_int_equal(flags, CU_STREAM_DEFAULT);
    assert_int_equal(device, 0);
    assert_false(decide_stream_asked(CU_STREAM_LEGACY, &context, &flags, &device));
}

static void a_stream_ends_with_the_partitions_of_its_device(void **state)
{
    (void)state;
    place_begin("[stream s]\npartition = side\n");
    size_t before = recording_driver_live("stream");
    CUstream stream = stream_on_partition(CU_STREAM_NON_BLOCKING);
    assert_int_equal(recording_driver_live("stream"), before + 1);
    decide_stream_ending(1);
    assert_int_equal(recording_driver_live("stream"), before + 1);
    decide_stream_ending(0);
    assert_int_equal(recording_driver_live("stream"), before);
    assert_false(decide_stream_asked(stream, NULL, NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(a_kernel_goes_to_the_partition_of_its_rule),
        PLACE_TEST(a_stream_s_partition_is_left_by_what_does_not_fit_in_every_mode),
        PLACE_TEST(a_kernel_rule_that_is_refused_or_leaves_does_not_make_a_launch_unsafe),
        PLACE_TEST(a_launch_that_only_the_runtime_layer_sees_stays),
        PLACE_TEST(a_stream_that_cannot_be_there_says_why),
        PLACE_TEST(a_stream_answers_as_it_was_asked_for),
        PLACE_TEST(a_stream_ends_with_the_partitions_of_its_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
