/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept for moved launches, and for how long: side streams, events, among threads, in
 * children. */
#include "test_place_support.h"

enum {
    LAUNCHES = 200,
};

/* ---- How long things are kept ------------------------------------------------------------------
 */

static void each_stream_has_its_side_streams(void **state)
{
    (void)state;
    struct place_sides sides[2] = {{NULL}};
    program_retains(0);
    CUstream streams[] = {program_stream(0, 0), program_stream(0, 0)};
    struct launch made[4];
    for (int i = 0; i < 4; i++)
        made[i] = launch_moved(streams[i / 2], &sides[i / 2], 0, i % 2 ? MAIN : SIDE);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(made[i].went_to, made[j].went_to);
    assert_int_equal(fake.made[FAKE_EVENT], 2);
}

static void side_streams_end_with_their_stream(void **state)
{
    (void)state;
    struct place_sides sides = {NULL}, others = {NULL};
    program_retains(0);
    CUstream stream = program_stream(0, 0);
    int streams = fake.live[FAKE_STREAM];
    launch_moved(stream, &sides, 0, SIDE);
    launch_moved(stream, &sides, 0, MAIN);
    launch_moved(stream, &others, 0, MAIN);
    struct place_side *entries[] = {sides.first, sides.first->next};
    place_sides_end(&sides);
    assert_int_equal(fake.live[FAKE_STREAM], streams + 1);
    assert_null(sides.first);
    place_sides_end(&sides);
    /* The next stream gets the memory. */
    assert_moved(launch_moved(stream, &sides, 0, SIDE));
    assert_true(sides.first == entries[0] || sides.first == entries[1]);
    assert_moved(launch_moved(stream, &others, 0, MAIN));
    assert_int_equal(fake.misuses, 0);
}

static void new_partitions_get_new_streams_and_events(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    program_retains(0);
    CUstream stream = program_stream(0, 0);
    for (int round = 0; round < 20; round++) {
        assert_moved(launch_moved(stream, &sides, 0, SIDE));
        assert_moved(launch_moved(stream, &sides, 0, MAIN));
        assert_int_equal(length_of(&sides), 2);
        place_device_resetting(0);
        assert_int_equal(fake.live[FAKE_EVENT], 0);
        assert_int_equal(fake.live[FAKE_STREAM], 1); /* the program's */
        assert_int_equal(launch_moved(stream, &sides, 0, SIDE).reason, REPORT_REASON_NO_PARTITION);
        place_device_active(0, true);
    }
    assert_int_equal(fake.misuses, 0);
}

static void side_streams_go_before_their_green_context(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    program_retains(0);
    CUstream stream = program_stream(0, 0);
    CUstream side = launch_moved(stream, &sides, 0, SIDE).went_to;
    forget_calls();
    program_releases(0);
    assert_call(0, "cuStreamDestroy", side, NULL);
    assert_string_equal(names_of_calls(),
                        "cuStreamDestroy cuEventDestroy cuEventDestroy "
                        "cuStreamDestroy cuGreenCtxDestroy cuStreamDestroy cuGreenCtxDestroy ");
    assert_int_equal(fake.misuses, 0);
    /* The stream's end comes later, and has nothing left to destroy. */
    forget_calls();
    place_sides_end(&sides);
    assert_int_equal(fake.calls, 0);
}

static void other_devices_keep_theirs(void **state)
{
    (void)state;
    struct place_sides sides[2] = {{NULL}};
    CUstream streams[2];
    for (int device = 1; device >= 0; device--) {
        program_retains(device);
        streams[device] = program_stream(device, 0);
        assert_moved(launch_moved(streams[device], &sides[device], device, SIDE));
    }
    place_device_resetting(1);
    forget_calls();
    assert_moved(launch_moved(streams[0], &sides[0], 0, SIDE));
    assert_int_equal(fake.calls, 4);
    assert_int_equal(fake.live[FAKE_EVENT], 2);
}

static void lost_partition_takes_its_side_streams_alone(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    program_retains(0);
    CUstream stream = program_stream(0, 0);
    launch_moved(stream, &sides, 0, SIDE);
    launch_moved(stream, &sides, 0, MAIN);
    int streams = fake.live[FAKE_STREAM];
    place_context_gone(place_partition_find(0, SIDE)->context);
    assert_int_equal(fake.live[FAKE_STREAM], streams - 2); /* a side stream, and the probe */
    assert_int_equal(launch_moved(stream, &sides, 0, SIDE).reason, REPORT_REASON_NO_PARTITION);
    forget_calls();
    assert_moved(launch_moved(stream, &sides, 0, MAIN));
    assert_int_equal(fake.calls, 4);
    assert_int_equal(fake.misuses, 0);
}

