/* SPDX-License-Identifier: Apache-2.0 */

/* The environment of a run: what makes the arm. */

#include "trial_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "library_path.h"
#include "memory.h"
#include "policy_environment.h"
#include "site_input.h"

static const char *const names_of_arm[] = {"CUDAPOLICY_FILE", "CUDAPOLICY_LIVE", "CUDAPOLICY_MODE",
                                           "CUDAPOLICY_REPORT"};

bool ab_variable_is_of_arm(const char *variable)
{
    const size_t length = strcspn(variable, "=");
    bool found = length == strlen("LD_PRELOAD") && strncmp(variable, "LD_PRELOAD", length) == 0;

    for (size_t i = 0; i < sizeof names_of_arm / sizeof names_of_arm[0] && !found; i++) {
        found =
            strlen(names_of_arm[i]) == length && strncmp(variable, names_of_arm[i], length) == 0;
    }
    return found;
}

/* Takes away what is there of a policy: only the arm is to decide. What else the user set for the
 * library (its log, stand-ins for locality domains) an arm with the preload keeps. */
static void remove_policy(struct environment *environment, bool all)
{
    char *preload = library_path_preload("", getenv("LD_PRELOAD"));
    size_t length = strlen(preload);

    if (length > 0) {
        preload[length - 1] = '\0'; /* the colon before the library that is none */
        environment_set(environment, "LD_PRELOAD", preload);
    } else {
        environment_unset(environment, "LD_PRELOAD");
    }
    free(preload);
    if (all) {
        environment_unset_all(environment, "CUDAPOLICY_");
    }
    for (size_t i = 0; i < sizeof names_of_arm / sizeof names_of_arm[0]; i++) {
        environment_unset(environment, names_of_arm[i]);
    }
}

char *trial_observe_policy(const struct ab_trial_options *options)
{
    return memory_format("%s/observe.ini", options->folder);
}

/* The copy that was made before the first run, so that all runs have the same. */
static const char *policy_of(const struct ab_arm *arm)
{
    return arm->policy_copy != NULL ? arm->policy_copy : arm->policy;
}

static void add_policy(const struct trial *trial, struct environment *environment)
{
    const struct ab_arm *arm = trial->arm;
    char *preload = library_path_preload(trial->options->library, getenv("LD_PRELOAD"));
    char *template = job_report_template(trial->reports);
    char *observe = trial_observe_policy(trial->options);

    environment_set(environment, "LD_PRELOAD", preload);
    environment_set(environment, "CUDAPOLICY_FILE",
                    arm->kind == AB_ARM_OBSERVE ? observe : policy_of(arm));
    environment_set(environment, "CUDAPOLICY_REPORT", template);
    free(observe);
    free(template);
    free(preload);
}

static void add_variables(const struct trial *trial, struct environment *environment)
{
    for (size_t i = 0; i < trial->options->variable_count; i++) {
        char *variable = ab_trial_expand(trial->options->variables[i], trial->experiment,
                                         trial->run, trial->folder);
        char *equals = strchr(variable, '=');

        if (equals != NULL) {
            *equals = '\0';
            environment_set(environment, variable, equals + 1);
        }
        free(variable);
    }
}

/* After what the user gave for the run, over which [env] does not go. The arm's policy was checked
 * before: one that does not load now is told by the run. */
static void add_policy_variables(const struct trial *trial, struct environment *environment)
{
    struct policy_diagnostics diagnostics;
    struct policy *policy;

    policy_diagnostics_init(&diagnostics);
    diagnostics.errors_only = true;
    policy = policy_load(policy_of(trial->arm), &diagnostics);
    policy_diagnostics_release(&diagnostics);
    policy = site_input_around_quietly(policy);
    if (policy != NULL) {
        policy_environment_apply(policy, environment);
    }
    policy_free(policy);
}

void trial_run_environment(const struct trial *trial, struct environment *environment)
{
    environment_copy(environment);
    remove_policy(environment, trial->arm->kind == AB_ARM_NONE);
    if (trial->arm->kind != AB_ARM_NONE) {
        add_policy(trial, environment);
    }
    add_variables(trial, environment);
    if (trial->arm->kind == AB_ARM_POLICY) {
        add_policy_variables(trial, environment);
    }
}

/* For --prepare, --check, --cleanup: never under the preload, and told which run it is. */
void trial_hook_environment(const struct trial *trial, struct environment *environment)
{
    char *name = ab_trial_run_name(trial->run);
    char *numbers[] = {memory_format("%u", trial->run->block),
                       memory_format("%u", trial->run->position),
                       memory_format("%.9g", trial->run->seconds)};

    environment_copy(environment);
    remove_policy(environment, true);
    add_variables(trial, environment);
    environment_set(environment, "CUDAPOLICY_AB_ARM", trial->arm->name);
    environment_set(environment, "CUDAPOLICY_AB_RUN", name);
    environment_set(environment, "CUDAPOLICY_AB_BLOCK", numbers[0]);
    environment_set(environment, "CUDAPOLICY_AB_POSITION", numbers[1]);
    environment_set(environment, "CUDAPOLICY_AB_FOLDER", trial->folder);
    environment_set(environment, "CUDAPOLICY_AB_OUTPUT", trial->output);
    environment_set(environment, "CUDAPOLICY_AB_ERRORS", trial->errors);
    environment_set(environment, "CUDAPOLICY_AB_REPORTS", trial->reports);
    if (!isnan(trial->run->seconds)) {
        environment_set(environment, "CUDAPOLICY_AB_SECONDS", numbers[2]);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        free(numbers[i]);
    }
    free(name);
}
