/* SPDX-License-Identifier: Apache-2.0 */
#include "place/side.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "place/capture_mode.h"

/* Of lists, and of entries but for what the launch path reads. No call of the driver under it. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct place_side *all, *unused;

/* ---- Attributes --------------------------------------------------------------------------------
 */

union attribute_value {
    CUstreamAttrValue value;
    uint8_t bytes[64];
};

static bool read_attribute(CUstream stream, int id, union attribute_value *value)
{
    memset(value, 0, sizeof *value);
    return cuda_driver.cuStreamGetAttribute(stream, (CUstreamAttrID)id, &value->value) ==
           CUDA_SUCCESS;
}

/* What a driver does not know of, it does not give; what it does not take, the side stream does not
 * get. */
static void copy_attribute(CUstream from, CUstream to, int id)
{
    union attribute_value wanted, present;
    if (!read_attribute(from, id, &wanted) ||
        (read_attribute(to, id, &present) && memcmp(&wanted, &present, sizeof wanted) == 0))
        return;
    cuda_driver.cuStreamSetAttribute(to, (CUstreamAttrID)id, &wanted.value);
}

static void copy_attributes(CUstream from, CUstream to)
{
    static const int ids[] = {
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
        CUDA_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING};
    if (!cuda_driver.cuStreamGetAttribute || !cuda_driver.cuStreamSetAttribute)
        return;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        copy_attribute(from, to, ids[i]);
}

void place_attributes_copy(CUstream to, CUstream from)
{
    copy_attributes(from, to);
    if (cuda_driver.cuStreamGetAttribute && cuda_driver.cuStreamSetAttribute)
        copy_attribute(from, to, CU_LAUNCH_ATTRIBUTE_PRIORITY);
}

void place_sides_mirror(struct place_sides *sides, CUstream stream)
{
    struct place_capture_mode mode = place_capture_mode_relax();
    struct place_side *side = atomic_load_explicit(&sides->first, memory_order_acquire);
    for (; side; side = atomic_load_explicit(&side->next, memory_order_acquire)) {
        CUstream own = atomic_load_explicit(&side->stream, memory_order_acquire);
        if (!own)
            continue;
        place_attributes_copy(own, stream);
    }
    place_capture_mode_restore(mode);
}

/* ---- Entries -----------------------------------------------------------------------------------
 */

static void destroy_stream(CUstream stream)
{
    if (stream && cuda_driver.cuStreamDestroy)
        cuda_driver.cuStreamDestroy(stream);
}

/* Locked. The partitions that an entry was made for are gone. */
static bool is_stale(const struct place_side *side)
{
    uint64_t key = atomic_load_explicit(&side->key, memory_order_relaxed);
    return key == 0 ||
           key != place_side_key(side->partition, atomic_load_explicit(&side->partition->generation,
                                                                       memory_order_acquire));
}

/* Locked. Takes the entry from its partition; the stream is the caller's to destroy. */
static CUstream give_up(struct place_side *side)
{
    atomic_store_explicit(&side->key, 0, memory_order_release);
    return atomic_exchange_explicit(&side->stream, NULL, memory_order_acq_rel);
}

/* Locked. An entry in the stream's list, ready to be filled in: one whose partitions are gone, or
 * one more; NULL without memory. *left: a stream to destroy. */
static struct place_side *entry_for(struct place_sides *sides, CUstream *left)
{
    struct place_side *first = atomic_load_explicit(&sides->first, memory_order_relaxed);
    struct place_side *side = first;
    *left = NULL;
    while (side && !is_stale(side))
        side = atomic_load_explicit(&side->next, memory_order_relaxed);
    if (side) {
        *left = give_up(side);
        return side;
    }
    side = unused;
    if (side) {
        unused = atomic_load_explicit(&side->next, memory_order_relaxed);
    } else {
        side = calloc(1, sizeof *side);
        if (!side)
            return NULL;
        side->next_of_all = all;
        all = side;
    }
    atomic_store_explicit(&side->next, first, memory_order_relaxed);
    atomic_store_explicit(&sides->first, side, memory_order_release);
    return side;
}

/* Locked. Makes the stream, or its refusal, known to the launch path. */
static enum report_reason enter(struct place_sides *sides, const struct place_partition *partition,
                                uint64_t key, CUstream stream, enum report_reason reason,
                                CUstream *left)
{
    *left = stream;
    if (key != place_side_key(partition,
                              atomic_load_explicit(&partition->generation, memory_order_acquire)))
        return REPORT_REASON_NO_PARTITION;
    struct place_side *side = entry_for(sides, left);
    if (!side) {
        *left = stream;
        return REPORT_REASON_OUT_OF_MEMORY;
    }
    side->partition = partition;
    atomic_store_explicit(&side->reason, reason, memory_order_relaxed);
    atomic_store_explicit(&side->stream, stream, memory_order_relaxed);
    atomic_store_explicit(&side->key, key, memory_order_release);
    return reason;
}