/* ---- Threads -----------------------------------------------------------------------------------
 */

static void *launches_once(void *argument)
{
    fake_current = (CUcontext)&fake.primary[0];
    *(struct launch *)argument = launch(*(struct launch *)argument);
    return NULL;
}

static void run_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, body, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* pthread_join comes back before the kernel has forgotten the thread, so a few more may be made. */
static void events_of_ended_threads_are_used_again(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    program_retains(0);
    CUstream stream = program_stream(0, 0);
    for (int i = 0; i < 200; i++) {
        struct launch wanted = {
            .stream = stream, .sides = &sides, .partition = place_partition_find(0, SIDE)};
        run_thread(launches_once, &wanted);
        assert_moved(wanted);
    }
    assert_in_range(fake.made[FAKE_EVENT], 2, 2 * 20);
    assert_int_equal(length_of(&sides), 1);
    assert_string_equal(end_all(0), "clean");
}

static void *has_sides_of_its_own(void *argument)
{
    struct place_sides *sides = place_thread_sides(0);
    fake_current = (CUcontext)&fake.primary[0];
    struct launch made = launch((struct launch){.stream = CU_STREAM_PER_THREAD,
                                                .sides = sides,
                                                .partition = place_partition_find(0, SIDE)});
    *(CUstream *)argument = made.reason == REPORT_REASON_NONE ? made.went_to : NULL;
    return sides == place_thread_sides(0) && sides != place_thread_sides(1) ? NULL : sides;
}

static void per_thread_streams_have_side_streams_of_their_own(void **state)
{
    (void)state;
    CUstream own, other = NULL;
    program_retains(0);
    assert_null(has_sides_of_its_own(&own));
    assert_non_null(own);
    run_thread(has_sides_of_its_own, &other);
    assert_non_null(other);
    assert_ptr_not_equal(own, other);
    assert_null(place_thread_sides(-1));
    assert_null(place_thread_sides(PLACE_DEVICE_LIMIT));
}

/* A thread's stream does not begin with what the thread before it had set on its own. */
static void inherited_side_streams_become_like_the_new_stream(void **state)
{
    (void)state;
    CUstream stream = NULL;
    program_retains(0);
    fake.per_thread.attributes[9] = 5;
    run_thread(has_sides_of_its_own, &stream);
    assert_int_equal(((const struct fake_object *)stream)->attributes[9], 5);
    fake.per_thread.attributes[9] = 0;
    for (int i = 0; i < 100; i++) {
        run_thread(has_sides_of_its_own, &stream);
        assert_int_equal(((const struct fake_object *)stream)->attributes[9], 0);
    }
    assert_in_range(fake.made[FAKE_STREAM], 3, 2 + 20);
}

static struct launch other_launch;

static void other_thread_launches(void)
{
    fake.during = NULL;
    run_thread(launches_once, &other_launch);
}

static void threads_that_come_first_together_share_a_side_stream(void **state)
{
    (void)state;
    struct place_sides sides = {NULL};
    program_retains(0);
    CUstream stream = program_stream(0, 0);
    int streams = fake.live[FAKE_STREAM];
    other_launch = (struct launch){
        .stream = stream, .sides = &sides, .partition = place_partition_find(0, SIDE)};
    /* After the side stream was created, before anybody can find it. */
    call_back_during("cuStreamSetAttribute", other_thread_launches);
    ((struct fake_object *)stream)->attributes[9] = 1;
    struct launch made = launch(other_launch);
    assert_moved(made);
    assert_moved(other_launch);
    assert_ptr_equal(made.went_to, other_launch.went_to);
    assert_int_equal(length_of(&sides), 1);
    assert_int_equal(fake.live[FAKE_STREAM], streams + 1);
    assert_int_equal(fake.misuses, 0);
}

static void device_is_reset(void)
{
    fake.during = NULL;
    place_device_resetting(0);
    place_device_active(0, true);
}

