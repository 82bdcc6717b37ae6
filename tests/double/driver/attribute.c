/* SPDX-License-Identifier: Apache-2.0 */
/* Launch attributes: which there are, where they are allowed, and what beats what. */
#include "driver.h"
#include <string.h>

#define BIT(id) (UINT32_C(1) << (id))

/* Documented in CUlaunchAttributeID: "Valid for streams, graph nodes, launches". Measured: 16 is
 * not for streams, and a node takes it but does not tell it. */
static const uint32_t on_stream = BIT(1) | BIT(3) | BIT(8) | BIT(9) | BIT(10);
static const uint32_t on_node = BIT(1) | BIT(2) | BIT(4) | BIT(5) | BIT(8) | BIT(9) | BIT(10) |
                                BIT(11) | BIT(13) | BIT(14) | BIT(16) | BIT(17) | BIT(18);

/* The CUDA version in which an attribute appeared; 0 for ids that never did. */
static int attribute_version(unsigned int id)
{
    switch (id) {
    case ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
        return 12080;
    case ATTRIBUTE_SHARED_MEMORY_CARVEOUT:
        return 12050;
    case ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        return 13000;
    case ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE:
    case ATTRIBUTE_SHARED_MEMORY_MODE:
        return 13020;
    case 15:
        return 0;
    default:
        return id <= 14 ? 11080 : 0;
    }
}

bool attribute_known(unsigned int id)
{
    int version = attribute_version(id);
    return version != 0 && version <= configuration.version;
}

bool attribute_on_stream(unsigned int id)
{
    return attribute_known(id) && (on_stream & BIT(id)) != 0;
}

bool attribute_on_node(unsigned int id)
{
    return attribute_known(id) && (on_node & BIT(id)) != 0;
}

bool attribute_told_by_node(unsigned int id)
{
    return attribute_on_node(id) && id != ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING;
}

void attribute_put(struct attribute_set *set, unsigned int id, const CUlaunchAttributeValue *value)
{
    set->present |= BIT(id);
    set->value[id] = *value;
}

void attribute_remove(struct attribute_set *set, unsigned int id)
{
    set->present &= ~BIT(id);
}

bool attribute_has(const struct attribute_set *set, unsigned int id)
{
    return (set->present & BIT(id)) != 0;
}

void attribute_merge(struct attribute_set *set, const struct attribute_set *from)
{
    for (unsigned int id = 0; id < ATTRIBUTE_IDS; id++)
        if (attribute_has(from, id))
            attribute_put(set, id, &from->value[id]);
}

void attribute_default(unsigned int id, CUlaunchAttributeValue *value)
{
    memset(value, 0, sizeof(*value));
    /* Documented at CUlaunchMemSyncDomainMap: default is domain 0 and remote is domain 1; a device
     * with one domain has nothing but 0. */
    if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP && configuration.domains > 1)
        value->memSyncDomainMap.remote = 1;
}

CUresult attribute_check(unsigned int id, CUlaunchAttributeValue *value)
{
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        /* Measured: a value of the domain count or more is an invalid value. */
        if (value->memSyncDomainMap.default_ >= configuration.domains ||
            value->memSyncDomainMap.remote >= configuration.domains)
            return CUDA_ERROR_INVALID_VALUE;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        /* Documented: CUlaunchMemSyncDomain has these two values. */
        if ((unsigned int)value->memSyncDomain > 1)
            return CUDA_ERROR_INVALID_VALUE;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        if ((unsigned int)value->clusterSchedulingPolicyPreference > 2)
            return CUDA_ERROR_INVALID_VALUE;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        /* Measured: out of range is clamped and succeeds. */
        if (value->priority > configuration.priority_least)
            value->priority = configuration.priority_least;
        if (value->priority < configuration.priority_greatest)
            value->priority = configuration.priority_greatest;
        return CUDA_SUCCESS;
    default:
        return CUDA_SUCCESS;
    }
}

void attribute_list(const struct attribute_set *set, struct recording_attributes *list)
{
    list->count = 0;
    for (unsigned int id = 0; id < ATTRIBUTE_IDS; id++) {
        if (!attribute_has(set, id))
            continue;
        CUlaunchAttribute *entry = &list->list[list->count++];
        memset(entry, 0, sizeof(*entry));
        entry->id = (CUlaunchAttributeID)id;
        entry->value = set->value[id];
    }
}
