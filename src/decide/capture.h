/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_CAPTURE_H
#define CUDAPOLICY_DECIDE_CAPTURE_H

/*
 * Which streams capture. A capture begins at one stream, but others join it through events, which
 * we do not follow. So only whether any capture is going on is tracked; while one is, the gate of
 * the entry stubs is raised and each launch asks the driver about its own stream.
 */

#include <stdbool.h>

#include "decide/decide.h"

/*
 * Whether a launch into the stream becomes a node of a graph. One relaxed load while nothing in the
 * process captures. Else cuStreamIsCapturing, which is legal then for every stream but the legacy
 * one; that one cannot be captured and is not asked. Launch path.
 */
bool decide_stream_is_capturing(CUstream stream, bool per_thread_default);

/* Whether any capture is going on. Launch path. */
bool decide_captures_exist(void);

/* Forgets every capture and lowers the gate for each; in the child after fork too, after
 * report_after_fork. No other thread may exist. */
void decide_capture_start(void);

/* Before a stream, or every stream of a context (NULL: all), ends: a capture that began there is
 * over. */
void decide_capture_stream_gone(CUstream stream);
void decide_capture_context_gone(CUcontext context);

#endif
