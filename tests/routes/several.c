/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that loads several libraries, one after the other.
 *
 * usage: several keep|close LIBRARY KERNEL [LIBRARY KERNEL]...
 *
 * With close, each library is unloaded before the next one is loaded; so is the runtime that it
 * needs, which then comes back at another place.
 */
#include "plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "vacate.h"

int main(int argc, char **argv)
{
    for (int i = 2; i + 1 < argc; i += 2) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        __typeof__(&plugin_main) function;
        int status;

        if (library == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 2;
        }
        *(void **)&function = dlsym(library, "plugin_main");
        status = function(2, argv + i);
        if (status != 0)
            return status;
        if (strcmp(argv[1], "close") == 0) {
            const void *runtime = dlsym(library, "cudaGetDevice");

            dlclose(library);
            if (runtime != NULL)
                vacate(runtime);
        }
    }
    return 0;
}
