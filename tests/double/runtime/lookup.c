/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to the driver, as it was observed of libcudart: dlopen of libcuda.so.1, one dlsym, for
 * cuGetProcAddress_v2, and then a fixed list of questions (data/), each launch function at both
 * flag values. Pointers that this runtime uses are kept from the answers; nothing is asked twice.
 */
#include "runtime.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct driver driver;

static const struct {
    const char *name;
    int version;
    unsigned long long flags;
} lookups[] = {
#include LOOKUPS_FILE
};

static struct {
    const char *name;
    int version;
    unsigned long long flags;
    void **pointer;
} uses[] = {
#define ONE(name, version) {#name, version, 0, (void **)&driver.name},
#define TWO(name, version, thread_version)                                                         \
    {#name, version, 0, (void **)&driver.name},                                                    \
        {#name, thread_version, 2, (void **)&driver.name##_ptsz},
#define TWD(name, version, thread_version)                                                         \
    {#name, version, 0, (void **)&driver.name},                                                    \
        {#name, thread_version, 2, (void **)&driver.name##_ptds},
#include "driver.def"
#undef ONE
#undef TWO
#undef TWD
};

static cudaError_t outcome;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void keep(const char *name, int version, unsigned long long flags, void *pointer)
{
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
        if (uses[i].version == version && uses[i].flags == flags && strcmp(uses[i].name, name) == 0)
            *uses[i].pointer = pointer;
}

static void ask(PFN_cuGetProcAddress_v12000 resolve, const char *name, int version,
                unsigned long long flags)
{
    CUdriverProcAddressQueryResult status;
    void *pointer = NULL;
    if (resolve(name, &pointer, version, flags, &status) == CUDA_SUCCESS)
        keep(name, version, flags, pointer);
}

/* Another list of questions, for tests of other runtimes' lists. */
static void ask_file(PFN_cuGetProcAddress_v12000 resolve, const char *path)
{
    char line[256];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fprintf(stderr, "recording runtime: cannot open %s\n", path);
        abort();
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        char *tab = strchr(line, '\t');
        if (line[0] == '#' || tab == NULL)
            continue;
        *tab = '\0';
        char *end;
        int version = (int)strtol(tab + 1, &end, 10);
        ask(resolve, line, version, strtoull(end, NULL, 10));
    }
    fclose(file);
}

/* The one look-up. On request through the C library's own dlsym (in libdl before glibc 2.34), so
 * that a preloaded dlsym does not see it: a runtime that got at the driver in some other way. */
static void *find_resolver(void *library)
{
    static const char *const homes[] = {"libc.so.6", "libdl.so.2"};
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    void *(*own_dlsym)(void *, const char *) = NULL;
    const char *bypass = getenv("RECORDING_RUNTIME_BYPASS");
    if (bypass == NULL || strcmp(bypass, "1") != 0)
        return dlsym(library, "cuGetProcAddress_v2");
    for (size_t i = 0; i < 2 && own_dlsym == NULL; i++) {
        void *home = dlopen(homes[i], RTLD_LAZY | RTLD_NOLOAD);
        for (size_t j = 0; j < 3 && home != NULL && own_dlsym == NULL; j++)
            *(void **)&own_dlsym = dlvsym(home, "dlsym", versions[j]);
    }
    if (own_dlsym == NULL) {
        fprintf(stderr, "recording runtime: no dlsym in the C library\n");
        abort();
    }
    return own_dlsym(library, "cuGetProcAddress_v2");
}

static cudaError_t connect(void)
{
    PFN_cuGetProcAddress_v12000 resolve;
    int version;
    void *library = dlopen("libcuda.so.1", RTLD_LAZY);
    if (library == NULL)
        return cudaErrorInsufficientDriver;
    *(void **)&resolve = find_resolver(library);
    if (resolve == NULL)
        return cudaErrorInsufficientDriver;
    const char *path = getenv("RECORDING_RUNTIME_LOOKUPS");
    if (path != NULL)
        ask_file(resolve, path);
    else
        for (size_t i = 0; i < sizeof(lookups) / sizeof(lookups[0]); i++)
            ask(resolve, lookups[i].name, lookups[i].version, lookups[i].flags);
    if (driver.cuDriverGetVersion == NULL || driver.cuDriverGetVersion(&version) != CUDA_SUCCESS)
        return cudaErrorInsufficientDriver;
    /* Seen: a runtime refuses a driver of an older major version before it initialises it. */
    if (version / 1000 < RUNTIME_MAJOR)
        return cudaErrorInsufficientDriver;
    return CALL(cuInit, 0);
}

static void connect_once(void)
{
    outcome = connect();
}

cudaError_t lookup_driver(void)
{
    pthread_once(&once, connect_once);
    return outcome;
}
