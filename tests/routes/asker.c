/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the driver for a function, and says whose it got: the driver's own, or a wrapper. */
#include "plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int plugin_main(int argc, char **argv)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *found = library != NULL ? dlsym(library, "cuLaunchKernel") : NULL;
    Dl_info information;

    (void)argc;
    (void)argv;
    if (found == NULL || dladdr(found, &information) == 0)
        return 2;
    puts(strstr(information.dli_fname, "libcuda.so") != NULL ? "the driver's" : "a wrapper");
    return 0;
}
