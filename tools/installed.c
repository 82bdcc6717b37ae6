/* SPDX-License-Identifier: Apache-2.0 */
#include "installed.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"

/* Seen from the folder of the command, or absolute: where the build was told to install it, for a
 * command that was copied alone. */
static const char *const library_places[] = {
    "../src/preload/libcudapolicy.so", /* the build tree */
    CUDAPOLICY_LIBDIR_FROM_BINDIR "/libcudapolicy.so",
    CUDAPOLICY_LIBDIR "/libcudapolicy.so",
    NULL,
};
static const char *const policies_places[] = {
    CUDAPOLICY_POLICIES_FROM_BINDIR,
    "../policy", /* the build tree */
    CUDAPOLICY_POLICIES,
    NULL,
};

static char *command_folder(void)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    char *slash;

    if (length <= 0) {
        return NULL;
    }
    path[length] = '\0';
    slash = strrchr(path, '/');
    if (slash == NULL) {
        return NULL;
    }
    *slash = '\0';
    return memory_copy(path);
}

/* The first place that is there. */
static char *first_of(const char *const *places)
{
    char *folder = command_folder(), *found = NULL;

    for (; *places != NULL && found == NULL; places++) {
        char *path = NULL;

        if ((*places)[0] == '/') {
            path = memory_copy(*places);
        } else if (folder != NULL) {
            path = memory_format("%s/%s", folder, *places);
        }
        if (path != NULL) {
            found = realpath(path, NULL);
        }
        free(path);
    }
    free(folder);
    return found;
}

char *installed_library(void)
{
    return first_of(library_places);
}

char *installed_policies(void)
{
    return first_of(policies_places);
}
