/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TEST_PLACE_SPLIT_SUPPORT_H
#define CUDAPOLICY_TEST_PLACE_SPLIT_SUPPORT_H

/*
 * A driver that divides SMs, for tests of the split: cuda_driver is filled with functions that
 * answer for one device, whose SMs lie in GPU processing clusters and locality domains. A resource
 * carries the set of its SMs in its padding, so that a test sees whether two share one.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cuda/driver.h"
#include "place/split.h"

enum {
    FAKE_SMS = 256,
    FAKE_NO_DOMAIN = -1,
    FAKE_DEVICE = 3,
};

/* Which SMs. */
struct fake_set {
    bool has[FAKE_SMS];
};

static struct {
    int version, major;
    unsigned sms;                  /* of the resource */
    unsigned cluster_of[FAKE_SMS]; /* GPU processing cluster */
    int domain_of[FAKE_SMS];
    int domains, domain_sms; /* attributes 149 and 157 */
    /* Localized groups are co-scheduled by default, too. The guide says that they are not, reports
     * of programs that they are. */
    bool localized_coscheduled;
    unsigned minimum, alignment;
    unsigned group_limit; /* of one split into groups; 0: none */
    /* The call of this name, or the one that is the last-th of it, fails. */
    const char *failing;
    unsigned failing_call; /* 0: every one */
    CUresult failure;
    unsigned counted, grouped, attributes; /* calls */
    unsigned flags;                        /* of the last split by count */
    struct fake_set sets[4096];            /* what resources carry the numbers of */
    unsigned set_count;
} fake;

/* ---- The device ------------------------------------------------------------------------------ */

static inline void fake_add_cluster(unsigned sms, int domain)
{
    unsigned number = fake.sms == 0 ? 0 : fake.cluster_of[fake.sms - 1] + 1;

    for (unsigned i = 0; i < sms; i++) {
        fake.cluster_of[fake.sms] = number;
        fake.domain_of[fake.sms++] = domain;
    }
}

static inline CUresult fake_result(const char *name, unsigned call)
{
    if (fake.failing != NULL && strcmp(fake.failing, name) == 0 &&
        (fake.failing_call == 0 || fake.failing_call == call))
        return fake.failure;
    return CUDA_SUCCESS;
}

static inline void fake_fill(struct cuda_device_resource *resource, const struct fake_set *set)
{
    unsigned number = fake.set_count++;

    memset(resource, 0, sizeof *resource);
    assert_true(fake.set_count <= sizeof fake.sets / sizeof fake.sets[0]);
    fake.sets[number] = *set;
    memcpy(resource->internal_padding, &number, sizeof number);
    for (unsigned i = 0; i < FAKE_SMS; i++)
        resource->of.sm.sm_count += set->has[i];
    if (resource->of.sm.sm_count == 0)
        return; /* no resource at all: type 0 */
    resource->type = CUDA_RESOURCE_TYPE_SM;
    /* Before 13.0 these bytes are the driver's own. */
    resource->of.sm.minimum_partition_size = fake.version >= 13000 ? fake.minimum : 77;
    resource->of.sm.coscheduled_alignment = fake.version >= 13000 ? fake.alignment : 77;
}

static inline const struct fake_set *fake_set_of(const struct cuda_device_resource *resource)
{
    unsigned number;

    memcpy(&number, resource->internal_padding, sizeof number);
    assert_true(number < fake.set_count);
    return &fake.sets[number];
}

/* ---- Its functions --------------------------------------------------------------------------- */

static inline CUresult fake_version(int *version)
{
    *version = fake.version;
    return fake_result("cuDriverGetVersion", 1);
}

