/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_POLICY_ENVIRONMENT_H
#define CUDAPOLICY_POLICY_ENVIRONMENT_H

/*
 * [env]: what a policy wants of the environment in which its program starts. CUDA and NCCL read
 * their variables once, early, so who starts the program sets them: `cudapolicy run`, `ab` and
 * `tune`, the Slurm plugin, the TaskProlog. Only enforced: a policy that observes changes nothing.
 * Any thread, no memory, no errors; not for the launch path.
 */

#include <stdbool.h>
#include <stddef.h>

#include "policy/policy.h"

enum policy_variable_state {
    POLICY_VARIABLE_APPLIED,      /* the environment has the policy's value */
    POLICY_VARIABLE_KEPT,         /* it has another one, which the user set */
    POLICY_VARIABLE_MISSING,      /* it has none */
    POLICY_VARIABLE_NOT_REPLACED, /* it has another one, which [env replace] would not leave */
};

/* present: the variable's value in the environment, NULL for none. */
enum policy_variable_state policy_variable_state(const struct policy_variable *variable,
                                                 const char *present);

/* Whether who starts the program has to set the variable. */
bool policy_variable_is_to_be_set(const struct policy_variable *variable, const char *present);

/* Whether [env] is to be applied: in the mode of the variable CUDAPOLICY_MODE (NULL or "" where it
 * is not set), else in the policy's own. */
bool policy_applies_variables(const struct policy *policy, const char *mode);

/* Whether both have the same variables, with the same values, in whatever order. */
bool policy_variables_same(const struct policy *one, const struct policy *other);

/* environment_names.c. Why a policy must not set the variable, as the end of a sentence; NULL: it
 * may. */
const char *policy_variable_fault(const char *name, bool replace);

/* The well-known variable that was probably meant by a name that is none; NULL: none. */
const char *policy_variable_meant(const char *name);

#endif
