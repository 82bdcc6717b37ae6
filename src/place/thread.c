/* SPDX-License-Identifier: Apache-2.0 */
#include "place/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "place/capture_mode.h"
#include "place/current.h"

enum {
    /* Records that a new thread looks at for one whose thread has ended, where the last one
     * stopped: a process with thousands of threads does not ask about each for each. */
    LOOKS = 32,
};

_Thread_local struct place_thread *place_thread;

/* No call of the driver under it. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct place_thread *all, *cursor;

/* ---- Records -----------------------------------------------------------------------------------
 */

/*
 * Asked when a record is needed, since no way to be told of a thread's end fits a library that is
 * loaded with the program and links to nothing but the C library: functions for keys of threads
 * were not in it in the oldest version that must do, and __cxa_thread_atexit_impl waits for the
 * loader's lock. A number that was given to a new thread meanwhile reads as alive: one record more.
 */
static bool has_ended(int thread)
{
    return thread == 0 || (syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH);
}

/* Locked. */
static struct place_thread *ended(int self)
{
    for (unsigned look = 0; look < LOOKS && all; look++) {
        struct place_thread *thread = cursor ? cursor : all;
        cursor = thread->next;
        /* This thread has no record yet, so one of its number is an ended thread's. */
        if (thread->owner == self || has_ended(thread->owner))
            return thread;
    }
    return NULL;
}

/* The calling thread's record; NULL without memory. */
static struct place_thread *claim(void)
{
    int self = (int)syscall(SYS_gettid);
    pthread_mutex_lock(&mutex);
    struct place_thread *thread = ended(self);
    if (thread) {
        for (int device = 0; device < PLACE_DEVICE_LIMIT; device++)
            thread->inherited[device] =
                atomic_load_explicit(&thread->sides[device].first, memory_order_relaxed) != NULL;
    } else {
        thread = calloc(1, sizeof *thread);
        if (thread) {
            thread->next = all;
            all = thread;
        }
    }
    if (thread)
        thread->owner = self;
    pthread_mutex_unlock(&mutex);
    return thread;
}

static struct place_thread *own_record(void)
{
    if (!place_thread) {
        int error_number = errno;
        place_thread = claim();
        errno = error_number;
    }
    return place_thread;
}

struct place_sides *place_thread_sides(int device)
{
    struct place_thread *thread = own_record();
    if (!thread || device < 0 || device >= PLACE_DEVICE_LIMIT)
        return NULL;
    struct place_sides *sides = &thread->sides[device];
    if (thread->inherited[device]) {
        thread->inherited[device] = false;
        place_sides_mirror(sides, CU_STREAM_PER_THREAD);
    }
    return sides;
}

/* ---- Events ------------------------------------------------------------------------------------
 */

static void destroy_event(CUevent event)
{
    if (event && cuda_driver.cuEventDestroy)
        cuda_driver.cuEventDestroy(event);
}

static CUresult make_two(CUevent *fork, CUevent *join)
{
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    *fork = *join = NULL;
    if (cuda_driver.cuEventCreate)
        result = cuda_driver.cuEventCreate(fork, CU_EVENT_DISABLE_TIMING);
    if (result != CUDA_SUCCESS) {
        *fork = NULL;
        return result;
    }
    result = cuda_driver.cuEventCreate(join, CU_EVENT_DISABLE_TIMING);
    if (result != CUDA_SUCCESS) {
        destroy_event(*fork);
        *fork = *join = NULL;
    }
    return result;
}

static CUresult make_events(CUcontext context, CUevent *fork, CUevent *join)
{
    bool pushed;
    *fork = *join = NULL;
    CUresult result = place_current_enter(context, &pushed);
    if (result != CUDA_SUCCESS)
        return result;
    result = make_two(fork, join);
    place_current_leave(pushed);
    return result;
}

/* Locked. Takes the events; they are the caller's to destroy. */
static void give_up(struct place_events *events, CUevent *fork, CUevent *join)
{
    atomic_store_explicit(&events->generation, 0, memory_order_release);
    *fork = atomic_exchange_explicit(&events->fork, NULL, memory_order_acq_rel);
    *join = atomic_exchange_explicit(&events->join, NULL, memory_order_acq_rel);
}

enum report_reason place_events_add(const struct place_partition *partition, uint32_t generation)
{
    struct place_thread *thread = own_record();
    CUevent fork, join;
    if (!thread)
        return REPORT_REASON_OUT_OF_MEMORY;
    struct place_events *events = &thread->events[partition->device];
    /* The record may come from another thread, with events. */
    if (atomic_load_explicit(&events->generation, memory_order_acquire) == generation)
        return REPORT_REASON_NONE;
    struct place_capture_mode mode = place_capture_mode_relax();
    CUresult result = make_events(place_primary_context(partition->device), &fork, &join);
    bool entered = false;
    if (!place_refused_by_capture(result)) {
        pthread_mutex_lock(&mutex);
        /* Events of a generation before this one went with it. */
        entered = atomic_load_explicit(&partition->generation, memory_order_acquire) == generation;
        if (entered) {
            atomic_store_explicit(&events->fork, fork, memory_order_relaxed);
            atomic_store_explicit(&events->join, join, memory_order_relaxed);
            atomic_store_explicit(&events->generation, generation, memory_order_release);
        }
        pthread_mutex_unlock(&mutex);
    }
    if (!entered) {
        destroy_event(fork);
        destroy_event(join);
    }
    place_capture_mode_restore(mode);
    if (result != CUDA_SUCCESS)
        return result == CUDA_ERROR_OUT_OF_MEMORY ? REPORT_REASON_OUT_OF_MEMORY
                                                  : REPORT_REASON_REFUSED_BY_DRIVER;
    return entered ? REPORT_REASON_NONE : REPORT_REASON_NO_PARTITION;
}

void place_events_gone(int device)
{
    pthread_mutex_lock(&mutex);
    for (struct place_thread *thread = all; thread; thread = thread->next) {
        CUevent fork, join;
        give_up(&thread->events[device], &fork, &join);
        if (!fork && !join)
            continue;
        pthread_mutex_unlock(&mutex);
        destroy_event(fork);
        destroy_event(join);
        pthread_mutex_lock(&mutex);
    }
    pthread_mutex_unlock(&mutex);
}

void place_threads_start(void)
{
    pthread_mutex_init(&mutex, NULL);
    place_thread = NULL;
    cursor = NULL;
    for (struct place_thread *thread = all; thread; thread = thread->next) {
        thread->owner = 0;
        for (int device = 0; device < PLACE_DEVICE_LIMIT; device++) {
            CUevent fork, join;
            give_up(&thread->events[device], &fork, &join);
        }
    }
}
