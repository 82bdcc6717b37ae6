/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: its state, what joins it, and what breaks it. */
#include "driver.h"
#include <stdlib.h>
#include <string.h>

static unsigned long long last_id;
static unsigned int captures; /* going on now, in any thread */
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

bool node_list_add(struct node_list *list, CUgraphNode node)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->nodes[i] == node)
            return true;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 4 : 2 * list->capacity;
        CUgraphNode *nodes = realloc(list->nodes, capacity * sizeof(CUgraphNode));
        if (nodes == NULL)
            return false;
        list->nodes = nodes;
        list->capacity = capacity;
    }
    list->nodes[list->count++] = node;
    return true;
}

void node_list_clear(struct node_list *list)
{
    free(list->nodes);
    memset(list, 0, sizeof(*list));
}

bool node_list_copy(struct node_list *to, const struct node_list *from)
{
    node_list_clear(to);
    for (size_t i = 0; i < from->count; i++)
        if (!node_list_add(to, from->nodes[i]))
            return false;
    return true;
}

static bool blocking(CUstream stream)
{
    return stream->kind != STREAM_CREATED || (stream->flags & CU_STREAM_NON_BLOCKING) == 0;
}

/* A capturing stream counts in its context and, of a green one, in the device's primary too. */
static void count(CUstream stream, int by)
{
    CUcontext context = stream->context, root = context_root(context);
    root->capturing += (unsigned int)by;
    if (context != root)
        context->capturing += (unsigned int)by;
    if (blocking(stream))
        root->capturing_blocking += (unsigned int)by;
}

static void enter(CUstream stream, struct capture *capture)
{
    stream->capture = capture;
    capture->references++;
    count(stream, 1);
}

void capture_leave(CUstream stream)
{
    struct capture *capture = stream->capture;
    stream->capture = NULL;
    node_list_clear(&stream->tail);
    count(stream, -1);
    if (capture->origin == stream)
        capture->origin = NULL;
    if (--capture->references != 0) {
        /* The origin was destroyed: what is left can never be ended. */
        if (capture->origin == NULL)
            capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        return;
    }
    captures--;
    if (capture->own_graph && capture->graph != NULL)
        graph_free(capture->graph);
    free(capture);
}

