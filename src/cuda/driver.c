/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/driver.h"

struct cuda_driver cuda_driver;

enum {
    PER_THREAD_DEFAULT_STREAM = 2, /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
};

static void *look_up(cuda_get_proc_address resolve, const char *symbol, int version,
                     cuuint64_t flags)
{
    void *function = NULL;
    int status = 0;

    if (resolve(symbol, &function, version, flags, &status) != CUDA_SUCCESS || status != 0)
        return NULL;
    return function;
}

bool cuda_driver_fill(struct cuda_driver *driver, cuda_get_proc_address resolve)
{
#define DRIVER(member, symbol, version, parameters)                                                \
    driver->member = (CUresult(CUDAAPI *) parameters)look_up(resolve, symbol, version, 0);
#include "cuda/driver.def"
#undef DRIVER
    driver->cuLaunchKernelEx_ptsz =
        (CUresult(CUDAAPI *)(const CUlaunchConfig *, CUfunction, void **, void **))look_up(
            resolve, "cuLaunchKernelEx", 11060, PER_THREAD_DEFAULT_STREAM);
    return driver->cuDriverGetVersion != NULL;
}

int cuda_driver_version(void)
{
    static int known; /* atomic; every thread finds the same */
    int version = __atomic_load_n(&known, __ATOMIC_RELAXED);

    if (version == 0 && cuda_driver.cuDriverGetVersion != NULL &&
        cuda_driver.cuDriverGetVersion(&version) == CUDA_SUCCESS)
        __atomic_store_n(&known, version, __ATOMIC_RELAXED);
    return version;
}
