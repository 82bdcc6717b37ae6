/* SPDX-License-Identifier: Apache-2.0 */
/* Launches by every function, with and without attributes of their own, right and wrong. */
#include "application.h"

#include <stddef.h>
#include <string.h>

static void *no_function(void)
{
    static char nothing[64];
    return nothing;
}

CUresult launch_plain(CUfunction function, unsigned blocks, CUstream stream)
{
    return CALL(cuLaunchKernel, function, blocks, 1, 1, 64, 1, 1, 0, stream, NULL, NULL);
}

static CUresult launch_ex(CUfunction function, unsigned blocks, CUstream stream,
                          CUlaunchAttribute *attributes, unsigned count)
{
    CUlaunchConfig config;
    memset(&config, 0, sizeof config);
    config.gridDimX = blocks;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 64;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = 256;
    config.hStream = stream;
    config.attrs = attributes;
    config.numAttrs = count;
    return CALL(cuLaunchKernelEx, &config, function, NULL, NULL);
}

static CUlaunchAttribute attribute_of(CUlaunchAttributeID id, int number)
{
    CUlaunchAttribute attribute;
    memset(&attribute, 0, sizeof attribute);
    attribute.id = id;
    attribute.value.priority = number;
    return attribute;
}

static CUlaunchAttribute cluster_of(unsigned blocks)
{
    CUlaunchAttribute attribute = attribute_of(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 0);
    attribute.value.clusterDim.x = blocks;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    return attribute;
}

CUresult launch_with_domain(CUfunction function, unsigned blocks, CUstream stream)
{
    CUlaunchAttribute attributes[] = {
        attribute_of(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 0),
        attribute_of(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 1),
        attribute_of(CU_LAUNCH_ATTRIBUTE_PRIORITY, -1),
    };
    return launch_ex(function, blocks, stream, attributes, 3);
}

/* The arguments in one buffer. */
static void launch_extra(CUfunction function, CUstream stream)
{
    struct {
        void *pointer;
        int number;
    } buffer = {NULL, 7};
    size_t size = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    CALL(cuLaunchKernel, function, 4, 1, 1, 32, 1, 1, 0, stream, NULL, extra);
}

static void launch_wrongly(struct application *application, CUstream stream)
{
    CUlaunchAttribute unknown = attribute_of((CUlaunchAttributeID)30, 1);
    CUlaunchAttribute indivisible = cluster_of(4);
    launch_plain(application->functions[ALPHA], 0, stream);
    launch_plain(NULL, 4, stream);
    launch_plain(no_function(), 4, stream);
    launch_ex(application->functions[BETA], 4, stream, &unknown, 1);
    launch_ex(application->functions[BETA], 6, stream, &indivisible, 1);
    launch_ex(application->functions[ZETA], 4, stream, NULL, 2);
    CALL(cuLaunchKernelEx, NULL, application->functions[ALPHA], NULL, NULL);
    CALL(cuLaunchCooperativeKernel, application->functions[EPSILON], 65536, 1, 1, 64, 1, 1, 0,
         stream, NULL);
}

void application_launch(struct application *application, CUstream stream)
{
    const CUfunction *functions = application->functions;
    void *pointer = NULL;
    int number = 3;
    void *parameters[] = {&pointer, &number};
    CUlaunchAttribute cluster = cluster_of(2);
    for (unsigned blocks = 6; blocks <= 8; blocks++)
        launch_plain(functions[ALPHA], blocks, stream);
    launch_plain(functions[BETA], 8, stream);
    launch_plain(functions[GAMMA], 8, stream);
    launch_plain(functions[ZETA], 8, stream);
    CALL(cuLaunchKernel, functions[DELTA], 4, 1, 1, 64, 1, 1, 128, stream, parameters, NULL);
    launch_extra(functions[DELTA], stream);
    CALL(cuLaunchCooperativeKernel, functions[EPSILON], 8, 1, 1, 64, 1, 1, 0, stream, NULL);
    launch_with_domain(functions[ALPHA], 8, stream);
    launch_ex(functions[BETA], 8, stream, &cluster, 1);
    launch_ex(functions[ZETA], 8, stream, NULL, 0);
    launch_plain((CUfunction)(void *)application->kernels[0], 8, stream);
    launch_plain((CUfunction)(void *)application->kernels[1], 8, stream);
    launch_plain(application->of_kernel, 8, stream);
}

static void launch_per_thread(struct application *application, CUstream stream)
{
    CUlaunchConfig config;
    memset(&config, 0, sizeof config);
    config.gridDimX = 4;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    CALL(cuLaunchKernel_ptsz, application->functions[ALPHA], 4, 1, 1, 64, 1, 1, 0, stream, NULL,
         NULL);
    CALL(cuLaunchKernelEx_ptsz, &config, application->functions[BETA], NULL, NULL);
    CALL(cuLaunchCooperativeKernel_ptsz, application->functions[EPSILON], 4, 1, 1, 64, 1, 1, 0,
         stream, NULL);
}

void application_launch_on_default_streams(struct application *application)
{
    CUlaunchAttributeValue value;
    memset(&value, 0, sizeof value);
    application_launch(application, NULL);
    launch_wrongly(application, NULL);
    launch_plain(application->functions[ALPHA], 4, CU_STREAM_LEGACY);
    launch_plain(application->functions[ALPHA], 4, CU_STREAM_PER_THREAD);
    launch_per_thread(application, NULL);
    launch_per_thread(application, application->streams[NON_BLOCKING]);
    value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    CALL(cuStreamSetAttribute, NULL, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value);
    CALL(cuStreamSetAttribute_ptsz, NULL, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value);
    launch_plain(application->functions[ZETA], 4, NULL);
    launch_per_thread(application, NULL);
}
