/* SPDX-License-Identifier: Apache-2.0 */
#include "own_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *slurm_own_library(void)
{
    static char found[PATH_MAX];
    char path[PATH_MAX + sizeof CUDAPOLICY_LIBRARY_FROM_PLUGIN];
    const char *slash;
    Dl_info plugin;

    if (found[0] != '\0') {
        return found;
    }
    if (dladdr(found, &plugin) != 0 && plugin.dli_fname != NULL &&
        (slash = strrchr(plugin.dli_fname, '/')) != NULL) {
        snprintf(path, sizeof path, "%.*s/" CUDAPOLICY_LIBRARY_FROM_PLUGIN,
                 (int)(slash - plugin.dli_fname), plugin.dli_fname);
        if (realpath(path, found) != NULL) {
            return found;
        }
    }
    snprintf(found, sizeof found, "%s", CUDAPOLICY_LIBDIR "/libcudapolicy.so");
    return found;
}