/* The program resets a device that it uses; nothing of before is taken for something of after. */
static void what_is_made_for_partitions_that_went_is_not_kept(void **state)
{
    (void)state;
    const char *calls[] = {"cuStreamSetAttribute", "cuEventCreate"};
    for (int i = 0; i < 2; i++) {
        struct place_sides sides = {NULL};
        fresh(state);
        program_retains(0);
        CUstream stream = program_stream(0, 0);
        ((struct fake_object *)stream)->attributes[9] = 1;
        call_back_during(calls[i], device_is_reset);
        assert_int_equal(launch_moved(stream, &sides, 0, SIDE).reason, REPORT_REASON_NO_PARTITION);
        assert_int_equal(fake.live[FAKE_EVENT], 0);
        fake.misuses = 0; /* the stream of a green context that is gone */
        assert_moved(launch_moved(stream, &sides, 0, SIDE));
        assert_int_equal(length_of(&sides), 1);
        assert_int_equal(fake.misuses, 0);
    }
}

static pthread_barrier_t barrier;
static _Atomic int wrong;

struct worker {
    pthread_t thread;
    int number;
    struct place_sides *shared; /* by device */
    CUstream *streams;          /* by device */
    CUstream side;
};

static void launch_on(struct worker *worker, int device, CUstream stream, struct place_sides *sides)
{
    fake_current = (CUcontext)&fake.primary[device];
    for (unsigned index = SIDE; index <= MAIN; index++) {
        struct launch made = launch_moved(stream, sides, device, index);
        const struct fake_object *side = (const struct fake_object *)made.went_to;
        if (made.reason != REPORT_REASON_NONE || made.joined != CUDA_SUCCESS ||
            side->device != device ||
            side->green != (const struct fake_object *)place_partition_find(device, index)->green)
            atomic_fetch_add(&wrong, 1);
    }
    (void)worker;
}

static void *launches_on_all_devices(void *argument)
{
    struct worker *worker = argument;
    struct place_sides own = {NULL};
    int home = worker->number % FAKE_DEVICES;
    CUstream stream = program_stream(home, 0);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < LAUNCHES; i++) {
        int device = (worker->number + i) % FAKE_DEVICES;
        launch_on(worker, home, stream, &own);
        launch_on(worker, device, worker->streams[device], &worker->shared[device]);
        if (i % 50 == 49)
            place_sides_end(&own);
        if (i % 64 == 0)
            place_sides_mirror(&worker->shared[device], worker->streams[device]);
    }
    place_sides_end(&own);
    program_destroys(stream);
    return NULL;
}

static void run_workers(void *(*body)(void *), struct place_sides *shared, CUstream *streams)
{
    static struct worker workers[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.number = i, .shared = shared, .streams = streams};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, body, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_barrier_destroy(&barrier);
}

static void threads_launch_on_several_devices(void **state)
{
    (void)state;
    struct place_sides shared[FAKE_DEVICES] = {{NULL}};
    CUstream streams[FAKE_DEVICES];
    fake.many_threads = true;
    atomic_store(&wrong, 0);
    for (int device = 0; device < FAKE_DEVICES; device++) {
        program_retains(device);
        streams[device] = program_stream(device, 0);
    }
    run_workers(launches_on_all_devices, shared, streams);
    assert_int_equal(wrong, 0);
    assert_int_equal(fake.misuses, 0);
    /* Threads that came first together may each have made one: one is left. */
    for (int device = 0; device < FAKE_DEVICES; device++) {
        assert_int_equal(length_of(&shared[device]), 2);
        place_sides_end(&shared[device]);
        program_destroys(streams[device]);
    }
    assert_int_equal(fake.live[FAKE_STREAM], 2 * FAKE_DEVICES); /* probes */
    for (int device = 0; device < FAKE_DEVICES; device++)
        program_releases(device);
    assert_int_equal(fake.live[FAKE_STREAM], 0);
    assert_int_equal(fake.live[FAKE_EVENT], 0);
    assert_int_equal(fake.live[FAKE_GREEN], 0);
}

/* Threads of even numbers have a device each and reset it between their launches; the others are on
 * devices that stay. */
