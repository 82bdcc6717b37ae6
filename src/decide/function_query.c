/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/function_query.h"

#include <stdlib.h>
#include <string.h>

CUcontext decide_function_ask_context(void)
{
    CUcontext context = NULL;
    if (!cuda_driver.cuCtxGetCurrent || cuda_driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS)
        return NULL;
    return context;
}

/* What the driver says counts more than what was told, which may be of an earlier life of the
 * handle. */
static void take_name(struct decide_answer *answer, const char *name)
{
    if (!name || !*name || (answer->mangled && strcmp(answer->mangled, name) == 0))
        return;
    char *copy = strdup(name); /* the driver's string lives as long as the module does */
    if (!copy)
        return;
    free(answer->mangled);
    answer->mangled = copy;
}

/*
 * The runtime passes CUkernel handles cast to CUfunction. Each of the two name functions answers
 * the other's handles with INVALID_HANDLE and does no harm (measured on driver 580), so the answers
 * also tell which of the two a handle is.
 */
void decide_function_ask(void *function, struct decide_answer *answer)
{
    const char *name = NULL;
    if (cuda_driver.cuKernelGetName &&
        cuda_driver.cuKernelGetName(&name, (CUkernel)function) == CUDA_SUCCESS) {
        CUlibrary library = NULL;
        take_name(answer, name);
        answer->kind = DECIDE_FUNCTION_KERNEL;
        if (cuda_driver.cuKernelGetLibrary &&
            cuda_driver.cuKernelGetLibrary(&library, (CUkernel)function) == CUDA_SUCCESS)
            answer->container = library;
        return;
    }
    answer->context = decide_function_ask_context();
    name = NULL;
    if (cuda_driver.cuFuncGetName &&
        cuda_driver.cuFuncGetName(&name, (CUfunction)function) == CUDA_SUCCESS) {
        CUmodule module = NULL;
        take_name(answer, name);
        answer->kind = DECIDE_FUNCTION_LOADED;
        if (cuda_driver.cuFuncGetModule &&
            cuda_driver.cuFuncGetModule(&module, (CUfunction)function) == CUDA_SUCCESS)
            answer->container = module;
    }
}

static CUfunction of_kernel(void *kernel)
{
    CUfunction function = NULL;
    if (!cuda_driver.cuKernelGetFunction ||
        cuda_driver.cuKernelGetFunction(&function, (CUkernel)kernel) != CUDA_SUCCESS)
        return NULL;
    return function;
}

CUfunction decide_function_resolve(void *function, enum decide_function_kind kind)
{
    int ignored;
    switch (kind) {
    case DECIDE_FUNCTION_LOADED:
        return function;
    case DECIDE_FUNCTION_KERNEL:
        return of_kernel(function);
    case DECIDE_FUNCTION_UNKNOWN:
        /* A driver without the name functions (before 12.3): cuFuncGetAttribute takes CUfunction
         * handles only. */
        if (cuda_driver.cuFuncGetAttribute &&
            cuda_driver.cuFuncGetAttribute(&ignored, CU_FUNC_ATTRIBUTE_NUM_REGS, function) ==
                CUDA_SUCCESS)
            return function;
        return of_kernel(function);
    case DECIDE_FUNCTION_SYMBOL:
        break;
    }
    return NULL;
}
