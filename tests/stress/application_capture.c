/* SPDX-License-Identifier: Apache-2.0 */
/* Stream captures, those that give a graph and those that do not. */
#include "application.h"

#include <pthread.h>
#include <stddef.h>

static void tell_status(CUstream stream)
{
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)77;
    CALL(cuStreamIsCapturing, stream, &status);
    calls_tell("status %d", (int)status);
}

static void run(CUgraph graph, CUstream stream, unsigned times)
{
    CUgraphExec executable;
    size_t nodes = 0;
    CALL(cuGraphGetNodes, graph, NULL, &nodes);
    calls_tell("nodes %zu", nodes);
    if (CALL(cuGraphInstantiateWithFlags, &executable, graph, 0) != CUDA_SUCCESS)
        return;
    for (unsigned i = 0; i < times; i++)
        CALL(cuGraphLaunch, executable, stream);
    CALL(cuGraphLaunch_ptsz, executable, NULL);
    CALL(cuGraphExecDestroy, executable);
}

/* Ends a capture; runs the graph that came of it. */
static void end(CUstream stream, unsigned times)
{
    CUgraph graph = NULL;
    CUresult result = CALL(cuStreamEndCapture, stream, &graph);
    tell_status(stream);
    calls_tell("graph %s", graph == NULL ? "none" : "some");
    if (result != CUDA_SUCCESS || graph == NULL)
        return;
    run(graph, stream, times);
    CALL(cuGraphDestroy, graph);
}

static void begin(CUstream stream)
{
    CALL(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static void launch_all(struct application *application, CUstream stream)
{
    for (int i = 0; i < KERNEL_COUNT; i++)
        if (i != DELTA)
            launch_plain(application->functions[i], 8, stream);
    launch_plain((CUfunction)(void *)application->kernels[0], 8, stream);
    launch_with_domain(application->functions[ALPHA], 6, stream);
    launch_plain(application->functions[ALPHA], 0, stream);
    CALL(cuLaunchCooperativeKernel, application->functions[EPSILON], 4, 1, 1, 64, 1, 1, 0, stream,
         NULL);
}

/* Another stream joins, and launches go elsewhere meanwhile. */
static void capture_two(struct application *application)
{
    CUstream origin = application->streams[NON_BLOCKING], side = application->streams[URGENT];
    CUevent fork, join;
    CALL(cuEventCreate, &fork, CU_EVENT_DISABLE_TIMING);
    CALL(cuEventCreate, &join, CU_EVENT_DISABLE_TIMING);
    begin(origin);
    launch_plain(application->functions[ALPHA], 8, origin);
    CALL(cuEventRecord, fork, origin);
    CALL(cuStreamWaitEvent, side, fork, 0);
    launch_plain(application->functions[BETA], 8, side);
    launch_plain(application->functions[BETA], 8, application->streams[GREEN]);
    launch_plain(application->functions[ALPHA], 8, NULL);
    CALL(cuEventRecord, join, side);
    CALL(cuStreamWaitEvent, origin, join, 0);
    launch_plain(application->functions[ZETA], 8, origin);
    tell_status(side);
    end(origin, 2);
    CALL(cuEventDestroy_v2, fork);
    CALL(cuEventDestroy_v2, join);
}

static void capture_into_graph(struct application *application)
{
    CUstream stream = application->streams[NON_BLOCKING];
    CUgraph graph = NULL, same = NULL;
    CALL(cuGraphCreate, &graph, 0);
    CALL(cuStreamBeginCaptureToGraph, stream, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED);
    launch_all(application, stream);
    CALL(cuStreamEndCapture, stream, &same);
    calls_tell("the same graph %d", same == graph);
    run(graph, stream, 1);
    CALL(cuGraphDestroy, graph);
}

static void capture_per_thread(struct application *application)
{
    CUgraph graph = NULL;
    CALL(cuStreamBeginCapture_v2_ptsz, NULL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    CALL(cuLaunchKernel_ptsz, application->functions[ALPHA], 8, 1, 1, 64, 1, 1, 0, NULL, NULL,
         NULL);
    launch_plain(application->functions[BETA], 8, application->streams[NON_BLOCKING]);
    CALL(cuStreamEndCapture_ptsz, NULL, &graph);
    if (graph != NULL) {
        run(graph, application->streams[NON_BLOCKING], 1);
        CALL(cuGraphDestroy, graph);
    }
}

void application_capture(struct application *application)
{
    CUstream stream = application->streams[NON_BLOCKING];
    begin(stream);
    launch_all(application, stream);
    end(stream, 3);
    begin(application->streams[GREEN]);
    launch_all(application, application->streams[GREEN]);
    end(application->streams[GREEN], 1);
    capture_two(application);
    capture_into_graph(application);
    capture_per_thread(application);
}

/* ---- Captures that fail ------------------------------------------------------------------------
 */

static void *end_elsewhere(void *data)
{
    struct application *application = data;
    CUgraph graph;
    CALL(cuCtxSetCurrent, application->context);
    CALL(cuStreamEndCapture, application->streams[NON_BLOCKING], &graph);
    return NULL;
}

static void end_in_another_thread(struct application *application)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, end_elsewhere, application) == 0)
        pthread_join(thread, NULL);
}

static void leave_unjoined(struct application *application)
{
    CUstream origin = application->streams[NON_BLOCKING], side = application->streams[URGENT];
    CUevent fork;
    CALL(cuEventCreate, &fork, CU_EVENT_DISABLE_TIMING);
    begin(origin);
    CALL(cuEventRecord, fork, origin);
    CALL(cuStreamWaitEvent, side, fork, 0);
    launch_plain(application->functions[ALPHA], 8, side);
    end(origin, 1);
    CALL(cuEventDestroy_v2, fork);
}

void application_capture_badly(struct application *application)
{
    CUstream stream = application->streams[NON_BLOCKING], doomed = NULL;
    CUgraph graph;
    begin(stream);
    launch_plain(application->functions[ALPHA], 8, stream);
    end_in_another_thread(application);
    tell_status(stream);
    leave_unjoined(application);
    begin(stream);
    begin(stream);
    CALL(cuStreamSynchronize, stream);
    launch_plain(application->functions[ALPHA], 8, stream);
    end(stream, 1);
    begin(application->streams[BLOCKING]);
    launch_plain(application->functions[BETA], 8, NULL);
    end(application->streams[BLOCKING], 1);
    CALL(cuStreamEndCapture, stream, &graph);
    CALL(cuStreamBeginCapture_v2, NULL, CU_STREAM_CAPTURE_MODE_GLOBAL);
    CALL(cuStreamCreate, &doomed, CU_STREAM_NON_BLOCKING);
    begin(doomed);
    launch_plain(application->functions[ALPHA], 8, doomed);
    CALL(cuStreamDestroy_v2, doomed);
}
