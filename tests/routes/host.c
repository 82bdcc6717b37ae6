/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that knows nothing of CUDA: it loads a library and calls it.
 *
 * usage: host local|global|deep LIBRARY ARGUMENT...
 */
#include "plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    int flags = RTLD_NOW;
    void *library;
    __typeof__(&plugin_main) function;

    if (argc < 3)
        return 64;
    flags |= strcmp(argv[1], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
    flags |= strcmp(argv[1], "deep") == 0 ? RTLD_DEEPBIND : 0;
    library = dlopen(argv[2], flags);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    *(void **)&function = dlsym(library, "plugin_main");
    return function != NULL ? function(argc - 2, argv + 2) : 2;
}
