/* SPDX-License-Identifier: Apache-2.0 */
/* The driver as the program has it, and launches. */
#include "load.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct load_driver driver;
struct load_device devices[DEVICES_LIMIT];
int device_count;

static const char *const names[CHURN_FIRST] = {"work_domain", "work_cluster", "work_priority",
                                               "work_by_shape", "work_unmatched"};

static char churn_names[CHURN_COUNT][32];

static const char work_image[] = "kernel work_domain\n"
                                 "kernel work_cluster\n"
                                 "kernel work_priority\n"
                                 "kernel work_by_shape\n"
                                 "kernel work_unmatched\n";

void load_check(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: %d\n", what, (int)result);
    abort();
}

const char *load_kernel_name(unsigned kernel)
{
    return kernel < CHURN_FIRST ? names[kernel] : churn_names[kernel - CHURN_FIRST];
}

static void name_kernels(void)
{
    for (unsigned i = 0; i < CHURN_COUNT; i++)
        snprintf(churn_names[i], sizeof churn_names[i], "churn_%u_%s", i / 2,
                 i % 2 ? "ruled" : "free");
}

static void *find(void *library, const char *symbol)
{
    void *function = dlsym(library, symbol);
    if (function == NULL) {
        fprintf(stderr, "no %s\n", symbol);
        exit(2);
    }
    return function;
}

void load_start(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    name_kernels();
#define FIND(symbol) driver.symbol = (__typeof__(&symbol))find(library, #symbol);
    LOAD_FUNCTIONS(FIND)
    CHECK(driver.cuInit(0));
    CHECK(driver.cuDeviceGetCount(&device_count));
    for (int i = 0; i < device_count; i++) {
        struct load_device *device = &devices[i];
        CHECK(driver.cuDevicePrimaryCtxRetain(&device->context, i));
        CHECK(driver.cuCtxSetCurrent(device->context));
        CHECK(driver.cuModuleLoadData(&device->module, work_image));
        for (unsigned kernel = 0; kernel < CHURN_FIRST; kernel++)
            CHECK(driver.cuModuleGetFunction(&device->functions[kernel], device->module,
                                             names[kernel]));
    }
}

const struct load_device *load_use(unsigned number)
{
    const struct load_device *device = &devices[number % (unsigned)device_count];
    CHECK(driver.cuCtxSetCurrent(device->context));
    return device;
}

static void launch_ex(CUfunction function, CUstream stream, bool own)
{
    CUlaunchConfig config;
    CUlaunchAttribute attribute;
    memset(&config, 0, sizeof config);
    memset(&attribute, 0, sizeof attribute);
    attribute.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    config.gridDimX = 8;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 32;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = own ? &attribute : NULL;
    config.numAttrs = own;
    CHECK(driver.cuLaunchKernelEx(&config, function, NULL, NULL));
}

void load_launch(CUfunction function, unsigned kernel, CUstream stream, unsigned how,
                 struct load_counts *counts)
{
    switch (how % 6) {
    case 0:
        CHECK(driver.cuLaunchKernel(function, 8, 1, 1, 64, 1, 1, 0, stream, NULL, NULL));
        break;
    case 1:
        CHECK(driver.cuLaunchKernel(function, 6 + how / 6 % 5, 1, 1, 64, 1, 1, 0, stream, NULL,
                                    NULL));
        break;
    case 2:
        launch_ex(function, stream, false);
        break;
    case 3:
        launch_ex(function, stream, true);
        break;
    case 4:
        CHECK(driver.cuLaunchCooperativeKernel(function, 4, 1, 1, 32, 1, 1, 0, stream, NULL));
        break;
    default:
        CHECK(driver.cuLaunchKernel_ptsz(function, 16, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
        break;
    }
    counts->of[kernel][EAGER]++;
}
