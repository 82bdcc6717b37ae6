/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries and their kernels, which belong to no context. */
#include "driver.h"
#include <string.h>

CUkernel library_kernel(CUlibrary library, struct kernel_code *code)
{
    for (CUkernel at = library->kernels; at != NULL; at = at->next_in_library)
        if (at->code == code)
            return at;
    CUkernel kernel = object_new(OBJECT_KERNEL);
    if (kernel == NULL)
        return NULL;
    kernel->library = library;
    kernel->code = code;
    for (int device = 0; device < DEVICES_MAX; device++)
        memcpy(kernel->attributes[device], code->attributes, sizeof(code->attributes));
    kernel->next_in_library = library->kernels;
    library->kernels = kernel;
    return kernel;
}

CUmodule library_module(CUlibrary library, CUcontext context)
{
    for (CUmodule at = library->modules; at != NULL; at = at->next_in_library)
        if (at->context == context)
            return at;
    return module_new(context, library, library->image);
}

CUfunction kernel_function(CUkernel kernel, CUcontext context)
{
    CUmodule module = library_module(kernel->library, context_root(context));
    return module == NULL ? NULL : module_function(module, kernel->code, kernel);
}

static CUresult load(CUlibrary *library, const void *data)
{
    if (library == NULL || data == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct image *image = image_parse(data);
    if (image == NULL)
        return CUDA_ERROR_INVALID_IMAGE;
    *library = object_new(OBJECT_LIBRARY);
    if (*library == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*library)->image = image;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                                   void **jitOptionsValues, unsigned int numJitOptions,
                                   CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                   unsigned int numLibraryOptions)
{
    (void)jitOptions;
    (void)jitOptionsValues;
    (void)numJitOptions;
    (void)libraryOptions;
    (void)libraryOptionValues;
    (void)numLibraryOptions;
    struct call call = call_begin(__func__);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS)
        result = load(library, code);
    if (result == CUDA_SUCCESS)
        call_object(&call, "library", OBJECT_LIBRARY, *library);
    return call_end(&call, result);
}

/* Files are never needed by the tests: there is none. */
CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
                                       CUjit_option *jitOptions, void **jitOptionsValues,
                                       unsigned int numJitOptions, CUlibraryOption *libraryOptions,
                                       void **libraryOptionValues, unsigned int numLibraryOptions)
{
    (void)library;
    (void)jitOptions;
    (void)jitOptionsValues;
    (void)numJitOptions;
    (void)libraryOptions;
    (void)libraryOptionValues;
    (void)numLibraryOptions;
    struct call call = call_begin(__func__);
    CUresult result = fileName == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_FILE_NOT_FOUND;
    return call_end(&call, call.result != CUDA_SUCCESS ? call.result : result);
}

static struct call library_call(const char *name, CUlibrary library)
{
    struct call call = call_begin(name);
    call_object(&call, "library", OBJECT_LIBRARY, library);
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_LIBRARY, library))
        call.result = CUDA_ERROR_INVALID_HANDLE;
    return call;
}

void library_free(CUlibrary library)
{
    while (library->modules != NULL)
        module_free(library->modules);
    while (library->kernels != NULL) {
        CUkernel next = library->kernels->next_in_library;
        object_free(OBJECT_KERNEL, library->kernels);
        library->kernels = next;
    }
    image_free(library->image);
    object_free(OBJECT_LIBRARY, library);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library)
{
    struct call call = library_call(__func__, library);
    if (call.result == CUDA_SUCCESS)
        library_free(library);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    struct call call = library_call(__func__, library);
    CUresult result = call.result;
    call_add(&call, "name=%s", name == NULL ? "null" : name);
    if (result == CUDA_SUCCESS && (pKernel == NULL || name == NULL))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        struct kernel_code *code = image_find(library->image, name);
        *pKernel = code == NULL ? NULL : library_kernel(library, code);
        if (*pKernel == NULL)
            result = code == NULL ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_OUT_OF_MEMORY;
        else
            call_object(&call, "kernel_handle", OBJECT_KERNEL, *pKernel);
    }
    return call_end(&call, result);
}

CUresult CUDAAPI cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
    struct call call = library_call(__func__, lib);
    if (call.result == CUDA_SUCCESS && count == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        *count = 0;
        for (struct kernel_code *at = lib->image->kernels; at != NULL; at = at->next)
            ++*count;
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels,
                                           CUlibrary lib)
{
    struct call call = library_call(__func__, lib);
    if (call.result == CUDA_SUCCESS && kernels == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        struct kernel_code *at = lib->image->kernels;
        for (unsigned int i = 0; i < numKernels && at != NULL; i++, at = at->next)
            kernels[i] = library_kernel(lib, at);
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    struct call call = library_call(__func__, library);
    CUresult result = call.result;
    CUcontext context = context_current();
    if (result == CUDA_SUCCESS && pMod == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && context == NULL)
        result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS) {
        *pMod = library_module(library, context_root(context));
        call_object(&call, "module", OBJECT_MODULE, *pMod);
    }
    return call_end(&call, result);
}

static struct call kernel_call(const char *name, CUkernel kernel, const void *output)
{
    struct call call = call_begin(name);
    call_function(&call, kernel);
    /* Documented for cuKernelGetName; the others take the same arguments the same way. */
    if (call.result == CUDA_SUCCESS && (kernel == NULL || output == NULL))
        call.result = CUDA_ERROR_INVALID_VALUE;
    /* Measured: a CUfunction in place of a CUkernel is an invalid handle, without a crash. */
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_KERNEL, kernel))
        call.result = CUDA_ERROR_INVALID_HANDLE;
    return call;
}

CUresult CUDAAPI cuKernelGetName(const char **name, CUkernel hfunc)
{
    struct call call = kernel_call(__func__, hfunc, name);
    if (call.result == CUDA_SUCCESS)
        *name = hfunc->code->name;
    return call_end(&call, call.result);
}

#if CUDA_VERSION >= 12050
CUresult CUDAAPI cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
    struct call call = kernel_call(__func__, kernel, pLib);
    if (call.result == CUDA_SUCCESS)
        *pLib = kernel->library;
    return call_end(&call, call.result);
}
#endif

CUresult CUDAAPI cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    struct call call = kernel_call(__func__, kernel, pFunc);
    CUresult result = call.result;
    CUcontext context = context_current();
    if (result == CUDA_SUCCESS && context == NULL)
        result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS) {
        *pFunc = kernel_function(kernel, context);
        call_object(&call, "function", OBJECT_FUNCTION, *pFunc);
    }
    return call_end(&call, result);
}
