/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PLACE_SPLIT_PARTS_H
#define CUDAPOLICY_PLACE_SPLIT_PARTS_H

/* What the files of the split share. */

#include "place/split.h"

enum {
    SPLIT_NOBODY = 255, /* no request; more than POLICY_PARTITION_LIMIT */
};

/* One split on its way: the partitions that exist on the device and are not refused yet, in the
 * policy's order. */
struct split_work {
    struct place_split *split;
    struct cuda_device_resource whole; /* the device's SMs */
    unsigned alignment;                /* SMs of a co-scheduled group by default; 0: not known */
    unsigned count;
    const struct policy_partition *requests[POLICY_PARTITION_LIMIT];
};

struct place_grant *split_grant(const struct split_work *work, unsigned request);

/* A number of SMs that the policy names, as a count or per cent; not `rest`, not a domain. */
bool split_is_sized(const struct policy_partition *partition);

/* The request `rest`; SPLIT_NOBODY: there is none. More than one: the first. */
unsigned split_rest(const struct split_work *work);

/* SMs that the policy asks for; 0 where it names no number. */
unsigned split_requested(const struct split_work *work, const struct policy_partition *partition);

void split_refuse(const struct split_work *work, unsigned request, enum report_reason reason,
                  CUresult result);

/* A call came back with an error: every request is refused for it. failed: the function. */
void split_failed(const struct split_work *work, const char *failed, CUresult result);

/* Whether the error says that the SMs cannot be divided like this; others say that the driver does
 * not answer. */
bool split_is_refusal(CUresult result);

/* Divides the SMs among the requests: with cuDevSmResourceSplitByCount, or with
 * cuDevSmResourceSplit. False: no memory. */
bool split_counted(const struct split_work *work);
bool split_grouped(const struct split_work *work);

#endif
