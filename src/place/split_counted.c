/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A split into equal groups (cuDevSmResourceSplitByCount, CUDA 12.4). The groups are as small as
 * the driver makes them; a partition is several of them, and one may have the SMs that fit into no
 * group. An H200 has 15 groups of 8 SMs and 12 SMs more.
 *
 * A descriptor may combine outputs of one split (CUDA programming guide, "Green Contexts").
 */
#include "place/split_parts.h"

#include <stdlib.h>
#include <string.h>

struct counted {
    unsigned size;        /* SMs of a group */
    unsigned groups;      /* how many */
    unsigned remainder;   /* SMs in none */
    unsigned coscheduled; /* SMs of a group that are scheduled together */
    /* The groups that stand for locality domain i: first[i] up to first[i + 1]. */
    unsigned first[PLACE_DOMAIN_LIMIT + 1];
    struct cuda_device_resource *outputs; /* the groups, then the remainder */
};

/* Which request has a group; the last entry is about the remainder. */
struct plan {
    uint8_t owner[PLACE_GROUP_LIMIT + 1];
    unsigned fitting; /* requests that have what they asked for */
};

/* ---- Asking the driver ----------------------------------------------------------------------- */

/*
 * Groups of co-scheduled SMs are the smallest that can hold clusters as the device is used to. Who
 * asks for less gets smaller groups, and so does every other partition of the device: there is one
 * split for all, and one flag for a split.
 */
static unsigned split_flags(const struct split_work *work)
{
    for (unsigned i = 0; i < work->count; i++) {
        unsigned together = work->requests[i]->coscheduled_sm_count;

        if (together != 0 && together < work->alignment)
            return CUDA_SM_SPLIT_IGNORE_COSCHEDULING;
    }
    return 0;
}

static bool is_output(const struct cuda_device_resource *resource)
{
    return resource->type == CUDA_RESOURCE_TYPE_SM && resource->of.sm.sm_count != 0;
}

static void measure(const struct split_work *work, unsigned flags, struct counted *counted)
{
    const struct cuda_device_resource *group = &counted->outputs[0];
    const struct cuda_device_resource *rest = &counted->outputs[counted->groups];

    counted->size = counted->groups != 0 ? group->of.sm.sm_count : 0;
    if (counted->size == 0)
        counted->groups = 0;
    counted->remainder = is_output(rest) ? rest->of.sm.sm_count : 0;
    counted->coscheduled = flags != 0 || work->alignment == 0 || work->alignment > counted->size
                               ? counted->size
                               : work->alignment;
}

/* False: no memory. Without groups in the answer the requests are refused already. */
static bool ask_groups(const struct split_work *work, struct counted *counted)
{
    unsigned flags = split_flags(work), count = 0;
    CUresult result;

    /* With no place for results it tells how many there would be. */
    result = cuda_driver.cuDevSmResourceSplitByCount(NULL, &count, &work->whole, NULL, flags, 1);
    if (result != CUDA_SUCCESS) {
        split_failed(work, "cuDevSmResourceSplitByCount", result);
        return true;
    }
    if (count > PLACE_GROUP_LIMIT)
        count = PLACE_GROUP_LIMIT;
    counted->outputs = calloc(count + 1, sizeof *counted->outputs);
    if (counted->outputs == NULL)
        return false;
    counted->groups = count;
    if (count == 0)
        return true;
    result = cuda_driver.cuDevSmResourceSplitByCount(
        counted->outputs, &counted->groups, &work->whole, &counted->outputs[count], flags, 1);
    if (result != CUDA_SUCCESS) {
        counted->groups = 0;
        split_failed(work, "cuDevSmResourceSplitByCount", result);
        return true;
    }
    if (counted->groups < count)
        counted->outputs[counted->groups] = counted->outputs[count];
    else
        counted->groups = count;
    measure(work, flags, counted);
    return true;
}

