/* SPDX-License-Identifier: Apache-2.0 */
/* Another policy for a process that runs. */
#include "decide/reload.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decide/decide.h"
#include "decide/device.h"
#include "decide/rule_set.h"
#include "policy/print.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void decide_reload_start(void)
{
    pthread_mutex_init(&mutex, NULL);
}

const struct decide_rule_set *decide_rules_in_force(void)
{
    return decide_rule_set_for_streams();
}

/* In the policy language; NULL when memory is short. */
static char *partition_text(const struct policy_partition *partition)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    policy_partition_print(stream, partition);
    bool whole = !ferror(stream);
    if (fclose(stream) == 0 && whole)
        return text;
    free(text);
    return NULL;
}

static bool same_partition(const struct policy_partition *one, const struct policy_partition *other)
{
    if (one->named != other->named || one->layer != other->layer ||
        strcmp(one->name, other->name) != 0)
        return false;
    char *left = partition_text(one), *right = partition_text(other);
    bool same = left && right && strcmp(left, right) == 0;
    free(left);
    free(right);
    return same;
}

static const struct policy_partition *partition_at(const struct policy *policy, size_t i)
{
    return i < policy->partition_count ? &policy->partitions[i] : NULL;
}

/* They are made once for a device, all together, and rules name them by their position. */
static bool same_partitions(const struct policy *policy, const struct policy *before, char *error,
                            size_t size)
{
    for (size_t i = 0; i < policy->partition_count || i < before->partition_count; i++) {
        const struct policy_partition *one = partition_at(policy, i);
        const struct policy_partition *other = partition_at(before, i);
        if (one && other && same_partition(one, other))
            continue;
        snprintf(error, size,
                 "partition %s is not as it was: partitions are made once, so a policy that has "
                 "others needs a new start of the program",
                 one ? one->name : other->name);
        return false;
    }
    return true;
}

static bool reload(struct policy *policy, const struct policy *before,
                   const struct decide_process *process, char *error, size_t size)
{
    if (!same_partitions(policy, before, error, size))
        return false;
    if (!decide_rule_set_number(policy)) {
        snprintf(error, size, "no room for more rules beside those that this process had before");
        return false;
    }
    struct decide_rule_set *set = decide_rule_set_make(policy, process, POLICY_MODE_ENFORCE);
    if (!set) {
        snprintf(error, size, "out of memory");
        return false;
    }
    decide_device_add_forms(policy);
    decide_rule_set_enforce(set);
    return true;
}

bool decide_reload(struct policy *policy, const struct policy *before,
                   const struct decide_process *process, char *error, size_t size)
{
    pthread_mutex_lock(&mutex);
    bool done = reload(policy, before, process, error, size);
    pthread_mutex_unlock(&mutex);
    return done;
}
