/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/capture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "decide/stream_default.h"
#include "report/log.h"
#include "report/report.h"

/* A capture, by the stream at which it began. */
struct capture {
    uintptr_t key;     /* the stream's handle; for a per-thread stream an address of its thread */
    CUcontext context; /* current when it began; tells the per-thread streams of a thread apart;
                          NULL: not known */
    bool per_thread;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct capture *captures;
static size_t capture_capacity;
static _Atomic size_t capture_count;

static _Thread_local char thread_marker __attribute__((tls_model("initial-exec")));

static struct capture identify(CUstream stream, enum decide_stream_kind kind)
{
    struct capture capture = {.key = (uintptr_t)stream};
    if (kind == DECIDE_STREAM_PER_THREAD) {
        capture.key = (uintptr_t)&thread_marker;
        capture.per_thread = true;
    }
    if (!cuda_driver.cuCtxGetCurrent ||
        cuda_driver.cuCtxGetCurrent(&capture.context) != CUDA_SUCCESS)
        capture.context = NULL;
    return capture;
}

static bool is_same(const struct capture *a, const struct capture *b)
{
    return a->key == b->key && a->per_thread == b->per_thread &&
           (!a->per_thread || a->context == b->context);
}

/* Locked. */
static size_t position_of(const struct capture *capture)
{
    size_t count = atomic_load_explicit(&capture_count, memory_order_relaxed);
    size_t position = 0;
    while (position < count && !is_same(&captures[position], capture))
        position++;
    return position;
}

/*
 * Of a capture that ends; locked. Where the driver did not tell the context at the beginning or
 * at the end, the thread has to do: a capture that stayed would keep every launch on the long way.
 */
static size_t position_of_ending(const struct capture *capture)
{
    size_t count = atomic_load_explicit(&capture_count, memory_order_relaxed);
    size_t position = position_of(capture);
    if (position < count || !capture->per_thread)
        return position;
    for (position = 0; position < count; position++)
        if (captures[position].per_thread && captures[position].key == capture->key &&
            (!captures[position].context || !capture->context))
            break;
    return position;
}

/* Locked. */
static bool reserve(size_t count)
{
    if (count <= capture_capacity)
        return true;
    size_t capacity = capture_capacity ? capture_capacity * 2 : 16;
    struct capture *larger = realloc(captures, capacity * sizeof *captures);
    if (!larger)
        return false;
    captures = larger;
    capture_capacity = capacity;
    return true;
}

/* Locked. */
static void drop(size_t position)
{
    size_t last = atomic_load_explicit(&capture_count, memory_order_relaxed) - 1;
    captures[position] = captures[last];
    atomic_store_explicit(&capture_count, last, memory_order_relaxed);
    report_gate_lower();
}

void decide_capture_start(void)
{
    pthread_mutex_init(&mutex, NULL);
    /* A child begins with its parent's gate, and with none of its captures. */
    while (decide_captures_exist())
        drop(atomic_load_explicit(&capture_count, memory_order_relaxed) - 1);
}

void decide_capture_began(CUstream stream, bool per_thread_default)
{
    struct capture capture =
        identify(stream, decide_stream_default_kind(stream, per_thread_default));
    pthread_mutex_lock(&mutex);
    size_t count = atomic_load_explicit(&capture_count, memory_order_relaxed);
    /* It may stand there already, when a route that is not wrapped ended the one before. */
    if (position_of(&capture) == count) {
        if (reserve(count + 1)) {
            captures[count] = capture;
            report_gate_raise(); /* first: the gate never counts fewer than there are */
            atomic_store_explicit(&capture_count, count + 1, memory_order_relaxed);
        } else {
            report_log_once(REPORT_LOG_WARN, "a stream capture is not followed: out of memory");
        }
    }
    pthread_mutex_unlock(&mutex);
}

static bool ask_capturing(CUstream stream, enum decide_stream_kind kind, bool otherwise)
{
    CUstreamCaptureStatus status;
    CUstream handle = kind == DECIDE_STREAM_PER_THREAD ? CU_STREAM_PER_THREAD : stream;
    if (!cuda_driver.cuStreamIsCapturing ||
        cuda_driver.cuStreamIsCapturing(handle, &status) != CUDA_SUCCESS)
        return otherwise;
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void decide_capture_ended(CUstream stream, bool per_thread_default)
{
    enum decide_stream_kind kind = decide_stream_default_kind(stream, per_thread_default);
    if (kind == DECIDE_STREAM_LEGACY)
        return;
    /* An attempt may have failed and left the capture going: one from the wrong thread does. */
    if (ask_capturing(stream, kind, false))
        return;
    struct capture capture = identify(stream, kind);
    pthread_mutex_lock(&mutex);
    size_t position = position_of_ending(&capture);
    if (position < atomic_load_explicit(&capture_count, memory_order_relaxed))
        drop(position);
    pthread_mutex_unlock(&mutex);
}

void decide_capture_stream_gone(CUstream stream)
{
    if (!decide_captures_exist())
        return;
    struct capture capture = {.key = (uintptr_t)stream};
    pthread_mutex_lock(&mutex);
    size_t position = position_of(&capture);
    if (position < atomic_load_explicit(&capture_count, memory_order_relaxed))
        drop(position);
    pthread_mutex_unlock(&mutex);
}

void decide_capture_context_gone(CUcontext context)
{
    pthread_mutex_lock(&mutex);
    for (size_t i = atomic_load_explicit(&capture_count, memory_order_relaxed); i > 0; i--)
        if (!context || captures[i - 1].context == context)
            drop(i - 1);
    pthread_mutex_unlock(&mutex);
}

bool decide_captures_exist(void)
{
    return atomic_load_explicit(&capture_count, memory_order_relaxed) != 0;
}

bool decide_stream_is_capturing(CUstream stream, bool per_thread_default)
{
    if (!decide_captures_exist())
        return false;
    enum decide_stream_kind kind = decide_stream_default_kind(stream, per_thread_default);
    /* The legacy stream cannot be captured; and while a blocking stream captures, asking about it
     * is answered by an error. Where the driver does not answer, a capture is assumed: fewer
     * changes are made to a launch then, and none that could end a capture. */
    return kind != DECIDE_STREAM_LEGACY && ask_capturing(stream, kind, true);
}
