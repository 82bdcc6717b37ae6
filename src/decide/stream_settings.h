/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_STREAM_SETTINGS_H
#define CUDAPOLICY_DECIDE_STREAM_SETTINGS_H

/*
 * The settings of streams as the driver takes them. Some calls here go to the driver, so no lock
 * may be held around them; none is for the launch path.
 */

#include <stdbool.h>
#include <stdint.h>

#include "decide/stream.h"

/* The setting and the launch attribute of a slot; the slot of an attribute, -1 where it has none.
 */
enum policy_setting decide_stream_slot_setting(enum decide_stream_slot slot);
int decide_stream_slot_attribute(enum decide_stream_slot slot);
int decide_stream_slot_of(int attribute);

/* A rule's value, and what a new stream has, as the first 32 bits of the attribute's value. The
 * priority of a new stream is the one it was created with. */
uint32_t decide_stream_word(enum decide_stream_slot slot, const union policy_value *value);
uint32_t decide_stream_default_word(enum decide_stream_slot slot);

/* What the driver holds for a created stream, by slot; false for streams not known and default
 * ones. Makes no call. Locks. */
bool decide_stream_words(CUstream stream, bool per_thread_default,
                         uint32_t words[DECIDE_STREAM_SLOTS]);

/* Sets one attribute; false when the driver refuses or does not know the call. */
bool decide_stream_write(CUstream stream, enum decide_stream_slot slot, uint32_t word);
bool decide_stream_read(CUstream stream, enum decide_stream_slot slot, uint32_t *word);

/*
 * Makes the settings of a new stream's profile, each on its own. results has POLICY_SETTING_COUNT
 * entries and says afterwards what became of each. Returns the slots that the driver now holds by a
 * rule, as bits.
 */
uint8_t decide_stream_settings_make(CUstream stream, const struct decide_stream_profile *profile,
                                    const struct decide_stream_request *request,
                                    struct report_result *results);

#endif
