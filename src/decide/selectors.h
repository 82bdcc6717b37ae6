/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_SELECTORS_H
#define CUDAPOLICY_DECIDE_SELECTORS_H

/* Selectors that match text or what is constant in a process, for the engine and for the command,
 * which explains what the engine does. Not for the launch path. */

#include <stdbool.h>

#include "decide/decide.h"
#include "decide/kernel_name.h"
#include "policy/policy.h"

/* True when rank, local_rank, world_size and host hold, which are constant in a process. A number
 * that is not known (-1) is in no range, a host that is not known (NULL) matches no pattern. */
bool decide_selectors_hold_here(const struct policy_selectors *selectors,
                                const struct decide_process *process);

/* True when library and not_library hold. A caller that is not known (NULL) is no library by name,
 * and none that is excluded. */
bool decide_selectors_hold_library(const struct policy_selectors *selectors, const char *library);

/* True when name and not_name hold. A function without a name (NULL) is matched only by rules that
 * have neither. */
bool decide_selectors_hold_name(const struct policy_selectors *selectors,
                                const struct kernel_name *name);

/* Whether one of the patterns matches: a text; a kernel's name, in this form. */
bool decide_selectors_any(const struct policy_globs *globs, const char *text);
bool decide_selectors_any_name(const struct policy_globs *globs, enum policy_name_form form,
                               const struct kernel_name *name);

#endif
