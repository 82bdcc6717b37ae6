/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions among threads, in tools that the driver calls back, in children. */
#include "test_place_support.h"

#include <sched.h>

static pthread_barrier_t barrier;
static _Atomic int unmade, coming;

/* The thread that makes partitions gives all others the time to want the same. */
static void wait_for_all(void)
{
    while (atomic_load(&coming) < THREADS)
        sched_yield();
    for (int i = 0; i < 100; i++)
        sched_yield();
}

static void *sees_all_devices(void *argument)
{
    int first = *(const int *)argument;
    pthread_barrier_wait(&barrier);
    atomic_fetch_add(&coming, 1);
    for (int i = 0; i < FAKE_DEVICES; i++) {
        int device = (first + i) % FAKE_DEVICES;
        program_retains(device);
        /* Nobody goes on before the partitions are there. */
        if (partition_reason(device, SIDE) != REPORT_REASON_NONE ||
            !place_partition_of_context(place_partition_find(device, MAIN)->context))
            atomic_fetch_add(&unmade, 1);
    }
    for (int device = 0; device < FAKE_DEVICES; device++)
        program_releases(device);
    return NULL;
}

static void threads_make_partitions_once(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int first[THREADS];
    fake.many_threads = true;
    atomic_store(&unmade, 0);
    for (int device = 0; device < FAKE_DEVICES; device++)
        program_retains(device);
    for (int device = 0; device < FAKE_DEVICES; device++)
        place_device_resetting(device);
    fake.made[FAKE_GREEN] = 0;
    atomic_store(&coming, 0);
    call_back_during("cuGreenCtxCreate", wait_for_all);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        first[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, sees_all_devices, &first[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    assert_int_equal(unmade, 0);
    assert_int_equal(fake.made[FAKE_GREEN], 2 * FAKE_DEVICES);
    for (int device = 0; device < FAKE_DEVICES; device++) {
        program_releases(device);
        assert_int_equal(fake.retains[device], 0);
    }
    assert_int_equal(fake.live[FAKE_GREEN], 0);
    assert_int_equal(fake.misuses, 0);
}

static void *works_and_ends(void *argument)
{
    int device = *(const int *)argument;
    for (int round = 0; round < 30; round++) {
        program_retains(device);
        CUstream stream = NULL;
        if (place_partition_stream(place_partition_find(device, SIDE), 0, &stream) == CUDA_SUCCESS)
            fake_stream_destroy(stream);
        place_context_gone(place_partition_find(device, MAIN)->context == NULL
                               ? NULL
                               : (CUcontext)&fake.objects[3]);
        if (round % 5 == 0)
            place_device_resetting(device);
        program_releases(device);
    }
    return NULL;
}

/* Each device is one thread's, as the driver demands of what is reset; what they share is ours. */
static void devices_come_and_go_side_by_side(void **state)
{
    (void)state;
    pthread_t threads[FAKE_DEVICES];
    int devices[FAKE_DEVICES];
    fake.many_threads = true;
    for (int i = 0; i < FAKE_DEVICES; i++) {
        devices[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, works_and_ends, &devices[i]), 0);
    }
    for (int i = 0; i < FAKE_DEVICES; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(fake.live[FAKE_GREEN], 0);
    assert_int_equal(fake.live[FAKE_STREAM], 0);
    assert_int_equal(fake.misuses, 0);
}

static void come_back(void)
{
    CUstream stream;
    place_device_active(0, true);
    place_device_retained(0);
    place_device_releasing(0);
    place_device_resetting(0);
    place_partition_stream(place_partition_find(0, SIDE), 0, &stream);
}

static void tool_called_back_by_the_driver_may_come_back(void **state)
{
    (void)state;
    call_back_during("cuGreenCtxCreate", come_back);
    program_retains(0);
    assert_reason(0, SIDE, NONE);
    assert_reason(0, MAIN, NONE);
    assert_int_equal(fake.live[FAKE_GREEN], 2);
}

static void child_begins_anew(void)
{
    uint32_t generation = atomic_load(&place_partition_find(0, SIDE)->generation);
    fake.during = NULL;
    forget_calls();
    place_start(support_policy, 0, NULL);
    expect_in_child(fake.calls == 0);
    expect_in_child(partition_reason(0, SIDE) == REPORT_REASON_NO_PARTITION);
    expect_in_child(place_primary_context(0) == NULL);
    expect_in_child(!place_partition_find(0, SIDE)->probe);
    place_device_retained(0);
    place_device_active(0, true);
    expect_in_child(partition_reason(0, SIDE) == REPORT_REASON_NONE);
    expect_in_child(atomic_load(&place_partition_find(0, SIDE)->generation) > generation);
    /* The holds were the parent's. */
    int greens = fake.live[FAKE_GREEN];
    place_device_releasing(0);
    expect_in_child(fake.live[FAKE_GREEN] == greens - 2);
}

static void child_has_no_partitions_of_its_parent(void **state)
{
    (void)state;
    program_retains(0);
    assert_child_succeeds(child_begins_anew);
    assert_reason(0, SIDE, NONE);
}

static void forks_while_making(void)
{
    fake.during = NULL;
    assert_child_succeeds(child_begins_anew);
}

static void child_of_a_fork_amid_making_begins_anew(void **state)
{
    (void)state;
    call_back_during("cuGreenCtxCreate", forks_while_making);
    program_retains(0);
    assert_reason(0, SIDE, NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(threads_make_partitions_once),
        TEST(devices_come_and_go_side_by_side),
        TEST(tool_called_back_by_the_driver_may_come_back),
        TEST(child_has_no_partitions_of_its_parent),
        TEST(child_of_a_fork_amid_making_begins_anew),
    };
    return cmocka_run_group_tests(tests, start_group, end_group);
}
