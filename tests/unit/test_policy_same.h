/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TEST_POLICY_SAME_H
#define CUDAPOLICY_TEST_POLICY_SAME_H

/* Are two policies the same, places in the file aside? Used by the round-trip test and the fuzzer.
 */

#include <string.h>

#include "policy/environment.h"
#include "policy/policy.h"

static inline bool same_globs(const struct policy_globs *left, const struct policy_globs *right)
{
    if (left->count != right->count) {
        return false;
    }
    for (size_t i = 0; i < left->count; i++) {
        if (strcmp(left->patterns[i], right->patterns[i]) != 0) {
            return false;
        }
    }
    return true;
}

static inline bool same_ranges(const struct policy_ranges *left, const struct policy_ranges *right)
{
    if (left->count != right->count) {
        return false;
    }
    for (size_t i = 0; i < left->count; i++) {
        if (left->ranges[i].low != right->ranges[i].low ||
            left->ranges[i].high != right->ranges[i].high) {
            return false;
        }
    }
    return true;
}

static inline bool same_devices(const struct policy_devices *left,
                                const struct policy_devices *right)
{
    if (left->count != right->count) {
        return false;
    }
    for (size_t i = 0; i < left->count; i++) {
        const struct policy_device *one = &left->devices[i], *other = &right->devices[i];

        if (one->form != other->form || one->index.low != other->index.low ||
            one->index.high != other->index.high ||
            one->uuid.bytes_known != other->uuid.bytes_known ||
            memcmp(one->uuid.bytes, other->uuid.bytes, sizeof one->uuid.bytes) != 0 ||
            one->pci.domain != other->pci.domain || one->pci.bus != other->pci.bus ||
            one->pci.device != other->pci.device) {
            return false;
        }
    }
    return true;
}

static inline bool same_selectors(const struct policy_selectors *left,
                                  const struct policy_selectors *right)
{
    return same_globs(&left->name, &right->name) && same_globs(&left->not_name, &right->not_name) &&
           left->name_form == right->name_form && same_globs(&left->stream, &right->stream) &&
           same_ranges(&left->launch_stream, &right->launch_stream) &&
           same_ranges(&left->grid_blocks, &right->grid_blocks) &&
           same_ranges(&left->block_threads, &right->block_threads) &&
           same_ranges(&left->shared_memory, &right->shared_memory) &&
           same_ranges(&left->arm, &right->arm) && left->captured == right->captured &&
           same_ranges(&left->created_priority, &right->created_priority) &&
           same_ranges(&left->index, &right->index) && left->flags == right->flags &&
           left->kinds == right->kinds && same_globs(&left->library, &right->library) &&
           same_globs(&left->not_library, &right->not_library) &&
           same_globs(&left->host, &right->host) && same_devices(&left->device, &right->device) &&
           same_ranges(&left->rank, &right->rank) &&
           same_ranges(&left->local_rank, &right->local_rank) &&
           same_ranges(&left->world_size, &right->world_size);
}

static inline bool same_setting(enum policy_setting setting,
                                const struct policy_setting_value *left,
                                const struct policy_setting_value *right)
{
    const union policy_value *one = &left->value, *other = &right->value;

    if (left->action != right->action || left->when_set != right->when_set) {
        return false;
    }
    if (left->action != POLICY_ACTION_SET) {
        return true;
    }
    switch (setting) {
    case POLICY_SETTING_MEM_SYNC_DOMAIN:
        return one->mem_sync_domain == other->mem_sync_domain;
    case POLICY_SETTING_MEM_SYNC_DOMAIN_MAP:
        return one->mem_sync_domain_map.default_domain ==
                   other->mem_sync_domain_map.default_domain &&
               one->mem_sync_domain_map.remote_domain == other->mem_sync_domain_map.remote_domain;
    case POLICY_SETTING_CLUSTER_DIM:
    case POLICY_SETTING_PREFERRED_CLUSTER_DIM:
        return one->cluster_dim.x == other->cluster_dim.x &&
               one->cluster_dim.y == other->cluster_dim.y &&
               one->cluster_dim.z == other->cluster_dim.z;
    case POLICY_SETTING_CLUSTER_SCHEDULING:
        return one->cluster_scheduling == other->cluster_scheduling;
    case POLICY_SETTING_PRIORITY:
        return one->priority == other->priority;
    case POLICY_SETTING_SHARED_MEMORY_CARVEOUT:
        return one->shared_memory_carveout == other->shared_memory_carveout;
    case POLICY_SETTING_NVLINK_UTIL_CENTRIC:
        return one->nvlink_util_centric == other->nvlink_util_centric;
    case POLICY_SETTING_PARTITION:
        return one->partition == other->partition &&
               strcmp(left->partition_name, right->partition_name) == 0;
    default:
        return false;
    }
}

static inline bool same_rule(const struct policy_rule *left, const struct policy_rule *right)
{
    if (left->section != right->section || left->index != right->index ||
        strcmp(left->name, right->name) != 0 || left->final != right->final ||
        left->graph_nodes != right->graph_nodes || left->unsafe_cluster != right->unsafe_cluster ||
        left->unsafe_residency != right->unsafe_residency ||
        left->allow_blocking != right->allow_blocking ||
        left->allow_legacy != right->allow_legacy ||
        !same_selectors(&left->selectors, &right->selectors)) {
        return false;
    }
    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        if (!same_setting((enum policy_setting)setting, &left->settings[setting],
                          &right->settings[setting])) {
            return false;
        }
    }
    return true;
}

static inline bool same_partition(const struct policy_partition *left,
                                  const struct policy_partition *right)
{
    return left->index == right->index && strcmp(left->name, right->name) == 0 &&
           left->named == right->named && left->kind == right->kind &&
           left->number == right->number &&
           left->coscheduled_sm_count == right->coscheduled_sm_count &&
           left->backfill == right->backfill && same_devices(&left->device, &right->device);
}

static inline bool same_variation(const struct policy_variation *left,
                                  const struct policy_variation *right)
{
    if (left->section != right->section || strcmp(left->name, right->name) != 0 ||
        strcmp(left->key, right->key) != 0 || left->value_count != right->value_count) {
        return false;
    }
    for (size_t i = 0; i < left->value_count; i++) {
        if (strcmp(left->values[i], right->values[i]) != 0) {
            return false;
        }
    }
    return true;
}

static inline bool same_policy(const struct policy *left, const struct policy *right)
{
    if (left->version != right->version || left->mode != right->mode ||
        left->rule_count != right->rule_count || left->partition_count != right->partition_count ||
        left->variation_count != right->variation_count ||
        left->expectation_count != right->expectation_count ||
        !policy_variables_same(left, right)) {
        return false;
    }
    for (size_t i = 0; i < left->expectation_count; i++) {
        const struct policy_expectation *one = &left->expectations[i];
        const struct policy_expectation *other = &right->expectations[i];

        if (one->rule != other->rule || one->quantity != other->quantity ||
            one->comparison != other->comparison || one->number != other->number) {
            return false;
        }
    }
    for (size_t i = 0; i < left->variation_count; i++) {
        if (!same_variation(&left->variations[i], &right->variations[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < left->partition_count; i++) {
        if (!same_partition(&left->partitions[i], &right->partitions[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < left->rule_count; i++) {
        if (!same_rule(&left->rules[i], &right->rules[i])) {
            return false;
        }
    }
    return true;
}

#endif
