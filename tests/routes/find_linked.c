/* SPDX-License-Identifier: Apache-2.0 */
/* The route of programs and libraries that are linked with libcuda. */
#include "matrix.h"

#include <dlfcn.h>
#include <string.h>

/* Only the addresses are wanted, and cuda.h does not declare every variant. */
#define DRIVER(symbol, base, version, variant, wrapper, parameters, arguments)                     \
    extern int linked_##symbol(void) __asm__(#symbol);
#include "preload/entries.def"
#if CUDA_VERSION < 12050 /* not in a recording driver built with such headers */
extern int linked_cuGreenCtxStreamCreate(void) __attribute__((weak));
#endif

static const struct {
    const char *symbol;
    void *function;
} linked[] = {
#define DRIVER(symbol, base, version, variant, wrapper, parameters, arguments)                     \
    {#symbol, (void *)linked_##symbol},
#include "preload/entries.def"
};

static void *by_link(const struct row *row)
{
    for (size_t i = 0; i < sizeof linked / sizeof linked[0]; i++)
        if (strcmp(linked[i].symbol, row->symbol) == 0)
            return linked[i].function;
    return NULL;
}

static void *by_linked_resolver(const struct row *row)
{
    CUresult (*resolver)(const char *, void **, int, cuuint64_t, int *);
    void *function = NULL;
    int status;
    const struct row itself = {.symbol = "cuGetProcAddress_v2"};

    *(void **)&resolver = by_link(&itself);
    if (resolver(row->base, &function, row->version, row->per_thread ? 2 : 0, &status) !=
        CUDA_SUCCESS)
        return NULL;
    return function;
}

const struct route routes_linked[] = {
    {"linked", by_link, RTLD_NOW | RTLD_LOCAL, NULL},
    {"linked-resolver", by_linked_resolver, RTLD_NOW | RTLD_LOCAL, NULL},
    {NULL, NULL, 0, NULL},
};
