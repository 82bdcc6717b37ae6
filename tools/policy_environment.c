/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_environment.h"

#include "policy/environment.h"

void policy_environment_apply(const struct policy *policy, struct environment *environment)
{
    if (!policy_applies_variables(policy, environment_get(environment, "CUDAPOLICY_MODE"))) {
        return;
    }
    for (size_t i = 0; i < policy->variable_count; i++) {
        const struct policy_variable *variable = &policy->variables[i];

        if (policy_variable_is_to_be_set(variable, environment_get(environment, variable->name))) {
            environment_set(environment, variable->name, variable->value);
        }
    }
}

void policy_environment_print(const struct policy *policy, FILE *stream)
{
    struct environment environment;

    environment_copy(&environment);
    for (size_t i = 0; i < policy->variable_count; i++) {
        const struct policy_variable *variable = &policy->variables[i];

        if (policy_applies_variables(policy, environment_get(&environment, "CUDAPOLICY_MODE")) &&
            policy_variable_is_to_be_set(variable, environment_get(&environment, variable->name))) {
            fprintf(stream, "%s=%s\n", variable->name, variable->value);
        }
    }
    environment_release(&environment);
}
