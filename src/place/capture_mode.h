/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PLACE_CAPTURE_MODE_H
#define CUDAPOLICY_PLACE_CAPTURE_MODE_H

/*
 * Our creations while the program captures. A thread that captures, and every thread while another
 * one captures in global mode, is prohibited from potentially unsafe calls, and one that makes such
 * a call spoils the capture. Ours belong to no capture, which is what the relaxed mode is for
 * (cuThreadExchangeStreamCaptureMode: "push-pop fashion").
 */

#include <stdbool.h>

#include "cuda/driver.h"

struct place_capture_mode {
    CUstreamCaptureMode mode; /* the thread's own */
    bool exchanged;
};

/* Around calls that create or destroy in the driver. Not on the launch path. */
static inline struct place_capture_mode place_capture_mode_relax(void)
{
    struct place_capture_mode saved = {.mode = CU_STREAM_CAPTURE_MODE_RELAXED};
    saved.exchanged = cuda_driver.cuThreadExchangeStreamCaptureMode &&
                      cuda_driver.cuThreadExchangeStreamCaptureMode(&saved.mode) == CUDA_SUCCESS;
    return saved;
}

static inline void place_capture_mode_restore(struct place_capture_mode saved)
{
    if (saved.exchanged)
        cuda_driver.cuThreadExchangeStreamCaptureMode(&saved.mode);
}

/* True when a call was refused because of a capture (CUDA_ERROR_STREAM_CAPTURE_…, 900 to 908): at
 * another time it may succeed. */
static inline bool place_refused_by_capture(CUresult result)
{
    return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
           result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

#endif