static inline CUresult fake_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    assert_int_equal(device, FAKE_DEVICE);
    fake.attributes++;
    *value = 0;
    if ((int)attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        *value = fake.major;
    else if ((int)attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        *value = (int)fake.sms;
    else if ((int)attribute == CUDA_DEVICE_LOCALITY_DOMAIN_COUNT && fake.version >= 13040)
        *value = fake.domains;
    else if ((int)attribute == CUDA_DEVICE_LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT &&
             fake.version >= 13040)
        *value = fake.domain_sms;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return fake_result("cuDeviceGetAttribute", fake.attributes);
}

static inline CUresult fake_resource(CUdevice device, struct cuda_device_resource *resource,
                                     int type)
{
    struct fake_set all = {{0}};

    assert_int_equal(device, FAKE_DEVICE);
    assert_int_equal(type, CUDA_RESOURCE_TYPE_SM);
    for (unsigned i = 0; i < fake.sms; i++)
        all.has[i] = true;
    fake_fill(resource, &all);
    return fake_result("cuDeviceGetDevResource", 1);
}

/* Takes up to units times size SMs, each size of one cluster and of the domain; how many units. */
static inline unsigned fake_take(struct fake_set *from, struct fake_set *to, unsigned size,
                                 unsigned units, int domain)
{
    unsigned taken = 0;

    for (unsigned first = 0; first < fake.sms && taken < units; first++) {
        unsigned list[FAKE_SMS], count = 0;

        for (unsigned i = first; i < fake.sms && count < size; i++)
            if (from->has[i] && fake.cluster_of[i] == fake.cluster_of[first] &&
                (domain == FAKE_NO_DOMAIN || fake.domain_of[i] == domain))
                list[count++] = i;
        if (count < size)
            continue;
        for (unsigned i = 0; i < size; i++) {
            from->has[list[i]] = false;
            to->has[list[i]] = true;
        }
        taken++;
        first--;
    }
    return taken;
}

static inline CUresult fake_split_by_count(struct cuda_device_resource *results, unsigned *groups,
                                           const struct cuda_device_resource *input,
                                           struct cuda_device_resource *remaining, unsigned flags,
                                           unsigned minimum)
{
    struct fake_set left = *fake_set_of(input);
    unsigned size = (flags & CUDA_SM_SPLIT_IGNORE_COSCHEDULING) != 0 ? 2 : fake.minimum;
    unsigned count = 0;
    CUresult result = fake_result("cuDevSmResourceSplitByCount", ++fake.counted);

    if (result != CUDA_SUCCESS)
        return result;
    fake.flags = flags;
    if (minimum > size)
        size = (minimum + size - 1) / size * size;
    for (struct fake_set group; results == NULL || count < *groups; count++) {
        group = (struct fake_set){{0}};
        if (fake_take(&left, &group, size, 1, FAKE_NO_DOMAIN) == 0)
            break;
        if (results != NULL)
            fake_fill(&results[count], &group);
    }
    *groups = count;
    if (remaining != NULL)
        fake_fill(remaining, &left);
    return CUDA_SUCCESS;
}

static inline bool fake_group_is_valid(const struct cuda_sm_group *group, unsigned together)
{
    bool backfill = (group->flags & CUDA_SM_GROUP_BACKFILL) != 0;

    return together <= 32 && group->sm_count % 2 == 0 &&
           (backfill ? group->sm_count == 0 || group->sm_count >= together
                     : group->sm_count % together == 0);
}

/* As documented for 13.1 and 13.4; 0 SMs: the group cannot be had. */
static inline unsigned fake_group(struct fake_set *left, struct fake_set *set,
                                  struct cuda_sm_group *group)
{
    bool localized = (group->flags & CUDA_SM_GROUP_LOCALITY_DOMAIN) != 0;
    bool backfill = (group->flags & CUDA_SM_GROUP_BACKFILL) != 0;
    int domain = localized ? (int)group->locality_domain : FAKE_NO_DOMAIN;
    unsigned together = group->coscheduled_sm_count, wanted, taken;

    if (together == 0)
        together = localized && !fake.localized_coscheduled ? 1 : fake.alignment;
    if (!localized)
        group->coscheduled_sm_count = together;
    wanted = group->sm_count != 0 ? group->sm_count : FAKE_SMS * together;
    taken = together * fake_take(left, set, together, wanted / together, domain);
    if (backfill && taken < wanted)
        taken += fake_take(left, set, 1, wanted - taken, domain);
    if (backfill && taken < wanted)
        taken += fake_take(left, set, 1, wanted - taken, FAKE_NO_DOMAIN);
    return taken < wanted && group->sm_count != 0 ? 0 : taken;
}

static inline CUresult fake_split(struct cuda_device_resource *results, unsigned count,
                                  const struct cuda_device_resource *input,
                                  struct cuda_device_resource *remainder, unsigned flags,
                                  struct cuda_sm_group *groups)
{
    struct fake_set left = *fake_set_of(input);
    CUresult result = fake_result("cuDevSmResourceSplit", ++fake.grouped);

    assert_int_equal(flags, 0);
    assert_int_not_equal(count, 0);
    if (fake.group_limit != 0 && count > fake.group_limit)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
        struct fake_set set = {{0}};
        unsigned together = groups[i].coscheduled_sm_count, sms;

        if (together == 0)
            together = (groups[i].flags & CUDA_SM_GROUP_LOCALITY_DOMAIN) ? 2 : fake.alignment;
        for (unsigned r = 0; r < 11; r++)
            assert_int_equal(groups[i].reserved[r], 0);
        if (!fake_group_is_valid(&groups[i], together))
            return CUDA_ERROR_INVALID_VALUE;
        sms = fake_group(&left, &set, &groups[i]);
        groups[i].sm_count = sms;
        if (sms == 0 && results != NULL)
            return (CUresult)CUDA_RESULT_INVALID_RESOURCE_CONFIGURATION;
        if (results != NULL)
            fake_fill(&results[i], &set);
    }
    if (remainder != NULL && result == CUDA_SUCCESS)
        fake_fill(remainder, &left);
    return result;
}

