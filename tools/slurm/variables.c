/* SPDX-License-Identifier: Apache-2.0 */
#include "variables.h"

#include <stdio.h>

#include "policy/combine.h"
#include "policy/environment.h"

static int set_each(const struct slurm_task *task, const struct policy *policy)
{
    for (size_t i = 0; i < policy->variable_count; i++) {
        const struct policy_variable *variable = &policy->variables[i];
        char line[SLURM_MESSAGE_SIZE];

        if (!policy_variable_is_to_be_set(variable, task->get(task->environment, variable->name)) ||
            task->set(task->environment, variable->name, variable->value) == 0) {
            continue;
        }
        snprintf(line, sizeof line, "cannot set %s, which [env] of the policy has", variable->name);
        task->complain(line);
        return -1;
    }
    return 0;
}

/* NULL: there is none, or none that loads. */
static struct policy *load(const struct slurm_task *task)
{
    const char *file = task->get(task->environment, "CUDAPOLICY_FILE");
    struct policy_diagnostics diagnostics;
    struct policy *policy;

    /* One that a user set by hand may be relative, to a folder that is not known here. */
    if (file == NULL || file[0] != '/') {
        return NULL;
    }
    policy_diagnostics_init(&diagnostics);
    diagnostics.errors_only = true;
    policy = policy_load(file, &diagnostics);
    policy_diagnostics_release(&diagnostics);
    return policy;
}

struct policy *slurm_task_policy(const struct slurm_task *task, struct slurm_site *site)
{
    struct policy *job = load(task), *combined = NULL, *of_site = site->policy;
    struct policy_diagnostics diagnostics;

    if (of_site == NULL) {
        return job;
    }
    site->policy = NULL;
    if (job == NULL) {
        return of_site;
    }
    policy_diagnostics_init(&diagnostics);
    diagnostics.errors_only = true;
    combined = policy_combine(of_site, job, &diagnostics);
    policy_diagnostics_release(&diagnostics);
    if (combined == NULL) {
        policy_free(job);
    }
    return combined != NULL ? combined : of_site;
}

int slurm_set_variables(const struct slurm_task *task, const struct policy *policy)
{
    return policy != NULL &&
                   policy_applies_variables(policy, task->get(task->environment, "CUDAPOLICY_MODE"))
               ? set_each(task, policy)
               : 0;
}
