/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PLACE_MOVE_H
#define CUDAPOLICY_PLACE_MOVE_H

/*
 * A launch moved to a partition: it waits there for what its own stream had before it (fork), and
 * its stream waits for it (join). So whatever was ordered with the launch by the stream, by events
 * and by the legacy stream's barriers still is; what a thread submits later sees the launch done.
 *
 * Two threads that launch into one stream without agreeing on an order lose, between a moved launch
 * and another one, the mutual exclusion that the stream gave them, but no order that they had
 * agreed on.
 *
 * While the stream captures, the same calls become edges: the moved kernel's node depends on the
 * stream's dependencies, and afterwards that node is the stream's only dependency.
 *
 * Side streams belong to one stream and one partition, events to one thread and one device; both
 * are made at first use and kept: nothing is created for a launch.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"
#include "place/partition.h"

struct place_side;

/* The side streams of one stream: a member of whatever stands for the stream. Zero is empty. */
struct place_sides {
    _Atomic(struct place_side *) first;
};

/* One moved launch; lives on the caller's stack. */
struct place_move {
    CUstream stream; /* the program's, never NULL: CU_STREAM_LEGACY, CU_STREAM_PER_THREAD */
    CUstream side;   /* where the launch goes */
    CUevent fork, join;
    bool capturing;
};

/*
 * Fork. stream: the program's, with its default streams by their own handles. sides: of the stream
 * (NULL: there was no memory for them).
 * A new side stream gets the stream's priority (cuStreamGetPriority, harmless in captures).
 * capturing: the launch becomes a node. The primary context of the partition's device is current.
 * NONE: launch into move->side, then call place_move_end whatever the launch's result. Else:
 * nothing was changed, make the launch as it came. At the first use by a stream or thread it locks,
 * allocates and creates; afterwards it makes two driver calls, cuEventRecord and cuStreamWaitEvent,
 * and nothing else. Launch path.
 */
enum report_reason place_move_begin(struct place_move *move, struct place_sides *sides,
                                    CUstream stream, const struct place_partition *partition,
                                    bool capturing);

/*
 * Join: cuEventRecord and cuStreamWaitEvent; while capturing the stream's dependency set becomes
 * the moved kernel's node alone and the side stream's empty (cuStreamGetCaptureInfo,
 * cuStreamUpdateCaptureDependencies), so that the side stream never counts as not joined.
 * launched: the launch succeeded; the join is made either way. Where the events fail, the set does
 * it in a capture, and outside of one the calling thread waits for the kernel. The result of the
 * first call that failed when there is no order nevertheless: the program's launch then has to
 * answer with it, and must not be made again.
 */
CUresult place_move_end(struct place_move *move, bool launched);

/* The stream's attributes or priority changed: its side streams get them (memory-sync domain and
 * map, access policy window, synchronisation policy, NVLink) anew. Not on the launch path. */
void place_sides_mirror(struct place_sides *sides, CUstream stream);

/* Gives a stream the attributes of another one, one by one: streams of different contexts refuse
 * cuStreamCopyAttributes with error 1 (measured). What the driver does not tell or take stays. Not
 * on the launch path. */
void place_attributes_copy(CUstream to, CUstream from);

/* Before the stream is destroyed: its side streams go. */
void place_sides_end(struct place_sides *sides);

/* The side streams of the calling thread's per-thread default stream in a device's primary context,
 * which is current; NULL: no memory. A thread that has ended leaves them to another one, so they
 * are not to be ended. Launch path; at a thread's first use it locks, allocates and may set
 * attributes. */
struct place_sides *place_thread_sides(int device);

/* Before the partitions of a device go (generation raised): nothing kept for them is used again. */
void place_move_device_gone(int device);

/* Forgets all, in the child after fork. No other thread may exist. */
void place_move_start(void);

#endif
