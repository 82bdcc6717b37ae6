/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROUTES_PROGRAM_H
#define ROUTES_PROGRAM_H

/* A program on the driver API, in two builds: linked with libcuda, and loading it (program.c). */

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* The driver's functions as the program got them. */
#define PROGRAM_FUNCTIONS(FUNCTION)                                                                \
    FUNCTION(cuInit)                                                                               \
    FUNCTION(cuDevicePrimaryCtxRetain)                                                             \
    FUNCTION(cuCtxSetCurrent)                                                                      \
    FUNCTION(cuCtxGetCurrent)                                                                      \
    FUNCTION(cuModuleLoadData)                                                                     \
    FUNCTION(cuModuleGetFunction)                                                                  \
    FUNCTION(cuModuleUnload)                                                                       \
    FUNCTION(cuLaunchKernel)                                                                       \
    FUNCTION(cuLaunchKernelEx)                                                                     \
    FUNCTION(cuStreamCreate)                                                                       \
    FUNCTION(cuStreamDestroy_v2)                                                                   \
    FUNCTION(cuStreamBeginCapture_v2)                                                              \
    FUNCTION(cuStreamEndCapture)                                                                   \
    FUNCTION(cuGraphGetNodes)                                                                      \
    FUNCTION(cuGraphKernelNodeGetAttribute)                                                        \
    FUNCTION(cuGetProcAddress_v2)

extern struct program_driver {
#define FUNCTION(symbol) __typeof__(&symbol) symbol;
    PROGRAM_FUNCTIONS(FUNCTION)
#undef FUNCTION
} cu;

/* Finds the functions; makes no CUDA call. program_load fills cu. */
void program_find(struct program_driver *driver);
void program_load(void);

/* cuInit, a context and a kernel. */
void program_start(void);
extern CUmodule program_module;
extern CUfunction program_kernel;

/* Ends the program with a message when a call fails. */
void program_check(CUresult result, const char *what);
#define CHECK(call) program_check((call), #call)

/* One launch with this many blocks, by which the record tells launches apart. */
void program_launch(unsigned blocks);

struct program_scenario {
    const char *name;
    int (*run)(int argc, char **argv);
};

/* Each file of scenarios ends its list with a NULL name. */
extern const struct program_scenario scenarios_of_calls[], scenarios_of_ends[],
    scenarios_of_names[], scenarios_of_threads[];

#endif