void capture_invalidate(CUstream stream)
{
    if (stream->capture != NULL)
        stream->capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

/* The next stream that captures. */
static CUstream next_capturing(CUstream previous)
{
    CUstream stream = previous;
    if (stream == NULL || stream->kind == STREAM_CREATED) {
        while ((stream = object_next(OBJECT_STREAM, stream)) != NULL)
            if (stream->capture != NULL)
                return stream;
    }
    while ((stream = object_next(OBJECT_DEFAULT_STREAM, stream)) != NULL)
        if (stream->capture != NULL)
            return stream;
    return NULL;
}

CUresult capture_check(CUstream stream)
{
    if (stream->capture != NULL)
        return stream->capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED
                   ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED /* measured */
                   : CUDA_SUCCESS;
    /* Documented: work in the legacy stream would depend on what a blocking stream captures. */
    CUcontext context = context_root(stream->context);
    /* Measured: the NULL stream of a green context waits for nobody. */
    if (stream->kind != STREAM_LEGACY || stream->context->green != NULL ||
        context->capturing_blocking == 0)
        return CUDA_SUCCESS;
    for (CUstream other = next_capturing(NULL); other != NULL; other = next_capturing(other))
        if (blocking(other) && context_root(other->context) == context)
            capture_invalidate(other);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

CUresult capture_check_legacy(CUstream stream)
{
    return stream->kind == STREAM_LEGACY ? capture_check(stream) : CUDA_SUCCESS;
}

CUresult capture_check_idle(CUstream stream)
{
    CUresult result = capture_check(stream);
    if (result != CUDA_SUCCESS || stream->capture == NULL)
        return result;
    capture_invalidate(stream);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

void capture_invalidate_context(CUcontext context)
{
    for (CUstream stream = next_capturing(NULL); stream != NULL; stream = next_capturing(stream))
        if (stream->context == context)
            capture_invalidate(stream);
}

CUresult capture_unsafe_call(void)
{
    CUresult result = CUDA_SUCCESS;
    if (captures == 0 || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    unsigned int thread = thread_ordinal();
    for (CUstream stream = next_capturing(NULL); stream != NULL; stream = next_capturing(stream)) {
        const struct capture *capture = stream->capture;
        bool mine = capture->thread == thread && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool global = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                      thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (!mine && !global)
            continue;
        capture_invalidate(stream);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

CUresult capture_node(CUstream stream, CUgraphNodeType type, CUgraphNode *node)
{
    *node = graph_add(stream->capture->graph, type, stream->tail.nodes, stream->tail.count);
    if (*node == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stream->tail.count = 0;
    return node_list_add(&stream->tail, *node) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void capture_event(CUstream stream, CUevent event)
{
    event->capture_id = 0;
    node_list_clear(&event->nodes);
    if (stream->capture != NULL) {
        event->capture_id = stream->capture->id;
        node_list_copy(&event->nodes, &stream->tail);
    }
}

/* Documented: waiting for an event of a capture makes the stream part of that capture. */
CUresult capture_join(CUstream stream, CUevent event)
{
    if (event->capture_id == 0) {
        if (stream->capture == NULL)
            return CUDA_SUCCESS;
        /* Documented: a dependency on uncaptured work crosses the capture's boundary. */
        if (event->recorded == 0)
            return CUDA_SUCCESS;
        capture_invalidate(stream);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    struct capture *source = NULL;
    for (CUstream other = next_capturing(NULL); other != NULL && source == NULL;
         other = next_capturing(other))
        if (other->capture->id == event->capture_id)
            source = other->capture;
    if (source == NULL)
        return CUDA_ERROR_CAPTURED_EVENT; /* documented: the capture has ended */
    if (source->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->capture != NULL && stream->capture != source) {
        capture_invalidate(stream);
        source->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (stream->kind == STREAM_LEGACY)
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (stream->capture == NULL)
        enter(stream, source);
    for (size_t i = 0; i < event->nodes.count; i++)
        if (!node_list_add(&stream->tail, event->nodes.nodes[i]))
            return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

CUresult capture_start(CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
                       const CUgraphNode *dependencies, size_t number)
{
    if ((unsigned int)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    /* Documented: the legacy stream cannot capture, and none can twice at a time. */
    if (stream->kind == STREAM_LEGACY)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture != NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    struct capture *capture = calloc(1, sizeof(*capture));
    if (capture == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    capture->own_graph = graph == NULL;
    capture->graph = graph == NULL ? graph_new() : graph;
    if (capture->graph == NULL) {
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture->mode = mode;
    capture->status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    capture->id = ++last_id;
    capture->thread = thread_ordinal();
    capture->origin = stream;
    captures++;
    enter(stream, capture);
    for (size_t i = 0; i < number; i++)
        node_list_add(&stream->tail, dependencies[i]);
    return CUDA_SUCCESS;
}

static bool reaches(const struct node_list *from, CUgraphNode node)
{
    for (size_t i = 0; i < from->count; i++)
        if (from->nodes[i] == node || reaches(&from->nodes[i]->dependencies, node))
            return true;
    return false;
}

/* Documented: every stream of the capture must have been joined to the one it began in. */
static bool joined(const struct capture *capture)
{
    for (CUstream stream = next_capturing(NULL); stream != NULL; stream = next_capturing(stream)) {
        if (stream->capture != capture || stream == capture->origin)
            continue;
        for (size_t i = 0; i < stream->tail.count; i++)
            if (!reaches(&capture->origin->tail, stream->tail.nodes[i]))
                return false;
    }
    return true;
}

CUresult capture_finish(CUstream stream, CUgraph *graph)
{
    struct capture *capture = stream->capture;
    if (capture == NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    CUresult result = CUDA_SUCCESS;
    /* Measured: errors 904 and 908 end the capture, too. */
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != thread_ordinal())
        result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    else if (capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED; /* measured: 901, and no graph */
    else if (!joined(capture))
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    *graph = result == CUDA_SUCCESS ? capture->graph : NULL;
    if (result == CUDA_SUCCESS)
        capture->own_graph = false; /* it is the application's now */
    capture->references++;          /* keeps it through the loop */
    for (CUstream other = next_capturing(NULL); other != NULL; other = next_capturing(other))
        if (other->capture == capture && other != stream)
            capture_leave(other);
    capture->references--;
    capture_leave(stream);
    return result;
}

CUstreamCaptureMode capture_exchange_mode(CUstreamCaptureMode mode)
{
    CUstreamCaptureMode before = thread_mode;
    thread_mode = mode;
    return before;
}
