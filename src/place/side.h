/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PLACE_SIDE_H
#define CUDAPOLICY_PLACE_SIDE_H

/*
 * Side streams: by stream (struct place_sides), partition and generation of the partition.
 *
 * The launch path walks a stream's list without a lock. Entries are type-stable: they pass from
 * stream to stream, and what is found in one that no longer fits is never followed, since a
 * generation stands for one making of one device's partitions.
 */

#include "place/move.h"

struct place_side {
    _Atomic(struct place_side *) next; /* of the stream's list, or of the free ones */
    _Atomic uint64_t key;              /* see place_side_key; 0: nobody's */
    _Atomic(CUstream) stream;          /* NULL: there is none, for the reason */
    _Atomic uint32_t reason;
    const struct place_partition *partition; /* under the lock */
    struct place_side *next_of_all;
};

static inline uint64_t place_side_key(const struct place_partition *partition, uint32_t generation)
{
    return (uint64_t)generation << 16 | (partition->index + 1u);
}

/* The stream's side in the partition of that generation, which may be one that could not be made;
 * NULL: not there yet. Launch path: no lock, no allocation, no call of the driver. */
static inline struct place_side *place_side_find(struct place_sides *sides, uint64_t key)
{
    struct place_side *side = atomic_load_explicit(&sides->first, memory_order_acquire);
    while (side && atomic_load_explicit(&side->key, memory_order_acquire) != key)
        side = atomic_load_explicit(&side->next, memory_order_acquire);
    return side;
}

/* Makes what place_side_find did not find, or finds what another thread made meanwhile. NONE: *side
 * is the stream. A refusal by the driver is remembered until the partitions are made anew. Locks,
 * allocates, creates. */
enum report_reason place_side_add(struct place_sides *sides, CUstream stream,
                                  const struct place_partition *partition, uint32_t generation,
                                  CUstream *side);

/* The side streams of all streams in a partition of the device are destroyed; index -1: in all of
 * the device's. */
void place_sides_gone(int device, int index);

/* In the child after fork: no stream is there. */
void place_sides_start(void);

#endif
