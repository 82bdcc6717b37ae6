/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PRELOAD_EXPECT_H
#define CUDAPOLICY_PRELOAD_EXPECT_H

/* What the policy asks for besides decisions: variables of the environment ([env]), which only who
 * starts the program can set, and what has to be so at the end ([expect]). Not for the launch path.
 */

#include "policy/policy.h"
#include "preload/configuration.h"

/* Once, when the process's policy is in force and the report has begun. */
void preload_expect_start(const struct preload_configuration *configuration,
                          const struct policy *policy);

/* In the child after fork: the report's facts anew. */
void preload_expect_in_child(void);

/* Another policy is in force. Its [env] cannot be: whether it is not as it was at the start. */
bool preload_expect_reloaded(const struct policy *policy);

#endif
