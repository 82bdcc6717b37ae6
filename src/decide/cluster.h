/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_CLUSTER_H
#define CUDAPOLICY_DECIDE_CLUSTER_H

/*
 * Checks before a launch gets another cluster or another place, and what they found.
 *
 * What does not depend on the grid is asked of the driver once for each shape: function, kind of
 * device, block, shared memory, cluster. What became of launches in that shape is remembered with
 * it: a cluster that the driver refused is not tried again, and only one that it accepted goes into
 * a capture, where a refusal would invalidate the capture.
 *
 * A kernel whose grid counts clusters (.blocksareclusters) always has compile-time clusters, so it
 * is recognised by them.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "decide/device.h"
#include "decide/handle_map.h"
#include "place/partition.h"
#include "report/report.h"

enum decide_shape_purpose {
    DECIDE_SHAPE_CLUSTER,   /* injecting this cluster */
    DECIDE_SHAPE_PREFERRED, /* injecting this preferred cluster */
    DECIDE_SHAPE_REMOVAL,   /* taking the program's cluster away; dimensions 0 */
    DECIDE_SHAPE_PLACED, /* running on a partition, with the cluster that the launch has; 0: none */
};

enum decide_shape_state {
    DECIDE_SHAPE_ASKED,
    DECIDE_SHAPE_OBSERVED, /* would have been injected while observing */
    DECIDE_SHAPE_ACCEPTED, /* by the driver, in a launch */
    DECIDE_SHAPE_REFUSED,  /* by the driver, in a launch */
};

enum {
    DECIDE_SHAPE_KEY_WORDS = 6,
    DECIDE_SHAPES_OF_A_FUNCTION = 32, /* an older one makes room */
};

struct decide_shape {
    struct handle_entry base;
    _Atomic uint64_t key[DECIDE_SHAPE_KEY_WORDS];
    _Atomic uint64_t state; /* enum decide_shape_state, and the entry's use above it: what was noted
                               for an earlier use says nothing */
    _Atomic uint32_t result;        /* of the driver, when it refused */
    _Atomic uint32_t reason;        /* why this shape cannot be, whatever the grid; 0: it can */
    _Atomic uint64_t blocks_before; /* co-resident without the change, */
    _Atomic uint64_t blocks_with;   /* and with it */
    _Atomic uint64_t required[3];   /* compile-time cluster; 0: none */
};

/* The words of a key that come from the cluster and from the device. */
static inline uint64_t decide_shape_word_cluster(uint32_t x, uint32_t y)
{
    return (uint64_t)x << 32 | y;
}
static inline uint64_t decide_shape_word_device(uint32_t z, enum decide_shape_purpose purpose,
                                                const struct decide_device_class *device)
{
    return (uint64_t)z << 32 | (unsigned)purpose << 8 | (device ? device->number : 0xffu);
}

struct decide_cluster_question {
    void *function;
    uint64_t serial; /* of the function; 0: nothing can be kept */
    const CUlaunchConfig *config;
    const struct decide_device_class *device;
    enum decide_shape_purpose purpose;
    uint32_t x, y, z;                        /* wanted */
    const struct place_partition *partition; /* where the launch will run; NULL: the whole device */
    bool unsafe_residency; /* a grid may lose its co-residency; not a cooperative one */
    bool cooperative;
    bool in_graph; /* only an accepted shape will do, and nothing is asked of the driver */
    bool observe;
};

struct decide_cluster_answer {
    enum report_reason reason;  /* NONE: go ahead */
    uint32_t result;            /* with REFUSED_BY_DRIVER */
    struct decide_shape *shape; /* NULL: not kept */
    uint32_t use;
};

/* May the launch have the cluster? Launch path: no lock, no allocation, no query, except at the
 * first sight of a shape. */
void decide_cluster_ask(const struct decide_cluster_question *question,
                        struct decide_cluster_answer *answer);

/* The compile-time cluster of a function, through the shape of its launch; false when it has none
 * or it is not known. As above. */
bool decide_cluster_required(const struct decide_cluster_question *question, uint32_t required[3]);

/* A launch came back. shape and use: of the answer. Launch path. */
void decide_shape_accepted(struct decide_shape *shape, uint32_t use);
void decide_shape_refused(struct decide_shape *shape, uint32_t use, uint32_t result);
/* The launch failed for another reason after all. */
void decide_shape_not_refused(struct decide_shape *shape, uint32_t use);

/* Forgets the shapes of a function that is gone or changed. Takes a lock of its own. */
void decide_shapes_drop(uint64_t serial);

/* Shapes kept, for tests. Locks. */
size_t decide_shapes_count(void);

/* Forgets all. No other thread may exist. */
void decide_cluster_start(void);

#endif