/* ---- Parts that stand for locality domains -----------------------------------------------------
 */

/* As near to equal parts as whole groups allow, with a group for each; the remainder belongs to the
 * last. */
static void pretend_domains(const struct split_work *work, struct counted *counted)
{
    struct place_split *split = work->split;
    unsigned total = counted->groups * counted->size + counted->remainder, first = 0;

    if (counted->groups < 2) {
        split->domains = 1;
        split->domain_sms[0] = split->sms;
        counted->first[1] = counted->groups;
        return;
    }
    if (split->domains > counted->groups)
        split->domains = counted->groups;
    for (unsigned i = 0; i < split->domains; i++) {
        unsigned target = total * (i + 1) / split->domains;
        unsigned end = (target + counted->size / 2) / counted->size;
        unsigned most = counted->groups - (split->domains - 1 - i);

        if (end <= first)
            end = first + 1;
        if (end > most || i + 1 == split->domains)
            end = most;
        counted->first[i] = first;
        counted->first[i + 1] = end;
        split->domain_sms[i] = (end - first) * counted->size;
        first = end;
    }
    split->domain_sms[split->domains - 1] += counted->remainder;
}

/* ---- Who gets what -----------------------------------------------------------------------------
 */

static unsigned take(struct plan *plan, unsigned first, unsigned end, unsigned wanted,
                     unsigned request)
{
    unsigned taken = 0;

    for (unsigned i = first; i < end && taken < wanted; i++) {
        if (plan->owner[i] == SPLIT_NOBODY) {
            plan->owner[i] = (uint8_t)request;
            taken++;
        }
    }
    return taken;
}

static bool take_remainder(struct plan *plan, const struct counted *counted, unsigned request)
{
    uint8_t *owner = &plan->owner[counted->groups];

    if (counted->remainder == 0 || *owner != SPLIT_NOBODY)
        return false;
    *owner = (uint8_t)request;
    return true;
}

static unsigned groups_free(const struct plan *plan, const struct counted *counted)
{
    unsigned count = 0;

    for (unsigned i = 0; i < counted->groups; i++)
        count += plan->owner[i] == SPLIT_NOBODY;
    return count;
}

static bool plan_domain(struct plan *plan, const struct split_work *work,
                        const struct counted *counted, unsigned request)
{
    unsigned domain = work->requests[request]->number;
    bool any;

    if (domain >= work->split->domains)
        return false;
    any = take(plan, counted->first[domain], counted->first[domain + 1], counted->groups,
               request) != 0;
    if (domain + 1 == work->split->domains)
        any |= take_remainder(plan, counted, request);
    return any;
}

/*
 * SMs that a sized request has to have. A count is met by whole groups that are at least as many.
 * Per cent are a share: rounded down to whole groups, so that shares of a whole fit beside each
 * other.
 */
static unsigned needed(const struct split_work *work, const struct counted *counted,
                       unsigned request)
{
    unsigned sms = split_requested(work, work->requests[request]);

    if (work->requests[request]->kind == POLICY_PARTITION_SM_PERCENT)
        sms -= sms % counted->size;
    return sms != 0 ? sms : 1;
}

static bool plan_sized(struct plan *plan, const struct split_work *work,
                       const struct counted *counted, unsigned request, bool remainder)
{
    unsigned sms = needed(work, counted, request), groups;

    remainder =
        remainder && counted->remainder != 0 && plan->owner[counted->groups] == SPLIT_NOBODY;
    if (remainder)
        sms = sms > counted->remainder ? sms - counted->remainder : 0;
    groups = (sms + counted->size - 1) / counted->size;
    if (groups > groups_free(plan, counted))
        return false;
    take(plan, 0, counted->groups, groups, request);
    if (remainder)
        take_remainder(plan, counted, request);
    return true;
}

