/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_PREPARED_H
#define CUDAPOLICY_DECIDE_PREPARED_H

/* The table of functions whose launches all get the same attributes; see decide.h. */

#include <stdbool.h>

#include "decide/decide.h"

/* Whether the function's place in the table is free. Launch path. */
static inline bool decide_prepared_is_free(const void *function)
{
    return __atomic_load_n(&decide_prepared_table[(uintptr_t)function * DECIDE_PASS_MULTIPLIER >>
                                                  (64 - DECIDE_PASS_BITS)]
                                .handle,
                           __ATOMIC_RELAXED) == 0;
}

/* Enters a function. Does nothing when its place is taken. where stays valid for ever. Under the
 * lock of decide_functions, as the next. */
void decide_prepared_enter(const void *function, const struct decide_prepared *const *where);

/* Takes a function out before its handle ends; does nothing when it is not in. */
void decide_prepared_leave(const void *function);

/* Empties the table. */
void decide_prepared_start(void);

#endif
