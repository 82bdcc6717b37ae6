/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads and many objects on the recording driver. */
#include "test_support.h"
#include <pthread.h>

#define THREADS 64
#define ROUNDS 50

static CUcontext context;

static int setup(void **state)
{
    (void)state;
    context = fresh_driver();
    return 0;
}

/* Assertions of cmocka do not work in other threads: errors are counted. */
static void *work(void *data)
{
    CUfunction function = data;
    uintptr_t errors = 0;
    CUlaunchAttribute domain = domain_attribute(1);
    errors += cuCtxSetCurrent(context) != CUDA_SUCCESS;
    for (int i = 0; i < ROUNDS; i++) {
        CUstream stream;
        CUgraph graph;
        errors += cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
        errors += launch_plain(function, stream) != CUDA_SUCCESS;
        errors += launch_plain(function, CU_STREAM_PER_THREAD) != CUDA_SUCCESS;
        errors += cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS;
        errors += launch_with(function, stream, 4, &domain, 1) != CUDA_SUCCESS;
        errors += cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS;
        errors += cuGraphDestroy(graph) != CUDA_SUCCESS;
        errors += cuStreamDestroy_v2(stream) != CUDA_SUCCESS;
    }
    return (void *)errors;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    CUfunction function = load_function("kernel k\n", "k");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, function), 0);
    for (int i = 0; i < THREADS; i++) {
        void *errors;
        assert_int_equal(pthread_join(threads[i], &errors), 0);
        assert_null(errors);
    }
    assert_int_equal(recording_driver_live("stream"), 0);
    assert_int_equal(recording_driver_live("graph"), 0);
}

static void threads_work_at_once_and_no_call_is_lost(void **state)
{
    (void)state;
    run_threads();
    assert_int_equal(recording_driver_call_count("cuLaunchKernel"), THREADS * ROUNDS * 2);
    assert_int_equal(recording_driver_call_count("cuLaunchKernelEx"), THREADS * ROUNDS);
}

static void threads_work_at_once_unwatched(void **state)
{
    (void)state;
    recording_driver_configure("KEEP", "0");
    run_threads();
}

static void *other_thread(void *data)
{
    unsigned long long *id = data;
    CUlaunchAttributeValue value;
    uintptr_t errors = cuCtxSetCurrent(context) != CUDA_SUCCESS;
    errors += cuStreamGetId(CU_STREAM_PER_THREAD, id) != CUDA_SUCCESS;
    errors += cuStreamGetAttribute_ptsz(NULL, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value) !=
              CUDA_SUCCESS;
    errors += value.memSyncDomain != 0;
    return (void *)errors;
}

static void each_thread_has_a_per_thread_stream_of_its_own(void **state)
{
    (void)state;
    pthread_t thread;
    void *errors;
    unsigned long long mine, other;
    CUlaunchAttribute remote = domain_attribute(1);
    EXPECT(cuStreamSetAttribute_ptsz(NULL, remote.id, &remote.value));
    EXPECT(cuStreamGetId_ptsz(NULL, &mine));
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &other), 0);
    assert_int_equal(pthread_join(thread, &errors), 0);
    assert_null(errors);
    assert_int_not_equal(mine, other);
    CUfunction function = load_function("kernel k\n", "k");
    EXPECT(launch_plain(function, CU_STREAM_PER_THREAD));
    assert_non_null(recording_attribute(&last_call("cuLaunchKernel")->effective,
                                        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN));
}

static void modules_come_and_go_without_leaving_anything(void **state)
{
    (void)state;
    recording_driver_configure("KEEP", "0");
    for (int i = 0; i < 100000; i++) {
        CUmodule module;
        CUfunction function;
        EXPECT(cuModuleLoadData(&module, i % 2 == 0 ? "kernel even\n" : "kernel odd\n"));
        EXPECT(cuModuleGetFunction(&function, module, i % 2 == 0 ? "even" : "odd"));
        EXPECT(launch_plain(function, NULL));
        EXPECT(cuModuleUnload(module));
    }
    assert_int_equal(recording_driver_live("module"), 0);
    assert_int_equal(recording_driver_live("function"), 0);
}

static void a_reset_of_the_primary_context_takes_its_objects(void **state)
{
    (void)state;
    CUkernel kernel = load_kernel("kernel k\n", "k");
    CUfunction function = load_function("kernel f\n", "f");
    CUstream stream = new_stream();
    EXPECT(launch_plain((CUfunction)kernel, stream));
    EXPECT(cuDevicePrimaryCtxReset_v2(0));
    assert_int_equal(recording_driver_live("stream"), 0);
    EXPECT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, launch_plain((CUfunction)kernel, NULL));
    EXPECT(cuDevicePrimaryCtxRetain(&context, 0));
    /* A kernel belongs to its library and outlives the context, a function does not. */
    EXPECT(launch_plain((CUfunction)kernel, NULL));
    EXPECT_ERROR(CUDA_ERROR_INVALID_HANDLE, launch_plain(function, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(threads_work_at_once_and_no_call_is_lost, setup),
        cmocka_unit_test_setup(threads_work_at_once_unwatched, setup),
        cmocka_unit_test_setup(each_thread_has_a_per_thread_stream_of_its_own, setup),
        cmocka_unit_test_setup(modules_come_and_go_without_leaving_anything, setup),
        cmocka_unit_test_setup(a_reset_of_the_primary_context_takes_its_objects, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
