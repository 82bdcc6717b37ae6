/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver of the future, as a preload behind the library under test: its cuGetProcAddress has a
 * variant of cuLaunchKernel and of cuStreamCreate that nobody knows yet, for programs that ask for
 * version 13060.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <cuda.h>

#if defined(__x86_64__)
#define FIRST_VERSION "GLIBC_2.2.5"
#else
#define FIRST_VERSION "GLIBC_2.17"
#endif

#define EXPORTED __attribute__((visibility("default")))

typedef CUresult resolver(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static resolver *driver_resolver;

EXPORTED CUresult future_variant(void);

/* Called with the arguments of a later ABI. */
CUresult future_variant(void)
{
    fprintf(stderr, "the unknown variant was called\n");
    return CUDA_SUCCESS;
}

static CUresult future_resolver(const char *symbol, void **function, int version, cuuint64_t flags,
                                CUdriverProcAddressQueryResult *status)
{
    if (version < 13060 ||
        (strcmp(symbol, "cuLaunchKernel") != 0 && strcmp(symbol, "cuStreamCreate") != 0))
        return driver_resolver(symbol, function, version, flags, status);
    *function = (void *)future_variant;
    if (status != NULL)
        *status = CU_GET_PROC_ADDRESS_SUCCESS;
    return CUDA_SUCCESS;
}

EXPORTED void *dlsym(void *restrict handle, const char *restrict name)
{
    static void *(*next)(void *, const char *);
    void *found;

    if (next == NULL)
        *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", FIRST_VERSION);
    found = next(handle, name);
    /* Before strcmp can be called, a sanitizer's run-time library looks up other names. */
    if (found == NULL || name[0] != 'c' || name[1] != 'u' ||
        strcmp(name, "cuGetProcAddress_v2") != 0)
        return found;
    driver_resolver = (resolver *)found;
    return (void *)future_resolver;
}
