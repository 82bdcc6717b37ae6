/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_GRAPH_COUNTS_H
#define CUDAPOLICY_DECIDE_GRAPH_COUNTS_H

/*
 * How many launches of which cells one launch of an executable graph makes. Blocks are used again,
 * never freed, so that a launch that is overtaken by an update reads old numbers and never a dead
 * pointer; and the number of items in a block never exceeds its room, whenever it is read.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct decide_count {
    _Atomic uint32_t cell;
    _Atomic uint32_t launches;
};

struct decide_counts {
    struct decide_counts *next_free;
    uint32_t room; /* a power of two; constant */
    _Atomic uint32_t count;
    struct decide_count items[];
};

/* Counts equal cells together; sorts the array. NULL when memory is short or there is none. Locks.
 */
struct decide_counts *decide_counts_of(uint32_t *cells, size_t count);

/* The counts with one launch of a cell replaced by one of another. NULL when memory is short.
 * Locks. */
struct decide_counts *decide_counts_changed(const struct decide_counts *counts, uint32_t from,
                                            uint32_t to);

/* Gives a block back; NULL is allowed. Locks. */
void decide_counts_release(struct decide_counts *counts);

/* In the child after fork, when no other thread exists. */
void decide_counts_start(void);

#endif
