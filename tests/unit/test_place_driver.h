/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TEST_PLACE_DRIVER_H
#define CUDAPOLICY_TEST_PLACE_DRIVER_H

/*
 * A driver for the tests of partitions and moved launches: it keeps account of contexts, streams,
 * events and captures, writes down every call, fails where a test says so, and counts what nobody
 * may do (use of what was destroyed, of another thread's event).
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/driver.h"

enum {
    FAKE_DEVICES = 4,
    FAKE_OBJECTS = 400000,
    FAKE_CALLS = 512,
    FAKE_SMS = 132,
    FAKE_NODES = 64, /* of a capture, bits of a word */
    FAKE_ATTRIBUTES = 20,
};

enum fake_kind { FAKE_NOTHING, FAKE_GREEN, FAKE_STREAM, FAKE_EVENT, FAKE_KINDS };

/* Handles are addresses of these; none is used twice. */
struct fake_object {
    _Atomic int live; /* enum fake_kind */
    int device;
    int priority;
    struct fake_object *green; /* of a stream; NULL: the primary context's */
    bool capturing;
    uint64_t nodes;     /* that a capturing stream depends on, or an event stands for */
    pthread_t recorder; /* thread that recorded the event last */
    char attributes[FAKE_ATTRIBUTES];
};

struct fake_call {
    const char *name;
    const void *first, *second; /* handles, in the order of the arguments */
};

static struct {
    struct fake_object objects[FAKE_OBJECTS];
    _Atomic int object_count;
    _Atomic int live[FAKE_KINDS], made[FAKE_KINDS];
    _Atomic int misuses;
    _Atomic int retains[FAKE_DEVICES]; /* the program's, the green contexts', and ours */
    struct fake_object primary[FAKE_DEVICES], legacy, per_thread;
    _Atomic int calls;
    bool many_threads; /* calls are not written down */
    struct fake_call call[FAKE_CALLS];
    int fail_at;        /* the number of a call, */
    CUresult fail_with; /* unless this is success */
    const char *failed;
    bool captures_globally; /* some thread of the program */
    bool knows_no_nvlink;
    uint64_t edges[FAKE_NODES]; /* by node: on what it depends */
    CUgraphNode node_handles[FAKE_NODES];
    int node_count;
    const char *during; /* calls of this name run: */
    void (*run)(void);  /* as a tool that the driver calls back, or another thread meanwhile */
} fake;

static _Thread_local CUcontext fake_current;
static _Thread_local CUstreamCaptureMode fake_mode;

static inline void fake_misuse(void)
{
    atomic_fetch_add(&fake.misuses, 1);
}

/* Writes a call down; its number. */
static inline int fake_called(const char *name, const void *first, const void *second)
{
    int number = atomic_fetch_add(&fake.calls, 1);
    if (number < FAKE_CALLS && !fake.many_threads)
        fake.call[number] = (struct fake_call){name, first, second};
    if (fake.during && strcmp(name, fake.during) == 0)
        fake.run();
    return number;
}

/* An error when this call is the one to fail. */
static inline CUresult fake_failure(int number, const char *name)
{
    if (fake.many_threads || fake.failed || fake.fail_with == CUDA_SUCCESS ||
        number != fake.fail_at)
        return CUDA_SUCCESS;
    fake.failed = name;
    return fake.fail_with;
}

static inline struct fake_object *fake_new(enum fake_kind kind, int device)
{
    int number = atomic_fetch_add(&fake.object_count, 1);
    if (number >= FAKE_OBJECTS)
        abort();
    struct fake_object *object = &fake.objects[number];
    object->device = device;
    atomic_store(&object->live, kind);
    atomic_fetch_add(&fake.live[kind], 1);
    atomic_fetch_add(&fake.made[kind], 1);
    return object;
}

static inline bool fake_is(const void *handle, enum fake_kind kind)
{
    const struct fake_object *object = handle;
    bool is = object && atomic_load(&object->live) == (int)kind;
    if (!is)
        fake_misuse();
    return is;
}

static inline CUresult fake_destroy(void *handle, enum fake_kind kind)
{
    struct fake_object *object = handle;
    int expected = (int)kind;
    if (!atomic_compare_exchange_strong(&object->live, &expected, FAKE_NOTHING)) {
        fake_misuse();
        return CUDA_ERROR_INVALID_HANDLE;
    }
    atomic_fetch_sub(&fake.live[kind], 1);
    return CUDA_SUCCESS;
}

