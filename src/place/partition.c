/* SPDX-License-Identifier: Apache-2.0 */
#include "place/partition.h"

#include <stdlib.h>

#include "place/current.h"
#include "place/device.h"
#include "place/move.h"
#include "place/own.h"
#include "report/log.h"

void (*place_ending)(int device);

static struct place_wish wish;
static bool wanted;

/* Entries are put in at the first sight of a device and stay. */
static _Atomic(struct place_device *) devices[PLACE_DEVICE_LIMIT];

/* How far a device's partitions are, so that place_device_active may have nothing left to do. */
enum { NOTHING, REHEARSED, MADE };
static _Atomic uint8_t settled[PLACE_DEVICE_LIMIT];

/* Of the primary contexts by the program, as far as seen. */
static _Atomic uint32_t retains[PLACE_DEVICE_LIMIT];

/* The primary context was released, and the program's own green contexts are what keeps it. */
static atomic_bool lingers[PLACE_DEVICE_LIMIT];

/* The calling thread is in a call of the driver that it makes with a device's mutex held. Tools
 * that the driver calls back at such a time (profilers do work when a context is created) may use
 * the device, and so come back here. */
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));

static struct place_partition absent = {.reason = REPORT_REASON_NO_PARTITION, .device = -1};

/* ---- Devices -----------------------------------------------------------------------------------
 */

static struct place_device *device_find(int device)
{
    if (device < 0 || device >= PLACE_DEVICE_LIMIT)
        return NULL;
    return atomic_load_explicit(&devices[device], memory_order_acquire);
}

static struct place_device *device_new(int number)
{
    struct place_device *device = calloc(1, sizeof *device);
    if (!device)
        return NULL;
    device->device = number;
    pthread_mutex_init(&device->mutex, NULL);
    for (unsigned i = 0; i < PLACE_PLACES; i++) {
        device->partitions[i].device = number;
        device->partitions[i].index = (uint16_t)i;
    }
    place_device_empty(device);
    return device;
}

/* The entry, made at the first sight; NULL without memory. */
static struct place_device *device_enter(int number)
{
    struct place_device *device = device_find(number);
    if (device || number < 0 || number >= PLACE_DEVICE_LIMIT)
        return device;
    struct place_device *first = NULL;
    device = device_new(number);
    if (!device) {
        report_log_once(REPORT_LOG_WARN, "no memory for the partitions of device %d", number);
        return NULL;
    }
    if (!atomic_compare_exchange_strong(&devices[number], &first, device)) {
        pthread_mutex_destroy(&device->mutex);
        free(device);
        return first;
    }
    return device;
}

static void device_lock(struct place_device *device)
{
    pthread_mutex_lock(&device->mutex);
    inside = true;
}

static void device_unlock(struct place_device *device)
{
    inside = false;
    pthread_mutex_unlock(&device->mutex);
}

/* ---- Start, first sight, end -------------------------------------------------------------------
 */

void place_start(const struct policy *policy, unsigned fake_domains,
                 bool (*selected)(const struct policy_partition *partition, int device))
{
    wish = (struct place_wish){policy, fake_domains, selected};
    wanted = policy && policy->partition_count != 0;
    inside = false;
    for (int i = 0; i < PLACE_DEVICE_LIMIT; i++) {
        struct place_device *device = device_find(i);
        atomic_store(&settled[i], wanted ? NOTHING : MADE);
        atomic_store(&retains[i], 0);
        atomic_store(&lingers[i], false);
        if (!device)
            continue;
        /* A thread that no longer exists may hold it. */
        pthread_mutex_init(&device->mutex, NULL);
        place_device_empty(device);
        device->said = 0;
        /* The handles are the parent's. */
        for (unsigned j = 0; j < PLACE_PLACES; j++)
            device->partitions[j].green = NULL, device->partitions[j].probe = NULL;
    }
    place_own_start();
    place_move_start();
}

bool place_wanted(void)
{
    return wanted;
}

void place_device_active(int number, bool make)
{
    const uint8_t goal = make ? MADE : REHEARSED;
    if (number < 0 || number >= PLACE_DEVICE_LIMIT ||
        atomic_load_explicit(&settled[number], memory_order_acquire) >= goal || inside)
        return;
    struct place_device *device = device_enter(number);
    if (!device)
        return;
    device_lock(device);
    if (atomic_load_explicit(&settled[number], memory_order_relaxed) < goal &&
        place_device_make(device, &wish, make))
        atomic_store_explicit(&settled[number], goal, memory_order_release);
    device_unlock(device);
}

