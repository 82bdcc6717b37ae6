/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the driver for a function, and says whose it got: the driver's own, or a wrapper. Built
 * twice: asking dlsym, and, linked with the driver, asking cuGetProcAddress. */
#include "plugin.h"

#include <cuda.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int plugin_main(int argc, char **argv)
{
    void *found = NULL;
    Dl_info information;

    (void)argc;
    (void)argv;
#ifdef PROGRAM_LINKED
    CUdriverProcAddressQueryResult status;

    if (cuGetProcAddress("cuLaunchKernel", &found, 4000, 0, &status) != CUDA_SUCCESS)
        return 3;
#else
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    found = library != NULL ? dlsym(library, "cuLaunchKernel") : NULL;
#endif
    if (found == NULL || dladdr(found, &information) == 0)
        return 2;
    puts(strstr(information.dli_fname, "libcuda.so") != NULL ? "the driver's" : "a wrapper");
    return 0;
}
