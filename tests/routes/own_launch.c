/* SPDX-License-Identifier: Apache-2.0 */
/* A program with a cuLaunchKernel of its own, as tests of CUDA code have: no driver is loaded. */
#include <dlfcn.h>
#include <stdio.h>

__attribute__((visibility("default"))) int cuLaunchKernel(void);

int cuLaunchKernel(void)
{
    return 4711;
}

int main(void)
{
    int (*found)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "cuLaunchKernel");

    if (found == NULL || found() != 4711 || cuLaunchKernel() != 4711)
        return 1;
    /* No other name of CUDA is there. */
    return dlsym(RTLD_DEFAULT, "cuLaunchKernelEx") == NULL ? 0 : 2;
}
