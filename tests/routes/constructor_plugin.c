/* SPDX-License-Identifier: Apache-2.0 */
/* A library that uses CUDA in its constructor, where the loader's lock is held. */
#include "program.h"

static __attribute__((constructor)) void construct(void)
{
    CUmodule module;
    CUfunction function;
    CUcontext context;
    void *pointer = NULL;
    void *arguments[] = {&pointer};

    program_load();
    CHECK(cu.cuInit(0));
    CHECK(cu.cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cu.cuCtxSetCurrent(context));
    CHECK(cu.cuModuleLoadData(&module, "kernel constructor params=8\n"));
    CHECK(cu.cuModuleGetFunction(&function, module, "constructor"));
    CHECK(cu.cuLaunchKernel(function, 5, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
}
