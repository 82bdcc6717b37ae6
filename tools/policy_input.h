/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_POLICY_INPUT_H
#define CUDAPOLICY_TOOLS_POLICY_INPUT_H

/* Policies as the command's arguments name them. */

#include "policy/policy.h"

/* policy_load, where "-" is standard input. */
struct policy *policy_input_load(const char *file, struct policy_diagnostics *diagnostics);

/* The same; prints errors on stderr, and the warnings too when warnings is true. NULL after errors;
 * unreadable, unless NULL, says whether there was no text that could be wrong. */
struct policy *policy_input_require(const char *file, bool warnings, bool *unreadable);

#endif
