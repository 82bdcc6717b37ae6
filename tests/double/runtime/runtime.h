/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the recording runtime: a libcudart of our own that turns each call into the driver call
 * that the real one was seen to make, through pointers that it got the same way.
 */
#ifndef RECORDING_RUNTIME_INTERNAL_H
#define RECORDING_RUNTIME_INTERNAL_H

/* Makes both headers declare every variant under its own name. */
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif

/* The shared libraries export what NVIDIA's headers declare; in the archive all of it is hidden, as
 * in the real one, so that a library linked with it exports no CUDA name. */
#ifdef RUNTIME_SHARED
#pragma GCC visibility push(default)
#else
#pragma GCC visibility push(hidden)
#endif
#include <cuda_runtime_api.h>

#if CUDART_VERSION < 12050
cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(
    const char *symbol, void **funcPtr, unsigned int cudaVersion, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *driverStatus);
cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion_ptsz(
    const char *symbol, void **funcPtr, unsigned int cudaVersion, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *driverStatus);
#endif

/* What nvcc's host code calls (crt/host_runtime.h and crt/device_functions.h, both C++). */
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *thread, uint3 *block, dim3 *block_dim,
                            dim3 *grid_dim, int *warp_size);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                              int external, size_t size, int constant, int global);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                                    size_t shared, cudaStream_t stream);
#pragma GCC visibility pop

#include <cuda.h>
#include <cudaTypedefs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- the driver (lookup.c) ------------------------------------------------------------------- */

#define ONE(name, version) PFN_##name##_v##version name;
#define TWO(name, version, thread_version)                                                         \
    PFN_##name##_v##version name;                                                                  \
    PFN_##name##_v##thread_version##_ptsz name##_ptsz;
#define TWD(name, version, thread_version)                                                         \
    PFN_##name##_v##version name;                                                                  \
    PFN_##name##_v##thread_version##_ptds name##_ptds;

struct driver {
#include "driver.def"
};

#undef ONE
#undef TWO
#undef TWD

extern struct driver driver;

/* Opens the driver and asks for everything, once. Returns cudaSuccess or why there is none. */
cudaError_t lookup_driver(void);

/* --- state of the calling thread (state.c) ---------------------------------------------------- */

/* Before every call that uses the driver: loads it, and makes a context current. */
cudaError_t runtime_begin(void);
/* The same without a context. */
cudaError_t runtime_begin_bare(void);
/* After it: remembers an error as the thread's last one. */
cudaError_t runtime_end(cudaError_t error);
int runtime_device(void);

/* The driver's answer, or the documented error for a function that this driver does not have. */
#define CALL(function, ...)                                                                        \
    (driver.function == NULL ? cudaErrorCallRequiresNewerDriver                                    \
                             : (cudaError_t)driver.function(__VA_ARGS__))

/* A runtime call that is one driver call. */
#define FORWARD(function, ...)                                                                     \
    do {                                                                                           \
        cudaError_t forward_error = runtime_begin();                                               \
        if (forward_error == cudaSuccess)                                                          \
            forward_error = CALL(function, __VA_ARGS__);                                           \
        return runtime_end(forward_error);                                                         \
    } while (0)

/* --- registered kernels and variables (registry.c) ----------------------------------------------
 */

/* The kernel of a host function, or of a handle that is one. Loads its library at first use. */
cudaError_t registry_kernel(const void *host, CUkernel *kernel);
/* Address and size of a registered variable. */
cudaError_t registry_variable(const void *host, CUdeviceptr *pointer, size_t *size);
/* The host function of a kernel, or NULL. */
const void *registry_host(CUkernel kernel, const char *name);

#endif
