/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of placed launches and nodes share: partitions of a policy on the recording
 * driver. */
#ifndef CUDAPOLICY_TEST_DECIDE_PLACE_SUPPORT_H
#define CUDAPOLICY_TEST_DECIDE_PLACE_SUPPORT_H

#include "test_decide_graph_support.h"

#include "decide/node_place.h"
#include "decide/placement.h"
#include "place/partition.h"

#define PLACE_PARTITIONS                                                                           \
    "[partition side]\nsm_count = 16\n"                                                            \
    "[partition main]\nsm_count = rest\n"

/* The policy made of two partitions and rules, with the partitions there. */
static inline void place_begin(const char *rules)
{
    char text[2048];
    snprintf(text, sizeof text, PLACE_PARTITIONS "%s", rules);
    support_begin(text);
    place_start(support_policy, 0, decide_partition_is_on);
    place_device_active(0, true);
}

static inline int place_teardown(void **state)
{
    place_device_resetting(0);
    place_start(NULL, 0, NULL);
    return support_teardown(state);
}

static inline const struct place_partition *place_side(void)
{
    const struct place_partition *side = place_partition_find(0, 0);
    assert_int_equal(side->reason, REPORT_REASON_NONE);
    assert_int_equal(side->sms, 16);
    return side;
}

#define PLACE_TEST(name) cmocka_unit_test_setup_teardown(name, support_setup, place_teardown)

#endif
