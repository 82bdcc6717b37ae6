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
    /* The same launch in its per-thread variant. */
    CUresult(CUDAAPI *cuLaunchKernelEx_ptsz)(const CUlaunchConfig *, CUfunction, void **, void **);
};

extern struct cuda_driver cuda_driver;

/* The real cuGetProcAddress in its five-argument form (CUDA 12.0 and later). */
typedef CUresult(CUDAAPI *cuda_get_proc_address)(const char *symbol, void **function, int version,
                                                 cuuint64_t flags, int *status);

/* Fills driver, all members, from that function. Missing functions become NULL. Makes no call that needs
 * cuInit, and none but to resolve. Returns false when not even cuDriverGetVersion was found. Not on the
 * launch path. */
bool cuda_driver_fill(struct cuda_driver *driver, cuda_get_proc_address resolve);

/* The version of the driver, asked at the first call; 0 when it does not answer. cuInit is not needed
 * for it (CUDA driver API reference), but the first call is left to a time after the program's own. */
int cuda_driver_version(void);

#endif
