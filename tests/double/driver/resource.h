/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECORDING_DRIVER_RESOURCE_H
#define RECORDING_DRIVER_RESOURCE_H

/*
 * Resources of SMs, as this driver writes them into the caller's structures. The layouts are those
 * of cuda.h 13.5, which are the same in every version since 12.4 apart from fields that were
 * reserved before; resource.c compares them with the headers that this is built with.
 */
#include "driver.h"

/* CUdevResource of type SM. */
struct resource {
    int32_t type;
    uint8_t padding[92];
    uint32_t count;
    uint32_t minimum, alignment; /* 13.0 */
    uint32_t flags;              /* 13.1 */
    uint32_t domain;             /* 13.4 */
    uint8_t reserved[20];
    struct resource *next; /* 13.1 */
};

/* CU_DEV_SM_RESOURCE_GROUP_PARAMS of 13.1. */
struct resource_group {
    uint32_t count; /* in and out */
    uint32_t coscheduled, preferred;
    uint32_t flags;
    uint32_t domain; /* 13.4 */
    uint32_t reserved[11];
};

enum {
    GROUP_BACKFILL = 1,            /* 13.1 */
    GROUP_LOCALITY_DOMAIN = 2,     /* 13.4 */
    GROUP_SUPPLEMENTAL_SMS = 4,    /* 13.5 */
    SPLIT_IGNORE_COSCHEDULING = 1, /* of the split by count */
    SPLIT_MAX_CLUSTER = 2,
};

#define DOMAIN_ANY UINT32_MAX /* 13.5 */

/* Where a resource came from decides what may be done with it. */
enum resource_origin {
    RESOURCE_QUERIED,
    RESOURCE_BY_COUNT,
    RESOURCE_BY_COUNT_REST,
    RESOURCE_STRUCTURED, /* of cuDevSmResourceSplit */
    RESOURCE_STRUCTURED_REST,
};

/* What we keep in a resource's padding; the driver's own content there is private. */
struct resource_mark {
    uint32_t magic;
    int32_t device;
    uint32_t origin;
    uint32_t split; /* number of the split call; 0 for a queried one */
    struct sm_set sms;
    uint32_t together; /* SMs that are co-scheduled and so the largest cluster; 0: as the device */
};

/* False for what is no resource of SMs of this driver. */
bool resource_read(const CUdevResource *resource, struct resource_mark *mark);
/* The mark without a single SM makes a resource of no type. */
void resource_write(CUdevResource *resource, const struct resource_mark *mark,
                    const struct resource_shape *shape);
/* What a resource of the whole device, or one that was not structured, says. */
struct resource_shape resource_standard(void);
unsigned int resource_next_split(void);

#endif
