/* SPDX-License-Identifier: Apache-2.0 */
/* Function handles: names, and the attributes of functions and kernels. */
#include "driver.h"

bool launchable_of(CUfunction handle, struct launchable *launchable)
{
    if (object_is(OBJECT_KERNEL, handle)) {
        launchable->function = NULL;
        launchable->kernel = (CUkernel)(void *)handle;
        launchable->code = launchable->kernel->code;
        return true;
    }
    if (!object_is(OBJECT_FUNCTION, handle))
        return false;
    launchable->function = handle;
    launchable->kernel = NULL;
    launchable->code = handle->code;
    return true;
}

bool launchable_lives(const struct launchable *launchable)
{
    if (launchable->function == NULL)
        return object_is(OBJECT_KERNEL, launchable->kernel) &&
               launchable->kernel->code == launchable->code;
    return object_is(OBJECT_FUNCTION, launchable->function) &&
           launchable->function->code == launchable->code;
}

CUcontext launchable_context(const struct launchable *launchable)
{
    return launchable->function == NULL ? NULL : launchable->function->context;
}

int launchable_attribute(const struct launchable *launchable, int device, int attribute)
{
    CUfunction function = launchable->function;
    CUkernel kernel = launchable->kernel;
    if (function != NULL) {
        if ((function->own & (1u << attribute)) != 0)
            return function->attributes[attribute];
        kernel = function->kernel;
    }
    if (kernel != NULL)
        return kernel->attributes[device][attribute];
    return launchable->code->attributes[attribute];
}

/* Judges a function handle and an output. */
static struct call function_call(const char *name, CUfunction function, const void *output)
{
    struct call call = call_begin(name);
    call_function(&call, function);
    /* Documented for cuFuncGetName. */
    if (call.result == CUDA_SUCCESS && (function == NULL || output == NULL))
        call.result = CUDA_ERROR_INVALID_VALUE;
    /* Measured: a CUkernel in place of a CUfunction is an invalid handle, without a crash. */
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_FUNCTION, function))
        call.result = CUDA_ERROR_INVALID_HANDLE;
    return call;
}

CUresult CUDAAPI cuFuncGetName(const char **name, CUfunction hfunc)
{
    struct call call = function_call(__func__, hfunc, name);
    if (call.result == CUDA_SUCCESS)
        *name = hfunc->code->name;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
    struct call call = function_call(__func__, hfunc, hmod);
    if (call.result == CUDA_SUCCESS)
        *hmod = hfunc->module;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuFuncLoad(CUfunction function)
{
    struct call call = function_call(__func__, function, &configuration);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    struct call call = function_call(__func__, function, state);
    if (call.result == CUDA_SUCCESS)
        *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return call_end(&call, call.result);
}

static bool attribute_exists(int attribute)
{
    return attribute >= 0 && attribute < FUNCTION_ATTRIBUTES;
}

/* Documented at cuFuncSetAttribute: these, and no others. */
bool function_attribute_settable(int attribute)
{
    return attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
           attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT ||
           (attribute >= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH &&
            attribute <= CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
}

static CUresult check_new_value(const struct kernel_code *code, int attribute, int value)
{
    if (!attribute_exists(attribute) || !function_attribute_settable(attribute))
        return CUDA_ERROR_INVALID_VALUE;
    bool required = attribute >= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH &&
                    attribute <= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH;
    /* Documented: what was set at compile time cannot be set at run time. */
    if (required && code->cluster[0] != 0)
        return CUDA_ERROR_NOT_PERMITTED;
    int room = 232448 - code->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && (value < 0 || value > room))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
    struct call call = function_call(__func__, hfunc, pi);
    call_add(&call, "attribute=%d", (int)attrib);
    if (call.result == CUDA_SUCCESS && !attribute_exists((int)attrib))
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        struct launchable what = {.function = hfunc, .kernel = NULL, .code = hfunc->code};
        *pi = launchable_attribute(&what, hfunc->context->device, (int)attrib);
        call_add(&call, "value=%d", *pi);
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    struct call call = function_call(__func__, hfunc, &configuration);
    call_add(&call, "attribute=%d value=%d", (int)attrib, value);
    if (call.result == CUDA_SUCCESS)
        call.result = check_new_value(hfunc->code, (int)attrib, value);
    if (call.result == CUDA_SUCCESS) {
        hfunc->attributes[attrib] = value;
        hfunc->own |= 1u << attrib;
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
    struct call call = function_call(__func__, hfunc, &configuration);
    call_add(&call, "config=%d", (int)config);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)
{
    struct call call = function_call(__func__, hfunc, &configuration);
    call_add(&call, "config=%d", (int)config);
    return call_end(&call, call.result);
}

/* Begins a call about one kernel on one device. */
static struct call kernel_call(const char *name, CUkernel kernel, CUdevice device)
{
    struct call call = call_begin(name);
    call_function(&call, kernel);
    call_add(&call, "device=%d", device);
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_KERNEL, kernel))
        call.result = CUDA_ERROR_INVALID_HANDLE;
    if (call.result == CUDA_SUCCESS && !device_is(device))
        call.result = CUDA_ERROR_INVALID_DEVICE;
    return call;
}

CUresult CUDAAPI cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel,
                                      CUdevice dev)
{
    struct call call = kernel_call(__func__, kernel, dev);
    call_add(&call, "attribute=%d", (int)attrib);
    if (call.result == CUDA_SUCCESS && (pi == NULL || !attribute_exists((int)attrib)))
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        *pi = kernel->attributes[dev][attrib];
        call_add(&call, "value=%d", *pi);
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel,
                                      CUdevice dev)
{
    struct call call = kernel_call(__func__, kernel, dev);
    call_add(&call, "attribute=%d value=%d", (int)attrib, val);
    if (call.result == CUDA_SUCCESS)
        call.result = check_new_value(kernel->code, (int)attrib, val);
    if (call.result == CUDA_SUCCESS)
        kernel->attributes[dev][attrib] = val;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
    struct call call = kernel_call(__func__, kernel, dev);
    call_add(&call, "config=%d", (int)config);
    return call_end(&call, call.result);
}
