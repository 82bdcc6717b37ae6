/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_SETTING_H
#define CUDAPOLICY_DECIDE_SETTING_H

/* Settings as launch attributes: which attribute, how its value looks, since when drivers know it.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "cuda/interface.h"
#include "policy/policy.h"

struct decide_setting {
    uint8_t attribute;  /* CUlaunchAttributeID */
    uint8_t size;       /* bytes of the value that count */
    bool mem_sync;      /* made in any graph, and while capturing */
    bool by_device;     /* what the device can decides about it */
    bool on_streams;    /* streams have this attribute too */
    bool runtime_layer; /* cannot be refused, so may be made where only the runtime sees launches */
    int driver_version; /* the first driver that knows it */
};

#define DECIDE_SETTINGS_ASKED (UINT32_C(1) << 31) /* in decide_settings_answer */

extern const struct decide_setting decide_settings[POLICY_SETTING_COUNT]
    __attribute__((visibility("hidden")));

/* The settings that the driver is too old for, 1 << enum policy_setting. None when its version is
 * not known. Launch path; the first call asks for the version. */
uint32_t decide_settings_ask_too_new(void);
extern _Atomic uint32_t decide_settings_answer __attribute__((visibility("hidden")));
static inline uint32_t decide_settings_too_new(void)
{
    uint32_t answer = atomic_load_explicit(&decide_settings_answer, memory_order_relaxed);
    return answer ? answer & ~DECIDE_SETTINGS_ASKED : decide_settings_ask_too_new();
}

/* Forgets the driver's version. */
void decide_setting_start(void);

/* The attribute that makes the setting; unused bytes are zero. */
struct cuda_launch_attribute decide_setting_attribute(enum policy_setting setting,
                                                      const union policy_value *value);

/* True when two attributes of the setting say the same. Launch path. */
static inline bool decide_setting_same(const struct decide_setting *setting,
                                       const struct cuda_launch_attribute *a,
                                       const struct cuda_launch_attribute *b)
{
    if (setting->size == 4)
        return a->value.number == b->value.number;
    if (setting->size == 2)
        return memcmp(a->value.bytes, b->value.bytes, 2) == 0;
    return memcmp(a->value.bytes, b->value.bytes, 12) == 0;
}

#endif