static inline struct fake_object *fake_stream_of(CUstream stream)
{
    if (stream == CU_STREAM_LEGACY)
        return &fake.legacy;
    if (stream == CU_STREAM_PER_THREAD)
        return &fake.per_thread;
    struct fake_object *object = (struct fake_object *)stream;
    if (!fake_is(object, FAKE_STREAM))
        return NULL;
    /* Documented: every use of a stream fails once its green context is gone. */
    if (object->green && atomic_load(&object->green->live) != FAKE_GREEN) {
        fake_misuse();
        return NULL;
    }
    return object;
}

/* What captures prohibit; a thread that is relaxed may. */
static inline bool fake_prohibited(void)
{
    return fake.captures_globally && fake_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
}

static inline int fake_current_device(void)
{
    for (int device = 0; device < FAKE_DEVICES; device++)
        if (fake_current == (CUcontext)&fake.primary[device])
            return device;
    return -1;
}

/* ---- The driver --------------------------------------------------------------------------------
 */

#define FAKE(name, first, second)                                                                  \
    do {                                                                                           \
        CUresult failure_ = fake_failure(fake_called(name, first, second), name);                  \
        if (failure_ != CUDA_SUCCESS)                                                              \
            return failure_;                                                                       \
    } while (0)

static inline CUresult fake_version(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

static inline CUresult fake_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? FAKE_SMS : 9;
    return (int)attribute >= 149 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static inline CUresult fake_state(CUdevice device, unsigned *flags, int *active)
{
    FAKE("cuDevicePrimaryCtxGetState", NULL, NULL);
    *flags = 0;
    *active = atomic_load(&fake.retains[device]) > 0;
    return CUDA_SUCCESS;
}

static inline CUresult fake_retain(CUcontext *context, CUdevice device)
{
    FAKE("cuDevicePrimaryCtxRetain", NULL, NULL);
    if (atomic_fetch_add(&fake.retains[device], 1) == 0)
        fake_misuse(); /* the library never makes a context active */
    *context = (CUcontext)&fake.primary[device];
    return CUDA_SUCCESS;
}

static inline CUresult fake_release(CUdevice device)
{
    fake_called("cuDevicePrimaryCtxRelease", NULL, NULL);
    if (atomic_fetch_sub(&fake.retains[device], 1) <= 0)
        fake_misuse();
    return CUDA_SUCCESS;
}

static inline CUresult fake_resource(CUdevice device, struct cuda_device_resource *resource,
                                     int type)
{
    (void)device;
    FAKE("cuDeviceGetDevResource", NULL, NULL);
    memset(resource, 0, sizeof *resource);
    resource->type = type;
    resource->of.sm.sm_count = FAKE_SMS;
    resource->of.sm.minimum_partition_size = resource->of.sm.coscheduled_alignment = 8;
    return CUDA_SUCCESS;
}

static inline CUresult fake_split(struct cuda_device_resource *groups, unsigned *count,
                                  const struct cuda_device_resource *input,
                                  struct cuda_device_resource *remaining, unsigned flags,
                                  unsigned least)
{
    unsigned size = (least + 7) / 8 * 8, possible = input->of.sm.sm_count / size;
    (void)flags;
    if (!groups) {
        *count = possible;
        return CUDA_SUCCESS;
    }
    FAKE("cuDevSmResourceSplitByCount", NULL, NULL);
    if (possible < *count)
        *count = possible;
    for (unsigned i = 0; i < *count; i++) {
        groups[i] = *input;
        groups[i].of.sm.sm_count = size;
    }
    if (remaining) {
        *remaining = *input;
        remaining->of.sm.sm_count = input->of.sm.sm_count - *count * size;
    }
    return CUDA_SUCCESS;
}

static inline CUresult fake_describe(cuda_resource_description *description,
                                     struct cuda_device_resource *resources, unsigned count)
{
    FAKE("cuDevResourceGenerateDesc", NULL, NULL);
    if (count == 0 || resources[0].type != CUDA_RESOURCE_TYPE_SM)
        fake_misuse();
    *description = (cuda_resource_description)&fake;
    return CUDA_SUCCESS;
}

static inline CUresult fake_green(cuda_green_context *green, cuda_resource_description description,
                                  CUdevice device, unsigned flags)
{
    FAKE("cuGreenCtxCreate", NULL, NULL);
    if (fake_prohibited())
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (flags != CUDA_GREEN_CONTEXT_DEFAULT_STREAM ||
        description != (cuda_resource_description)&fake)
        fake_misuse();
    atomic_fetch_add(&fake.retains[device], 1);
    *green = (cuda_green_context)fake_new(FAKE_GREEN, device);
    return CUDA_SUCCESS;
}

static inline CUresult fake_green_destroy(cuda_green_context green)
{
    struct fake_object *object = (struct fake_object *)green;
    fake_called("cuGreenCtxDestroy", green, NULL);
    atomic_fetch_sub(&fake.retains[object->device], 1);
    return fake_destroy(object, FAKE_GREEN);
}

static inline CUresult fake_from_green(CUcontext *context, cuda_green_context green)
{
    FAKE("cuCtxFromGreenCtx", green, NULL);
    *context = (CUcontext)(void *)((char *)green + 1);
    return fake_is(green, FAKE_GREEN) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static inline CUresult fake_green_stream(CUstream *stream, cuda_green_context green, unsigned flags,
                                         int priority)
{
    FAKE("cuGreenCtxStreamCreate", green, NULL);
    if (fake_prohibited())
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (flags != CU_STREAM_NON_BLOCKING || !fake_is(green, FAKE_GREEN))
        return CUDA_ERROR_INVALID_VALUE;
    struct fake_object *object = fake_new(FAKE_STREAM, ((struct fake_object *)green)->device);
    object->priority = priority;
    object->green = (struct fake_object *)green;
    *stream = (CUstream)object;
    return CUDA_SUCCESS;
}

static inline CUresult fake_stream(CUstream *stream, unsigned flags, int priority)
{
    FAKE("cuStreamCreateWithPriority", NULL, NULL);
    int device = fake_current_device();
    if (device < 0 || flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_CONTEXT;
    struct fake_object *object = fake_new(FAKE_STREAM, device);
    object->priority = priority;
    *stream = (CUstream)object;
    return CUDA_SUCCESS;
}

static inline CUresult fake_stream_destroy(CUstream stream)
{
    fake_called("cuStreamDestroy", stream, NULL);
    return fake_stream_of(stream) ? fake_destroy((void *)stream, FAKE_STREAM)
                                  : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static inline CUresult fake_priority(CUstream stream, int *priority)
{
    FAKE("cuStreamGetPriority", stream, NULL);
    const struct fake_object *about = fake_stream_of(stream);
    *priority = about ? about->priority : 0;
    return about ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* One context on top of another: enough for us. */
static _Thread_local CUcontext fake_below;

static inline CUresult fake_get_current(CUcontext *context)
{
    *context = fake_current;
    return CUDA_SUCCESS;
}

static inline CUresult fake_push(CUcontext context)
{
    FAKE("cuCtxPushCurrent", context, NULL);
    if (fake_below)
        fake_misuse();
    fake_below = fake_current;
    fake_current = context;
    return CUDA_SUCCESS;
}

static inline CUresult fake_pop(CUcontext *context)
{
    FAKE("cuCtxPopCurrent", NULL, NULL);
    *context = fake_current;
    fake_current = fake_below;
    fake_below = NULL;
    return CUDA_SUCCESS;
}

static inline CUresult fake_exchange(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = fake_mode;
    fake_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

static inline CUresult fake_event(CUevent *event, unsigned flags)
{
    FAKE("cuEventCreate", NULL, NULL);
    if (fake_current_device() < 0 || flags != CU_EVENT_DISABLE_TIMING)
        fake_misuse();
    *event = (CUevent)fake_new(FAKE_EVENT, fake_current_device());
    return CUDA_SUCCESS;
}

static inline CUresult fake_event_destroy(CUevent event)
{
    fake_called("cuEventDestroy", event, NULL);
    return fake_destroy(event, FAKE_EVENT);
}

static inline CUresult fake_record(CUevent event, CUstream stream)
{
    FAKE("cuEventRecord", event, stream);
    struct fake_object *from = fake_stream_of(stream), *about = (struct fake_object *)event;
    if (!from || !fake_is(event, FAKE_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    about->recorder = pthread_self();
    about->capturing = from->capturing;
    about->nodes = from->nodes;
    return CUDA_SUCCESS;
}

static inline CUresult fake_wait(CUstream stream, CUevent event, unsigned flags)
{
    FAKE("cuStreamWaitEvent", stream, event);
    struct fake_object *to = fake_stream_of(stream), *about = (struct fake_object *)event;
    if (!to || !fake_is(event, FAKE_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags != 0 || !pthread_equal(about->recorder, pthread_self()))
        fake_misuse();
    if (about->capturing) {
        to->capturing = true;
        to->nodes |= about->nodes;
    }
    return CUDA_SUCCESS;
}

static inline CUresult fake_capture_info(CUstream stream, CUstreamCaptureStatus *status,
                                         cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                                         size_t *count)
{
    static CUgraphNode answer[FAKE_NODES];
    FAKE("cuStreamGetCaptureInfo", stream, NULL);
    const struct fake_object *about = fake_stream_of(stream);
    (void)id;
    (void)graph;
    *status = about->capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    *count = 0;
    for (int node = 0; node < FAKE_NODES; node++)
        if (about->nodes >> node & 1)
            answer[(*count)++] = (CUgraphNode)&fake.edges[node];
    *nodes = answer;
    return CUDA_SUCCESS;
}

static inline CUresult fake_update(CUstream stream, CUgraphNode *nodes, size_t count,
                                   unsigned flags)
{
    FAKE("cuStreamUpdateCaptureDependencies", stream, NULL);
    struct fake_object *about = fake_stream_of(stream);
    if (flags != 1 || !about->capturing)
        fake_misuse();
    about->nodes = 0;
    for (size_t i = 0; i < count; i++)
        about->nodes |= UINT64_C(1) << ((uint64_t *)nodes[i] - fake.edges);
    return CUDA_SUCCESS;
}

static inline CUresult fake_get_attribute(CUstream stream, CUstreamAttrID id,
                                          CUstreamAttrValue *value)
{
    FAKE("cuStreamGetAttribute", stream, NULL);
    if (fake.knows_no_nvlink && (int)id == 16)
        return CUDA_ERROR_INVALID_VALUE;
    const struct fake_object *about = fake_stream_of(stream);
    *(char *)value = about ? about->attributes[id] : 0;
    return about ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static inline CUresult fake_set_attribute(CUstream stream, CUstreamAttrID id,
                                          const CUstreamAttrValue *value)
{
    FAKE("cuStreamSetAttribute", stream, NULL);
    struct fake_object *about = fake_stream_of(stream);
    if (about)
        about->attributes[id] = *(const char *)value;
    return about ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static inline void fake_driver_fill(void)
{
    memset(&cuda_driver, 0, sizeof cuda_driver);
    cuda_driver.cuDriverGetVersion = fake_version;
    cuda_driver.cuDeviceGetAttribute = fake_attribute;
    cuda_driver.cuDevicePrimaryCtxGetState = fake_state;
    cuda_driver.cuDevicePrimaryCtxRetain = fake_retain;
    cuda_driver.cuDevicePrimaryCtxRelease = fake_release;
    cuda_driver.cuDeviceGetDevResource = fake_resource;
    cuda_driver.cuDevSmResourceSplitByCount = fake_split;
    cuda_driver.cuDevResourceGenerateDesc = fake_describe;
    cuda_driver.cuGreenCtxCreate = fake_green;
    cuda_driver.cuGreenCtxDestroy = fake_green_destroy;
    cuda_driver.cuCtxFromGreenCtx = fake_from_green;
    cuda_driver.cuGreenCtxStreamCreate = fake_green_stream;
    cuda_driver.cuStreamCreateWithPriority = fake_stream;
    cuda_driver.cuStreamDestroy = fake_stream_destroy;
    cuda_driver.cuStreamGetPriority = fake_priority;
    cuda_driver.cuStreamGetAttribute = fake_get_attribute;
    cuda_driver.cuStreamSetAttribute = fake_set_attribute;
    cuda_driver.cuThreadExchangeStreamCaptureMode = fake_exchange;
    cuda_driver.cuCtxGetCurrent = fake_get_current;
    cuda_driver.cuCtxPushCurrent = fake_push;
    cuda_driver.cuCtxPopCurrent = fake_pop;
    cuda_driver.cuEventCreate = fake_event;
    cuda_driver.cuEventDestroy = fake_event_destroy;
    cuda_driver.cuEventRecord = fake_record;
    cuda_driver.cuStreamWaitEvent = fake_wait;
    cuda_driver.cuStreamGetCaptureInfo = fake_capture_info;
    cuda_driver.cuStreamUpdateCaptureDependencies = fake_update;
}

#endif
