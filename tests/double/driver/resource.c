/* SPDX-License-Identifier: Apache-2.0 */
/* Resources of SMs: asking for them, and descriptors made of them. */
#include "resource.h"
#include "newer.h"
#include <string.h>

_Static_assert(sizeof(struct resource) == sizeof(CUdevResource), "size of CUdevResource");
_Static_assert(offsetof(struct resource, count) == offsetof(CUdevResource, sm), "its union");
_Static_assert(sizeof(struct resource_group) == sizeof(CU_DEV_SM_RESOURCE_GROUP_PARAMS),
               "size of CU_DEV_SM_RESOURCE_GROUP_PARAMS");
_Static_assert(sizeof(struct resource_mark) <= sizeof(((struct resource *)0)->padding), "mark");
#if CUDA_VERSION >= 13000
_Static_assert(offsetof(struct resource, alignment) ==
                   offsetof(CUdevResource, sm.smCoscheduledAlignment),
               "alignment");
#endif
#if CUDA_VERSION >= 13010
_Static_assert(offsetof(struct resource, flags) == offsetof(CUdevResource, sm.flags), "flags");
_Static_assert(offsetof(struct resource, next) == offsetof(CUdevResource, nextResource), "next");
_Static_assert(offsetof(struct resource_group, flags) ==
                   offsetof(CU_DEV_SM_RESOURCE_GROUP_PARAMS, flags),
               "flags of a group");
#endif
#if CUDA_VERSION >= 13040
_Static_assert(offsetof(struct resource, domain) == offsetof(CUdevResource, sm.localityDomainId),
               "domain");
_Static_assert(offsetof(struct resource_group, domain) ==
                   offsetof(CU_DEV_SM_RESOURCE_GROUP_PARAMS, localityDomainId),
               "domain of a group");
_Static_assert(GROUP_LOCALITY_DOMAIN == (int)CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID, "flag");
#endif

#define MARK_MAGIC 0x4d534752u

unsigned int resource_next_split(void)
{
    static unsigned int splits;
    return ++splits;
}

bool resource_read(const CUdevResource *resource, struct resource_mark *mark)
{
    const struct resource *own = (const void *)resource;
    memcpy(mark, own->padding, sizeof(*mark));
    return own->type == CU_DEV_RESOURCE_TYPE_SM && mark->magic == MARK_MAGIC;
}

struct resource_shape resource_standard(void)
{
    struct resource_shape shape = {(uint32_t)configuration.partition_minimum,
                                   (uint32_t)configuration.partition_alignment, 0, 0};
    return shape;
}

void resource_write(CUdevResource *resource, const struct resource_mark *mark,
                    const struct resource_shape *shape)
{
    struct resource *own = (void *)resource;
    memset(own, 0, sizeof(*own));
    own->count = sm_set_count(&mark->sms);
    if (own->count == 0)
        return;
    own->type = CU_DEV_RESOURCE_TYPE_SM;
    /* An older driver leaves alone what its headers did not name. */
    if (configuration.version >= 13000) {
        own->minimum = shape->minimum;
        own->alignment = shape->alignment;
    }
    if (configuration.version >= 13010)
        own->flags = shape->flags;
    if (configuration.version >= 13040)
        own->domain = shape->domain;
    struct resource_mark marked = *mark;
    marked.magic = MARK_MAGIC;
    memcpy(own->padding, &marked, sizeof(marked));
}

/* --- questions ------------------------------------------------------------------------------- */

/* Fills a question's answer in and ends its call. `context` is NULL for the whole device. */
static CUresult answer(struct call *call, int device, CUcontext context, CUdevResource *resource,
                       CUdevResourceType type)
{
    CUresult result = call->result;
    call_add(call, "type=%d", (int)type);
    if (result == CUDA_SUCCESS && resource == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    /* Measured: there are no work queues before 13.1. They are not modelled in later ones. */
    if (result == CUDA_SUCCESS && type != CU_DEV_RESOURCE_TYPE_SM)
        result = CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (result == CUDA_SUCCESS) {
        struct resource_mark mark = {.device = device, .origin = RESOURCE_QUERIED};
        struct resource_shape shape = resource_standard();
        mark.sms = context == NULL ? device_sms() : context_sms(context);
        if (context != NULL && context->green != NULL) {
            shape = context->green->shape;
            mark.together = context->green->together;
        }
        resource_write(resource, &mark, &shape);
        call_sms(call, &mark.sms);
    }
    return call_end(call, result);
}

CUresult CUDAAPI cuDeviceGetDevResource(CUdevice device, CUdevResource *resource,
                                        CUdevResourceType type)
{
    struct call call = call_begin(__func__);
    call_add(&call, "device=%d", device);
    if (call.result == CUDA_SUCCESS && !device_is(device))
        call.result = CUDA_ERROR_INVALID_DEVICE;
    return answer(&call, device, NULL, resource, type);
}

CUresult CUDAAPI cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource,
                                     CUdevResourceType type)
{
    struct call call = call_begin(__func__);
    bool exists = context_is(hCtx);
    call_context(&call, hCtx);
    if (call.result == CUDA_SUCCESS && !exists)
        call.result = CUDA_ERROR_INVALID_CONTEXT;
    return answer(&call, exists ? hCtx->device : 0, hCtx, resource, type);
}

