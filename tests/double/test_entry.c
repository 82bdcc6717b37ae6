/* SPDX-License-Identifier: Apache-2.0 */
/* How functions of the recording driver are found. */
#include "test_support.h"
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

static int setup(void **state)
{
    (void)state;
    fresh_driver();
    return 0;
}

static void *resolve(const char *name, int version, cuuint64_t flags)
{
    void *pointer = (void *)(uintptr_t)1;
    EXPECT(cuGetProcAddress_v2(name, &pointer, version, flags, NULL));
    return pointer;
}

static void *exported(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    assert_non_null(driver);
    void *pointer = dlsym(driver, name);
    dlclose(driver);
    return pointer;
}

static void version_and_flags_choose_the_variant(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int version;
        cuuint64_t flags;
        const char *symbol;
    } cases[] = {
        {"cuLaunchKernel", 4000, 0, "cuLaunchKernel"},
        {"cuLaunchKernel", 7000, 2, "cuLaunchKernel_ptsz"},
        {"cuLaunchKernel", 4000, 2, "cuLaunchKernel"},
        {"cuLaunchKernel", 13000, 1, "cuLaunchKernel"},
        {"cuLaunchKernelEx", 11060, 2, "cuLaunchKernelEx_ptsz"},
        {"cuStreamCreate", 13000, 2, "cuStreamCreate"},
        {"cuStreamDestroy", 2000, 0, "cuStreamDestroy"},
        {"cuStreamDestroy", 4000, 0, "cuStreamDestroy_v2"},
        {"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
        {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
        {"cuGraphAddKernelNode", 11080, 0, "cuGraphAddKernelNode"},
        {"cuGraphAddKernelNode", 12000, 0, "cuGraphAddKernelNode_v2"},
        {"cuStreamGetCaptureInfo", 11030, 2, "cuStreamGetCaptureInfo_v2_ptsz"},
        {"cuStreamGetCaptureInfo", 12020, 0, "cuStreamGetCaptureInfo_v2"},
        {"cuMemcpyHtoD", 7000, 2, "cuMemcpyHtoD_v2_ptds"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        void *pointer = resolve(cases[i].name, cases[i].version, cases[i].flags);
        assert_ptr_equal(pointer, exported(cases[i].symbol));
        assert_non_null(pointer);
    }
}

static void what_cannot_be_found_says_why(void **state)
{
    (void)state;
    void *pointer;
    CUdriverProcAddressQueryResult status;
    EXPECT(cuGetProcAddress_v2("cuLaunchKernelEx", &pointer, 11050, 0, &status));
    assert_null(pointer);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    EXPECT(cuGetProcAddress_v2("cuNothing", &pointer, 12000, 0, &status));
    assert_null(pointer);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT(cuGetProcAddress_v2("", &pointer, 0, 0, NULL));
    assert_null(pointer);
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE,
                 cuGetProcAddress_v2("cuInit", &pointer, 13010, 0, &status));
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", NULL, 12000, 0));
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", &pointer, 12000, 4));
    recording_driver_configure("UNKNOWN_NAME", "500");
    EXPECT_ERROR(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("cuNothing", &pointer, 12000, 0));
}

static void an_old_driver_has_no_new_functions(void **state)
{
    (void)state;
    recording_driver_configure("VERSION", "12020");
    assert_null(resolve("cuKernelGetName", 12020, 0));
    assert_ptr_equal(resolve("cuGraphAddNode", 12020, 0), exported("cuGraphAddNode"));
    int version;
    EXPECT(cuDriverGetVersion(&version));
    assert_int_equal(version, 12020);
    recording_driver_configure("HIDE", "cuLaunchKernelEx,cuStreamCreate");
    assert_null(resolve("cuStreamCreate", 12000, 0));
    assert_non_null(resolve("cuLaunchKernel", 12000, 0));
    /* and they are not found by dlsym either, until they are there again */
    assert_null(exported("cuStreamCreate"));
    assert_null(exported("cuKernelGetName"));
    assert_null(exported("cuLaunchKernelEx_ptsz"));
    assert_non_null(exported("cuLaunchKernel_ptsz"));
    recording_driver_configure("VERSION", "13000");
    recording_driver_configure("HIDE", "");
    assert_non_null(exported("cuStreamCreate"));
    assert_non_null(exported("cuKernelGetName"));
}

static void functions_that_no_test_needs_are_found_but_not_supported(void **state)
{
    (void)state;
    CUresult(CUDAAPI * create)(void *);
    *(void **)&create = resolve("cuTexObjectCreate", 5000, 0);
    assert_non_null(create);
    EXPECT_ERROR(CUDA_ERROR_NOT_SUPPORTED, create(NULL));
    assert_null(resolve("cuTexObjectCreate", 4000, 0));
    assert_null(resolve("cuKernelGetParamCount", 13000, 0));
    /* A newer form that is not there must not be answered with the older one. */
    recording_driver_configure("VERSION", "13050");
    assert_ptr_equal(resolve("cuLaunchHostFunc", 13000, 2), exported("cuLaunchHostFunc_ptsz"));
    assert_ptr_equal(resolve("cuLaunchHostFunc", 13010, 0), (void *)create);
}

static void resolved_pointers_can_differ_from_exported_ones(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    __typeof__(&cuLaunchKernel) launch;
    recording_driver_configure("DISTINCT_POINTERS", "1");
    *(void **)&launch = resolve("cuLaunchKernel", 4000, 0);
    assert_ptr_not_equal((void *)launch, exported("cuLaunchKernel"));
    EXPECT(launch(function, 2, 3, 4, 5, 6, 7, 8, NULL, NULL, NULL));
    const struct recording_call *call = last_call("cuLaunchKernel");
    assert_true(call->resolved);
    assert_non_null(strstr(call->text, " grid=2,3,4 block=5,6,7 shared=8 "));
    EXPECT(launch_plain(function, NULL));
    assert_false(last_call("cuLaunchKernel")->resolved);
}

static void a_failure_can_be_for_one_kind_of_pointer(void **state)
{
    (void)state;
    CUstream stream;
    __typeof__(&cuStreamCreate) create;
    recording_driver_configure("DISTINCT_POINTERS", "1");
    *(void **)&create = resolve("cuStreamCreate", 2000, 0);
    assert_int_equal(recording_driver_configure("FAIL", "cuStream*@resolved:2=801"), 0);
    EXPECT(cuStreamCreate(&stream, 0));
    EXPECT(create(&stream, 0));
    EXPECT(cuStreamCreate(&stream, 0));
    EXPECT_ERROR(CUDA_ERROR_NOT_SUPPORTED, create(&stream, 0));
    assert_int_equal(recording_driver_configure("FAIL", "cuStreamCreate@exported:*=2"), 0);
    EXPECT_ERROR(CUDA_ERROR_OUT_OF_MEMORY, cuStreamCreate(&stream, 0));
    EXPECT(create(&stream, 0));
    assert_int_equal(recording_driver_configure("FAIL", "cuStreamCreate@other:*=2"), -1);
}

static void the_driver_can_call_back_into_the_process(void **state)
{
    (void)state;
    recording_driver_configure("CALL_OUT", "1");
    EXPECT(cuInit(0));
    /* once by the driver's own dlsym and once by us */
    assert_int_equal(recording_driver_call_count("cuInit"), 3);
    assert_non_null(strstr(last_call("cuGetProcAddress_v2")->text, "symbol=cuInit"));
}

static void a_forked_child_can_work_or_be_refused(void **state)
{
    (void)state;
    for (int refused = 0; refused < 2; refused++) {
        recording_driver_configure("FORK_REFUSED", refused ? "1" : "0");
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            CUstream stream;
            _exit((int)cuStreamCreate(&stream, 0));
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(WEXITSTATUS(status), refused ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(version_and_flags_choose_the_variant, setup),
        cmocka_unit_test_setup(what_cannot_be_found_says_why, setup),
        cmocka_unit_test_setup(an_old_driver_has_no_new_functions, setup),
        cmocka_unit_test_setup(functions_that_no_test_needs_are_found_but_not_supported, setup),
        cmocka_unit_test_setup(resolved_pointers_can_differ_from_exported_ones, setup),
        cmocka_unit_test_setup(a_failure_can_be_for_one_kind_of_pointer, setup),
        cmocka_unit_test_setup(the_driver_can_call_back_into_the_process, setup),
        cmocka_unit_test_setup(a_forked_child_can_work_or_be_refused, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
