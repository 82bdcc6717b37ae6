/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and captures. The real call's result is the program's result, always. */
#include "preload/wrap.h"

#include "decide/decide.h"
#include "place/partition.h"
#include "preload/control.h"

/* Which real function creates a stream, and what it needs besides what the program asked for. */
struct creation {
    CUresult (*plain)(CUstream *, unsigned);
    CUresult (*with_priority)(CUstream *, unsigned, int);
    CUresult (*green)(CUstream *, void *, unsigned, int);
    void *green_context;
};

/* On the partition that a rule names; the driver may refuse that. */
static bool create_on_partition(CUstream *stream, struct decide_stream_request *request,
                                int priority)
{
    CUresult result;

    request->place = decide_stream_place(request);
    if (request->place.partition == NULL)
        return false;
    result = stream == NULL ? CUDA_ERROR_INVALID_VALUE
                            : place_partition_stream(request->place.partition, priority, stream);
    if (result == CUDA_SUCCESS)
        return true;
    request->place = (struct decide_stream_place){.reason = REPORT_REASON_REFUSED_BY_DRIVER,
                                                  .result = (uint32_t)result};
    return false;
}

static CUresult call_creation(const struct creation *creation, CUstream *stream, unsigned flags,
                              int priority, bool priority_given)
{
    if (creation->green != NULL)
        return creation->green(stream, creation->green_context, flags, priority);
    if (priority_given && creation->with_priority != NULL)
        return creation->with_priority(stream, flags, priority);
    return creation->plain(stream, flags);
}

/* A rule's priority is given at creation, so that the stream answers with it; when the driver
 * refuses that, the stream is created as the program asked. */
static CUresult create(const struct preload_slot *slot, const void *caller, CUstream *stream,
                       unsigned flags, int priority, bool priority_given,
                       const struct creation *creation)
{
    struct decide_stream_request request = {.flags = flags,
                                            .priority = priority,
                                            .priority_given = priority_given,
                                            .green = creation->green != NULL,
                                            .library = preload_library(caller)};
    CUresult result;
    int wanted;

    report_count_entry(preload_slot_entry(slot));
    preload_driver_calls++;
    preload_gather_facts();
    preload_control_look();
    request.rules = decide_rules_in_force();
    wanted = decide_stream_priority(&request);
    if (create_on_partition(stream, &request, wanted)) {
        decide_stream_created(*stream, &request);
        return CUDA_SUCCESS;
    }
    if (creation->green == NULL && creation->with_priority == NULL)
        wanted = priority; /* a driver that has no call for it */
    result = call_creation(creation, stream, flags, wanted, priority_given || wanted != priority);
    if (result != CUDA_SUCCESS && wanted != priority)
        result = call_creation(creation, stream, flags, priority, priority_given);
    if (result == CUDA_SUCCESS)
        decide_stream_created(*stream, &request);
    return result;
}

static CUresult stream_create(const struct preload_slot *slot, const void *caller, CUstream *stream,
                              unsigned flags)
{
    const struct creation creation = {
        .plain = wrap_real(slot),
        .with_priority = preload_canonical(ENTRY_cuStreamCreateWithPriority),
    };

    return create(slot, caller, stream, flags, 0, false, &creation);
}

static CUresult stream_create_with_priority(const struct preload_slot *slot, const void *caller,
                                            CUstream *stream, unsigned flags, int priority)
{
    const struct creation creation = {.with_priority = wrap_real(slot)};

    return create(slot, caller, stream, flags, priority, true, &creation);
}

static CUresult stream_create_green(const struct preload_slot *slot, const void *caller,
                                    CUstream *stream, void *context, unsigned flags, int priority)
{
    const struct creation creation = {.green = wrap_real(slot), .green_context = context};

    return create(slot, caller, stream, flags, priority, true, &creation);
}

/* The registry forgets the stream first: the handle may serve another stream as soon as the real
 * call has begun. */
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
    CUresult result = real(to, from);

    (void)caller;
    report_count_entry(preload_slot_entry(slot));
    if (result == CUDA_ERROR_INVALID_VALUE &&
        decide_stream_copied_by_hand(to, from, wrap_per_thread(slot)))
        result = CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        decide_stream_attributes_copied(to, from, wrap_per_thread(slot));
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

static CUresult begin_recapture_to_graph(const struct preload_slot *slot, const void *caller,
                                         CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
                                         void *callback, void *data)
{
    CUresult (*real)(CUstream, CUstreamCaptureMode, CUgraph, void *, void *) = wrap_real(slot);

    (void)caller;
    return began(slot, stream, real(stream, mode, graph, callback, data));
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
