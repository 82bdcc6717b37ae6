/* SPDX-License-Identifier: Apache-2.0 */
/* The exported functions of stream capture. */
#include "captured.h"
#include "driver.h"
#include "newer.h"

static struct call stream_call(const char *name, CUstream handle, CUstream standard,
                               CUstream *stream)
{
    struct call call = call_begin(name);
    *stream = stream_of(handle, standard, true);
    call_stream(&call, handle, *stream);
    if (call.result == CUDA_SUCCESS && *stream == NULL && context_current() == NULL)
        call.result = CUDA_ERROR_INVALID_CONTEXT;
    if (call.result == CUDA_SUCCESS && *stream == NULL)
        call.result = stream_refusal(handle);
    return call;
}

static CUresult begin(const char *name, CUstream standard, CUstream handle,
                      CUstreamCaptureMode mode)
{
    CUstream stream;
    struct call call = stream_call(name, handle, standard, &stream);
    call_add(&call, "mode=%d", (int)mode);
    if (call.result == CUDA_SUCCESS)
        call.result = capture_start(stream, mode, NULL, NULL, 0);
    if (call.result == CUDA_SUCCESS)
        call_dependencies(&call, stream);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream hStream)
{
    return begin(__func__, CU_STREAM_LEGACY, hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult CUDAAPI cuStreamBeginCapture_ptsz(CUstream hStream)
{
    return begin(__func__, CU_STREAM_PER_THREAD, hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
    return begin(__func__, CU_STREAM_LEGACY, hStream, mode);
}

CUresult CUDAAPI cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode)
{
    return begin(__func__, CU_STREAM_PER_THREAD, hStream, mode);
}

static CUresult begin_to_graph(const char *name, CUstream standard, CUstream handle, CUgraph graph,
                               const CUgraphNode *dependencies, size_t count,
                               CUstreamCaptureMode mode)
{
    CUstream stream;
    struct call call = stream_call(name, handle, standard, &stream);
    call_object(&call, "graph", OBJECT_GRAPH, graph);
    call_add(&call, "mode=%d", (int)mode);
    if (call.result == CUDA_SUCCESS && !object_is(OBJECT_GRAPH, graph))
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        call.result = capture_start(stream, mode, graph, dependencies, count);
    if (call.result == CUDA_SUCCESS)
        call_dependencies(&call, stream);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                             const CUgraphNode *dependencies,
                                             const CUgraphEdgeData *dependencyData,
                                             size_t numDependencies, CUstreamCaptureMode mode)
{
    (void)dependencyData;
    return begin_to_graph(__func__, CU_STREAM_LEGACY, hStream, hGraph, dependencies,
                          numDependencies, mode);
}

CUresult CUDAAPI cuStreamBeginCaptureToGraph_ptsz(CUstream hStream, CUgraph hGraph,
                                                  const CUgraphNode *dependencies,
                                                  const CUgraphEdgeData *dependencyData,
                                                  size_t numDependencies, CUstreamCaptureMode mode)
{
    (void)dependencyData;
    return begin_to_graph(__func__, CU_STREAM_PER_THREAD, hStream, hGraph, dependencies,
                          numDependencies, mode);
}

/* Documented for 13.3: the nodes must come as they are in the graph, where mismatches are reported
 * to a callback. Simplified here: the capture adds to the graph, and nothing is compared. */
CUresult CUDAAPI cuStreamBeginRecaptureToGraph(CUstream hStream, CUstreamCaptureMode mode,
                                               CUgraph hGraph,
                                               CUgraphRecaptureCallback callbackFunc,
                                               void *userData)
{
    (void)callbackFunc;
    (void)userData;
    return begin_to_graph(__func__, CU_STREAM_LEGACY, hStream, hGraph, NULL, 0, mode);
}

CUresult CUDAAPI cuStreamBeginRecaptureToGraph_ptsz(CUstream hStream, CUstreamCaptureMode mode,
                                                    CUgraph hGraph,
                                                    CUgraphRecaptureCallback callbackFunc,
                                                    void *userData)
{
    (void)callbackFunc;
    (void)userData;
    return begin_to_graph(__func__, CU_STREAM_PER_THREAD, hStream, hGraph, NULL, 0, mode);
}

static CUresult end(const char *name, CUstream standard, CUstream handle, CUgraph *graph)
{
    CUstream stream;
    struct call call = stream_call(name, handle, standard, &stream);
    if (call.result == CUDA_SUCCESS && graph == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        call.result = capture_finish(stream, graph);
        if (call.result == CUDA_SUCCESS)
            call_object(&call, "graph", OBJECT_GRAPH, *graph);
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    return end(__func__, CU_STREAM_LEGACY, hStream, phGraph);
}

CUresult CUDAAPI cuStreamEndCapture_ptsz(CUstream hStream, CUgraph *phGraph)
{
    return end(__func__, CU_STREAM_PER_THREAD, hStream, phGraph);
}

struct capture_info {
    CUstreamCaptureStatus *status;
    cuuint64_t *id;
    CUgraph *graph;
    const CUgraphNode **dependencies;
    const CUgraphEdgeData **edges;
    size_t *count;
};

/* Documented: an error only for the legacy stream while a blocking stream captures; that question
 * does not invalidate the capture. */
static CUresult info(const char *name, CUstream standard, CUstream handle,
                     const struct capture_info *out)
{
    CUstream stream;
    struct call call = stream_call(name, handle, standard, &stream);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && out->status == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && stream->kind == STREAM_LEGACY &&
        context_root(stream->context)->capturing_blocking != 0)
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (result != CUDA_SUCCESS)
        return call_end(&call, result);
    const struct capture *capture = stream->capture;
    *out->status = capture == NULL ? CU_STREAM_CAPTURE_STATUS_NONE : capture->status;
    call_add(&call, "status=%d", (int)*out->status);
    if (*out->status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        if (out->id != NULL)
            *out->id = capture->id;
        if (out->graph != NULL)
            *out->graph = capture->graph;
        if (out->dependencies != NULL)
            *out->dependencies = stream->tail.nodes;
        if (out->edges != NULL)
            *out->edges = NULL;
        if (out->count != NULL)
            *out->count = stream->tail.count;
    }
    return call_end(&call, result);
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    struct capture_info out = {.status = captureStatus};
    return info(__func__, CU_STREAM_LEGACY, hStream, &out);
}

CUresult CUDAAPI cuStreamIsCapturing_ptsz(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    struct capture_info out = {.status = captureStatus};
    return info(__func__, CU_STREAM_PER_THREAD, hStream, &out);
}

CUresult CUDAAPI cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                        cuuint64_t *id_out)
{
    struct capture_info out = {.status = captureStatus_out, .id = id_out};
    return info(__func__, CU_STREAM_LEGACY, hStream, &out);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_ptsz(CUstream hStream,
                                             CUstreamCaptureStatus *captureStatus_out,
                                             cuuint64_t *id_out)
{
    struct capture_info out = {.status = captureStatus_out, .id = id_out};
    return info(__func__, CU_STREAM_PER_THREAD, hStream, &out);
}

#define INFO_OUT                                                                                   \
    {                                                                                              \
        .status = captureStatus_out, .id = id_out, .graph = graph_out,                             \
        .dependencies = dependencies_out, .count = numDependencies_out                             \
    }

CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream hStream,
                                           CUstreamCaptureStatus *captureStatus_out,
                                           cuuint64_t *id_out, CUgraph *graph_out,
                                           const CUgraphNode **dependencies_out,
                                           size_t *numDependencies_out)
{
    struct capture_info out = INFO_OUT;
    return info(__func__, CU_STREAM_LEGACY, hStream, &out);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v2_ptsz(CUstream hStream,
                                                CUstreamCaptureStatus *captureStatus_out,
                                                cuuint64_t *id_out, CUgraph *graph_out,
                                                const CUgraphNode **dependencies_out,
                                                size_t *numDependencies_out)
{
    struct capture_info out = INFO_OUT;
    return info(__func__, CU_STREAM_PER_THREAD, hStream, &out);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream hStream,
                                           CUstreamCaptureStatus *captureStatus_out,
                                           cuuint64_t *id_out, CUgraph *graph_out,
                                           const CUgraphNode **dependencies_out,
                                           const CUgraphEdgeData **edgeData_out,
                                           size_t *numDependencies_out)
{
    struct capture_info out = INFO_OUT;
    out.edges = edgeData_out;
    return info(__func__, CU_STREAM_LEGACY, hStream, &out);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v3_ptsz(CUstream hStream,
                                                CUstreamCaptureStatus *captureStatus_out,
                                                cuuint64_t *id_out, CUgraph *graph_out,
                                                const CUgraphNode **dependencies_out,
                                                const CUgraphEdgeData **edgeData_out,
                                                size_t *numDependencies_out)
{
    struct capture_info out = INFO_OUT;
    out.edges = edgeData_out;
    return info(__func__, CU_STREAM_PER_THREAD, hStream, &out);
}

/* Documented: an illegal state for a stream that does not capture. */
static CUresult update(const char *name, CUstream standard, CUstream handle, CUgraphNode *nodes,
                       size_t count, unsigned int flags)
{
    CUstream stream;
    struct call call = stream_call(name, handle, standard, &stream);
    call_add(&call, "nodes=%zu flags=%u", count, flags);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && stream->capture == NULL)
        result = CUDA_ERROR_ILLEGAL_STATE;
    if (result == CUDA_SUCCESS)
        result = capture_check(stream);
    if (result == CUDA_SUCCESS && flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        if (!object_is(OBJECT_NODE, nodes[i]) || nodes[i]->graph != stream->capture->graph)
            result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
            stream->tail.count = 0;
        for (size_t i = 0; i < count; i++)
            node_list_add(&stream->tail, nodes[i]);
        call_dependencies(&call, stream);
    }
    return call_end(&call, result);
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies,
                                                   size_t numDependencies, unsigned int flags)
{
    return update(__func__, CU_STREAM_LEGACY, hStream, dependencies, numDependencies, flags);
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies_ptsz(CUstream hStream, CUgraphNode *dependencies,
                                                        size_t numDependencies, unsigned int flags)
{
    return update(__func__, CU_STREAM_PER_THREAD, hStream, dependencies, numDependencies, flags);
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
                                                      const CUgraphEdgeData *dependencyData,
                                                      size_t numDependencies, unsigned int flags)
{
    (void)dependencyData;
    return update(__func__, CU_STREAM_LEGACY, hStream, dependencies, numDependencies, flags);
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream hStream,
                                                           CUgraphNode *dependencies,
                                                           const CUgraphEdgeData *dependencyData,
                                                           size_t numDependencies,
                                                           unsigned int flags)
{
    (void)dependencyData;
    return update(__func__, CU_STREAM_PER_THREAD, hStream, dependencies, numDependencies, flags);
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    struct call call = call_begin(__func__);
    if (call.result == CUDA_SUCCESS &&
        (mode == NULL || (unsigned int)*mode > CU_STREAM_CAPTURE_MODE_RELAXED))
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        *mode = capture_exchange_mode(*mode);
    return call_end(&call, call.result);
}
