/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The split into equal groups (CUDA 12.4). Measured on the H200 (132 SMs, minimum 8, alignment 8):
 * 1 gives 8, 20 gives 24, 66 gives 72, 125 gives 128, 132 gives 132, 133 is error 915. A group of 8
 * lies in one GPC, so there are 15 and 12 SMs remain; larger groups need not, so there are 8 of 16
 * and 4 SMs remain. Without co-scheduling 1 gives 2. Which SMs a large group has is a model: real
 * ones of 16 and 32 hold fewer clusters than here.
 */
#include "resource.h"
#include <string.h>

/* How SMs are handed out under the flags. */
struct grain {
    unsigned int minimum, alignment;
};

static struct grain grain_of(unsigned int flags)
{
    struct grain grain = {(unsigned int)configuration.partition_minimum,
                          (unsigned int)configuration.partition_alignment};
    /* Measured: the flag for large clusters changes no size. */
    if ((flags & SPLIT_IGNORE_COSCHEDULING) != 0)
        grain.minimum = grain.alignment = 2;
    return grain;
}

static unsigned int granted(const struct grain *grain, unsigned int wanted, unsigned int total)
{
    unsigned int size = (wanted + grain->alignment - 1) / grain->alignment * grain->alignment;
    if (size > total && wanted <= total)
        size = total;
    return size < grain->minimum ? grain->minimum : size;
}

/* The next group of `size` SMs: as many as possible in units that lie in one GPC each, and of those
 * at least one. */
static struct sm_set take(struct sm_set *from, unsigned int unit, unsigned int size)
{
    struct sm_set left = *from, group = {{0}}, part;
    do {
        part = gpc_take(&left, unit);
        sm_set_unite(&group, &part);
    } while (sm_set_count(&part) != 0 && sm_set_count(&group) + unit <= size);
    if (sm_set_count(&group) == 0 || sm_set_count(from) < size)
        return (struct sm_set){{0}};
    sm_set_fill(&group, &left, size);
    sm_set_remove(from, &group);
    return group;
}

static CUresult split(struct call *call, CUdevResource *outputs, unsigned int *groups,
                      const CUdevResource *input, CUdevResource *remaining, unsigned int flags,
                      unsigned int wanted)
{
    struct resource_mark mark;
    const unsigned int both = SPLIT_IGNORE_COSCHEDULING | SPLIT_MAX_CLUSTER;
    /* Measured: both flags, or room for no result, are an invalid value; other flags are not. */
    if (groups == NULL || input == NULL || (flags & both) == both ||
        (outputs != NULL && *groups == 0))
        return CUDA_ERROR_INVALID_VALUE;
    if (!resource_read(input, &mark))
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    /* Measured: an output cannot be split again. */
    if (mark.origin != RESOURCE_QUERIED)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    struct grain grain = grain_of(flags);
    /* Measured: 13.0 leaves these fields of a result 0. Assumed: later ones say the alignment. */
    struct resource_shape shape = {0, 0, 0, 0}, loose = {0, 0, 0, 0};
    if (configuration.version >= 13010) {
        shape.minimum = shape.alignment = grain.alignment;
        loose.minimum = loose.alignment = 2;
    }
    unsigned int size = granted(&grain, wanted, sm_set_count(&mark.sms)), count = 0;
    struct sm_set left = mark.sms;
    mark.split = resource_next_split();
    mark.origin = RESOURCE_BY_COUNT;
    /* Measured: no larger cluster than 8 runs on groups of 8, nor than 2 without co-scheduling. The
     * whole device as one group is as without a split. */
    mark.together = size == sm_set_count(&mark.sms) ? 0 : grain.alignment;
    for (; outputs == NULL || count < *groups; count++) {
        mark.sms = take(&left, grain.alignment, size);
        if (sm_set_count(&mark.sms) == 0)
            break;
        if (outputs != NULL)
            resource_write(&outputs[count], &mark, &shape);
    }
    if (count == 0)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    /* Documented: with no result only the number of groups is given. */
    *groups = count;
    mark.origin = RESOURCE_BY_COUNT_REST;
    mark.sms = left;
    mark.together = 2; /* measured: larger clusters do not run on what remains */
    if (outputs != NULL && remaining != NULL)
        resource_write(remaining, &mark, &loose);
    call_add(call, "groups=%u granted=%u rest=%u", count, size, sm_set_count(&left));
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
                                             const CUdevResource *input, CUdevResource *remaining,
                                             unsigned int useFlags, unsigned int minCount)
{
    struct call call = call_begin(__func__);
    call_add(&call, "flags=%u wanted=%u", useFlags, minCount);
    if (call.result == CUDA_SUCCESS)
        call.result = split(&call, result, nbGroups, input, remaining, useFlags, minCount);
    return call_end(&call, call.result);
}
