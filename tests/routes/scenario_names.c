/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios of looking names up. */
#include "program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "vacate.h"

/* lookalike LIBRARY: names that are like CUDA's, but not in the table, in a library that has them.
 */
static int lookalike(int argc, char **argv)
{
    static const char *const names[] = {
        "cudnnCreate", "cublasCreate_v2",       "cuptiSubscribe",          "cuLaunchKernelLater",
        "cuLaunch",    "cudaLaunchKernelLater", "__cudaLaunchKernelLater", "my_cuLaunchKernel",
        "cu"};
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

    if (library == NULL)
        return 2;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *found = dlsym(library, names[i]);
        Dl_info information;

        if (found == NULL || dladdr(found, &information) == 0 || information.dli_sname == NULL ||
            strcmp(information.dli_sname, names[i]) != 0) {
            printf("%s\n", names[i]);
            return 1;
        }
    }
    return 0;
}

/* versions: dlsym under each of its versions gives the same wrapper. */
static int versions(int argc, char **argv)
{
    static const char *const names[] = {"GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34"};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *wrapper = dlsym(library, "cuLaunchKernel");
    int found = 0;

    (void)argc;
    (void)argv;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *(*of_version)(void *, const char *);

        *(void **)&of_version = dlvsym(RTLD_DEFAULT, "dlsym", names[i]);
        if (of_version == NULL)
            continue;
        found++;
        if (of_version(library, "cuLaunchKernel") != wrapper)
            return 1;
    }
    printf("%d\n", found);
    return 0;
}

/* dlerror: a look-up that succeeds leaves no error, whatever the library looked up inside; one that
 * fails leaves one. */
static int errors(int argc, char **argv)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const char *error;

    (void)argc;
    (void)argv;
    dlerror();
    if (dlsym(library, "cuLaunchKernel") == NULL || dlerror() != NULL)
        return 1;
    if (dlsym(library, "cuGetProcAddress_v2") == NULL || dlerror() != NULL)
        return 2;
    if (dlsym(library, "cudaLaunchKernel") != NULL || (error = dlerror()) == NULL ||
        strstr(error, "cudaLaunchKernel") == NULL)
        return 3;
    if (dlsym(RTLD_DEFAULT, "cuLaunchKernel") != NULL || (error = dlerror()) == NULL ||
        strstr(error, "cuLaunchKernel") == NULL)
        return 4;
    return 0;
}

/* dlerror-hidden: the same for a driver without cuGetProcAddress. */
static int errors_hidden(int argc, char **argv)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    (void)argc;
    (void)argv;
    dlerror();
    return dlsym(library, "cuLaunchKernel") != NULL && dlerror() == NULL ? 0 : 1;
}

/* reload: the driver is loaded, asked and closed, as programs do that look whether there is one;
 * then it is loaded again, at another place where it was unloaded. */
static int reload(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; i < 5; i++) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        const void *place = library != NULL ? dlsym(library, "recording_driver_reset") : NULL;

        if (place == NULL || dlsym(library, "cuLaunchKernel") == NULL ||
            dlsym(library, "cuGetProcAddress_v2") == NULL)
            return 1;
        dlclose(library);
        vacate(place);
    }
    program_load();
    program_start();
    program_launch(1);
    return 0;
}

/* weak: a weak reference to a function of the driver, in a program that is not linked with it. */
extern CUresult weak_launch(void) __asm__("cuLaunchKernel") __attribute__((weak));

static int weak(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("%s\n", weak_launch != NULL ? "there" : "not there");
    if (weak_launch != NULL)
        printf("%d\n", (int)weak_launch());
    return 0;
}

/* namespace: the driver in a namespace of its own. */
static int separate_namespace(int argc, char **argv)
{
    void *library = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    __typeof__(&cuInit) initialise;
    void *found;

    (void)argc;
    (void)argv;
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    initialise = (__typeof__(&cuInit))dlsym(library, "cuInit");
    found = dlsym(library, "cuLaunchKernel");
    return initialise != NULL && found != NULL ? (int)initialise(0) : 1;
}

const struct program_scenario scenarios_of_names[] = {
    {"lookalike", lookalike},
    {"versions", versions},
    {"dlerror", errors},
    {"weak", weak},
    {"reload", reload},
    {"dlerror-hidden", errors_hidden},
    {"namespace", separate_namespace},
    {NULL, NULL},
};
