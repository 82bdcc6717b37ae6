/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/node_attributes.h"

#include <string.h>

union attribute_value {
    CUkernelNodeAttrValue value;
    uint32_t words[16];
    uint8_t bytes[64];
};

static const struct cuda_launch_attribute no_attribute;

bool decide_node_value_same(const struct decide_node_value *a, const struct decide_node_value *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

struct decide_node_value decide_node_default(enum policy_setting setting)
{
    struct decide_node_value value = {0};
    /* Logical domain 1 is physical domain 1. A carveout of 0 is what a new node answers (measured
     * on driver 580), and -1, the default of a launch, it refuses. */
    if (setting == POLICY_SETTING_MEM_SYNC_DOMAIN_MAP) {
        const uint8_t map[2] = {0, 1};
        memcpy(&value, map, sizeof map);
    }
    return value;
}

void decide_node_read(CUgraphNode node, uint32_t wanted, struct decide_node_values *values)
{
    memset(values, 0, sizeof *values);
    if (!cuda_driver.cuGraphKernelNodeGetAttribute)
        return;
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        union attribute_value attribute;
        if (!(wanted & DECIDE_NODE_SETTINGS & 1u << setting))
            continue;
        memset(&attribute, 0, sizeof attribute);
        if (cuda_driver.cuGraphKernelNodeGetAttribute(
                node, (CUkernelNodeAttrID)decide_settings[setting].attribute, &attribute.value) !=
            CUDA_SUCCESS)
            continue;
        memcpy(&values->of[setting], attribute.bytes, decide_settings[setting].size);
        values->present |= (uint16_t)(1u << setting);
    }
}

bool decide_node_is_cooperative(CUgraphNode node)
{
    union attribute_value attribute;
    memset(&attribute, 0, sizeof attribute);
    return cuda_driver.cuGraphKernelNodeGetAttribute &&
           cuda_driver.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                                     &attribute.value) == CUDA_SUCCESS &&
           attribute.words[0] != 0;
}

CUresult decide_node_write(CUgraphNode node, enum policy_setting setting,
                           const struct decide_node_value *value)
{
    union attribute_value attribute;
    if (!cuda_driver.cuGraphKernelNodeSetAttribute)
        return CUDA_ERROR_NOT_SUPPORTED;
    memset(&attribute, 0, sizeof attribute);
    memcpy(attribute.bytes, value, decide_settings[setting].size);
    return cuda_driver.cuGraphKernelNodeSetAttribute(
        node, (CUkernelNodeAttrID)decide_settings[setting].attribute, &attribute.value);
}

struct cuda_launch_attribute decide_node_attribute(enum policy_setting setting,
                                                   const struct decide_node_value *value)
{
    struct cuda_launch_attribute attribute = no_attribute;
    attribute.id = decide_settings[setting].attribute;
    memcpy(attribute.value.bytes, value, decide_settings[setting].size);
    return attribute;
}

int decide_node_setting_of(int attribute)
{
    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++)
        if ((DECIDE_NODE_SETTINGS & 1u << setting) &&
            decide_settings[setting].attribute == attribute)
            return setting;
    return -1;
}

void decide_node_gather(const struct cuda_launch_attribute *attributes, unsigned count,
                        struct decide_node_values *values)
{
    memset(values, 0, sizeof *values);
    for (unsigned i = 0; i < count; i++) {
        int setting = decide_node_setting_of((int)attributes[i].id);
        if (setting < 0)
            continue;
        values->present |= (uint16_t)(1u << setting);
        memset(&values->of[setting], 0, sizeof values->of[setting]);
        memcpy(&values->of[setting], attributes[i].value.bytes, decide_settings[setting].size);
    }
}
