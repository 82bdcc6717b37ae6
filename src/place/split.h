/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PLACE_SPLIT_H
#define CUDAPOLICY_PLACE_SPLIT_H

/*
 * Dividing the SMs of one device among the partitions of a policy. One split serves all of them:
 * two splits of the same device would overlap.
 *
 * Before CUDA 13.1 a device is divided into the smallest equal groups that the driver makes (8 SMs
 * on compute capability 9.0), and partitions are several of them; the SMs that fit into no group go
 * to `rest`, else to a partition that would not fit without them. One that asks for fewer SMs
 * scheduled together than is usual makes the groups of all partitions of the device smaller, and
 * with them the clusters that fit. From 13.1 on each partition is a group of its own kind, and
 * `rest` is what remains, of which the driver promises nothing about clusters.
 *
 * A count is rounded up to whole groups. Per cent are rounded to SMs and then down to whole groups,
 * so that shares of a whole fit beside each other. Partitions are met in the policy's order, `rest`
 * last; one that cannot be met is refused and takes no other with it.
 *
 * Asks the driver, creates nothing: `cudapolicy show` uses it as the preloaded library does. No
 * context need be current (the resource is the device's). Not for the launch path.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/driver.h"
#include "policy/policy.h"
#include "report/outcome.h"

enum {
    PLACE_DOMAIN_LIMIT = 32,  /* locality domains of a device; further ones are not used */
    PLACE_GROUP_LIMIT = 1024, /* groups of SMs that a device is split into */
};

/* What one partition gets on one device. */
struct place_grant {
    enum report_reason reason; /* NONE: it can be made */
    CUresult result;           /* with REFUSED_BY_DRIVER or QUERY_FAILED: what the driver said */
    unsigned requested;        /* SMs; 0 for `rest` and for locality domains */
    unsigned granted;          /* SMs */
    /* SMs scheduled together, which bounds clusters; 0: not known */
    unsigned coscheduled;
    size_t resource_count; /* of resources: what cuDevResourceGenerateDesc takes */
    struct cuda_device_resource *resources;
};

struct place_split {
    CUdevice device;
    CUresult result;             /* of the first question that failed; 0: none */
    const char *failed;          /* that function's name; NULL: none */
    unsigned sms;                /* of the whole device as this process may use it (MIG, MPS) */
    unsigned minimum, alignment; /* of a partition, in SMs; 0: not known */
    bool grouped;                /* by cuDevSmResourceSplit (CUDA 13.1); else by count */
    unsigned domains;            /* locality domains, at least 1; the pretended ones where fake */
    bool fake;                   /* CUDAPOLICY_FAKE_LOCALITY_DOMAINS */
    unsigned domain_sms[PLACE_DOMAIN_LIMIT]; /* 0: not known */
    unsigned outside_domains;                /* SMs that belong to none */
    size_t grant_count;                      /* the policy's partition_count */
    struct place_grant *grants;              /* by policy_partition.index */
    struct cuda_device_resource *resources;  /* all that grants point into; owned */
};

/*
 * Splits a device. fake_domains: 0, or the number of equal parts that stand for locality domains.
 * selected(partition, context): whether the partition exists on this device (its `device`
 * selector); the others get REPORT_REASON_NO_PARTITION. NULL: all do. policy may have no partition:
 * then only what is known of the device is filled in. NULL only without memory; else the caller
 * frees the answer with place_split_free. A failure of the driver makes the partitions concerned
 * refused.
 */
struct place_split *
place_split_make(const struct policy *policy, CUdevice device, unsigned fake_domains,
                 bool (*selected)(const struct policy_partition *partition, void *context),
                 void *context);
void place_split_free(struct place_split *split);

/* Whether the driver has every function that partitions need (CUDA 12.5). Without one, all are
 * refused: DRIVER_TOO_OLD. */
bool place_split_possible(void);

/* CUDAPOLICY_FAKE_LOCALITY_DOMAINS as a number: 2 to PLACE_DOMAIN_LIMIT; 0 for NULL, "" and "0"; -1
 * when it is none. */
int place_fake_domains_parse(const char *text);

#endif
