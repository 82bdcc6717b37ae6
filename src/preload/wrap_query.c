/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program asks about its streams. A stream that was made on a partition lives in a green
 * context; the program is told what it would have been told of the stream that it asked for, since
 * programs compare contexts and hand them on. The driver is asked first, so its errors are the
 * program's.
 */
#include "preload/wrap.h"

#include "cuda/interface.h"
#include "decide/decide.h"

static void count(const struct preload_slot *slot)
{
    report_count_entry(preload_slot_entry(slot));
}

static CUresult stream_get_context_v1(const struct preload_slot *slot, const void *caller,
                                      CUstream stream, CUcontext *context)
{
    CUresult (*real)(CUstream, CUcontext *) = wrap_real(slot);
    const CUresult result = real(stream, context);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS && context != NULL)
        decide_stream_asked(stream, context, NULL, NULL);
    return result;
}

static CUresult stream_get_context_v2(const struct preload_slot *slot, const void *caller,
                                      CUstream stream, CUcontext *context, void **green)
{
    CUresult (*real)(CUstream, CUcontext *, void **) = wrap_real(slot);
    const CUresult result = real(stream, context, green);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS && decide_stream_asked(stream, context, NULL, NULL) && green != NULL)
        *green = NULL;
    return result;
}

static CUresult stream_get_green_context(const struct preload_slot *slot, const void *caller,
                                         CUstream stream, void **green)
{
    CUresult (*real)(CUstream, void **) = wrap_real(slot);
    const CUresult result = real(stream, green);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS && green != NULL && decide_stream_asked(stream, NULL, NULL, NULL))
        *green = NULL;
    return result;
}

static CUresult stream_get_flags(const struct preload_slot *slot, const void *caller,
                                 CUstream stream, unsigned *flags)
{
    CUresult (*real)(CUstream, unsigned *) = wrap_real(slot);
    const CUresult result = real(stream, flags);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS && flags != NULL)
        decide_stream_asked(stream, NULL, flags, NULL);
    return result;
}

static CUresult stream_get_resource(const struct preload_slot *slot, const void *caller,
                                    CUstream stream, void *resource, int type)
{
    CUresult (*real)(CUstream, void *, int) = wrap_real(slot);
    const CUresult result = real(stream, resource, type);
    int device;

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS && type == CUDA_RESOURCE_TYPE_SM &&
        cuda_driver.cuDeviceGetDevResource != NULL &&
        decide_stream_asked(stream, NULL, NULL, &device))
        return cuda_driver.cuDeviceGetDevResource(device, resource, type);
    return result;
}

#define QUERY(symbol, base, version, variant, wrapper, parameters, arguments)                      \
    WRAP_DRIVER(symbol, wrapper, parameters, arguments)
#include "preload/entries.def"
