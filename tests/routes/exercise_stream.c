/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and captures. */
#include "matrix.h"

exercise_function exercise_stream_create, exercise_stream_create_with_priority,
    exercise_stream_create_green, exercise_stream_destroy, exercise_stream_set_attribute,
    exercise_stream_copy_attributes, exercise_stream_get_context_v1, exercise_stream_get_context_v2,
    exercise_stream_get_green_context, exercise_stream_get_flags, exercise_stream_get_resource,
    exercise_begin_capture_without_mode, exercise_begin_capture, exercise_begin_capture_to_graph,
    exercise_begin_recapture_to_graph, exercise_end_capture;

static const char *created(CUresult result, const CUstream *made, int priority)
{
    CUstream stream = *made;
    int found;
    unsigned flags;

    if (result != CUDA_SUCCESS)
        return problem("the program got %d", (int)result);
    CHECK(RAW(cuStreamGetPriority)(stream, &found));
    CHECK(RAW(cuStreamGetFlags)(stream, &flags));
    if (found != (enforced ? -1 : priority))
        return problem("the stream's priority is %d", found);
    if (flags != CU_STREAM_NON_BLOCKING)
        return problem("the stream's flags are %u", flags);
    return stream_problem(stream);
}

const char *exercise_stream_create(const struct row *row, void *function)
{
    CUresult (*create)(CUstream *, unsigned) = function;
    CUstream stream = NULL;

    (void)row;
    return created(create(&stream, CU_STREAM_NON_BLOCKING), &stream, 0);
}

const char *exercise_stream_create_with_priority(const struct row *row, void *function)
{
    CUresult (*create)(CUstream *, unsigned, int) = function;
    CUstream stream = NULL;

    (void)row;
    return created(create(&stream, CU_STREAM_NON_BLOCKING, -2), &stream, -2);
}

const char *exercise_stream_create_green(const struct row *row, void *function)
{
    CUresult (*create)(CUstream *, void *, unsigned, int) = function;
    CUstream stream = NULL;
    void *context = green_context();
    const char *wrong = created(create(&stream, context, CU_STREAM_NON_BLOCKING, -2), &stream, -2);

    (void)row;
    green_context_end(context);
    return wrong;
}

const char *exercise_stream_destroy(const struct row *row, void *function)
{
    CUresult (*destroy)(CUstream) = function;
    const CUresult result = destroy(fixture.stream);

    (void)row;
    return result == CUDA_SUCCESS ? NULL : problem("the program got %d", (int)result);
}

/* The program's own setting gives way to the rule's. */
const char *exercise_stream_set_attribute(const struct row *row, void *function)
{
    CUresult (*set)(CUstream, CUstreamAttrID, const CUstreamAttrValue *) = function;
    CUstreamAttrValue value = {.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT};
    CUstream stream = covered_stream();
    CUresult result;

    (void)row;
    recording.forget();
    result = set(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value);
    if (result != CUDA_SUCCESS)
        return problem("the program got %d", (int)result);
    return stream_problem(stream);
}

const char *exercise_stream_copy_attributes(const struct row *row, void *function)
{
    CUresult (*copy)(CUstream, CUstream) = function;
    CUstream to = covered_stream(), from = fixture.stream;
    CUresult result;

    (void)row;
    recording.forget();
    result = copy(to, from);
    if (result != CUDA_SUCCESS)
        return problem("the program got %d", (int)result);
    return stream_problem(to);
}

/* ---- what is asked about a stream -------------------------------------------------------------
 */

static const char *answered(CUresult result, bool right)
{
    if (result != CUDA_SUCCESS)
        return problem("the program got %d", (int)result);
    return right ? NULL : "another answer than the driver's";
}

const char *exercise_stream_get_context_v1(const struct row *row, void *function)
{
    CUresult (*get)(CUstream, CUcontext *) = function;
    CUcontext context = NULL;
    const CUresult result = get(fixture.stream, &context);

    (void)row;
    return answered(result, context == fixture.context);
}

const char *exercise_stream_get_context_v2(const struct row *row, void *function)
{
    CUresult (*get)(CUstream, CUcontext *, void **) = function;
    CUcontext context = NULL;
    void *green = &context;
    const CUresult result = get(fixture.stream, &context, &green);

    (void)row;
    return answered(result, context == fixture.context && green == NULL);
}

const char *exercise_stream_get_green_context(const struct row *row, void *function)
{
    CUresult (*get)(CUstream, void **) = function;
    void *green = &green;
    const CUresult result = get(fixture.stream, &green);

    (void)row;
    return answered(result, green == NULL);
}

const char *exercise_stream_get_flags(const struct row *row, void *function)
{
    CUresult (*get)(CUstream, unsigned *) = function;
    unsigned flags = 0;
    const CUresult result = get(fixture.stream, &flags);

    (void)row;
    return answered(result, flags == CU_STREAM_NON_BLOCKING);
}

const char *exercise_stream_get_resource(const struct row *row, void *function)
{
    CUresult (*get)(CUstream, void *, int) = function;
    union {
        int type;
        char bytes[144]; /* CUdevResource */
    } resource = {.type = 0};
    const CUresult result = get(fixture.stream, &resource, 1 /* CU_DEV_RESOURCE_TYPE_SM */);

    (void)row;
    return answered(result, resource.type == 1);
}

/* ---- captures: begun and ended by the function in question, the rest past the wrappers --------
 */

static const char *begun(CUresult result)
{
    CUgraph graph = NULL;

    if (result != CUDA_SUCCESS)
        return problem("the program got %d", (int)result);
    CHECK(RAW(cuStreamEndCapture)(fixture.stream, &graph));
    return graph == NULL ? "the capture gave no graph" : NULL;
}

const char *exercise_begin_capture_without_mode(const struct row *row, void *function)
{
    CUresult (*begin)(CUstream) = function;

    (void)row;
    return begun(begin(fixture.stream));
}

const char *exercise_begin_capture(const struct row *row, void *function)
{
    CUresult (*begin)(CUstream, CUstreamCaptureMode) = function;

    (void)row;
    return begun(begin(fixture.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
}

const char *exercise_begin_capture_to_graph(const struct row *row, void *function)
{
    CUresult (*begin)(CUstream, CUgraph, const CUgraphNode *, const void *, size_t,
                      CUstreamCaptureMode) = function;

    (void)row;
    return begun(
        begin(fixture.stream, fixture.graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
}

const char *exercise_end_capture(const struct row *row, void *function)
{
    CUresult (*end)(CUstream, CUgraph *) = function;
    CUgraph graph = NULL;
    CUresult result;

    (void)row;
    CHECK(RAW(cuStreamBeginCapture_v2)(fixture.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    result = end(fixture.stream, &graph);
    if (result != CUDA_SUCCESS)
        return problem("the program got %d", (int)result);
    return graph == NULL ? "the capture gave no graph" : NULL;
}

/* Into a graph that was captured before. */
const char *exercise_begin_recapture_to_graph(const struct row *row, void *function)
{
    CUresult (*begin)(CUstream, CUstreamCaptureMode, CUgraph, void *, void *) = function;

    (void)row;
    return begun(begin(fixture.stream, CU_STREAM_CAPTURE_MODE_RELAXED, fixture.graph, NULL, NULL));
}
