/* SPDX-License-Identifier: Apache-2.0 */
#include "installed_beside.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Into found, of PATH_MAX bytes: what lies there seen from the plugin's folder, else the other.
 * Slurm's folder of plugins may have a link to the plugin only. */
static const char *beside(char *found, const char *from_plugin, const char *otherwise)
{
    char file[PATH_MAX], path[2 * PATH_MAX];
    const char *slash;
    Dl_info plugin;

    if (found[0] != '\0') {
        return found;
    }
    if (dladdr(found, &plugin) != 0 && plugin.dli_fname != NULL &&
        realpath(plugin.dli_fname, file) != NULL && (slash = strrchr(file, '/')) != NULL) {
        snprintf(path, sizeof path, "%.*s/%s", (int)(slash - file), file, from_plugin);
        if (realpath(path, found) != NULL) {
            return found;
        }
    }
    snprintf(found, PATH_MAX, "%s", otherwise);
    return found;
}

const char *slurm_own_library(void)
{
    static char found[PATH_MAX];

    return beside(found, CUDAPOLICY_LIBRARY_FROM_PLUGIN, CUDAPOLICY_LIBDIR "/libcudapolicy.so");
}

const char *slurm_own_command(void)
{
    static char found[PATH_MAX];

    return beside(found, CUDAPOLICY_COMMAND_FROM_PLUGIN, CUDAPOLICY_BINDIR "/cudapolicy");
}
