/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions, what holds them, and their attributes. */
#include "matrix.h"

exercise_function exercise_module_get_function, exercise_library_get_kernel,
    exercise_kernel_get_function, exercise_module_unload, exercise_library_unload,
    exercise_context_destroy, exercise_primary_context_retain, exercise_primary_context_reset,
    exercise_primary_context_release, exercise_green_context_create, exercise_green_context_destroy,
    exercise_function_set_attribute, exercise_kernel_set_attribute,
    exercise_function_set_cache_config, exercise_kernel_set_cache_config,
    exercise_function_set_shared_memory_config, exercise_context_set_cache_config;

static const char *result_problem(CUresult result)
{
    return result == CUDA_SUCCESS ? NULL : problem("the program got %d", (int)result);
}

const char *exercise_module_get_function(const struct row *row, void *function)
{
    CUresult (*get)(CUfunction *, CUmodule, const char *) = function;
    CUfunction found = NULL;

    (void)row;
    return result_problem(get(&found, fixture.module, "other"));
}

const char *exercise_library_get_kernel(const struct row *row, void *function)
{
    CUresult (*get)(CUkernel *, CUlibrary, const char *) = function;
    CUkernel found = NULL;

    (void)row;
    return result_problem(get(&found, fixture.library, "other"));
}

const char *exercise_kernel_get_function(const struct row *row, void *function)
{
    CUresult (*get)(CUfunction *, CUkernel) = function;
    CUfunction found = NULL;

    (void)row;
    return result_problem(get(&found, fixture.kernel));
}

const char *exercise_module_unload(const struct row *row, void *function)
{
    CUresult (*unload)(CUmodule) = function;

    (void)row;
    return result_problem(unload(fixture.module));
}

const char *exercise_library_unload(const struct row *row, void *function)
{
    CUresult (*unload)(CUlibrary) = function;

    (void)row;
    return result_problem(unload(fixture.library));
}

const char *exercise_context_destroy(const struct row *row, void *function)
{
    CUresult (*destroy)(CUcontext) = function;
    CUcontext context;

    (void)row;
    CHECK(RAW(cuCtxCreate_v2)(&context, 0, 0));
    return result_problem(destroy(context));
}

const char *exercise_primary_context_retain(const struct row *row, void *function)
{
    CUresult (*retain)(CUcontext *, CUdevice) = function;
    CUcontext context = NULL;
    const CUresult result = retain(&context, 0);

    (void)row;
    if (result == CUDA_SUCCESS)
        CHECK(RAW(cuDevicePrimaryCtxRelease_v2)(0));
    return result == CUDA_SUCCESS && context != fixture.context ? "another context"
                                                                : result_problem(result);
}

const char *exercise_primary_context_reset(const struct row *row, void *function)
{
    CUresult (*reset)(CUdevice) = function;

    (void)row;
    return result_problem(reset(0));
}

const char *exercise_primary_context_release(const struct row *row, void *function)
{
    CUresult (*release)(CUdevice) = function;

    (void)row;
    return result_problem(release(0));
}

const char *exercise_green_context_create(const struct row *row, void *function)
{
    CUresult (*create)(void **, void *, CUdevice, unsigned) = function;
    void *context = NULL;
    const CUresult result = create(&context, green_description(), 0, 1);

    (void)row;
    if (result == CUDA_SUCCESS)
        green_context_end(context);
    return result_problem(result);
}

const char *exercise_green_context_destroy(const struct row *row, void *function)
{
    CUresult (*destroy)(void *) = function;

    (void)row;
    return result_problem(destroy(green_context()));
}

const char *exercise_function_set_attribute(const struct row *row, void *function)
{
    CUresult (*set)(CUfunction, CUfunction_attribute, int) = function;

    (void)row;
    return result_problem(
        set(fixture.function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
}

const char *exercise_kernel_set_attribute(const struct row *row, void *function)
{
    CUresult (*set)(CUfunction_attribute, int, CUkernel, CUdevice) = function;

    (void)row;
    return result_problem(
        set(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50, fixture.kernel, 0));
}

const char *exercise_function_set_cache_config(const struct row *row, void *function)
{
    CUresult (*set)(CUfunction, CUfunc_cache) = function;

    (void)row;
    return result_problem(set(fixture.function, CU_FUNC_CACHE_PREFER_L1));
}

const char *exercise_kernel_set_cache_config(const struct row *row, void *function)
{
    CUresult (*set)(CUkernel, CUfunc_cache, CUdevice) = function;

    (void)row;
    return result_problem(set(fixture.kernel, CU_FUNC_CACHE_PREFER_L1, 0));
}

const char *exercise_function_set_shared_memory_config(const struct row *row, void *function)
{
    CUresult (*set)(CUfunction, CUsharedconfig) = function;

    (void)row;
    return result_problem(set(fixture.function, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
}

const char *exercise_context_set_cache_config(const struct row *row, void *function)
{
    CUresult (*set)(CUfunc_cache) = function;

    (void)row;
    return result_problem(set(CU_FUNC_CACHE_PREFER_L1));
}
