/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the doubles share: a fresh driver with one device and a current context. */
#ifndef TEST_SUPPORT_H
#define TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

/* The launch functions under every name they are exported by. */
#define __CUDA_API_VERSION_INTERNAL
#include "recording_driver.h"
#include <cuda.h>
#include <string.h>

#define EXPECT(call) assert_int_equal((call), CUDA_SUCCESS)
#define EXPECT_ERROR(code, call) assert_int_equal((call), (code))

/* A driver that was reset, configured with `key` = `value` pairs, and has a current context. */
static inline CUcontext fresh_driver(void)
{
    CUcontext context;
    recording_driver_reset();
    EXPECT(cuInit(0));
    EXPECT(cuDevicePrimaryCtxRetain(&context, 0));
    EXPECT(cuCtxSetCurrent(context));
    return context;
}

static inline CUfunction load_function(const char *image, const char *name)
{
    CUmodule module;
    CUfunction function;
    EXPECT(cuModuleLoadData(&module, image));
    EXPECT(cuModuleGetFunction(&function, module, name));
    return function;
}

static inline CUkernel load_kernel(const char *image, const char *name)
{
    CUlibrary library;
    CUkernel kernel;
    EXPECT(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    EXPECT(cuLibraryGetKernel(&kernel, library, name));
    return kernel;
}

static inline CUstream new_stream(void)
{
    CUstream stream;
    EXPECT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

/* A launch of `blocks` blocks of 32 threads with these attributes. */
static inline CUresult launch_with(CUfunction function, CUstream stream, unsigned int blocks,
                                   CUlaunchAttribute *attributes, unsigned int count)
{
    CUlaunchConfig config;
    memset(&config, 0, sizeof(config));
    config.gridDimX = blocks;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 32;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = attributes;
    config.numAttrs = count;
    return cuLaunchKernelEx(&config, function, NULL, NULL);
}

static inline CUresult launch_plain(CUfunction function, CUstream stream)
{
    return cuLaunchKernel(function, 4, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

static inline CUlaunchAttribute cluster_attribute(unsigned int x)
{
    CUlaunchAttribute attribute;
    memset(&attribute, 0, sizeof(attribute));
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = x;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    return attribute;
}

static inline CUlaunchAttribute domain_attribute(CUlaunchMemSyncDomain domain)
{
    CUlaunchAttribute attribute;
    memset(&attribute, 0, sizeof(attribute));
    attribute.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    attribute.value.memSyncDomain = domain;
    return attribute;
}

static inline CUlaunchAttribute map_attribute(unsigned char standard, unsigned char remote)
{
    CUlaunchAttribute attribute;
    memset(&attribute, 0, sizeof(attribute));
    attribute.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP;
    attribute.value.memSyncDomainMap.default_ = standard;
    attribute.value.memSyncDomainMap.remote = remote;
    return attribute;
}

/* The newest call of that name; the test fails without one. */
static inline const struct recording_call *last_call(const char *name)
{
    size_t count = recording_driver_call_count(name);
    assert_true(count > 0);
    return recording_driver_call_named(name, count - 1);
}

#endif
