/* SPDX-License-Identifier: Apache-2.0 */
/* Launches on the recording driver: what is recorded, what is refused. */
#include "test_support.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define AXPY "kernel _Z4axpyv params=8,4\n"
#define TWO "kernel two cluster=2,1,1\n"

static int setup(void **state)
{
    (void)state;
    fresh_driver();
    return 0;
}

static void each_launch_function_is_recorded_under_its_own_name(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1};
    EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    EXPECT(cuLaunchKernel_ptsz(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    EXPECT(cuLaunchKernelEx(&config, function, NULL, NULL));
    EXPECT(cuLaunchKernelEx_ptsz(&config, function, NULL, NULL));
    EXPECT(cuLaunchCooperativeKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL));
    EXPECT(cuLaunchCooperativeKernel_ptsz(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL));
    static const char *const names[] = {
        "cuLaunchKernel",        "cuLaunchKernel_ptsz",       "cuLaunchKernelEx",
        "cuLaunchKernelEx_ptsz", "cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz"};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(recording_driver_call_count(names[i]), 1);
        const struct recording_call *call = last_call(names[i]);
        assert_string_equal(call->stream_name, i % 2 == 0 ? "legacy" : "per_thread");
        assert_string_equal(call->kernel, "k");
    }
}

static void the_line_of_a_launch_shows_all_of_it(void **state)
{
    (void)state;
    CUkernel kernel = load_kernel(AXPY, "_Z4axpyv");
    new_stream();
    CUstream stream = new_stream();
    CUlaunchAttribute attributes[] = {cluster_attribute(2), domain_attribute(1)};
    void *pointer = NULL;
    float factor = 2;
    void *parameters[] = {&pointer, &factor};
    CUlaunchConfig config = {4, 1, 1, 128, 1, 1, 16, stream, attributes, 2};
    EXPECT(cuLaunchKernelEx_ptsz(&config, (CUfunction)kernel, parameters, NULL));
    assert_string_equal(last_call("cuLaunchKernelEx_ptsz")->text,
                        "call=cuLaunchKernelEx_ptsz kernel=_Z4axpyv handle=kernel stream=stream#2 "
                        "context=primary#0 sms=132 sm_set=0-131 "
                        "grid=4,1,1 block=128,1,1 shared=16 "
                        "attributes=CLUSTER_DIMENSION:2/1/1,MEM_SYNC_DOMAIN:1 "
                        "arguments=kernelParams(12:5467f0da1d10d155) capture=0 "
                        "effective=CLUSTER_DIMENSION:2/1/1,MEM_SYNC_DOMAIN:1 thread=1 result=0");
}

static void arguments_in_extra_are_recorded_with_their_size(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    char buffer[24] = "arguments";
    size_t size = sizeof(buffer);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    const struct recording_call *call = last_call("cuLaunchKernel");
    assert_int_equal(call->arguments, RECORDING_ARGUMENTS_EXTRA);
    assert_non_null(strstr(call->text, "arguments=extra(24:"));
}

static void both_kinds_of_handle_can_be_launched(void **state)
{
    (void)state;
    CUkernel kernel = load_kernel("kernel k\n", "k");
    CUfunction function = load_function("kernel f\n", "f");
    EXPECT(launch_plain((CUfunction)kernel, NULL));
    assert_int_equal(last_call("cuLaunchKernel")->handle, RECORDING_HANDLE_KERNEL);
    EXPECT(launch_plain(function, NULL));
    assert_int_equal(last_call("cuLaunchKernel")->handle, RECORDING_HANDLE_FUNCTION);
    EXPECT_ERROR(CUDA_ERROR_INVALID_HANDLE, launch_plain((CUfunction)(uintptr_t)0x1234, NULL));
}

static void names_are_given_only_for_the_right_kind_of_handle(void **state)
{
    (void)state;
    const char *name;
    CUkernel kernel = load_kernel("kernel k\n", "k");
    CUfunction function = load_function("kernel f\n", "f");
    int value;
    EXPECT(cuKernelGetName(&name, kernel));
    assert_string_equal(name, "k");
    EXPECT(cuFuncGetName(&name, function));
    assert_string_equal(name, "f");
    EXPECT_ERROR(CUDA_ERROR_INVALID_HANDLE, cuFuncGetName(&name, (CUfunction)kernel));
    EXPECT_ERROR(CUDA_ERROR_INVALID_HANDLE, cuKernelGetName(&name, (CUkernel)function));
    EXPECT_ERROR(CUDA_ERROR_INVALID_HANDLE,
                 cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, (CUfunction)kernel));
}

static void the_last_of_a_repeated_attribute_wins(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUlaunchAttribute attributes[] = {domain_attribute(1), domain_attribute(0)};
    EXPECT(launch_with(function, NULL, 4, attributes, 2));
    const struct recording_call *call = last_call("cuLaunchKernelEx");
    assert_int_equal(call->attribute_count, 2);
    assert_int_equal(
        recording_attribute(&call->effective, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)->memSyncDomain,
        0);
}

