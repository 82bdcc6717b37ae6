/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_SELECTORS_H
#define CUDAPOLICY_DECIDE_SELECTORS_H

/* Selectors that mean the same in every kind of section. Not for the launch path: they match text.
 */

#include <stdbool.h>

#include "decide/decide.h"
#include "policy/policy.h"

/* True when rank, local_rank, world_size and host hold, which are constant in a process. A number
 * that is not known (-1) is in no range, a host that is not known (NULL) matches no pattern. */
bool decide_selectors_hold_here(const struct policy_selectors *selectors,
                                const struct decide_process *process);

/* True when library and not_library hold. A caller that is not known (NULL) is no library by name,
 * and none that is excluded. */
bool decide_selectors_hold_library(const struct policy_selectors *selectors, const char *library);

#endif
