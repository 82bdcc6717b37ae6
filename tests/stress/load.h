/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STRESS_LOAD_H
#define STRESS_LOAD_H

/*
 * A program of many threads that all use the driver at once, and that counts what it does: the
 * report must say exactly the same. Its calls all succeed.
 */

#include <stdbool.h>
#include <stdint.h>

/* All versions of every function under their own names. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "recording_driver.h"

enum load_kernel {
    /* Of a module that stays. Rules of the policy make something of the first four. */
    WORK_DOMAIN,
    WORK_CLUSTER,
    WORK_PRIORITY,
    WORK_BY_SHAPE,
    WORK_UNMATCHED,
    /* Of modules and libraries that come and go; every other one has a rule. */
    CHURN_FIRST,
    CHURN_COUNT = 16,
    LOAD_KERNELS = CHURN_FIRST + CHURN_COUNT,
};

enum load_kind { EAGER, CAPTURED, NODE, REPLAYED, LOAD_KINDS };

/* Launches made, of one thread. */
struct load_counts {
    uint64_t of[LOAD_KERNELS][LOAD_KINDS];
};

/* The driver's functions, as dlsym gives them to a program. */
#define LOAD_FUNCTIONS(F)                                                                          \
    F(cuInit)                                                                                      \
    F(cuDeviceGetCount)                                                                            \
    F(cuDevicePrimaryCtxRetain)                                                                    \
    F(cuCtxSetCurrent)                                                                             \
    F(cuCtxCreate_v2)                                                                              \
    F(cuCtxDestroy_v2)                                                                             \
    F(cuFuncSetAttribute)                                                                          \
    F(cuFuncSetCacheConfig)                                                                        \
    F(cuGetProcAddress_v2)                                                                         \
    F(cuModuleLoadData)                                                                            \
    F(cuModuleUnload)                                                                              \
    F(cuModuleGetFunction)                                                                         \
    F(cuLibraryLoadData)                                                                           \
    F(cuLibraryUnload)                                                                             \
    F(cuLibraryGetKernel)                                                                          \
    F(cuLaunchKernel)                                                                              \
    F(cuLaunchKernelEx)                                                                            \
    F(cuLaunchCooperativeKernel)                                                                   \
    F(cuLaunchKernel_ptsz)                                                                         \
    F(cuStreamCreate)                                                                              \
    F(cuStreamCreateWithPriority)                                                                  \
    F(cuStreamDestroy_v2)                                                                          \
    F(cuStreamSetAttribute)                                                                        \
    F(cuStreamCopyAttributes)                                                                      \
    F(cuStreamBeginCapture_v2)                                                                     \
    F(cuStreamEndCapture)                                                                          \
    F(cuGraphCreate)                                                                               \
    F(cuGraphDestroy)                                                                              \
    F(cuGraphClone)                                                                                \
    F(cuGraphAddKernelNode_v2)                                                                     \
    F(cuGraphKernelNodeSetParams_v2)                                                               \
    F(cuGraphInstantiateWithFlags)                                                                 \
    F(cuGraphExecUpdate_v2)                                                                        \
    F(cuGraphExecDestroy)                                                                          \
    F(cuGraphLaunch)                                                                               \
    F(recording_driver_live)

#define LOAD_MEMBER(symbol) __typeof__(&symbol) symbol;
extern struct load_driver {
    LOAD_FUNCTIONS(LOAD_MEMBER)
} driver;
#undef LOAD_MEMBER

enum {
    DEVICES_LIMIT = 16,
};

/* One for each device. */
struct load_device {
    CUcontext context;
    CUmodule module;
    CUfunction functions[CHURN_FIRST];
};
extern struct load_device devices[DEVICES_LIMIT];
extern int device_count;

/* Ends the program when a call fails. */
void load_check(CUresult result, const char *what);
#define CHECK(call) load_check((call), #call)

const char *load_kernel_name(unsigned kernel);

/* Loads the driver and the modules that stay. */
void load_start(void);

/* Makes a device's context current in the calling thread. */
const struct load_device *load_use(unsigned number);

/* Stops the calling thread while another forks quietly (load.c). */
void load_pause(void);

/* A launch by one of the functions, chosen by how. */
void load_launch(CUfunction function, unsigned kernel, CUstream stream, unsigned how,
                 struct load_counts *counts);

/* load_work.c: what threads do, so many times. number tells them apart. */
void load_launch_often(unsigned number, unsigned times, struct load_counts *counts);
void load_churn_modules(unsigned number, unsigned times, struct load_counts *counts);
void load_make_streams(unsigned number, unsigned times, struct load_counts *counts);
void load_make_graphs(unsigned number, unsigned times, struct load_counts *counts);
void load_change_functions(unsigned number, unsigned times, struct load_counts *counts);

#endif
