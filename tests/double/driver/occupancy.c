/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many blocks and clusters are resident at once: a plain model of one SM with the figures that
 * device.c reports, and of GPCs (multiprocessor.c). It agrees with what was measured on the H200
 * for blocks of 32 to 1024 threads: on the whole device 528 clusters of 2 and 248 of 4 (but 120 of
 * 8 here, 124 there), on a group of 8 SMs 32/16/8 clusters of 2/4/8, on three groups 96/48/24, on
 * twelve and the remainder 432/192/96, on the remainder of 12 SMs alone 48 of 2 and none of 4.
 */
#include "driver.h"
#include <string.h>

unsigned int occupancy_blocks(const struct launchable *what, int device, unsigned int threads,
                              size_t shared)
{
    const int *fixed = what->code->attributes;
    unsigned int registers = (unsigned int)fixed[CU_FUNC_ATTRIBUTE_NUM_REGS];
    size_t bytes = shared + (size_t)fixed[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] + 1024;
    unsigned int warps = (threads + 31) / 32;
    (void)device;
    if (threads == 0)
        return 0;
    unsigned int blocks = 32;
    if (2048 / (32 * warps) < blocks)
        blocks = 2048 / (32 * warps);
    if (registers != 0 && 65536 / (registers * 32 * warps) < blocks)
        blocks = 65536 / (registers * 32 * warps);
    if (233472 / bytes < blocks)
        blocks = (unsigned int)(233472 / bytes);
    return blocks;
}

/* Measured: with a cluster no more blocks are on one SM. */
#define CLUSTER_BLOCKS 8

/* Groups of SMs that a cluster of this size takes. Measured of a green context: up to 2 blocks
 * anywhere, else only where SMs are co-scheduled by so many. */
static unsigned int cluster_groups(CUcontext context, unsigned int size)
{
    const struct CUgreenCtx_st *green = context->green;
    struct sm_set sms = context_sms(context);
    if (size <= 2)
        return sm_set_count(&sms) / size;
    if (green == NULL || green->together == 0)
        return gpc_groups(&sms, size);
    return size <= green->together ? sm_set_count(&green->grouped) / size : 0;
}

unsigned int occupancy_resident(const struct launchable *what, CUcontext context,
                                unsigned int threads, size_t shared)
{
    struct sm_set sms = context_sms(context);
    return sm_set_count(&sms) * occupancy_blocks(what, context->device, threads, shared);
}

unsigned int occupancy_clusters(const struct launchable *what, CUcontext context,
                                unsigned int threads, size_t shared, unsigned int size)
{
    unsigned int blocks = occupancy_blocks(what, context->device, threads, shared);
    return cluster_groups(context, size) * (blocks < CLUSTER_BLOCKS ? blocks : CLUSTER_BLOCKS);
}

static unsigned int permitted(const struct launchable *what, CUcontext context)
{
    bool wide = launchable_attribute(what, context->device,
                                     CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) != 0;
    return wide ? (unsigned int)configuration.cluster_max : 8;
}

static CUresult active_blocks(struct call *call, int *blocks, CUfunction function, int threads,
                              size_t shared)
{
    struct launchable what;
    call_function(call, function);
    call_add(call, "threads=%d shared=%zu", threads, shared);
    CUcontext context = context_current();
    if (call->result != CUDA_SUCCESS)
        return call->result;
    if (blocks == NULL || threads <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!launchable_of(function, &what))
        return CUDA_ERROR_INVALID_HANDLE;
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *blocks = (int)occupancy_blocks(&what, context->device, (unsigned int)threads, shared);
    call_add(call, "blocks=%d", *blocks);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func,
                                                             int blockSize, size_t dynamicSMemSize)
{
    struct call call = call_begin(__func__);
    return call_end(&call, active_blocks(&call, numBlocks, func, blockSize, dynamicSMemSize));
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
    struct call call = call_begin(__func__);
    call_add(&call, "flags=%u", flags);
    return call_end(&call, active_blocks(&call, numBlocks, func, blockSize, dynamicSMemSize));
}

struct question {
    struct launchable what;
    CUcontext context;
    unsigned int threads;
    size_t shared;
    unsigned int cluster; /* blocks in the cluster that the configuration asks for; 0: none */
};

/* Documented: the stream in the configuration says for which context the answer is. */
static CUresult read_question(struct call *call, CUfunction function, const CUlaunchConfig *config,
                              struct question *question)
{
    call_function(call, function);
    if (call->result != CUDA_SUCCESS)
        return call->result;
    if (config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!launchable_of(function, &question->what))
        return CUDA_ERROR_INVALID_HANDLE;
    CUstream stream = stream_of(config->hStream, CU_STREAM_LEGACY, true);
    call_stream(call, config->hStream, stream);
    if (stream == NULL && context_current() == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stream == NULL)
        return stream_refusal(config->hStream);
    call_place(call, stream->context);
    question->context = stream->context;
    question->threads = config->blockDimX * config->blockDimY * config->blockDimZ;
    question->shared = config->sharedMemBytes;
    question->cluster = 0;
    if (question->what.code->cluster[0] != 0)
        question->cluster = question->what.code->cluster[0] * question->what.code->cluster[1] *
                            question->what.code->cluster[2];
    for (unsigned int i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *at = &config->attrs[i];
        if (at->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            question->cluster =
                at->value.clusterDim.x * at->value.clusterDim.y * at->value.clusterDim.z;
    }
    call_add(call, "threads=%u shared=%zu cluster=%u", question->threads, question->shared,
             question->cluster);
    return configuration.capability_major >= 9 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult CUDAAPI cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func,
                                                    const CUlaunchConfig *config)
{
    struct question question;
    struct call call = call_begin(__func__);
    CUresult result = read_question(&call, func, config, &question);
    if (result == CUDA_SUCCESS && clusterSize == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        unsigned int size = permitted(&question.what, question.context);
        while (size > 1 && occupancy_clusters(&question.what, question.context, question.threads,
                                              question.shared, size) == 0)
            size /= 2;
        *clusterSize = (int)size;
        call_add(&call, "size=%d", *clusterSize);
    }
    return call_end(&call, result);
}

CUresult CUDAAPI cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func,
                                              const CUlaunchConfig *config)
{
    struct question question;
    struct call call = call_begin(__func__);
    CUresult result = read_question(&call, func, config, &question);
    if (result == CUDA_SUCCESS && numClusters == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    /* Measured: a cluster without permission is refused, none at all gives 0. */
    if (result == CUDA_SUCCESS && question.cluster > permitted(&question.what, question.context))
        result = CUDA_ERROR_INVALID_CLUSTER_SIZE;
    if (result == CUDA_SUCCESS) {
        *numClusters = 0;
        if (question.cluster != 0)
            *numClusters =
                (int)occupancy_clusters(&question.what, question.context, question.threads,
                                        question.shared, question.cluster);
        call_add(&call, "clusters=%d", *numClusters);
    }
    return call_end(&call, result);
}