/* Never called by a split: it only asks whether they are there. */
static inline CUresult fake_describe(cuda_resource_description *description,
                                     struct cuda_device_resource *resources, unsigned count)
{
    (void)description, (void)resources, (void)count;
    fail();
    return CUDA_SUCCESS;
}

static inline CUresult fake_create(cuda_green_context *green, cuda_resource_description description,
                                   CUdevice device, unsigned flags)
{
    (void)green, (void)description, (void)device, (void)flags;
    fail();
    return CUDA_SUCCESS;
}

static inline CUresult fake_context(CUcontext *context, cuda_green_context green)
{
    (void)context, (void)green;
    fail();
    return CUDA_SUCCESS;
}

static inline CUresult fake_stream(CUstream *stream, cuda_green_context green, unsigned flags,
                                   int priority)
{
    (void)stream, (void)green, (void)flags, (void)priority;
    fail();
    return CUDA_SUCCESS;
}

/* ---- Devices to test with -------------------------------------------------------------------- */

static inline void fake_driver(int version, int major)
{
    memset(&fake, 0, sizeof fake);
    fake.version = version;
    fake.major = major;
    fake.minimum = fake.alignment = 8;
    fake.domains = 1;
    memset(&cuda_driver, 0, sizeof cuda_driver);
    cuda_driver.cuDriverGetVersion = fake_version;
    cuda_driver.cuDeviceGetAttribute = fake_attribute;
    cuda_driver.cuDeviceGetDevResource = fake_resource;
    cuda_driver.cuDevSmResourceSplitByCount = fake_split_by_count;
    cuda_driver.cuDevSmResourceSplit = version >= 13010 ? fake_split : NULL;
    cuda_driver.cuDevResourceGenerateDesc = fake_describe;
    cuda_driver.cuGreenCtxCreate = fake_create;
    cuda_driver.cuCtxFromGreenCtx = fake_context;
    cuda_driver.cuGreenCtxStreamCreate = fake_stream;
}

/* 132 SMs that make 15 groups of 8, and 12 SMs in none: measured. How they lie is made up. */
static inline void fake_h200(int version)
{
    fake_driver(version, 9);
    for (int i = 0; i < 6; i++)
        fake_add_cluster(18, FAKE_NO_DOMAIN);
    fake_add_cluster(16, FAKE_NO_DOMAIN);
    fake_add_cluster(8, FAKE_NO_DOMAIN);
}