/* with_remainder: the sized request that may have it; SPLIT_NOBODY: none. */
static void make_plan(struct plan *plan, const struct split_work *work,
                      const struct counted *counted, unsigned with_remainder)
{
    unsigned rest = split_rest(work);

    memset(plan->owner, SPLIT_NOBODY, sizeof plan->owner);
    plan->fitting = 0;
    for (unsigned i = 0; i < work->count; i++) {
        if (split_is_sized(work->requests[i]))
            plan->fitting += plan_sized(plan, work, counted, i, i == with_remainder);
        else if (work->requests[i]->kind == POLICY_PARTITION_LOCALITY_DOMAIN)
            plan->fitting += plan_domain(plan, work, counted, i);
    }
    if (rest != SPLIT_NOBODY) {
        bool any = take(plan, 0, counted->groups, counted->groups, rest) != 0;

        any |= take_remainder(plan, counted, rest);
        plan->fitting += any;
    }
}

/* The remainder goes to `rest`; without one, to the request with which more requests fit: the last
 * of several, as the first are met without it. */
static void best_plan(struct plan *plan, const struct split_work *work,
                      const struct counted *counted)
{
    struct plan other;

    make_plan(plan, work, counted, SPLIT_NOBODY);
    if (plan->fitting == work->count || split_rest(work) != SPLIT_NOBODY || counted->remainder == 0)
        return;
    for (unsigned i = work->count; i-- > 0;) {
        if (!split_is_sized(work->requests[i]))
            continue;
        make_plan(&other, work, counted, i);
        if (other.fitting > plan->fitting)
            *plan = other;
    }
}

/* ---- Grants ------------------------------------------------------------------------------------
 */

static void give(const struct split_work *work, const struct counted *counted,
                 const struct plan *plan, unsigned request, struct cuda_device_resource **next)
{
    struct place_grant *grant = split_grant(work, request);

    grant->resources = *next;
    for (unsigned i = 0; i <= counted->groups; i++) {
        if (plan->owner[i] != request)
            continue;
        *(*next)++ = counted->outputs[i];
        grant->resource_count++;
        grant->granted += counted->outputs[i].of.sm.sm_count;
        if (i < counted->groups) /* the remainder promises nothing */
            grant->coscheduled = counted->coscheduled;
    }
    if (grant->resource_count != 0)
        return;
    grant->resources = NULL;
    if (work->requests[request]->kind == POLICY_PARTITION_LOCALITY_DOMAIN &&
        work->requests[request]->number >= work->split->domains)
        split_refuse(work, request, REPORT_REASON_NO_SUCH_LOCALITY_DOMAIN, CUDA_SUCCESS);
    else
        split_refuse(work, request, REPORT_REASON_NOT_ENOUGH_SMS, CUDA_SUCCESS);
}

/* False: no memory. */
static bool give_all(const struct split_work *work, const struct counted *counted)
{
    struct place_split *split = work->split;
    struct cuda_device_resource *next;
    struct plan plan;

    if (counted->groups == 0) {
        for (unsigned i = 0; i < work->count; i++)
            if (split_grant(work, i)->reason == REPORT_REASON_NONE)
                split_refuse(work, i, REPORT_REASON_NOT_ENOUGH_SMS, CUDA_SUCCESS);
        return true;
    }
    split->resources = calloc(counted->groups + 1, sizeof *split->resources);
    if (split->resources == NULL)
        return false;
    best_plan(&plan, work, counted);
    next = split->resources;
    for (unsigned i = 0; i < work->count; i++)
        give(work, counted, &plan, i, &next);
    return true;
}

bool split_counted(const struct split_work *work)
{
    struct counted counted = {0};
    bool done;

    /* Pretended domains are made of groups, so that they are known only after the split. */
    if (work->count == 0 && !work->split->fake)
        return true;
    if (!ask_groups(work, &counted))
        return false;
    if (work->split->fake)
        pretend_domains(work, &counted);
    done = give_all(work, &counted);
    free(counted.outputs);
    return done;
}
