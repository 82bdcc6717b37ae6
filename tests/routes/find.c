/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that any program can take: it loads libcuda and looks its functions up. */
#include "matrix.h"

#include <dlfcn.h>

typedef CUresult resolver_v1(const char *, void **, int, cuuint64_t);
typedef CUresult resolver_v2(const char *, void **, int, cuuint64_t, int *);

enum {
    LEGACY = 1,     /* CU_GET_PROC_ADDRESS_LEGACY_STREAM */
    PER_THREAD = 2, /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
};

static cuuint64_t flags_of(const struct row *row)
{
    return row->per_thread ? PER_THREAD : 0;
}

static void *by_handle(const struct row *row)
{
    return dlsym(driver_handle, row->symbol);
}

static void *by_default(const struct row *row)
{
    return dlsym(RTLD_DEFAULT, row->symbol);
}

static void *answer_v1(void *resolver, const char *base, int version, cuuint64_t flags)
{
    void *function = NULL;

    if (resolver == NULL ||
        ((resolver_v1 *)resolver)(base, &function, version, flags) != CUDA_SUCCESS)
        return NULL;
    return function;
}

static void *answer_v2(void *resolver, const char *base, int version, cuuint64_t flags)
{
    void *function = NULL;
    int status = -1;

    if (resolver == NULL ||
        ((resolver_v2 *)resolver)(base, &function, version, flags, &status) != CUDA_SUCCESS ||
        status != 0)
        return NULL;
    return function;
}

static void *by_resolver_v1(const struct row *row)
{
    return answer_v1(dlsym(driver_handle, "cuGetProcAddress"), row->base, row->version,
                     flags_of(row));
}

static void *by_resolver_v2(const struct row *row)
{
    return answer_v2(dlsym(driver_handle, "cuGetProcAddress_v2"), row->base, row->version,
                     flags_of(row));
}

static bool is_plain(const struct row *row)
{
    return !row->per_thread;
}

static void *by_resolver_with_legacy_flag(const struct row *row)
{
    return answer_v2(dlsym(driver_handle, "cuGetProcAddress_v2"), row->base, row->version, LEGACY);
}

/* cuGetProcAddress, asked of cuGetProcAddress: as libcudart does. */
static void *by_resolver_of_resolver_v1(const struct row *row)
{
    void *resolver = dlsym(driver_handle, "cuGetProcAddress_v2");

    resolver = answer_v2(resolver, "cuGetProcAddress", 11030, 0);
    return answer_v1(resolver, row->base, row->version, flags_of(row));
}

static void *by_resolver_of_resolver_v2(const struct row *row)
{
    void *resolver = dlsym(driver_handle, "cuGetProcAddress");

    resolver = answer_v1(resolver, "cuGetProcAddress", 12000, 0);
    return answer_v2(resolver, row->base, row->version, flags_of(row));
}

const struct route routes_by_symbol[] = {
    {"dlsym-local", by_handle, RTLD_NOW | RTLD_LOCAL, NULL},
    {"dlsym-global", by_handle, RTLD_NOW | RTLD_GLOBAL, NULL},
    {"dlsym-default", by_default, RTLD_NOW | RTLD_GLOBAL, NULL},
    {"resolver-v1", by_resolver_v1, RTLD_NOW | RTLD_LOCAL, NULL},
    {"resolver-v2", by_resolver_v2, RTLD_NOW | RTLD_LOCAL, NULL},
    {"resolver-legacy-flag", by_resolver_with_legacy_flag, RTLD_NOW | RTLD_LOCAL, is_plain},
    {"resolver-of-resolver-v1", by_resolver_of_resolver_v1, RTLD_NOW | RTLD_LOCAL, NULL},
    {"resolver-of-resolver-v2", by_resolver_of_resolver_v2, RTLD_NOW | RTLD_LOCAL, NULL},
    {NULL, NULL, 0, NULL},
};
