/* SPDX-License-Identifier: Apache-2.0 */
/* Driver functions asked of the runtime. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <string.h>

#include "matrix.h"

static unsigned long long flags_of(const struct row *row)
{
    return row->per_thread ? cudaEnablePerThreadDefaultStream : cudaEnableLegacyStream;
}

#if CUDART_VERSION >= 12050
static void *by_entry_point_with_version(const struct row *row)
{
    enum cudaDriverEntryPointQueryResult status;
    void *function = NULL;

    if (cudaGetDriverEntryPointByVersion(row->base, &function, (unsigned)row->version,
                                         flags_of(row), &status) != cudaSuccess ||
        status != cudaDriverEntryPointSuccess)
        return NULL;
    return function;
}
#endif

/* The newest version that the runtime knows is what it gives. */
static bool is_newest(const struct row *row)
{
    int version = 0;

    cudaRuntimeGetVersion(&version);
    if (row->version > version)
        return false;
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].per_thread == row->per_thread && rows[i].version > row->version &&
            rows[i].version <= version && strcmp(rows[i].base, row->base) == 0)
            return false;
    return true;
}

static void *by_entry_point(const struct row *row)
{
    enum cudaDriverEntryPointQueryResult status;
    void *function = NULL;

    if (cudaGetDriverEntryPoint(row->base, &function, flags_of(row), &status) != cudaSuccess)
        return NULL;
    return function;
}

const struct route routes_by_runtime[] = {
    {"entry-point", by_entry_point, RTLD_NOW | RTLD_LOCAL, is_newest},
#if CUDART_VERSION >= 12050
    {"entry-point-by-version", by_entry_point_with_version, RTLD_NOW | RTLD_LOCAL, NULL},
#endif
    {NULL, NULL, 0, NULL},
};
