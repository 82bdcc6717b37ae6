/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_LAUNCH_STREAM_H
#define CUDAPOLICY_DECIDE_LAUNCH_STREAM_H

/*
 * The order in which streams got launches that a rule matches, for the selector launch_stream.
 *
 * Counted for each rule and device from 0, as `index` counts streams: the first stream on which one
 * of the rule's kernels is launched is 0. A stream counts when all other selectors of the rule
 * hold. A number once given stays with the stream; a stream that is destroyed leaves its number
 * unused.
 */

#include <stdint.h>

enum {
    /* Streams counted for one rule and device. Later ones all have the order INT64_MAX, which only
     * a range that is open above holds. */
    DECIDE_LAUNCH_STREAM_LIMIT = 256,
};

/* Forgets all. No other thread may exist. */
void decide_launch_stream_start(void);

/* The order of a stream. device: -1 where it is not known, counted as a device of its own. serial:
 * of struct decide_stream. Launch path: locks at the first sight of a stream by a rule only. */
int64_t decide_launch_stream_order(uint16_t rule, int device, uint64_t serial);

#endif
