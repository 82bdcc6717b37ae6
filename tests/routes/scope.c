/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What RTLD_NEXT and RTLD_DEFAULT find, from a program and from a library that it loads.
 *
 * usage: scope local|global LIBRARY
 *
 * One line a question: who asked, how, for what; then the object that has what was found, or the
 * error.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "scope.h"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static void say(const char *who, const char *how, const char *name, void *found)
{
    const char *error = dlerror();
    Dl_info information;

    if (found != NULL && dladdr(found, &information) != 0)
        printf("%s %s %s: %s%s%s\n", who, how, name, base_name(information.dli_fname),
               error != NULL ? " and " : "", error != NULL ? error : "");
    else
        printf("%s %s %s: %s\n", who, how, name, error != NULL ? error : "no error");
}

int main(int argc, char **argv)
{
    static const char *const names[] = {
        "tool_start",          "malloc",           "cuLaunchKernel",     "cuStreamCreate",
        "cuGetProcAddress_v2", "cudaLaunchKernel", "__cudaLaunchKernel", "cuInit",
        "no_such_name"};
    void *library;
    __typeof__(&scope_next) next;
    __typeof__(&scope_default) standard;

    if (argc < 3)
        return 64;
    library = dlopen(argv[2], RTLD_NOW | (strcmp(argv[1], "global") == 0 ? RTLD_GLOBAL : 0));
    if (library == NULL)
        return 2;
    *(void **)&next = dlsym(library, "scope_next");
    *(void **)&standard = dlsym(library, "scope_default");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        dlerror();
        say("program", "next", names[i], dlsym(RTLD_NEXT, names[i]));
        say("program", "default", names[i], dlsym(RTLD_DEFAULT, names[i]));
        say("library", "next", names[i], next(names[i]));
        say("library", "default", names[i], standard(names[i]));
        say("program", "handle", names[i], dlsym(library, names[i]));
    }
    return 0;
}
