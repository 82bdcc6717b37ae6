/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_STREAM_DEFAULT_H
#define CUDAPOLICY_DECIDE_STREAM_DEFAULT_H

/* The legacy and the per-thread streams: one entry for each (kind, device, calling library), as far
 * as the rules about such streams tell them apart. */

#include <stdbool.h>
#include <stdint.h>

#include "decide/rule_set.h"
#include "decide/stream.h"

/* The default stream that a handle names; DECIDE_STREAM_CREATED when it names none. Launch path. */
static inline enum decide_stream_kind decide_stream_default_kind(CUstream stream,
                                                                 bool per_thread_default)
{
    if (stream == NULL)
        return per_thread_default ? DECIDE_STREAM_PER_THREAD : DECIDE_STREAM_LEGACY;
    if (stream == CU_STREAM_LEGACY)
        return DECIDE_STREAM_LEGACY;
    return stream == CU_STREAM_PER_THREAD ? DECIDE_STREAM_PER_THREAD : DECIDE_STREAM_CREATED;
}

/* decide_stream_find_by for a default stream. Launch path as there. */
const struct decide_stream *decide_stream_default_find(const struct decide_rule_set *set,
                                                       enum decide_stream_kind kind,
                                                       const char *library);

/* decide_stream_own for a default stream (launch path), and for the present thread's and device's.
 */
uint32_t decide_stream_default_own(const struct decide_stream *stream);
uint32_t decide_stream_default_current_own(enum decide_stream_kind kind);

/* The program set attributes (bits 1 << id) on the default stream of the current device and thread,
 * or has none of its own there any more (set false). May ask which device is current. */
void decide_stream_default_note(enum decide_stream_kind kind, uint32_t attributes, bool set);

/* Forgets all; no other thread may exist. */
void decide_stream_default_start(void);

enum {
    /* Serial numbers below are those of default streams. */
    DECIDE_STREAM_FIRST_SERIAL = 1024,
};

#endif
