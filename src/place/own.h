/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PLACE_OWN_H
#define CUDAPOLICY_PLACE_OWN_H

/*
 * The green contexts that the program makes itself. While there is one, the device's primary
 * context ends by no reset and no release (measured: error 800), so what is on partitions has to
 * stay as well.
 */

#include <stdbool.h>

#include "cuda/driver.h"

/* One was made. Without memory it is not known of. */
void place_own_made(cuda_green_context green, int device);

/* One is going; its device, -1: not known. */
int place_own_going(cuda_green_context green);

bool place_own_exist(int device);

/* In the child after fork: none is there, and no thread but this. */
void place_own_start(void);

#endif
