/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: made in each way, given attributes, destroyed. */
#include "application.h"

#include <stddef.h>
#include <string.h>

static void create_green(struct application *application)
{
    CUdevResource all, parts[16];
    CUdevResourceDesc description;
    unsigned count = 16;
    CALL(cuDeviceGetDevResource, 0, &all, CU_DEV_RESOURCE_TYPE_SM);
    CALL(cuDevSmResourceSplitByCount, parts, &count, &all, NULL, 0, 8);
    CALL(cuDevResourceGenerateDesc, &description, parts, 2);
    CALL(cuGreenCtxCreate, &application->green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    CALL(cuGreenCtxStreamCreate, &application->streams[GREEN], application->green,
         CU_STREAM_NON_BLOCKING, -1);
}

void application_create_streams(struct application *application)
{
    CUstream none;
    CALL(cuStreamCreate, &application->streams[BLOCKING], CU_STREAM_DEFAULT);
    CALL(cuStreamCreate, &application->streams[NON_BLOCKING], CU_STREAM_NON_BLOCKING);
    CALL(cuStreamCreateWithPriority, &application->streams[URGENT], CU_STREAM_NON_BLOCKING, -2);
    create_green(application);
    CALL(cuStreamCreate, NULL, CU_STREAM_DEFAULT);
    CALL(cuStreamCreate, &none, 77);
    CALL(cuStreamCreateWithPriority, &none, 77, -1);
}

void application_set_stream_attributes(struct application *application)
{
    CUlaunchAttributeValue value;
    unsigned flags = 0;
    memset(&value, 0, sizeof value);
    value.memSyncDomainMap.default_ = 1;
    value.memSyncDomainMap.remote = 3;
    CALL(cuStreamSetAttribute, application->streams[BLOCKING],
         CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value);
    memset(&value, 0, sizeof value);
    value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
    CALL(cuStreamSetAttribute, application->streams[URGENT], CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
         &value);
    value.priority = -4;
    CALL(cuStreamSetAttribute, application->streams[URGENT], CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
    value.syncPolicy = CU_SYNC_POLICY_SPIN;
    CALL(cuStreamSetAttribute, application->streams[URGENT],
         CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
    value.memSyncDomain = (CUlaunchMemSyncDomain)17;
    CALL(cuStreamSetAttribute, application->streams[URGENT], CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
         &value);
    CALL(cuStreamCopyAttributes, application->streams[NON_BLOCKING], application->streams[URGENT]);
    CALL(cuStreamCopyAttributes, application->streams[BLOCKING], NULL);
    CALL(cuStreamCopyAttributes, application->streams[GREEN], application->streams[BLOCKING]);
    CALL(cuStreamGetAttribute, application->streams[NON_BLOCKING],
         CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
    calls_tell("policy %d", (int)value.syncPolicy);
    CALL(cuStreamGetFlags, application->streams[NON_BLOCKING], &flags);
    calls_tell("flags %u", flags);
}

void application_destroy_streams(struct application *application)
{
    for (int i = 0; i < STREAM_COUNT; i++)
        CALL(cuStreamDestroy_v2, application->streams[i]);
    CALL(cuStreamDestroy_v2, application->streams[0]);
    CALL(cuGreenCtxDestroy, application->green);
}