static void *launches_or_resets(void *argument)
{
    struct worker *worker = argument;
    struct place_sides own = {NULL};
    bool resets = worker->number == 0 || worker->number == 1;
    int device = resets ? worker->number : 2 + worker->number % 2;
    CUstream stream = program_stream(device, 0);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < LAUNCHES; i++) {
        launch_on(worker, device, stream, &own);
        if (resets) {
            place_device_resetting(device);
            place_device_active(device, true);
        }
    }
    place_sides_end(&own);
    program_destroys(stream);
    return NULL;
}

static void devices_are_reset_while_others_work(void **state)
{
    (void)state;
    fake.many_threads = true;
    atomic_store(&wrong, 0);
    for (int device = 0; device < FAKE_DEVICES; device++)
        program_retains(device);
    run_workers(launches_or_resets, NULL, NULL);
    assert_int_equal(wrong, 0);
    assert_int_equal(fake.misuses, 0);
    for (int device = 0; device < FAKE_DEVICES; device++)
        program_releases(device);
    assert_int_equal(fake.live[FAKE_STREAM], 0);
    assert_int_equal(fake.live[FAKE_EVENT], 0);
    assert_int_equal(fake.live[FAKE_GREEN], 0);
}

/* ---- Children ----------------------------------------------------------------------------------
 */

static struct place_sides parents_sides;
static CUstream parents_stream;

static void child_launches(void)
{
    struct place_sides *thread_sides = place_thread_sides(0);
    forget_calls();
    place_start(support_policy, 0, NULL);
    place_sides_mirror(&parents_sides, parents_stream);
    expect_in_child(fake.calls == 0); /* nothing of the parent's is touched */
    fake.retains[0] = 1;
    place_device_active(0, true);
    int events = fake.made[FAKE_EVENT];
    struct launch made = launch_moved(parents_stream, &parents_sides, 0, SIDE);
    expect_in_child(made.reason == REPORT_REASON_NONE && made.joined == CUDA_SUCCESS);
    expect_in_child(fake.made[FAKE_EVENT] == events + 2);
    expect_in_child(length_of(&parents_sides) == 1); /* the entry serves again */
    made = launch_moved(CU_STREAM_PER_THREAD, thread_sides, 0, SIDE);
    expect_in_child(made.reason == REPORT_REASON_NONE && made.joined == CUDA_SUCCESS);
    place_sides_end(&parents_sides);
    place_device_resetting(0);
    expect_in_child(fake.misuses == 0);
}

static void child_uses_nothing_of_its_parent(void **state)
{
    (void)state;
    atomic_store(&parents_sides.first, NULL);
    program_retains(0);
    parents_stream = program_stream(0, 0);
    launch_moved(parents_stream, &parents_sides, 0, SIDE);
    launch_moved(CU_STREAM_PER_THREAD, place_thread_sides(0), 0, SIDE);
    assert_child_succeeds(child_launches);
    forget_calls();
    assert_moved(launch_moved(parents_stream, &parents_sides, 0, SIDE));
    assert_int_equal(fake.calls, 4);
}

/* A thread of the parent holds a lock at the time of the fork, for all the child knows. */
static void forks_in_a_call(void)
{
    fake.during = NULL;
    assert_child_succeeds(child_launches);
}

static void child_of_a_fork_amid_making_launches(void **state)
{
    (void)state;
    program_retains(0);
    atomic_store(&parents_sides.first, NULL);
    parents_stream = program_stream(0, 0);
    launch_moved(parents_stream, &parents_sides, 0, SIDE);
    call_back_during("cuGreenCtxCreate", forks_in_a_call);
    program_retains(1);
    assert_reason(1, SIDE, NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_stream_has_its_side_streams),
        TEST(side_streams_end_with_their_stream),
        TEST(new_partitions_get_new_streams_and_events),
        TEST(side_streams_go_before_their_green_context),
        TEST(other_devices_keep_theirs),
        TEST(lost_partition_takes_its_side_streams_alone),
        TEST(events_of_ended_threads_are_used_again),
        TEST(per_thread_streams_have_side_streams_of_their_own),
        TEST(inherited_side_streams_become_like_the_new_stream),
        TEST(threads_that_come_first_together_share_a_side_stream),
        TEST(what_is_made_for_partitions_that_went_is_not_kept),
        TEST(threads_launch_on_several_devices),
        TEST(devices_are_reset_while_others_work),
        TEST(child_uses_nothing_of_its_parent),
        TEST(child_of_a_fork_amid_making_launches),
    };
    return cmocka_run_group_tests(tests, start_group, end_group);
}
