/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PLACE_THREAD_H
#define CUDAPOLICY_PLACE_THREAD_H

/*
 * What belongs to one host thread: its events, a pair for each device, and the side streams of its
 * per-thread default streams.
 *
 * It is kept in records that a new thread takes over from one that has ended. A thread finds its
 * record by itself, so an event is used by one thread at a time and in the order of its calls.
 */

#include "place/move.h"

struct place_events {
    _Atomic uint32_t generation; /* of the partitions for which they were made */
    _Atomic(CUevent) fork;       /* NULL: refused by the driver */
    _Atomic(CUevent) join;
};

struct place_thread {
    struct place_thread *next; /* of all */
    int owner;                 /* the thread's number; under the lock; 0: nobody's */
    struct place_events events[PLACE_DEVICE_LIMIT];
    struct place_sides sides[PLACE_DEVICE_LIMIT];
    /* By device: the side streams are another thread's, whose stream had other attributes. */
    bool inherited[PLACE_DEVICE_LIMIT];
};

extern _Thread_local struct place_thread *place_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Makes the thread's events for a partition of that generation. Locks, allocates, creates. */
enum report_reason place_events_add(const struct place_partition *partition, uint32_t generation);

/* The thread's events for a partition of that generation. NONE: they are in *fork and *join. Launch
 * path; at the thread's first use of the device it makes them. */
static inline enum report_reason place_events_find(const struct place_partition *partition,
                                                   uint32_t generation, CUevent *fork,
                                                   CUevent *join)
{
    struct place_thread *thread = place_thread;
    if (!thread || atomic_load_explicit(&thread->events[partition->device].generation,
                                        memory_order_acquire) != generation) {
        enum report_reason reason = place_events_add(partition, generation);
        if (reason != REPORT_REASON_NONE)
            return reason;
        thread = place_thread;
    }
    struct place_events *events = &thread->events[partition->device];
    *fork = atomic_load_explicit(&events->fork, memory_order_relaxed);
    *join = atomic_load_explicit(&events->join, memory_order_relaxed);
    return *fork && *join ? REPORT_REASON_NONE : REPORT_REASON_REFUSED_BY_DRIVER;
}

/* The events of all threads for the device are destroyed. */
void place_events_gone(int device);

/* In the child after fork: no event is there, and no thread but this. */
void place_threads_start(void);

#endif
