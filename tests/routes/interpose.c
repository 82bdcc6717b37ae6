/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second preload that exports dlsym, in one of the usual ways: a C function that finds the real
 * one once and calls it. Built twice: without symbol versions, and with those of glibc
 * (interpose.map). With INTERPOSE_LAUNCHES=1 it also puts itself in front of cuLaunchKernel, as
 * libraries that meter GPUs do. At the end it says what it saw.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#if defined(__x86_64__)
#define FIRST_VERSION "GLIBC_2.2.5"
#else
#define FIRST_VERSION "GLIBC_2.17"
#endif

#define EXPORTED __attribute__((visibility("default")))

static unsigned requests, launches;
static __typeof__(&cuLaunchKernel) next_launch;

static void *next_dlsym(void *handle, const char *name)
{
    static void *(*next)(void *, const char *);

    if (next == NULL)
        *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", FIRST_VERSION);
    return next(handle, name);
}

static CUresult launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                       CUstream stream, void **parameters, void **extra)
{
    launches++;
    return next_launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                       parameters, extra);
}

static void *answer(void *handle, const char *name)
{
    void *found = next_dlsym(handle, name);
    const char *wanted = getenv("INTERPOSE_LAUNCHES");

    if (strncmp(name, "cu", 2) == 0)
        requests++;
    if (wanted == NULL || strcmp(name, "cuLaunchKernel") != 0 || found == NULL)
        return found;
    next_launch = (__typeof__(&cuLaunchKernel))found;
    return (void *)launch;
}

#ifdef INTERPOSE_VERSIONED
EXPORTED void *interpose_first(void *handle, const char *name);
EXPORTED void *interpose_second(void *handle, const char *name);

void *interpose_first(void *handle, const char *name)
{
    return answer(handle, name);
}

void *interpose_second(void *handle, const char *name)
{
    return answer(handle, name);
}
#if defined(__x86_64__)
__asm__(".symver interpose_first, dlsym@GLIBC_2.2.5");
#else
__asm__(".symver interpose_first, dlsym@GLIBC_2.17");
#endif
__asm__(".symver interpose_second, dlsym@@GLIBC_2.34");
#else
EXPORTED void *dlsym(void *restrict handle, const char *restrict name)
{
    return answer(handle, name);
}
#endif

static __attribute__((destructor)) void say(void)
{
    fprintf(stderr, "interposer: %u requests, %u launches\n", requests, launches);
}
