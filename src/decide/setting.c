/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/setting.h"

#include "cuda/driver.h"

/*
 * Driver versions: those of the first toolkit whose cuda.h names the attribute (cuda.h
 * of 11.8, 12.0 to 12.9, 13.0 to 13.5 compared). An older driver answers INVALID_VALUE to an
 * attribute that it does not know, as measured with one that no driver knows.
 */
const struct decide_setting decide_settings[POLICY_SETTING_COUNT] = {
    [POLICY_SETTING_MEM_SYNC_DOMAIN] = {.attribute = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
                                        .size = 4,
                                        .mem_sync = true,
                                        .by_device = true,
                                        .on_streams = true,
                                        .runtime_layer = true,
                                        .driver_version = 12000},
    [POLICY_SETTING_MEM_SYNC_DOMAIN_MAP] = {.attribute = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
                                            .size = 2,
                                            .mem_sync = true,
                                            .by_device = true,
                                            .on_streams = true,
                                            .runtime_layer = true,
                                            .driver_version = 12000},
    [POLICY_SETTING_CLUSTER_DIM] = {.attribute = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                    .size = 12,
                                    .by_device = true,
                                    .driver_version = 11080},
    [POLICY_SETTING_PREFERRED_CLUSTER_DIM] = {.attribute =
                                                  CUDA_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
                                              .size = 12,
                                              .by_device = true,
                                              .driver_version = 12080},
    [POLICY_SETTING_CLUSTER_SCHEDULING] =
        {.attribute = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
         .size = 4,
         .by_device = true,
         .driver_version = 11080},
    [POLICY_SETTING_PRIORITY] = {.attribute = CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                 .size = 4,
                                 .on_streams = true,
                                 .runtime_layer = true,
                                 .driver_version = 11080},
    [POLICY_SETTING_SHARED_MEMORY_CARVEOUT] = {.attribute =
                                                   CUDA_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                               .size = 4,
                                               .driver_version = 12050},
    [POLICY_SETTING_NVLINK_UTIL_CENTRIC] = {.attribute =
                                                CUDA_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING,
                                            .size = 4,
                                            .on_streams = true,
                                            .driver_version = 13000},
    [POLICY_SETTING_PROGRAMMATIC_SERIALIZATION] =
        {.attribute = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
         .size = 4,
         .runtime_layer = true,
         .driver_version = 11080},
    /* No attribute: by where the launch or stream goes. cuGreenCtxStreamCreate came with 12.5. */
    [POLICY_SETTING_PARTITION] = {.driver_version = 12050},
};

_Atomic uint32_t decide_settings_answer;

void decide_setting_start(void)
{
    atomic_store(&decide_settings_answer, 0);
}

uint32_t decide_settings_ask_too_new(void)
{
    int version = cuda_driver_version();
    uint32_t answer = DECIDE_SETTINGS_ASKED;
    for (unsigned setting = 0; version > 0 && setting < POLICY_SETTING_COUNT; setting++)
        if (version < decide_settings[setting].driver_version)
            answer |= 1u << setting;
    atomic_store_explicit(&decide_settings_answer, answer, memory_order_relaxed);
    return answer & ~DECIDE_SETTINGS_ASKED;
}

struct cuda_launch_attribute decide_setting_attribute(enum policy_setting setting,
                                                      const union policy_value *value)
{
    struct cuda_launch_attribute attribute;
    memset(&attribute, 0, sizeof attribute);
    attribute.id = decide_settings[setting].attribute;
    switch (setting) {
    case POLICY_SETTING_MEM_SYNC_DOMAIN:
        attribute.value.number = value->mem_sync_domain;
        break;
    case POLICY_SETTING_MEM_SYNC_DOMAIN_MAP:
        attribute.value.mem_sync_domain_map.default_domain =
            value->mem_sync_domain_map.default_domain;
        attribute.value.mem_sync_domain_map.remote_domain =
            value->mem_sync_domain_map.remote_domain;
        break;
    case POLICY_SETTING_CLUSTER_DIM:
    case POLICY_SETTING_PREFERRED_CLUSTER_DIM:
        attribute.value.cluster_dim.x = value->cluster_dim.x;
        attribute.value.cluster_dim.y = value->cluster_dim.y;
        attribute.value.cluster_dim.z = value->cluster_dim.z;
        break;
    case POLICY_SETTING_CLUSTER_SCHEDULING:
        attribute.value.number = value->cluster_scheduling;
        break;
    case POLICY_SETTING_PRIORITY:
        attribute.value.priority = value->priority;
        break;
    case POLICY_SETTING_SHARED_MEMORY_CARVEOUT:
        attribute.value.number = (uint32_t)value->shared_memory_carveout;
        break;
    case POLICY_SETTING_NVLINK_UTIL_CENTRIC:
        attribute.value.number = value->nvlink_util_centric;
        break;
    case POLICY_SETTING_PROGRAMMATIC_SERIALIZATION:
    case POLICY_SETTING_PARTITION: /* not by an attribute */
    case POLICY_SETTING_COUNT:
        break;
    }
    return attribute;
}
