/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_STREAM_REGISTRY_H
#define CUDAPOLICY_DECIDE_STREAM_REGISTRY_H

/* For the files that share the registry of streams; others go through stream.h. */

#include "decide/handle_map.h"
#include "decide/stream.h"

/* Created streams, and unknown ones that launches were seen in; entries are struct decide_stream.
 */
extern struct handle_map decide_streams;

static inline uint64_t decide_stream_key(CUstream stream)
{
    return (uintptr_t)stream;
}

#endif
