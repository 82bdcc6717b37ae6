/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PLACE_CURRENT_H
#define CUDAPOLICY_PLACE_CURRENT_H

/*
 * Streams and events are created in the current context. The program may launch into a stream of
 * the primary context while another one is current, or none: what we create for it belongs to the
 * stream's context all the same.
 */

#include <stdbool.h>

#include "cuda/driver.h"

/* Around calls that create in the driver; leave only after success. Not on the launch path. */
static inline CUresult place_current_enter(CUcontext context, bool *pushed)
{
    CUcontext current = NULL;
    *pushed = false;
    if (!cuda_driver.cuCtxGetCurrent)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = cuda_driver.cuCtxGetCurrent(&current);
    if (result != CUDA_SUCCESS || current == context)
        return result;
    if (!context || !cuda_driver.cuCtxPushCurrent || !cuda_driver.cuCtxPopCurrent)
        return CUDA_ERROR_NOT_SUPPORTED;
    result = cuda_driver.cuCtxPushCurrent(context);
    *pushed = result == CUDA_SUCCESS;
    return result;
}

static inline void place_current_leave(bool pushed)
{
    CUcontext popped;
    if (pushed)
        cuda_driver.cuCtxPopCurrent(&popped);
}

#endif