/* ---- Making ------------------------------------------------------------------------------------
 */

/* All that a moved launch calls. */
static bool driver_can_move(void)
{
    return cuda_driver.cuEventCreate && cuda_driver.cuEventDestroy && cuda_driver.cuEventRecord &&
           cuda_driver.cuStreamWaitEvent && cuda_driver.cuStreamDestroy;
}

/* False when the answer may be another one the next time. */
static bool make_stream(const struct place_partition *partition, CUstream like, CUstream *stream,
                        enum report_reason *reason)
{
    int priority = 0;
    *stream = NULL;
    *reason = REPORT_REASON_DRIVER_TOO_OLD;
    if (!driver_can_move())
        return true;
    struct place_capture_mode mode = place_capture_mode_relax();
    if (cuda_driver.cuStreamGetPriority &&
        cuda_driver.cuStreamGetPriority(like, &priority) != CUDA_SUCCESS)
        priority = 0;
    CUresult result = place_partition_stream(partition, priority, stream);
    if (result == CUDA_SUCCESS)
        copy_attributes(like, *stream);
    else
        *stream = NULL;
    place_capture_mode_restore(mode);
    *reason = result == CUDA_SUCCESS               ? REPORT_REASON_NONE
              : result == CUDA_ERROR_OUT_OF_MEMORY ? REPORT_REASON_OUT_OF_MEMORY
                                                   : REPORT_REASON_REFUSED_BY_DRIVER;
    return !place_refused_by_capture(result);
}

enum report_reason place_side_add(struct place_sides *sides, CUstream stream,
                                  const struct place_partition *partition, uint32_t generation,
                                  CUstream *side)
{
    uint64_t key = place_side_key(partition, generation);
    int error_number = errno;
    enum report_reason reason;
    CUstream made, left;
    if (!make_stream(partition, stream, &made, &reason))
        return reason;
    pthread_mutex_lock(&mutex);
    const struct place_side *present = place_side_find(sides, key);
    if (present) {
        left = made;
        made = atomic_load_explicit(&present->stream, memory_order_relaxed);
        reason = (enum report_reason)atomic_load_explicit(&present->reason, memory_order_relaxed);
    } else {
        reason = enter(sides, partition, key, made, reason, &left);
    }
    pthread_mutex_unlock(&mutex);
    if (left) {
        struct place_capture_mode mode = place_capture_mode_relax();
        destroy_stream(left);
        place_capture_mode_restore(mode);
    }
    *side = made;
    errno = error_number;
    return reason;
}

/* ---- Ends --------------------------------------------------------------------------------------
 */

void place_sides_end(struct place_sides *sides)
{
    if (!atomic_load_explicit(&sides->first, memory_order_relaxed))
        return;
    struct place_capture_mode mode = place_capture_mode_relax();
    pthread_mutex_lock(&mutex);
    struct place_side *side = atomic_exchange_explicit(&sides->first, NULL, memory_order_acq_rel);
    while (side) {
        struct place_side *next = atomic_load_explicit(&side->next, memory_order_relaxed);
        CUstream stream = give_up(side);
        atomic_store_explicit(&side->next, unused, memory_order_release);
        unused = side;
        pthread_mutex_unlock(&mutex);
        destroy_stream(stream);
        pthread_mutex_lock(&mutex);
        side = next;
    }
    pthread_mutex_unlock(&mutex);
    place_capture_mode_restore(mode);
}

void place_sides_gone(int device, int index)
{
    pthread_mutex_lock(&mutex);
    for (struct place_side *side = all; side; side = side->next_of_all) {
        if (!side->partition || side->partition->device != device ||
            (index >= 0 && side->partition->index != index))
            continue;
        CUstream stream = give_up(side);
        pthread_mutex_unlock(&mutex);
        destroy_stream(stream);
        pthread_mutex_lock(&mutex);
    }
    pthread_mutex_unlock(&mutex);
}

/* Entries stay in the lists that they are in, wherever those are now: their streams find them again
 * and use them for others. */
void place_sides_start(void)
{
    pthread_mutex_init(&mutex, NULL);
    for (struct place_side *side = all; side; side = side->next_of_all)
        give_up(side);
}
