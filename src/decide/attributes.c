/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/attributes.h"

#include <string.h>

#include "decide/setting.h"

static const struct cuda_launch_attribute *value_of(const struct decide_case *at, unsigned setting)
{
    const struct decide_choice *choices =
        at->from_stream & 1u << setting ? at->resolution->stream_choices : at->resolution->choices;
    return &choices[setting].attribute;
}

/* The attributes that are not in the program's array, or are taken away from there first. */
static uint32_t appended(const struct decide_case *at)
{
    uint32_t result = 0;
    for (uint32_t left = at->set; left; left &= left - 1) {
        unsigned setting = (unsigned)__builtin_ctz(left);
        uint32_t bit = 1u << decide_settings[setting].attribute;
        if (!(at->present & bit) || (at->removed & bit))
            result |= 1u << setting;
    }
    return result;
}

static unsigned drop_removed(struct cuda_launch_attribute *attributes, unsigned count,
                             uint32_t removed)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < count; i++) {
        if (attributes[i].id < 32 && (removed >> attributes[i].id & 1))
            continue;
        if (kept != i)
            attributes[kept] = attributes[i];
        kept++;
    }
    return kept;
}

/* DEVICE_UPDATABLE_KERNEL_NODE is the one attribute into which the driver writes. */
static void find_output(const struct decide_case *at, struct decide_verdict *verdict,
                        unsigned count)
{
    verdict->output_index[1] = (int8_t)at->last[CUDA_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE];
    for (unsigned i = count; i > 0; i--)
        if (verdict->attributes[i - 1].id == CUDA_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) {
            verdict->output_index[0] = (int8_t)(i - 1);
            return;
        }
}

static void append_cooperative(struct cuda_launch_attribute *attribute)
{
    memset(attribute, 0, sizeof *attribute);
    attribute->id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute->value.number = 1;
}

bool decide_attributes_merge(const struct decide_case *at, struct decide_verdict *verdict)
{
    const CUlaunchConfig *config = at->launch->config;
    const struct cuda_launch_attribute *own = (const void *)config->attrs;
    struct cuda_launch_attribute *attributes = verdict->attributes;
    bool cooperative =
        at->launch->cooperative && !(at->present & 1u << CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
    uint32_t fresh = appended(at);
    unsigned count = config->numAttrs;
    if (count > DECIDE_ATTRIBUTE_LIMIT ||
        count + (unsigned)__builtin_popcount(fresh) + cooperative > DECIDE_ATTRIBUTE_LIMIT)
        return false;
    for (unsigned i = 0; i < count; i++)
        attributes[i] = own[i];
    for (uint32_t left = at->set & ~fresh; left; left &= left - 1) {
        unsigned setting = (unsigned)__builtin_ctz(left);
        attributes[at->last[decide_settings[setting].attribute]] = *value_of(at, setting);
    }
    if (at->removed)
        count = drop_removed(attributes, count, at->removed);
    for (uint32_t left = fresh; left; left &= left - 1)
        attributes[count++] = *value_of(at, (unsigned)__builtin_ctz(left));
    if (cooperative)
        append_cooperative(&attributes[count++]);
    verdict->output_index[0] = verdict->output_index[1] = -1;
    if (at->present & 1u << CUDA_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
        find_output(at, verdict, count);
    verdict->config = *config;
    verdict->config.attrs = (CUlaunchAttribute *)(void *)attributes;
    verdict->config.numAttrs = count;
    return true;
}

void decide_attributes_copy_back(const struct decide_launch *launch,
                                 const struct decide_verdict *verdict)
{
    if (verdict->output_index[0] < 0)
        return;
    struct cuda_launch_attribute *own = (void *)launch->config->attrs;
    own[verdict->output_index[1]].value.device_updatable.device_node =
        verdict->attributes[verdict->output_index[0]].value.device_updatable.device_node;
}
