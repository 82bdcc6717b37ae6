/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The split into groups of their own sizes (CUDA 13.1, with locality domains from 13.4 on). No such
 * driver was at hand: everything here is from the documentation in cuda.h 13.1 to 13.5, or assumed
 * where it says so. Documented are the meaning of every field, the order of evaluation, and error
 * 915 for a group that ends with no SM or with less than are to be co-scheduled; assumed are the
 * codes of all other mistakes, and which of several fitting SMs are taken: those with the lowest
 * numbers.
 */
#include "newer.h"
#include "resource.h"
#include <string.h>

#define GROUPS_MAX 256

static uint32_t flags_known(void)
{
    uint32_t flags = GROUP_BACKFILL;
    if (configuration.version >= 13040)
        flags |= GROUP_LOCALITY_DOMAIN;
    if (configuration.version >= 13050)
        flags |= GROUP_SUPPLEMENTAL_SMS;
    return flags;
}

/* Documented: 8 from compute capability 9.0 on, else 2. The programming guide calls 0 "no
 * restriction" instead; COSCHEDULED_DEFAULT=2 is that reading. */
static unsigned int unit_of(const struct resource_group *group)
{
    if (group->coscheduled != 0)
        return group->coscheduled;
    if (configuration.coscheduled != 0)
        return (unsigned int)configuration.coscheduled;
    return configuration.capability_major >= 9 ? 8 : 2;
}

static bool has_domain(const struct resource_group *group)
{
    return (group->flags & GROUP_LOCALITY_DOMAIN) != 0;
}

