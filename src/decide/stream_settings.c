/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/stream_settings.h"

#include <string.h>

#include "decide/setting.h"
#include "decide/stream_rules.h"

static const enum policy_setting slots[DECIDE_STREAM_SLOTS] = {
    [DECIDE_STREAM_SLOT_DOMAIN] = POLICY_SETTING_MEM_SYNC_DOMAIN,
    [DECIDE_STREAM_SLOT_MAP] = POLICY_SETTING_MEM_SYNC_DOMAIN_MAP,
    [DECIDE_STREAM_SLOT_PRIORITY] = POLICY_SETTING_PRIORITY,
    [DECIDE_STREAM_SLOT_NVLINK] = POLICY_SETTING_NVLINK_UTIL_CENTRIC,
};

/* The union as the driver sees it, of which the header at hand may know only a part. */
union attribute_value {
    CUstreamAttrValue value;
    uint32_t word;
    uint8_t bytes[64];
};

enum policy_setting decide_stream_slot_setting(enum decide_stream_slot slot)
{
    return slots[slot];
}

int decide_stream_slot_attribute(enum decide_stream_slot slot)
{
    return decide_settings[slots[slot]].attribute;
}

int decide_stream_slot_of(int attribute)
{
    for (int slot = 0; slot < DECIDE_STREAM_SLOTS; slot++)
        if (decide_settings[slots[slot]].attribute == attribute)
            return slot;
    return -1;
}

int decide_stream_attribute_of(enum policy_setting setting)
{
    return decide_settings[setting].on_streams ? decide_settings[setting].attribute : -1;
}

static uint32_t map_word(uint8_t default_domain, uint8_t remote_domain)
{
    const uint8_t bytes[4] = {default_domain, remote_domain};
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

uint32_t decide_stream_word(enum decide_stream_slot slot, const union policy_value *value)
{
    return decide_setting_attribute(slots[slot], value).value.number;
}

uint32_t decide_stream_default_word(enum decide_stream_slot slot)
{
    /* Logical domains 0 and 1 are the physical ones of the same numbers, unless set otherwise. */
    return slot == DECIDE_STREAM_SLOT_MAP ? map_word(0, 1) : 0;
}

bool decide_stream_write(CUstream stream, enum decide_stream_slot slot, uint32_t word)
{
    union attribute_value attribute;
    if (!cuda_driver.cuStreamSetAttribute)
        return false;
    memset(&attribute, 0, sizeof attribute);
    attribute.word = word;
    return cuda_driver.cuStreamSetAttribute(stream,
                                            (CUstreamAttrID)decide_stream_slot_attribute(slot),
                                            &attribute.value) == CUDA_SUCCESS;
}

bool decide_stream_read(CUstream stream, enum decide_stream_slot slot, uint32_t *word)
{
    union attribute_value attribute;
    if (!cuda_driver.cuStreamGetAttribute)
        return false;
    memset(&attribute, 0, sizeof attribute);
    if (cuda_driver.cuStreamGetAttribute(stream, (CUstreamAttrID)decide_stream_slot_attribute(slot),
                                         &attribute.value) != CUDA_SUCCESS)
        return false;
    /* A map has two bytes; the rest of the word is not the driver's to define. */
    *word = slot == DECIDE_STREAM_SLOT_MAP ? map_word(attribute.bytes[0], attribute.bytes[1])
                                           : attribute.word;
    return true;
}

static int clamped(int priority, int least, int greatest)
{
    /* Lower numbers are more urgent. */
    if (priority > least)
        return least;
    return priority < greatest ? greatest : priority;
}

/*
 * The priority was given to the creating call already (decide_stream_priority). Whether the stream
 * has it is asked of the driver: the call may have been made as it came after all.
 */
static void judge_priority(CUstream stream, const struct decide_stream_request *request,
                           int32_t wanted, struct report_result *result)
{
    int least, greatest, actual;
    if (!cuda_driver.cuCtxGetStreamPriorityRange || !cuda_driver.cuStreamGetPriority ||
        cuda_driver.cuCtxGetStreamPriorityRange(&least, &greatest) != CUDA_SUCCESS ||
        cuda_driver.cuStreamGetPriority(stream, &actual) != CUDA_SUCCESS)
        return;
    if (actual != clamped(wanted, least, greatest)) {
        result->outcome = REPORT_OUTCOME_REFUSED;
        result->reason = REPORT_REASON_REFUSED_BY_DRIVER;
    } else if (request->priority_given && actual == clamped(request->priority, least, greatest)) {
        result->outcome = REPORT_OUTCOME_ALREADY_SO;
    }
}

static void make_one(CUstream stream, enum decide_stream_slot slot, uint32_t word,
                     enum decide_layer layer, struct report_result *result)
{
    if (!cuda_driver.cuStreamSetAttribute) {
        result->outcome = REPORT_OUTCOME_REFUSED;
        result->reason = layer == DECIDE_LAYER_RUNTIME ? REPORT_REASON_RUNTIME_LAYER
                                                       : REPORT_REASON_DRIVER_TOO_OLD;
    } else if (!decide_stream_write(stream, slot, word)) {
        result->outcome = REPORT_OUTCOME_REFUSED;
        result->reason = REPORT_REASON_REFUSED_BY_DRIVER;
    }
}

uint8_t decide_stream_settings_make(CUstream stream, const struct decide_stream_profile *profile,
                                    const struct decide_stream_request *request,
                                    struct report_result *results)
{
    uint8_t injected = 0;
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
        results[setting] = profile->settings[setting].result;
    for (enum decide_stream_slot slot = 0; slot < DECIDE_STREAM_SLOTS; slot++) {
        const struct policy_setting_value *value = profile->settings[slots[slot]].value;
        struct report_result *result = &results[slots[slot]];
        if (!value)
            continue;
        if (slot == DECIDE_STREAM_SLOT_PRIORITY && request->priority_given &&
            value->when_set == POLICY_WHEN_SET_KEEP) {
            result->outcome = REPORT_OUTCOME_KEPT;
            result->reason = REPORT_REASON_OWN_VALUE;
        } else if (decide_stream_mode() != POLICY_MODE_ENFORCE) {
            result->reason = REPORT_REASON_OBSERVE;
        } else if (slot == DECIDE_STREAM_SLOT_PRIORITY) {
            judge_priority(stream, request, value->value.priority, result);
        } else {
            make_one(stream, slot, decide_stream_word(slot, &value->value), request->layer, result);
        }
        if (result->outcome == REPORT_OUTCOME_APPLIED && result->reason == REPORT_REASON_NONE)
            injected |= (uint8_t)(1u << slot);
    }
    return injected;
}
