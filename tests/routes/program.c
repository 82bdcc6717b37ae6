/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs on the driver API share. PROGRAM_LINKED says that libcuda is linked, not
 * loaded. */
#include "program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct program_driver cu;
CUmodule program_module;
CUfunction program_kernel;

void program_check(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: %d\n", what, (int)result);
    exit(3);
}

void program_find(struct program_driver *driver)
{
#ifdef PROGRAM_LINKED
#define FUNCTION(symbol) driver->symbol = symbol;
    PROGRAM_FUNCTIONS(FUNCTION)
#undef FUNCTION
#else
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(4);
    }
#define FUNCTION(symbol) driver->symbol = (__typeof__(&symbol))dlsym(library, #symbol);
    PROGRAM_FUNCTIONS(FUNCTION)
#undef FUNCTION
#endif
}

void program_load(void)
{
    program_find(&cu);
}

void program_start(void)
{
    CUcontext context;

    CHECK(cu.cuInit(0));
    CHECK(cu.cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cu.cuCtxSetCurrent(context));
    CHECK(cu.cuModuleLoadData(&program_module, "kernel program params=8\n"));
    CHECK(cu.cuModuleGetFunction(&program_kernel, program_module, "program"));
}

void program_launch(unsigned blocks)
{
    void *pointer = NULL;
    void *arguments[] = {&pointer};

    CHECK(cu.cuLaunchKernel(program_kernel, blocks, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
}