static CUresult check_domain(const struct resource_group *group)
{
    /* Before 13.4 this word is reserved, and reserved ones are to be zero. */
    if (!has_domain(group))
        return group->domain == 0 || configuration.version >= 13040 ? CUDA_SUCCESS
                                                                    : CUDA_ERROR_INVALID_VALUE;
    if (group->domain == DOMAIN_ANY)
        return configuration.version >= 13050 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    return group->domain < (uint32_t)domain_count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_group(const struct resource_group *group, unsigned int total)
{
    unsigned int unit = unit_of(group);
    unsigned int most = configuration.capability_major >= 9 ? 32 : 2; /* documented */
    uint32_t reserved = 0;
    for (size_t i = 0; i < sizeof(group->reserved) / sizeof(group->reserved[0]); i++)
        reserved |= group->reserved[i];
    if (reserved != 0 || (group->flags & ~flags_known()) != 0 ||
        ((group->flags & GROUP_SUPPLEMENTAL_SMS) != 0 && !has_domain(group)))
        return CUDA_ERROR_INVALID_VALUE;
    if (group->coscheduled % 2 != 0 || group->coscheduled > most || group->preferred % unit != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_domain(group);
    if (result != CUDA_SUCCESS || group->count == 0)
        return result;
    /* Documented: even, at most what there is, and a multiple of the SMs to be co-scheduled; since
     * 13.4 only of a number that is given. */
    bool multiple = group->count % unit == 0 || (group->flags & GROUP_BACKFILL) != 0 ||
                    (group->coscheduled == 0 && configuration.version >= 13040);
    if (group->count % 2 != 0 || group->count > total || !multiple)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    return CUDA_SUCCESS;
}

/* The SMs that may be in the group as they lie. Documented: of a domain as many as the device
 * attribute says, and the others with the supplemental flag. */
static struct sm_set allowed(const struct sm_set *available, const struct resource_group *group)
{
    if (!has_domain(group))
        return *available;
    struct sm_set set = {{0}};
    unsigned int seen[SIZES_MAX] = {0};
    unsigned int most = (unsigned int)domain_multiprocessors();
    for (unsigned int sm = 0; sm < SM_MAX; sm++) {
        int domain = domain_of(sm);
        if (domain == DOMAIN_NONE)
            continue;
        bool surplus = seen[domain]++ >= most && (group->flags & GROUP_SUPPLEMENTAL_SMS) == 0;
        bool wanted = group->domain == DOMAIN_ANY || group->domain == (uint32_t)domain;
        if (wanted && !surplus && sm_set_has(available, sm))
            sm_set_add(&set, sm);
    }
    return set;
}

/* Documented for backfill: first the domain, then SMs of none, then those of other domains. */
static void backfill(struct sm_set *set, const struct sm_set *available,
                     const struct resource_group *group)
{
    struct sm_set unattributed = {{0}};
    for (unsigned int sm = 0; sm < SM_MAX; sm++)
        if (sm_set_has(available, sm) && domain_of(sm) == DOMAIN_NONE)
            sm_set_add(&unattributed, sm);
    if (has_domain(group))
        sm_set_fill(set, &unattributed, group->count);
    sm_set_fill(set, available, group->count);
}

static void add_units(struct sm_set *set, struct sm_set *from, unsigned int unit, unsigned int most)
{
    while (sm_set_count(set) + unit <= most) {
        struct sm_set part = gpc_take(from, unit);
        if (sm_set_count(&part) == 0)
            break;
        sm_set_unite(set, &part);
    }
}

/* The SMs of one group, of those that are still available. */
static CUresult choose(const struct sm_set *available, const struct resource_group *group,
                       bool wanted, struct sm_set *set)
{
    struct sm_set from = allowed(available, group);
    struct sm_set units = from;
    unsigned int unit = unit_of(group);
    unsigned int most = group->count == 0 ? SM_MAX : group->count;
    memset(set, 0, sizeof(*set));
    if (group->preferred > unit)
        add_units(set, &units, group->preferred, most);
    add_units(set, &units, unit, most);
    /* Documented: even a backfilled group has what is to be co-scheduled once. */
    if (sm_set_count(set) == 0)
        return wanted || group->count != 0 ? CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
                                           : CUDA_SUCCESS;
    bool filled = (group->flags & GROUP_BACKFILL) != 0;
    if (group->count == 0) {
        if (filled)
            sm_set_fill(set, &from,
                        sm_set_count(&from) & ~1u); /* assumed: within the domain, even */
        return CUDA_SUCCESS;
    }
    if (filled || group->coscheduled == 0)
        sm_set_fill(set, &from, group->count);
    if (filled)
        backfill(set, available, group);
    return sm_set_count(set) == group->count ? CUDA_SUCCESS
                                             : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

static void add_group(struct call *call, unsigned int index, const struct resource_group *group,
                      const struct sm_set *set)
{
    if (call->record == NULL)
        return;
    call_add(call, "group%u=%u/%u/%u/%u/%u granted%u=%u sm_set%u=", index, group->count,
             group->coscheduled, group->preferred, group->flags, group->domain, index,
             sm_set_count(set), index);
    text_sm_set(&call->details, set);
}

/* All groups in their order; nothing is written before all of them are known to fit. */
static CUresult choose_all(struct call *call, struct sm_set *available,
                           const struct resource_group *groups, unsigned int count, bool wanted,
                           struct sm_set *sets)
{
    unsigned int total = sm_set_count(available);
    for (unsigned int i = 0; i < count; i++) {
        CUresult result = check_group(&groups[i], total);
        if (result == CUDA_SUCCESS)
            result = choose(available, &groups[i], wanted, &sets[i]);
        if (result != CUDA_SUCCESS) {
            call_add(call, "refused=%u", i);
            return result;
        }
        sm_set_remove(available, &sets[i]);
        add_group(call, i, &groups[i], &sets[i]);
    }
    return CUDA_SUCCESS;
}

static CUresult split(struct call *call, CUdevResource *outputs, unsigned int count,
                      const CUdevResource *input, CUdevResource *remainder, unsigned int flags,
                      struct resource_group *groups)
{
    static struct sm_set sets[GROUPS_MAX]; /* guarded by the driver's lock */
    struct resource_mark mark;
    if (input == NULL || groups == NULL || flags != 0 || count == 0 || count > GROUPS_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!resource_read(input, &mark))
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    /* Documented: it has to come from a question, or to be the remainder of such a split. */
    if (mark.origin != RESOURCE_QUERIED && mark.origin != RESOURCE_STRUCTURED_REST)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    struct sm_set available = mark.sms;
    CUresult result = choose_all(call, &available, groups, count, outputs != NULL, sets);
    if (result != CUDA_SUCCESS)
        return result;
    mark.split = resource_next_split();
    mark.origin = RESOURCE_STRUCTURED;
    for (unsigned int i = 0; i < count; i++) {
        unsigned int unit = unit_of(&groups[i]);
        struct resource_shape shape = {unit, unit, groups[i].flags,
                                       has_domain(&groups[i]) ? groups[i].domain : 0};
        mark.sms = sets[i];
        mark.together = unit;
        groups[i].count = sm_set_count(&sets[i]);
        if (outputs != NULL)
            resource_write(&outputs[i], &mark, &shape);
    }
    /* Documented: the remainder has no structure. Assumed: it says so by an alignment of 2. */
    struct resource_shape loose = {2, 2, 0, 0};
    mark.origin = RESOURCE_STRUCTURED_REST;
    mark.sms = available;
    mark.together = 2;
    if (outputs != NULL && remainder != NULL)
        resource_write(remainder, &mark, &loose);
    call_add(call, "rest=%u", sm_set_count(&available));
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevSmResourceSplit(CUdevResource *result, unsigned int nbGroups,
                                      const CUdevResource *input, CUdevResource *remainder,
                                      unsigned int flags,
                                      CU_DEV_SM_RESOURCE_GROUP_PARAMS *groupParams)
{
    struct call call = call_begin(__func__);
    call_add(&call, "flags=%u groups=%u results=%d", flags, nbGroups, result != NULL);
    if (call.result == CUDA_SUCCESS)
        call.result = split(&call, result, nbGroups, input, remainder, flags, (void *)groupParams);
    return call_end(&call, call.result);
}
