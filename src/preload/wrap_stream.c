/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and captures. The real call's result is the program's result, always. */
#include "preload/wrap.h"

#include "decide/decide.h"

static inline void enter(const struct preload_slot *slot)
{
    report_count_entry(preload_slot_entry(slot));
    preload_driver_calls++;
    preload_gather_facts();
}

static CUresult stream_create(const struct preload_slot *slot, const void *caller, CUstream *stream,
                              unsigned flags)
{
    CUresult (*real)(CUstream *, unsigned) = wrap_real(slot);
    CUresult (*with_priority)(CUstream *, unsigned, int) = NULL;
    const struct decide_stream_request request = {.flags = flags, .library = preload_library(caller)};
    CUresult result;
    int priority;

    enter(slot);
    priority = decide_stream_priority(&request);
    if (priority != request.priority)
        with_priority = preload_canonical(ENTRY_cuStreamCreateWithPriority);
    result = with_priority != NULL ? with_priority(stream, flags, priority) : real(stream, flags);
    if (result != CUDA_SUCCESS && with_priority != NULL)
        result = real(stream, flags);
    if (result == CUDA_SUCCESS)
        decide_stream_created(*stream, &request);
    return result;
}

static CUresult stream_create_with_priority(const struct preload_slot *slot, const void *caller,
                                            CUstream *stream, unsigned flags, int priority)
{
    CUresult (*real)(CUstream *, unsigned, int) = wrap_real(slot);
    const struct decide_stream_request request = {.flags = flags,
                                                  .priority = priority,
                                                  .priority_given = true,
                                                  .library = preload_library(caller)};
    CUresult result;
    int wanted;

    enter(slot);
    wanted = decide_stream_priority(&request);
    result = real(stream, flags, wanted);
    if (result != CUDA_SUCCESS && wanted != priority)
        result = real(stream, flags, priority);
    if (result == CUDA_SUCCESS)
        decide_stream_created(*stream, &request);
    return result;
}

static CUresult stream_create_green(const struct preload_slot *slot, const void *caller,
                                    CUstream *stream, void *context, unsigned flags, int priority)
{
    CUresult (*real)(CUstream *, void *, unsigned, int) = wrap_real(slot);
    const struct decide_stream_request request = {.flags = flags,
                                                  .priority = priority,
                                                  .priority_given = true,
                                                  .library = preload_library(caller)};
    CUresult result;
    int wanted;

    enter(slot);
    wanted = decide_stream_priority(&request);
    result = real(stream, context, flags, wanted);
    if (result != CUDA_SUCCESS && wanted != priority)
        result = real(stream, context, flags, priority);
    if (result == CUDA_SUCCESS)
        decide_stream_created(*stream, &request);
    return result;
}

/* The registry forgets the stream first: the handle may serve another stream as soon as the real call
 * has begun. */
static CUresult stream_destroy(const struct preload_slot *slot, const void *caller, CUstream stream)
{
    CUresult (*real)(CUstream) = wrap_real(slot);

    (void)caller;
    report_count_entry(preload_slot_entry(slot));
    decide_stream_gone(stream);
    return real(stream);
}

static CUresult stream_set_attribute(const struct preload_slot *slot, const void *caller,
                                     CUstream stream, CUstreamAttrID attribute,
                                     const CUstreamAttrValue *value)
{
    CUresult (*real)(CUstream, CUstreamAttrID, const CUstreamAttrValue *) = wrap_real(slot);
    const CUresult result = real(stream, attribute, value);

    (void)caller;
    report_count_entry(preload_slot_entry(slot));
    if (result == CUDA_SUCCESS)
        decide_stream_attribute_set(stream, wrap_per_thread(slot), (int)attribute);
    return result;
}

static CUresult stream_copy_attributes(const struct preload_slot *slot, const void *caller,
                                       CUstream to, CUstream from)
{
    CUresult (*real)(CUstream, CUstream) = wrap_real(slot);
    const CUresult result = real(to, from);

    (void)caller;
    report_count_entry(preload_slot_entry(slot));
    if (result == CUDA_SUCCESS)
        decide_stream_attribute_set(to, wrap_per_thread(slot), -1);
    return result;
}

static CUresult began(const struct preload_slot *slot, CUstream stream, CUresult result)
{
    report_count_entry(preload_slot_entry(slot));
    if (result == CUDA_SUCCESS)
        decide_capture_began(stream, wrap_per_thread(slot));
    return result;
}

static CUresult begin_capture_without_mode(const struct preload_slot *slot, const void *caller,
                                           CUstream stream)
{
    CUresult (*real)(CUstream) = wrap_real(slot);

    (void)caller;
    return began(slot, stream, real(stream));
}

static CUresult begin_capture(const struct preload_slot *slot, const void *caller, CUstream stream,
                              CUstreamCaptureMode mode)
{
    CUresult (*real)(CUstream, CUstreamCaptureMode) = wrap_real(slot);

    (void)caller;
    return began(slot, stream, real(stream, mode));
}

static CUresult begin_capture_to_graph(const struct preload_slot *slot, const void *caller,
                                       CUstream stream, CUgraph graph,
                                       const CUgraphNode *dependencies, const void *edges,
                                       size_t count, CUstreamCaptureMode mode)
{
    CUresult (*real)(CUstream, CUgraph, const CUgraphNode *, const void *, size_t,
                     CUstreamCaptureMode) = wrap_real(slot);

    (void)caller;
    return began(slot, stream, real(stream, graph, dependencies, edges, count, mode));
}

static CUresult end_capture(const struct preload_slot *slot, const void *caller, CUstream stream,
                            CUgraph *graph)
{
    CUresult (*real)(CUstream, CUgraph *) = wrap_real(slot);
    const CUresult result = real(stream, graph);

    (void)caller;
    report_count_entry(preload_slot_entry(slot));
    decide_capture_ended(stream, wrap_per_thread(slot));
    return result;
}

#define STREAM(symbol, base, version, variant, wrapper, parameters, arguments)                     \
    WRAP_DRIVER(symbol, wrapper, parameters, arguments)
#define CAPTURE(symbol, base, version, variant, wrapper, parameters, arguments)                    \
    WRAP_DRIVER(symbol, wrapper, parameters, arguments)
#include "preload/entries.def"
