/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROUTES_RUNTIME_H
#define ROUTES_RUNTIME_H

/* The runtime's part of the route matrix: its functions that are in the table of entry points. */

#define __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>

#include "matrix.h"

/* How the program gets at the runtime's functions. */
enum runtime_route {
    RUNTIME_LINKED,
    RUNTIME_BY_HANDLE,  /* dlopen with RTLD_LOCAL, dlsym */
    RUNTIME_BY_DEFAULT, /* dlopen with RTLD_GLOBAL, dlsym with RTLD_DEFAULT */
};

/* A function of the runtime, as the route gives it; NULL when this runtime has none. */
void *runtime_function(const char *symbol);

/* In programs that are linked with a runtime. */
void *runtime_linked(const char *symbol) __attribute__((weak));

#endif