CUresult CUDAAPI cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource,
                                          CUdevResourceType type)
{
    struct call call = call_begin(__func__);
    bool exists = object_is(OBJECT_GREEN_CONTEXT, hCtx);
    call_object(&call, "green_context", OBJECT_GREEN_CONTEXT, hCtx);
    if (call.result == CUDA_SUCCESS && !exists)
        call.result = object_was(OBJECT_GREEN_CONTEXT, hCtx) ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                             : CUDA_ERROR_INVALID_CONTEXT;
    return answer(&call, exists ? hCtx->device : 0, exists ? hCtx->context : NULL, resource, type);
}

/* Assumed: a capturing stream may be asked, as for its context. */
static CUresult of_stream(const char *name, CUstream standard, CUstream handle,
                          CUdevResource *resource, CUdevResourceType type)
{
    struct call call = call_begin(name);
    CUstream stream = stream_of(handle, standard, true);
    call_stream(&call, handle, stream);
    if (call.result == CUDA_SUCCESS && context_current() == NULL && stream == NULL)
        call.result = CUDA_ERROR_INVALID_CONTEXT;
    if (call.result == CUDA_SUCCESS && stream == NULL)
        call.result = stream_refusal(handle);
    if (call.result == CUDA_SUCCESS)
        call.result = capture_check_legacy(stream);
    CUcontext context = stream == NULL ? NULL : stream->context;
    return answer(&call, context == NULL ? 0 : context->device, context, resource, type);
}

CUresult CUDAAPI cuStreamGetDevResource(CUstream hStream, CUdevResource *resource,
                                        CUdevResourceType type)
{
    return of_stream(__func__, CU_STREAM_LEGACY, hStream, resource, type);
}

CUresult CUDAAPI cuStreamGetDevResource_ptsz(CUstream hStream, CUdevResource *resource,
                                             CUdevResourceType type)
{
    return of_stream(__func__, CU_STREAM_PER_THREAD, hStream, resource, type);
}

/* --- descriptors ----------------------------------------------------------------------------- */

/* Documented: a 12.4 driver takes one resource alone, later ones several that come from one split
 * (results and remainder); since 13.1 with the same alignment, since 13.4 of the same domain.
 * Measured: 13.0 does not look at that, only at the device (915). Assumed: 13.1 does. */
static CUresult fits(const CUdevResource *first, const CUdevResource *other)
{
    const struct resource *one = (const void *)first, *two = (const void *)other;
    struct resource_mark a, b;
    resource_read(first, &a);
    resource_read(other, &b);
    bool same = a.device == b.device;
    if (configuration.version >= 13010)
        same = same && a.split == b.split && a.split != 0 && one->alignment == two->alignment;
    if (configuration.version >= 13040)
        same = same && one->domain == two->domain;
    return same ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

static CUresult describe(CUdevResourceDesc *out, const CUdevResource *resources, unsigned int count)
{
    struct resource_mark mark;
    struct CUdevResourceDesc_st all;
    memset(&all, 0, sizeof(all));
    if (out == NULL || resources == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (count != 1 && configuration.version < 12050)
        return CUDA_ERROR_INVALID_VALUE; /* the code is assumed */
    for (unsigned int i = 0; i < count; i++) {
        const struct resource *own = (const void *)&resources[i];
        if (!resource_read(&resources[i], &mark))
            return CUDA_ERROR_INVALID_RESOURCE_TYPE;
        CUresult result = i == 0 ? CUDA_SUCCESS : fits(&resources[0], &resources[i]);
        if (result != CUDA_SUCCESS)
            return result;
        all.device = mark.device;
        all.shape = (struct resource_shape){own->minimum, own->alignment, own->flags, own->domain};
        sm_set_unite(&all.sms, &mark.sms);
        if (mark.together != 2)
            sm_set_unite(&all.grouped, &mark.sms);
        if (i == 0 || mark.together == 0 || (all.together != 0 && mark.together > all.together))
            all.together = mark.together;
    }
    /* Measured: results of the split by count say nothing of alignment, their context does. */
    if (all.together != 0)
        all.shape.minimum = all.shape.alignment = all.together;
    else
        all.shape = resource_standard();
    CUdevResourceDesc description = object_new(OBJECT_DESCRIPTION);
    if (description == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    description->device = all.device;
    description->sms = all.sms;
    description->grouped = all.grouped;
    description->together = all.together;
    description->shape = all.shape;
    *out = description;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources,
                                           unsigned int nbResources)
{
    struct call call = call_begin(__func__);
    call_add(&call, "resources=%u", nbResources);
    if (call.result == CUDA_SUCCESS)
        call.result = describe(phDesc, resources, nbResources);
    if (call.result == CUDA_SUCCESS) {
        call_object(&call, "description", OBJECT_DESCRIPTION, *phDesc);
        call_sms(&call, &(*phDesc)->sms);
    }
    return call_end(&call, call.result);
}
