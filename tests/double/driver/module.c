/* SPDX-License-Identifier: Apache-2.0 */
/* Modules and their functions. */
#include "driver.h"
#include <stdio.h>
#include <stdlib.h>

CUmodule module_new(CUcontext context, CUlibrary library, struct image *image)
{
    CUmodule module = object_new(OBJECT_MODULE);
    if (module == NULL)
        return NULL;
    module->context = context;
    module->image = image;
    module->library = library;
    if (library != NULL) {
        module->next_in_library = library->modules;
        library->modules = module;
    }
    return module;
}

void module_free(CUmodule module)
{
    while (module->functions != NULL) {
        CUfunction next = module->functions->next_in_module;
        object_free(OBJECT_FUNCTION, module->functions);
        module->functions = next;
    }
    if (module->library == NULL) {
        image_free(module->image);
    } else {
        CUmodule *at = &module->library->modules;
        while (*at != module)
            at = &(*at)->next_in_library;
        *at = module->next_in_library;
    }
    object_free(OBJECT_MODULE, module);
}

/* Contexts take their modules with them; a library outlives them and makes new modules later. */
void module_context_gone(CUcontext context)
{
    for (CUmodule module = object_next(OBJECT_MODULE, NULL); module != NULL;
         module = object_next(OBJECT_MODULE, module))
        if (module->context == context)
            module_free(module);
}

CUfunction module_function(CUmodule module, struct kernel_code *code, CUkernel kernel)
{
    for (CUfunction at = module->functions; at != NULL; at = at->next_in_module)
        if (at->code == code)
            return at;
    CUfunction function = object_new(OBJECT_FUNCTION);
    if (function == NULL)
        return NULL;
    function->module = module;
    function->kernel = kernel;
    function->context = module->context;
    function->code = code;
    function->next_in_module = module->functions;
    module->functions = function;
    return function;
}

static CUresult load(CUmodule *module, const void *data)
{
    CUcontext context = context_current();
    if (module == NULL || data == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    struct image *image = image_parse(data);
    if (image == NULL)
        return CUDA_ERROR_INVALID_IMAGE;
    *module = module_new(context_root(context), NULL, image);
    return *module == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult load_data(const char *name, CUmodule *module, const void *data)
{
    struct call call = call_begin(name);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS)
        result = load(module, data);
    if (result == CUDA_SUCCESS)
        call_object(&call, "module", OBJECT_MODULE, *module);
    return call_end(&call, result);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
    return load_data(__func__, module, image);
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                                    CUjit_option *options, void **optionValues)
{
    (void)numOptions;
    (void)options;
    (void)optionValues;
    return load_data(__func__, module, image);
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    return load_data(__func__, module, fatCubin);
}

/* Contents of a file with a terminating zero, or NULL. */
static char *file_contents(const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return NULL;
    struct text text = {NULL, 0, 0};
    char buffer[4096];
    size_t count;
    text_add(&text, "%s", "");
    while ((count = fread(buffer, 1, sizeof(buffer), file)) != 0)
        text_add(&text, "%.*s", (int)count, buffer);
    fclose(file);
    return text.data;
}

CUresult CUDAAPI cuModuleLoad(CUmodule *module, const char *fname)
{
    struct call call = call_begin(__func__);
    CUresult result = call.result;
    char *data = NULL;
    if (result == CUDA_SUCCESS && fname == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && (data = file_contents(fname)) == NULL)
        result = CUDA_ERROR_FILE_NOT_FOUND;
    if (result == CUDA_SUCCESS)
        result = load(module, data);
    free(data);
    if (result == CUDA_SUCCESS)
        call_object(&call, "module", OBJECT_MODULE, *module);
    return call_end(&call, result);
}

/* Begins a call about one module and judges it. */
static struct call module_call(const char *name, CUmodule module)
{
    struct call call = call_begin(name);
    call_object(&call, "module", OBJECT_MODULE, module);
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_MODULE, module))
        call.result = CUDA_ERROR_INVALID_HANDLE;
    return call;
}

CUresult CUDAAPI cuModuleUnload(CUmodule hmod)
{
    struct call call = module_call(__func__, hmod);
    /* Documented: a module that belongs to a library goes with the library. */
    if (call.result == CUDA_SUCCESS && hmod->library != NULL)
        call.result = CUDA_ERROR_NOT_PERMITTED;
    if (call.result == CUDA_SUCCESS)
        module_free(hmod);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    struct call call = module_call(__func__, hmod);
    CUresult result = call.result;
    call_add(&call, "name=%s", name == NULL ? "null" : name);
    if (result == CUDA_SUCCESS && (hfunc == NULL || name == NULL))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        struct kernel_code *code = image_find(hmod->image, name);
        if (code == NULL) {
            result = CUDA_ERROR_NOT_FOUND;
        } else {
            CUkernel kernel = hmod->library == NULL ? NULL : library_kernel(hmod->library, code);
            *hfunc = module_function(hmod, code, kernel);
            result = *hfunc == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
        }
    }
    if (result == CUDA_SUCCESS)
        call_object(&call, "function", OBJECT_FUNCTION, *hfunc);
    return call_end(&call, result);
}

CUresult CUDAAPI cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
    struct call call = module_call(__func__, mod);
    if (call.result == CUDA_SUCCESS && count == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        *count = 0;
        for (struct kernel_code *at = mod->image->kernels; at != NULL; at = at->next)
            ++*count;
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions,
                                            CUmodule mod)
{
    struct call call = module_call(__func__, mod);
    if (call.result == CUDA_SUCCESS && functions == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        struct kernel_code *at = mod->image->kernels;
        for (unsigned int i = 0; i < numFunctions && at != NULL; i++, at = at->next) {
            CUkernel kernel = mod->library == NULL ? NULL : library_kernel(mod->library, at);
            functions[i] = module_function(mod, at, kernel);
        }
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    struct call call = call_begin(__func__);
    if (call.result == CUDA_SUCCESS && mode == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        *mode = CU_MODULE_LAZY_LOADING;
    return call_end(&call, call.result);
}
