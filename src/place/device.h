/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PLACE_DEVICE_H
#define CUDAPOLICY_PLACE_DEVICE_H

/*
 * The green contexts of one device: made and destroyed, for partition.c, which says when.
 *
 * All functions query, create or destroy in the driver, through its real functions: no wrapper of
 * ours is reached. They are called with the device's mutex held, which neither the launch path nor
 * a fork handler takes. None changes the current context of the thread.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "place/partition.h"

enum {
    PLACE_PLACES = POLICY_PARTITION_LIMIT + 1, /* the partitions, and the whole device */
};

/* Made once for a device, used again, never freed: what was found in it stays readable. */
struct place_device {
    pthread_mutex_t mutex; /* held while the partitions are made, made use of to create, or go */
    int device;
    _Atomic(CUcontext) primary;
    uint64_t said; /* partitions whose line is in the log, by index */
    struct place_partition partitions[PLACE_PLACES];
};

/* What place_start was given. */
struct place_wish {
    const struct policy *policy;
    unsigned fake_domains;
    bool (*selected)(const struct policy_partition *partition, int device);
};

/* A number that no partitions had before. Any thread. */
uint32_t place_generation_next(void);

/* Makes all partitions of the wish; without create only finds out what they would be. False when it
 * has to be tried again later: the primary context is not active, or a capture is in the way. */
bool place_device_make(struct place_device *device, const struct place_wish *wish, bool create);

/* Side streams first, then the green contexts. */
void place_device_unmake(struct place_device *device);

/* One partition's context is about to be destroyed by someone else. */
void place_device_lose(struct place_partition *partition);

/* Nothing is there; without a call of the driver. */
void place_device_empty(struct place_device *device);

#endif
