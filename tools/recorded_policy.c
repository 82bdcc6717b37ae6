/* SPDX-License-Identifier: Apache-2.0 */
#include "recorded_policy.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void hexadecimal(const uint8_t *bytes, size_t count, char *text)
{
    for (size_t i = 0; i < count; i++) {
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
}

struct policy *recorded_policy(const struct results *results)
{
    const struct results_process *first = &results->processes[0];
    struct policy_diagnostics diagnostics;
    struct policy *policy;
    char sha256[65];

    for (size_t i = 0; i < results->process_count; i++) {
        if (strcmp(results->processes[i].policy_sha256, first->policy_sha256) != 0) {
            return NULL;
        }
    }
    if (first->policy_path[0] != '/' || access(first->policy_path, R_OK) != 0) {
        return NULL;
    }
    policy_diagnostics_init(&diagnostics);
    policy = policy_load(first->policy_path, &diagnostics);
    policy_diagnostics_release(&diagnostics);
    if (policy == NULL) {
        return NULL;
    }
    hexadecimal(policy->sha256, sizeof policy->sha256, sha256);
    if (strcmp(sha256, first->policy_sha256) != 0) {
        policy_free(policy);
        return NULL;
    }
    return policy;
}