static void launch_attributes_beat_those_of_the_stream_one_by_one(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUstream stream = new_stream();
    CUlaunchAttribute map = map_attribute(1, 2), remote = domain_attribute(1);
    EXPECT(cuStreamSetAttribute(stream, map.id, &map.value));
    CUlaunchAttribute standard = domain_attribute(0);
    EXPECT(cuStreamSetAttribute(stream, standard.id, &standard.value));
    EXPECT(launch_with(function, stream, 4, &remote, 1));
    const struct recording_call *call = last_call("cuLaunchKernelEx");
    assert_int_equal(
        recording_attribute(&call->effective, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)->memSyncDomain,
        1);
    assert_int_equal(recording_attribute(&call->effective, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
                         ->memSyncDomainMap.remote,
                     2);
}

static void a_map_beyond_the_domain_count_is_an_invalid_value(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUlaunchAttribute last = map_attribute(0, 3), beyond = map_attribute(0, 4);
    EXPECT(launch_with(function, NULL, 4, &last, 1));
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, launch_with(function, NULL, 4, &beyond, 1));
}

static void an_unknown_attribute_is_an_invalid_value(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUlaunchAttribute unknown = domain_attribute(0);
    unknown.id = (CUlaunchAttributeID)31;
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, launch_with(function, NULL, 4, &unknown, 1));
    unknown.id = (CUlaunchAttributeID)16;
    EXPECT(launch_with(function, NULL, 4, &unknown, 1));
    recording_driver_configure("VERSION", "12080");
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, launch_with(function, NULL, 4, &unknown, 1));
}

static void cluster_is_refused_when_the_grid_is_not_divisible(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUlaunchAttribute four = cluster_attribute(4);
    EXPECT(launch_with(function, NULL, 8, &four, 1));
    EXPECT_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch_with(function, NULL, 6, &four, 1));
}

static void a_compile_time_cluster_accepts_only_itself(void **state)
{
    (void)state;
    CUfunction function = load_function(TWO, "two");
    CUlaunchAttribute two = cluster_attribute(2), four = cluster_attribute(4);
    int width, must;
    EXPECT(launch_plain(function, NULL));
    EXPECT(launch_with(function, NULL, 4, &two, 1));
    EXPECT_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch_with(function, NULL, 4, &four, 1));
    EXPECT_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch_with(function, NULL, 3, NULL, 0));
    EXPECT(cuFuncGetAttribute(&width, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, function));
    EXPECT(cuFuncGetAttribute(&must, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, function));
    assert_int_equal(width, 2);
    assert_int_equal(must, 1);
    EXPECT_ERROR(CUDA_ERROR_NOT_PERMITTED,
                 cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 4));
}

static void sixteen_blocks_need_the_non_portable_permission(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUlaunchAttribute sixteen = cluster_attribute(16);
    EXPECT_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch_with(function, NULL, 16, &sixteen, 1));
    EXPECT(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    EXPECT(launch_with(function, NULL, 16, &sixteen, 1));
}

static void a_preferred_cluster_needs_compute_capability_10(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUlaunchAttribute attributes[] = {cluster_attribute(2), cluster_attribute(4)};
    attributes[1].id = (CUlaunchAttributeID)11;
    EXPECT_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch_with(function, NULL, 8, attributes, 2));
    recording_driver_configure("COMPUTE_CAPABILITY", "10.0");
    EXPECT(launch_with(function, NULL, 8, attributes, 2));
    attributes[1].value.clusterDim.x = 3;
    EXPECT_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch_with(function, NULL, 6, attributes, 2));
}

static void a_cooperative_grid_must_be_resident(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUlaunchAttribute two = cluster_attribute(2);
    EXPECT(cuLaunchCooperativeKernel(function, 132, 1, 1, 1024, 1, 1, 0, NULL, NULL));
    EXPECT_ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                 cuLaunchCooperativeKernel(function, 265, 1, 1, 1024, 1, 1, 0, NULL, NULL));
    CUlaunchAttribute both[] = {two, two};
    both[1].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    both[1].value.cooperative = 1;
    EXPECT(launch_with(function, NULL, 4, both, 2));
}

static void a_priority_out_of_range_is_clamped(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUlaunchAttribute priority = domain_attribute(0);
    priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    priority.value.priority = -100;
    EXPECT(launch_with(function, NULL, 4, &priority, 1));
    const struct recording_call *call = last_call("cuLaunchKernelEx");
    assert_int_equal(recording_attribute(&call->effective, CU_LAUNCH_ATTRIBUTE_PRIORITY)->priority,
                     -5);
}

static void nothing_works_without_initialisation_or_context(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    EXPECT(cuCtxSetCurrent(NULL));
    EXPECT_ERROR(CUDA_ERROR_INVALID_CONTEXT, launch_plain(function, NULL));
    recording_driver_reset();
    EXPECT_ERROR(CUDA_ERROR_NOT_INITIALIZED, launch_plain(function, NULL));
}

