/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preload that has a cuLaunchKernel and a cuLaunchKernelEx of its own, as libraries that meter
 * GPUs do, and hands each launch on: to the next definition (METER_NEXT=1) or to what it looks up
 * in libcuda. At the end it says how many it saw.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda.h>

#define EXPORTED __attribute__((visibility("default")))

static unsigned launches;

static void *real_function(const char *name)
{
    void *library;

    if (getenv("METER_NEXT") != NULL)
        return dlsym(RTLD_NEXT, name);
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return library != NULL ? dlsym(library, name) : NULL;
}

EXPORTED CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                 unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                 void **parameters, void **extra)
{
    static __typeof__(&cuLaunchKernel) real;

    launches++;
    if (real == NULL)
        real = (__typeof__(&cuLaunchKernel))real_function("cuLaunchKernel");
    return real(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}

EXPORTED CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **parameters,
                                   void **extra)
{
    static __typeof__(&cuLaunchKernelEx) real;

    launches++;
    if (real == NULL)
        real = (__typeof__(&cuLaunchKernelEx))real_function("cuLaunchKernelEx");
    return real(config, f, parameters, extra);
}

static __attribute__((destructor)) void say(void)
{
    fprintf(stderr, "meter: %u launches\n", launches);
}