/* Two domains of so many SMs each, and some in none. */
static inline void fake_two_domains(unsigned first, unsigned second, unsigned outside)
{
    fake_driver(13040, 10);
    fake.domains = 2;
    fake.domain_sms = (int)(first < second ? first : second);
    for (int domain = 0; domain < 2; domain++)
        for (unsigned left = domain == 0 ? first : second; left != 0;) {
            unsigned size = left < 18 ? left : 18;

            fake_add_cluster(size, domain);
            left -= size;
        }
    if (outside != 0)
        fake_add_cluster(outside, 99);
}

static inline void fake_fail(const char *name, unsigned call, int failure)
{
    fake.failing = name;
    fake.failing_call = call;
    fake.failure = (CUresult)failure;
}

/* ---- Policies and what comes of them --------------------------------------------------------- */

static inline struct policy_partition sm_count(uint32_t number)
{
    return (struct policy_partition){.kind = POLICY_PARTITION_SM_COUNT, .number = number};
}

static inline struct policy_partition percent(uint32_t number)
{
    return (struct policy_partition){.kind = POLICY_PARTITION_SM_PERCENT, .number = number};
}

static inline struct policy_partition rest(void)
{
    return (struct policy_partition){.kind = POLICY_PARTITION_SM_REST};
}

static inline struct policy_partition domain(uint32_t number)
{
    return (struct policy_partition){.kind = POLICY_PARTITION_LOCALITY_DOMAIN, .number = number};
}

static inline struct policy_partition together(struct policy_partition partition, uint32_t sms)
{
    partition.coscheduled_sm_count = sms;
    return partition;
}

static inline struct policy_partition backfilled(struct policy_partition partition)
{
    partition.backfill = true;
    return partition;
}

/* What holds of every split: no SM twice, all that is granted is there, and nothing else. */
static inline void check_split(const struct place_split *split)
{
    struct fake_set used = {{0}};

    for (size_t i = 0; i < split->grant_count; i++) {
        const struct place_grant *grant = &split->grants[i];
        unsigned sms = 0;

        assert_int_equal(grant->reason == REPORT_REASON_NONE, grant->resource_count != 0);
        assert_int_equal(grant->resource_count != 0, grant->resources != NULL);
        for (size_t r = 0; r < grant->resource_count; r++) {
            const struct fake_set *set = fake_set_of(&grant->resources[r]);

            assert_int_equal(grant->resources[r].type, CUDA_RESOURCE_TYPE_SM);
            for (unsigned sm = 0; sm < FAKE_SMS; sm++) {
                assert_false(set->has[sm] && used.has[sm]);
                used.has[sm] |= set->has[sm];
                sms += set->has[sm];
            }
        }
        assert_int_equal(grant->granted, sms);
    }
    assert_int_equal(split->failed != NULL, split->result != CUDA_SUCCESS);
}

static struct place_split *last_split;
static unsigned fake_domains;
static bool (*selected)(const struct policy_partition *partition, void *context);

static inline const struct place_split *split_of(struct policy_partition *partitions, size_t count)
{
    struct policy policy = {.partition_count = count, .partitions = partitions};

    for (size_t i = 0; i < count; i++)
        partitions[i].index = (uint16_t)i;
    place_split_free(last_split);
    last_split = place_split_make(&policy, FAKE_DEVICE, fake_domains, selected, &fake);
    assert_non_null(last_split);
    check_split(last_split);
    return last_split;
}

/* A split among these partitions; valid until the next one. */
#define SPLIT(...)                                                                                 \
    split_of((struct policy_partition[]){__VA_ARGS__},                                             \
             sizeof((struct policy_partition[]){__VA_ARGS__}) / sizeof(struct policy_partition))

static inline int forget_split(void **state)
{
    (void)state;
    place_split_free(last_split);
    last_split = NULL;
    fake_domains = 0;
    selected = NULL;
    return 0;
}

static inline void assert_granted(const struct place_split *split, size_t partition, unsigned sms)
{
    assert_int_equal(split->grants[partition].reason, REPORT_REASON_NONE);
    assert_int_equal(split->grants[partition].granted, sms);
}

static inline void assert_refused(const struct place_split *split, size_t partition,
                                  enum report_reason reason)
{
    assert_int_equal(split->grants[partition].reason, reason);
    assert_int_equal(split->grants[partition].granted, 0);
}

#endif
