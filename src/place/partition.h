/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PLACE_PARTITION_H
#define CUDAPOLICY_PLACE_PARTITION_H

/*
 * The partitions of the policy on each device of the process, as green contexts in the device's
 * primary context.
 *
 * All partitions of a device are made at once, when its primary context is first seen active; they
 * go before that context does. They come back when it is active again. Entries are type-stable, so
 * a launch that reads one while it goes meets a stale handle at worst, as the program's own streams
 * would be by then.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"
#include "policy/policy.h"
#include "report/outcome.h"

enum {
    PLACE_DEVICE_LIMIT = 64,
    /* The whole device, as a place to go to: for launches that may not stay on a partition. */
    PLACE_WHOLE_DEVICE = POLICY_PARTITION_LIMIT,
};

struct place_partition {
    /* NONE: there is one; NO_PARTITION and others: why there is none. Read first (acquire). */
    _Atomic uint32_t reason;
    _Atomic uint32_t generation; /* of the device's partitions, never the same again */
    int device;
    uint16_t index; /* policy_partition.index, or PLACE_WHOLE_DEVICE */
    uint32_t sms;
    uint32_t coscheduled;     /* SMs scheduled together, which bounds clusters; 0: not known */
    cuda_green_context green; /* NULL of the whole device */
    CUcontext context;        /* the green context's, of the whole device the primary one */
    CUstream probe; /* a stream there, for questions about occupancy; NULL of the whole device */
};

/* Takes the policy (kept); again in the child after fork, where no partition exists. fake_domains
 * as in place_split_make. selected: whether a partition exists on a device. No other thread may
 * exist. */
void place_start(const struct policy *policy, unsigned fake_domains,
                 bool (*selected)(const struct policy_partition *partition, int device));

/* Called before the partitions of a device go, with the driver still able to serve them: who has
 * something there takes it away. Set before the first partition is made; NULL: nobody. */
extern void (*place_ending)(int device);

/* True when the policy has partitions at all. Launch path. */
bool place_wanted(void);

/* The program made a device's primary context active (cuDevicePrimaryCtxRetain came back with
 * success), or is about to use it: makes the partitions unless they are there. Never changes the
 * current context of the thread. Locks; queries and creates in the driver. After the first time one
 * load: may be called at the first sight of a function or stream. make false, while the policy is
 * only observed: finds out what the partitions would be, and makes none. */
void place_device_active(int device, bool make);

/* What became of every partition goes to the report (facts partition.NAME.DEVICE: requested,
 * granted, reason) and a line for each that could not be made to the log, once. */

/*
 * The program gives up its hold on a primary context. Releases are counted against the retains seen
 * by place_device_retained: before the last one and before a reset the device's partitions are
 * destroyed, side streams first, so that the context ends as it would without us. It does not end
 * while the program has green contexts of its own there (measured): then they stay, after the last
 * release until the last of those goes.
 */
void place_device_retained(int device);
void place_device_releasing(int device);
void place_device_resetting(int device);
void place_green_made(cuda_green_context green, int device);
void place_green_going(cuda_green_context green);

/* A context is destroyed by name (cuCtxDestroy): not a primary one, so nothing of ours goes with
 * it, unless context is a green context's of ours. NULL: not known which. */
void place_context_gone(CUcontext context);

/* The partition on the device; never NULL: look at reason. index: policy_partition.index or
 * PLACE_WHOLE_DEVICE. Launch path. */
const struct place_partition *place_partition_find(int device, unsigned index);

/* The partition whose green context's CUcontext this is; NULL: none. Any thread; not the launch
 * path. */
const struct place_partition *place_partition_of_context(CUcontext context);

/* The primary context of a device as seen by place_device_active; NULL: not seen. Launch path. */
CUcontext place_primary_context(int device);

/* A stream on the partition, non-blocking, of that priority. On PLACE_WHOLE_DEVICE: an ordinary one
 * of the primary context. Whichever context is current. The driver's answer. Not on the launch path. */
CUresult place_partition_stream(const struct place_partition *partition, int priority,
                                CUstream *stream);

#endif
