/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and contexts of the recording driver. */
#include "test_support.h"

static CUcontext primary;

static int setup(void **state)
{
    (void)state;
    primary = fresh_driver();
    return 0;
}

static CUcontext current(void)
{
    CUcontext context;
    EXPECT(cuCtxGetCurrent(&context));
    return context;
}

static void a_destroyed_context_leaves_the_stack_and_takes_its_streams(void **state)
{
    (void)state;
    CUcontext created;
    EXPECT(cuCtxCreate_v2(&created, 0, 0));
    assert_ptr_equal(current(), created);
    new_stream();
    EXPECT(cuCtxDestroy_v2(created));
    assert_ptr_equal(current(), primary);
    assert_int_equal(recording_driver_live("stream"), 0);
    EXPECT_ERROR(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(created));
    EXPECT_ERROR(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(primary));
}

static void contexts_are_pushed_and_popped(void **state)
{
    (void)state;
    CUcontext created, popped;
    EXPECT(cuCtxCreate_v2(&created, 0, 0));
    EXPECT(cuCtxPushCurrent_v2(primary));
    EXPECT(cuCtxPopCurrent_v2(&popped));
    assert_ptr_equal(popped, primary);
    EXPECT(cuCtxPopCurrent_v2(NULL));
    EXPECT(cuCtxPopCurrent_v2(NULL));
    assert_null(current());
    EXPECT_ERROR(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent_v2(NULL));
}

static void a_primary_context_is_active_while_it_is_retained(void **state)
{
    (void)state;
    unsigned int flags;
    int active;
    CUcontext again;
    EXPECT(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 1);
    EXPECT(cuDevicePrimaryCtxRelease_v2(0));
    EXPECT(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);
    EXPECT_ERROR(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
    EXPECT(cuDevicePrimaryCtxRetain(&again, 0));
    assert_ptr_equal(again, primary);
}

static void devices_are_as_configured(void **state)
{
    (void)state;
    int count, value;
    CUdevice device;
    char text[16];
    recording_driver_configure("DEVICES", "3");
    recording_driver_configure("SMS", "100");
    recording_driver_configure("MEM_SYNC_DOMAINS", "1");
    EXPECT(cuDeviceGetCount(&count));
    assert_int_equal(count, 3);
    EXPECT_ERROR(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 3));
    EXPECT(cuDeviceGetPCIBusId(text, sizeof(text), 2));
    EXPECT(cuDeviceGetByPCIBusId(&device, text));
    assert_int_equal(device, 2);
    EXPECT(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 2));
    assert_int_equal(value, 100);
    EXPECT(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, 2));
    assert_int_equal(value, 1);
    EXPECT(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
    assert_int_equal(value, 1);
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE,
                 cuDeviceGetAttribute(&value, (CUdevice_attribute)149, 0));
    assert_int_equal(recording_driver_configure("SMS", "many"), -1);
    assert_int_equal(recording_driver_configure("NOTHING", "1"), -1);
}

static void streams_and_functions_of_different_devices_do_not_mix(void **state)
{
    (void)state;
    CUcontext second;
    CUdevice device;
    CUfunction function = load_function("kernel k\n", "k");
    CUkernel kernel = load_kernel("kernel k\n", "k");
    recording_driver_configure("DEVICES", "2");
    EXPECT(cuDevicePrimaryCtxRetain(&second, 1));
    EXPECT(cuCtxSetCurrent(second));
    EXPECT(cuCtxGetDevice(&device));
    assert_int_equal(device, 1);
    CUstream stream = new_stream();
    EXPECT_ERROR(CUDA_ERROR_INVALID_HANDLE, launch_plain(function, stream));
    EXPECT(launch_plain((CUfunction)kernel, stream));
    /* Attributes of a kernel are per device, and a function's own beat them. */
    EXPECT(
        cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, kernel, 1));
    int value;
    EXPECT(cuKernelGetFunction(&function, kernel));
    EXPECT(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    assert_int_equal(value, 100000);
    EXPECT(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000));
    EXPECT(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000, kernel, 1));
    EXPECT(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    assert_int_equal(value, 50000);
    EXPECT(
        cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0));
    assert_int_equal(value, 49152);
}

static void without_devices_initialisation_fails(void **state)
{
    (void)state;
    recording_driver_reset();
    recording_driver_configure("DEVICES", "0");
    EXPECT_ERROR(CUDA_ERROR_NO_DEVICE, cuInit(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_destroyed_context_leaves_the_stack_and_takes_its_streams, setup),
        cmocka_unit_test_setup(contexts_are_pushed_and_popped, setup),
        cmocka_unit_test_setup(a_primary_context_is_active_while_it_is_retained, setup),
        cmocka_unit_test_setup(devices_are_as_configured, setup),
        cmocka_unit_test_setup(streams_and_functions_of_different_devices_do_not_mix, setup),
        cmocka_unit_test_setup(without_devices_initialisation_fails, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
