/* SPDX-License-Identifier: Apache-2.0 */
/* The recording driver as it is behind every wrapper, and objects to work on. */
#include "matrix.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void *(*raw_dlsym)(void *handle, const char *name);
void *driver_handle;
struct recording recording;
struct fixture fixture;

static const char image[] = "kernel exercised params=8\n"
                            "kernel other params=8\n";

/* libdl.so.2 had it before glibc 2.34. */
void raw_dlsym_find(void)
{
    static const char *const libraries[] = {"libc.so.6", "libdl.so.2"};
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};

    for (size_t i = 0; i < 2 && raw_dlsym == NULL; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);

        for (size_t j = 0; j < 3 && library != NULL && raw_dlsym == NULL; j++)
            *(void **)&raw_dlsym = dlvsym(library, "dlsym", versions[j]);
    }
    if (raw_dlsym == NULL) {
        fprintf(stderr, "the C library's dlsym is not found\n");
        exit(2);
    }
}

void *raw(const char *symbol)
{
    void *function = raw_dlsym(driver_handle, symbol);

    if (function == NULL) {
        fprintf(stderr, "the driver has no %s\n", symbol);
        exit(2);
    }
    return function;
}

/* As the program gets it: for what the library must have seen. */
#define WRAPPED(symbol) ((__typeof__(&symbol))dlsym(driver_handle, #symbol))

void check(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "%s: %d\n", what, (int)result);
        exit(2);
    }
}

void driver_start(int dlopen_flags)
{
    raw_dlsym_find();
    driver_handle = dlopen("libcuda.so.1", dlopen_flags);
    if (driver_handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    *(void **)&recording.forget = raw("recording_driver_forget");
    *(void **)&recording.call_count = raw("recording_driver_call_count");
    *(void **)&recording.call = raw("recording_driver_call");
    *(void **)&recording.call_named = raw("recording_driver_call_named");
}

static CUgraphNode add_node(CUresult (*add)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
                                            const CUDA_KERNEL_NODE_PARAMS_v2 *))
{
    void *pointer = NULL;
    void *arguments[] = {&pointer};
    const CUDA_KERNEL_NODE_PARAMS_v2 parameters = {
        .func = fixture.function,
        .gridDimX = 1,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 32,
        .blockDimY = 1,
        .blockDimZ = 1,
        .kernelParams = arguments,
    };
    CUgraphNode node = NULL;

    CHECK(add(&node, fixture.graph, NULL, 0, &parameters));
    return node;
}

CUgraphNode covered_node(void)
{
    return add_node(WRAPPED(cuGraphAddKernelNode_v2));
}

CUstream covered_stream(void)
{
    CUstream stream;

    CHECK(WRAPPED(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

void *green_description(void)
{
#if CUDA_VERSION >= 12040
    CUdevResource all, group;
    CUdevResourceDesc description;
    unsigned groups = 1;

    CHECK(RAW(cuDeviceGetDevResource)(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    CHECK(RAW(cuDevSmResourceSplitByCount)(&group, &groups, &all, NULL, 0, 16));
    CHECK(RAW(cuDevResourceGenerateDesc)(&description, &group, 1));
    return description;
#else
    return NULL;
#endif
}

void *green_context(void)
{
#if CUDA_VERSION >= 12040
    CUgreenCtx context;

    CHECK(RAW(cuGreenCtxCreate)(&context, green_description(), 0, CU_GREEN_CTX_DEFAULT_STREAM));
    return context;
#else
    return NULL;
#endif
}

void green_context_end(void *context)
{
#if CUDA_VERSION >= 12040
    CHECK(RAW(cuGreenCtxDestroy)(context));
#else
    (void)context;
#endif
}

void fixture_make(void)
{
    CHECK(RAW(cuInit)(0));
    CHECK(RAW(cuDevicePrimaryCtxRetain)(&fixture.context, 0));
    CHECK(RAW(cuCtxSetCurrent)(fixture.context));
    CHECK(RAW(cuModuleLoadData)(&fixture.module, image));
    CHECK(WRAPPED(cuModuleGetFunction)(&fixture.function, fixture.module, "exercised"));
    CHECK(RAW(cuLibraryLoadData)(&fixture.library, image, NULL, NULL, 0, NULL, NULL, 0));
    CHECK(WRAPPED(cuLibraryGetKernel)(&fixture.kernel, fixture.library, "exercised"));
    CHECK(RAW(cuStreamCreate)(&fixture.stream, CU_STREAM_NON_BLOCKING));
    CHECK(RAW(cuGraphCreate)(&fixture.graph, 0));
    fixture.node = add_node(RAW(cuGraphAddKernelNode_v2));
}

const char *problem(const char *format, ...)
{
    static char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

CUlaunchAttributeValue node_attribute(CUgraphNode node, CUlaunchAttributeID id)
{
    CUlaunchAttributeValue value;

    CHECK(RAW(cuGraphKernelNodeGetAttribute)(node, id, &value));
    return value;
}

CUlaunchAttributeValue stream_attribute(CUstream stream, CUlaunchAttributeID id)
{
    CUlaunchAttributeValue value;

    CHECK(RAW(cuStreamGetAttribute)(stream, id, &value));
    return value;
}

/* As recording_attribute, which only a program linked with the recording driver could call. */
const CUlaunchAttributeValue *effective_attribute(const struct recording_attributes *attributes,
                                                  unsigned int id)
{
    for (unsigned i = 0; i < attributes->count; i++)
        if (attributes->list[i].id == id)
            return &attributes->list[i].value;
    return NULL;
}

static const char *domain_problem(const char *what, CUlaunchMemSyncDomain domain)
{
    const CUlaunchMemSyncDomain wanted =
        enforced ? CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE : CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;

    return domain == wanted ? NULL : problem("the %s is in domain %d", what, (int)domain);
}

const char *node_problem(CUgraphNode node)
{
    return domain_problem("node",
                          node_attribute(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN).memSyncDomain);
}

const char *stream_problem(CUstream stream)
{
    return domain_problem(
        "stream", stream_attribute(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN).memSyncDomain);
}
