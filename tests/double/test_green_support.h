/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of partitions share. Resources are read by the layouts of src/cuda, so that both
 * statements of them are held against each other. */
#ifndef TEST_GREEN_SUPPORT_H
#define TEST_GREEN_SUPPORT_H

#include "test_support.h" /* first: it makes cuda.h declare every variant */

#include "cuda/interface.h"
#include "driver/newer.h"

/* Error codes that the oldest headers do not name. */
#define STREAM_DETACHED 917

static inline const struct cuda_device_resource *look(const CUdevResource *resource)
{
    return (const void *)resource;
}

static inline CUdevResource device_resource(void)
{
    CUdevResource resource;
    EXPECT(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
    return resource;
}

/* cuDevSmResourceSplit with our own type of the groups. */
static inline CUresult split(CUdevResource *results, unsigned int count, const CUdevResource *input,
                             CUdevResource *remainder, struct cuda_sm_group *groups)
{
    return cuDevSmResourceSplit(results, count, input, remainder, 0, (void *)groups);
}

static inline CUgreenCtx green_of(CUdevResource *resources, unsigned int count)
{
    CUdevResourceDesc description;
    CUgreenCtx green;
    EXPECT(cuDevResourceGenerateDesc(&description, resources, count));
    EXPECT(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    return green;
}

static inline CUstream stream_in(CUgreenCtx green)
{
    CUstream stream;
    EXPECT(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    return stream;
}

static inline CUcontext context_of(CUgreenCtx green)
{
    CUcontext context;
    EXPECT(cuCtxFromGreenCtx(&context, green));
    return context;
}

/* A green context of groups `first` to `first + count - 1` of 8 SMs, of a split of its own. */
static inline CUgreenCtx eights(unsigned int first, unsigned int count)
{
    CUdevResource all = device_resource(), parts[32];
    unsigned int groups = 32;
    EXPECT(cuDevSmResourceSplitByCount(parts, &groups, &all, NULL, 0, 8));
    assert_true(first + count <= groups);
    return green_of(&parts[first], count);
}

static inline bool on_sm(const struct recording_call *call, unsigned int sm)
{
    return (call->sm_set[sm / 64] >> (sm % 64) & 1) != 0;
}

static inline bool disjoint(const struct recording_call *one, const struct recording_call *other)
{
    for (int i = 0; i < RECORDING_SM_WORDS; i++)
        if ((one->sm_set[i] & other->sm_set[i]) != 0)
            return false;
    return true;
}

/* The call of cuGreenCtxCreate that made the newest green context of these resources. */
static inline const struct recording_call *placed(CUdevResource *resources, unsigned int count)
{
    green_of(resources, count);
    return last_call("cuGreenCtxCreate");
}

static inline void assert_sms(const struct recording_call *call, unsigned int first,
                              unsigned int last)
{
    for (unsigned int sm = 0; sm < 64 * RECORDING_SM_WORDS; sm++)
        assert_int_equal(on_sm(call, sm), sm >= first && sm <= last);
}

static inline CUlaunchAttribute cooperative_attribute(void)
{
    CUlaunchAttribute attribute;
    memset(&attribute, 0, sizeof(attribute));
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    return attribute;
}

static inline CUDA_KERNEL_NODE_PARAMS_v2 node_params(CUfunction function, CUkernel kernel,
                                                     CUcontext context)
{
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    memset(&params, 0, sizeof(params));
    params.func = function;
    params.kern = kernel;
    params.ctx = context;
    params.gridDimX = 4;
    params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
    params.blockDimX = 32;
    return params;
}

/* The graph of one launch in the stream, and its node. */
static inline CUgraphNode captured(CUfunction function, CUstream stream, CUgraph *graph)
{
    CUgraphNode node;
    size_t count = 1;
    EXPECT(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(launch_plain(function, stream));
    EXPECT(cuStreamEndCapture(stream, graph));
    EXPECT(cuGraphGetNodes(*graph, &node, &count));
    return node;
}

#endif
