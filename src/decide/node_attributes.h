/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_NODE_ATTRIBUTES_H
#define CUDAPOLICY_DECIDE_NODE_ATTRIBUTES_H

/*
 * The attributes of kernel nodes by which settings are made, with what the program itself had
 * there. Calls the driver; not for the launch path.
 */

#include <stdbool.h>
#include <stdint.h>

#include "decide/decide.h"
#include "decide/node_place.h"
#include "decide/setting.h"

/* The value of an attribute; the words behind decide_settings[].size are zero. */
struct decide_node_value {
    uint32_t words[3];
};

/* Attributes by setting; present has bit 1 << setting where there is a value. */
struct decide_node_values {
    uint16_t present;
    struct decide_node_value of[POLICY_SETTING_COUNT];
};

/* Settings of ours that a node has, and what the program had there before. */
struct decide_node_injection {
    uint16_t settings; /* 1 << setting */
    struct decide_node_value program[POLICY_SETTING_COUNT];
    struct decide_node_place place; /* of the bit of POLICY_SETTING_PARTITION */
};

/* All settings that a node has as attributes. Programmatic serialization is none: in a graph it is
 * an edge. */
#define DECIDE_NODE_SETTINGS                                                                       \
    (((1u << POLICY_SETTING_COUNT) - 1) & ~(1u << POLICY_SETTING_PROGRAMMATIC_SERIALIZATION) &     \
     ~(1u << POLICY_SETTING_PARTITION))

bool decide_node_value_same(const struct decide_node_value *a, const struct decide_node_value *b);

/* What a node has to which nobody did anything. */
struct decide_node_value decide_node_default(enum policy_setting setting);

/* The settings in wanted (bits) as the node has them; those that the driver does not tell are left
 * out. */
void decide_node_read(CUgraphNode node, uint32_t wanted, struct decide_node_values *values);

/* True when the node is a cooperative one. */
bool decide_node_is_cooperative(CUgraphNode node);

CUresult decide_node_write(CUgraphNode node, enum policy_setting setting,
                           const struct decide_node_value *value);

/* From and to launch attributes. decide_node_gather: the settings among attributes; of an id that
 * is there twice the last counts, as in the driver. */
struct cuda_launch_attribute decide_node_attribute(enum policy_setting setting,
                                                   const struct decide_node_value *value);
void decide_node_gather(const struct cuda_launch_attribute *attributes, unsigned count,
                        struct decide_node_values *values);

/* The setting that an attribute makes on a node; -1: none. */
int decide_node_setting_of(int attribute);

#endif
