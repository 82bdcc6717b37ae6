/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, capture and events: each call is one driver call. */
#include "runtime.h"

cudaError_t CUDARTAPI cudaStreamCreate(cudaStream_t *pStream)
{
    FORWARD(cuStreamCreate, pStream, CU_STREAM_DEFAULT);
}

cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
    FORWARD(cuStreamCreate, pStream, flags);
}

cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags,
                                                   int priority)
{
    FORWARD(cuStreamCreateWithPriority, pStream, flags, priority);
}

cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t stream)
{
    FORWARD(cuStreamDestroy, stream);
}

/* A function and its per-thread form, each through the pointer of its own flags. */
#define TWO_FORMS(name, parameters, function, ...)                                                 \
    cudaError_t CUDARTAPI name parameters                                                          \
    {                                                                                              \
        FORWARD(function, __VA_ARGS__);                                                            \
    }                                                                                              \
    cudaError_t CUDARTAPI name##_ptsz parameters                                                   \
    {                                                                                              \
        FORWARD(function##_ptsz, __VA_ARGS__);                                                     \
    }

TWO_FORMS(cudaStreamSynchronize, (cudaStream_t stream), cuStreamSynchronize, stream)
TWO_FORMS(cudaStreamQuery, (cudaStream_t stream), cuStreamQuery, stream)
TWO_FORMS(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
          cuStreamWaitEvent, stream, event, flags)
TWO_FORMS(cudaStreamGetPriority, (cudaStream_t hStream, int *priority), cuStreamGetPriority,
          hStream, priority)
TWO_FORMS(cudaStreamGetFlags, (cudaStream_t hStream, unsigned int *flags), cuStreamGetFlags,
          hStream, flags)
TWO_FORMS(cudaStreamGetId, (cudaStream_t hStream, unsigned long long *streamId), cuStreamGetId,
          hStream, streamId)
TWO_FORMS(cudaStreamCopyAttributes, (cudaStream_t dst, cudaStream_t src), cuStreamCopyAttributes,
          dst, src)

/* Ids and values of the two attribute types are the same. */
TWO_FORMS(cudaStreamGetAttribute,
          (cudaStream_t hStream, cudaStreamAttrID attr, cudaStreamAttrValue *value_out),
          cuStreamGetAttribute, hStream, (CUstreamAttrID)attr,
          (CUstreamAttrValue *)(void *)value_out)
TWO_FORMS(cudaStreamSetAttribute,
          (cudaStream_t hStream, cudaStreamAttrID attr, const cudaStreamAttrValue *value),
          cuStreamSetAttribute, hStream, (CUstreamAttrID)attr,
          (const CUstreamAttrValue *)(const void *)value)

TWO_FORMS(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
          cuStreamBeginCapture, stream, (CUstreamCaptureMode)mode)
TWO_FORMS(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *pGraph), cuStreamEndCapture,
          stream, pGraph)
TWO_FORMS(cudaStreamIsCapturing,
          (cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus), cuStreamIsCapturing,
          stream, (CUstreamCaptureStatus *)(void *)pCaptureStatus)

#if RUNTIME_MAJOR >= 13 && CUDART_VERSION >= 13000
TWO_FORMS(cudaStreamBeginCaptureToGraph,
          (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
           const cudaGraphEdgeData *dependencyData, size_t numDependencies,
           enum cudaStreamCaptureMode mode),
          cuStreamBeginCaptureToGraph, stream, graph, dependencies,
          (const CUgraphEdgeData *)(const void *)dependencyData, numDependencies,
          (CUstreamCaptureMode)mode)
TWO_FORMS(cudaStreamGetCaptureInfo,
          (cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
           unsigned long long *id_out, cudaGraph_t *graph_out,
           const cudaGraphNode_t **dependencies_out, const cudaGraphEdgeData **edgeData_out,
           size_t *numDependencies_out),
          cuStreamGetCaptureInfo, stream, (CUstreamCaptureStatus *)(void *)captureStatus_out,
          (cuuint64_t *)(void *)id_out, graph_out, dependencies_out,
          (const CUgraphEdgeData **)(void *)edgeData_out, numDependencies_out)
TWO_FORMS(cudaStreamUpdateCaptureDependencies,
          (cudaStream_t stream, cudaGraphNode_t *dependencies,
           const cudaGraphEdgeData *dependencyData, size_t numDependencies, unsigned int flags),
          cuStreamUpdateCaptureDependencies, stream, dependencies,
          (const CUgraphEdgeData *)(const void *)dependencyData, numDependencies, flags)
#endif

cudaError_t CUDARTAPI cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    FORWARD(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)(void *)mode);
}

cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t *event)
{
    FORWARD(cuEventCreate, event, CU_EVENT_DEFAULT);
}

cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    FORWARD(cuEventCreate, event, flags);
}

cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t event)
{
    FORWARD(cuEventDestroy, event);
}

cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t event)
{
    FORWARD(cuEventSynchronize, event);
}

cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t event)
{
    FORWARD(cuEventQuery, event);
}

cudaError_t CUDARTAPI cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    FORWARD(cuEventElapsedTime, ms, start, end);
}

TWO_FORMS(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), cuEventRecord, event, stream)
TWO_FORMS(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
          cuEventRecordWithFlags, event, stream, flags)