static void scripted_failures_come_before_any_effect(void **state)
{
    (void)state;
    CUstream first, second;
    CUfunction function = load_function("kernel k\n", "k");
    assert_int_equal(recording_driver_configure("FAIL", "cuStreamCreate:1=2;cuLaunchKernel:2+=719"),
                     0);
    EXPECT_ERROR(CUDA_ERROR_OUT_OF_MEMORY, cuStreamCreate(&first, 0));
    assert_int_equal(recording_driver_live("stream"), 0);
    EXPECT(cuStreamCreate(&second, 0));
    EXPECT(launch_plain(function, second));
    EXPECT_ERROR(CUDA_ERROR_LAUNCH_FAILED, launch_plain(function, second));
    EXPECT_ERROR(CUDA_ERROR_LAUNCH_FAILED, launch_plain(function, second));
    assert_true(last_call("cuLaunchKernel")->injected);
    EXPECT(cuLaunchKernel_ptsz(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    assert_int_equal(recording_driver_configure("FAIL", "cuLaunchKernel"), -1);
}

static void destroyed_handles_come_back_at_once(void **state)
{
    (void)state;
    CUstream stream = new_stream();
    EXPECT(cuStreamDestroy_v2(stream));
    EXPECT_ERROR(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(stream));
    assert_ptr_equal(new_stream(), stream);
    CUmodule module, other;
    CUfunction one, two;
    EXPECT(cuModuleLoadData(&module, "kernel one\n"));
    EXPECT(cuModuleGetFunction(&one, module, "one"));
    EXPECT(cuModuleUnload(module));
    EXPECT_ERROR(CUDA_ERROR_INVALID_HANDLE, launch_plain(one, NULL));
    EXPECT(cuModuleLoadData(&other, "kernel two\n"));
    EXPECT(cuModuleGetFunction(&two, other, "two"));
    assert_ptr_equal(one, two);
    EXPECT(launch_plain(two, NULL));
    assert_string_equal(last_call("cuLaunchKernel")->kernel, "two");
}

static void the_log_file_has_the_same_lines(void **state)
{
    (void)state;
    char path[] = "/tmp/recording-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    recording_driver_configure("LOG", path);
    CUfunction function = load_function("kernel k\n", "k");
    EXPECT(launch_plain(function, NULL));
    char text[4096];
    ssize_t length = read(file, text, sizeof(text) - 1);
    assert_true(length > 0);
    text[length] = '\0';
    const char *line = last_call("cuLaunchKernel")->text;
    assert_non_null(strstr(text, line));
    recording_driver_note("a word of the test's own");
    length = read(file, text, sizeof(text) - 1);
    assert_true(length > 0);
    text[length] = '\0';
    assert_string_equal(text, "note=a word of the test's own thread=1\n");
    close(file);
    unlink(path);
}

static void unwatched_launches_are_judged_the_same(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    CUlaunchAttribute four = cluster_attribute(4);
    recording_driver_configure("KEEP", "0");
    EXPECT(launch_with(function, NULL, 8, &four, 1));
    EXPECT_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch_with(function, NULL, 6, &four, 1));
    EXPECT_ERROR(CUDA_ERROR_INVALID_HANDLE, launch_plain((CUfunction)(uintptr_t)64, NULL));
    assert_int_equal(recording_driver_call_count("cuLaunchKernelEx"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_launch_function_is_recorded_under_its_own_name, setup),
        cmocka_unit_test_setup(the_line_of_a_launch_shows_all_of_it, setup),
        cmocka_unit_test_setup(arguments_in_extra_are_recorded_with_their_size, setup),
        cmocka_unit_test_setup(both_kinds_of_handle_can_be_launched, setup),
        cmocka_unit_test_setup(names_are_given_only_for_the_right_kind_of_handle, setup),
        cmocka_unit_test_setup(the_last_of_a_repeated_attribute_wins, setup),
        cmocka_unit_test_setup(launch_attributes_beat_those_of_the_stream_one_by_one, setup),
        cmocka_unit_test_setup(a_map_beyond_the_domain_count_is_an_invalid_value, setup),
        cmocka_unit_test_setup(an_unknown_attribute_is_an_invalid_value, setup),
        cmocka_unit_test_setup(cluster_is_refused_when_the_grid_is_not_divisible, setup),
        cmocka_unit_test_setup(a_compile_time_cluster_accepts_only_itself, setup),
        cmocka_unit_test_setup(sixteen_blocks_need_the_non_portable_permission, setup),
        cmocka_unit_test_setup(a_preferred_cluster_needs_compute_capability_10, setup),
        cmocka_unit_test_setup(a_cooperative_grid_must_be_resident, setup),
        cmocka_unit_test_setup(a_priority_out_of_range_is_clamped, setup),
        cmocka_unit_test_setup(nothing_works_without_initialisation_or_context, setup),
        cmocka_unit_test_setup(scripted_failures_come_before_any_effect, setup),
        cmocka_unit_test_setup(destroyed_handles_come_back_at_once, setup),
        cmocka_unit_test_setup(the_log_file_has_the_same_lines, setup),
        cmocka_unit_test_setup(unwatched_launches_are_judged_the_same, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
