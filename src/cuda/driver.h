/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_CUDA_DRIVER_H
#define CUDAPOLICY_CUDA_DRIVER_H

/*
 * The driver's real functions as far as this library calls them on its own account (driver.def).
 *
 * Filled once by the preload layer, through the real cuGetProcAddress, when the first wrapper is about
 * to be handed out; constant afterwards. A member is NULL where the driver does not have it, so every
 * caller asks before it calls.
 */

#include <cuda.h>
#include <stdbool.h>

#include "cuda/interface.h"

struct cuda_driver {
#define DRIVER(member, symbol, version, parameters) CUresult(CUDAAPI *member) parameters;
#include "cuda/driver.def"
#undef DRIVER
    int version; /* of the driver, 13000 for CUDA 13.0; 0 before it is known */
};

extern struct cuda_driver cuda_driver;

/* The real cuGetProcAddress in its five-argument form (CUDA 12.0 and later). */
typedef CUresult(CUDAAPI *cuda_get_proc_address)(const char *symbol, void **function, int version,
                                                 cuuint64_t flags, int *status);

/* Fills cuda_driver. Missing functions stay NULL. Makes no call that needs cuInit. Returns false when
 * not even cuDriverGetVersion was found. Not on the launch path. */
bool cuda_driver_fill(cuda_get_proc_address resolve);

/* The same when the driver only has the four-argument form, or none: dlsym on its handle. */
bool cuda_driver_fill_by_symbol(void *(*symbol)(void *handle, const char *name), void *handle);

#endif
