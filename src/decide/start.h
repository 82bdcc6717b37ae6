/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_START_H
#define CUDAPOLICY_DECIDE_START_H

/* What is constant between two calls of decide_start and read on the launch path. */

#include <stdbool.h>

struct decide_start_state {
    bool merges; /* decide_stream_merges_exist() */
    bool places; /* a rule for created streams names a partition */
};

extern struct decide_start_state decide_start_state __attribute__((visibility("hidden")));

#endif
