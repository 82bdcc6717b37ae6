/* SPDX-License-Identifier: Apache-2.0 */
#include "library_path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "installed.h"
#include "memory.h"

static const char library_name[] = "libcudapolicy.so";

/* What the loader of the child would make of a path in LD_PRELOAD; NULL: nothing wrong. */
static const char *unfit_for_preload(const char *path)
{
    static const char elf[] = {0x7f, 'E', 'L', 'F'};
    char start[sizeof elf] = {0};
    size_t length;
    FILE *file;

    if (strpbrk(path, " :$") != NULL) {
        return "LD_PRELOAD cannot carry a path with a space, ':' or '$'";
    }
    file = fopen(path, "re");
    if (file == NULL) {
        return strerror(errno);
    }
    length = fread(start, 1, sizeof start, file);
    fclose(file);
    if (length != sizeof elf || memcmp(start, elf, sizeof elf) != 0) {
        return "not a shared library";
    }
    return NULL;
}

/* path, made absolute, when it can be preloaded; else NULL with a message that names its source. */
static char *required(const char *path, const char *source)
{
    char *absolute = realpath(path, NULL);
    const char *fault = absolute == NULL ? strerror(errno) : unfit_for_preload(absolute);

    if (fault == NULL) {
        return absolute;
    }
    command_error("%s: cannot use '%s': %s", source, absolute != NULL ? absolute : path, fault);
    free(absolute);
    return NULL;
}

char *library_path_find(const char *given)
{
    const char *variable = getenv("CUDAPOLICY_LIBRARY");
    char *found, *result;

    if (given != NULL) {
        return required(given, "--library");
    }
    if (variable != NULL && variable[0] != '\0') {
        return required(variable, "CUDAPOLICY_LIBRARY");
    }
    found = installed_library();
    if (found != NULL) {
        result = required(found, library_name);
        free(found);
        return result;
    }
    command_error("%s not found beside the command nor in %s: say where it is with --library",
                  library_name, CUDAPOLICY_LIBDIR);
    return NULL;
}

static bool is_our_library(const char *entry)
{
    const char *slash = strrchr(entry, '/');

    return strcmp(slash != NULL ? slash + 1 : entry, library_name) == 0;
}

char *library_path_preload(const char *library, const char *present)
{
    size_t size = strlen(library) + (present != NULL ? strlen(present) : 0) + 2;
    char *value = memory_allocate(size, 1);
    char *copy, *entry, *rest;

    if (present != NULL) {
        copy = memory_copy(present);
        for (entry = strtok_r(copy, " :", &rest); entry != NULL;
             entry = strtok_r(NULL, " :", &rest)) {
            /* A second copy would apply the policy twice. */
            if (!is_our_library(entry)) {
                strcat(strcat(value, entry), ":");
            }
        }
        free(copy);
    }
    return strcat(value, library);
}
