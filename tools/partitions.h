/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_PARTITIONS_H
#define CUDAPOLICY_TOOLS_PARTITIONS_H

/* How the SMs of this machine's devices can be divided, and what the partitions of a policy would
 * get. Asks the driver that devices_read has loaded; creates nothing. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "policy/policy.h"

/* policy: NULL for none. fake_domains as in place_split_make. */
void partitions_print(size_t device_count, const struct policy *policy, unsigned fake_domains,
                      bool wide);

/* The same, as two members of each device's object in the array: "partitioning", and with a policy
 * "partitions". */
void partitions_json(json_t *devices, const struct policy *policy, unsigned fake_domains);

#endif
