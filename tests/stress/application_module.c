/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, libraries, and what is set on functions. */
#include "application.h"

#include <stddef.h>

static const char module_image[] = "kernel alpha\n"
                                   "kernel beta regs=40\n"
                                   "kernel gamma cluster=2,1,1\n"
                                   "kernel delta params=8,4\n"
                                   "kernel epsilon static_shared=1024\n"
                                   "kernel zeta\n";
static const char library_image[] = "kernel kappa\n"
                                    "kernel lambda\n";

void application_load(struct application *application)
{
    static const char *const names[KERNEL_COUNT] = {"alpha", "beta",    "gamma",
                                                    "delta", "epsilon", "zeta"};
    CALL(cuModuleLoadData, &application->module, module_image);
    for (int i = 0; i < KERNEL_COUNT; i++)
        CALL(cuModuleGetFunction, &application->functions[i], application->module, names[i]);
    CALL(cuLibraryLoadData, &application->library, library_image, NULL, NULL, 0, NULL, NULL, 0);
    CALL(cuLibraryGetKernel, &application->kernels[0], application->library, "kappa");
    CALL(cuLibraryGetKernel, &application->kernels[1], application->library, "lambda");
    CALL(cuKernelGetFunction, &application->of_kernel, application->kernels[0]);
    CALL(cuKernelGetFunction, &application->of_other, application->kernels[1]);
}

void application_unload(struct application *application)
{
    CUfunction gone = application->functions[ALPHA];
    CALL(cuModuleUnload, application->module);
    launch_plain(gone, 4, application->streams[NON_BLOCKING]);
    CALL(cuLibraryUnload, application->library);
}

void application_set_function_attributes(struct application *application)
{
    int wide = 0;
    CALL(cuFuncSetAttribute, application->functions[BETA],
         CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    CALL(cuFuncSetCacheConfig, application->functions[ALPHA], CU_FUNC_CACHE_PREFER_L1);
    CALL(cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50,
         application->kernels[0], 0);
    CALL(cuKernelSetCacheConfig, application->kernels[1], CU_FUNC_CACHE_PREFER_SHARED, 0);
    CALL(cuFuncGetAttribute, &wide, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
         application->functions[BETA]);
    calls_tell("wide %d", wide);
    CALL(cuFuncSetAttribute, application->functions[BETA], (CUfunction_attribute)99, 1);
}