static void device_end(struct place_device *device)
{
    if (inside)
        return;
    if (place_ending && atomic_load(&settled[device->device]) == MADE)
        place_ending(device->device);
    device_lock(device);
    if (atomic_load_explicit(&settled[device->device], memory_order_relaxed) != NOTHING) {
        place_device_unmake(device);
        atomic_store_explicit(&settled[device->device], NOTHING, memory_order_release);
    }
    device_unlock(device);
}

void place_device_retained(int number)
{
    if (!wanted || inside || number < 0 || number >= PLACE_DEVICE_LIMIT)
        return;
    atomic_fetch_add(&retains[number], 1);
    atomic_store(&lingers[number], false);
}

void place_device_releasing(int number)
{
    struct place_device *device = device_find(number);
    if (!wanted || inside || number < 0 || number >= PLACE_DEVICE_LIMIT)
        return;
    uint32_t count = atomic_load(&retains[number]);
    while (count != 0 && !atomic_compare_exchange_weak(&retains[number], &count, count - 1))
        ;
    if (count != 1 || !device)
        return;
    if (place_own_exist(number))
        atomic_store(&lingers[number], true);
    else
        device_end(device);
}

void place_device_resetting(int number)
{
    struct place_device *device = wanted ? device_find(number) : NULL;
    if (device && !place_own_exist(number))
        device_end(device);
}

void place_green_made(cuda_green_context green, int number)
{
    if (wanted && !inside)
        place_own_made(green, number);
}

void place_green_going(cuda_green_context green)
{
    int number = wanted && !inside ? place_own_going(green) : -1;
    struct place_device *device = device_find(number);
    if (device && !place_own_exist(number) && atomic_exchange(&lingers[number], false))
        device_end(device);
}

void place_context_gone(CUcontext context)
{
    const struct place_partition *partition = context ? place_partition_of_context(context) : NULL;
    if (!partition || inside || partition->index == PLACE_WHOLE_DEVICE)
        return;
    struct place_device *device = device_find(partition->device);
    struct place_partition *own = &device->partitions[partition->index];
    device_lock(device);
    if (own->context == context && own->reason == REPORT_REASON_NONE)
        place_device_lose(own);
    device_unlock(device);
}

/* ---- Answers -----------------------------------------------------------------------------------
 */

const struct place_partition *place_partition_find(int number, unsigned index)
{
    const struct place_device *device = device_find(number);
    if (!device || index >= PLACE_PLACES)
        return &absent;
    return &device->partitions[index];
}

const struct place_partition *place_partition_of_context(CUcontext context)
{
    for (int i = 0; i < PLACE_DEVICE_LIMIT && context; i++) {
        const struct place_device *device = device_find(i);
        for (unsigned j = 0; device && j < POLICY_PARTITION_LIMIT; j++) {
            const struct place_partition *partition = &device->partitions[j];
            if (atomic_load_explicit(&partition->reason, memory_order_acquire) ==
                    REPORT_REASON_NONE &&
                /* Atomic: the partitions of a device that the caller does not use may go meanwhile.
                 */
                __atomic_load_n(&partition->context, __ATOMIC_RELAXED) == context)
                return partition;
        }
    }
    return NULL;
}

CUcontext place_primary_context(int number)
{
    const struct place_device *device = device_find(number);
    return device ? atomic_load_explicit(&device->primary, memory_order_acquire) : NULL;
}

/* ---- Streams -----------------------------------------------------------------------------------
 */

static CUresult ordinary_stream_create(CUcontext context, int priority, CUstream *stream)
{
    bool pushed;
    if (!cuda_driver.cuStreamCreateWithPriority)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = place_current_enter(context, &pushed);
    if (result != CUDA_SUCCESS)
        return result;
    result = cuda_driver.cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, priority);
    place_current_leave(pushed);
    return result;
}

static CUresult stream_create(const struct place_partition *partition, int priority,
                              CUstream *stream)
{
    if (atomic_load_explicit(&partition->reason, memory_order_acquire) != REPORT_REASON_NONE)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (partition->index == PLACE_WHOLE_DEVICE)
        return ordinary_stream_create(partition->context, priority, stream);
    /* Only non-blocking streams can be made there (measured). */
    return cuda_driver.cuGreenCtxStreamCreate(stream, partition->green, CU_STREAM_NON_BLOCKING,
                                              priority);
}

CUresult place_partition_stream(const struct place_partition *partition, int priority,
                                CUstream *stream)
{
    struct place_device *device = device_find(partition->device);
    if (!device || inside)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    /* The green context stays while it is made use of. */
    device_lock(device);
    CUresult result = stream_create(partition, priority, stream);
    device_unlock(device);
    return result;
}
