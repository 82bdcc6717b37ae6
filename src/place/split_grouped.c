/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A split into groups of their own size and kind (cuDevSmResourceSplit, CUDA 13.1): one group for
 * each partition, evaluated in the policy's order, and what remains for `rest`.
 *
 * The call succeeds as a whole or fails as a whole, and does not say which group is at fault. That
 * is found out by asking again with some of them: nothing is made by a split alone.
 *
 * What a group may be: CUDA driver API reference and CUDA programming guide, "Green Contexts" and
 * "Locality domains".
 */
#include "place/split_parts.h"

#include <stdlib.h>
#include <string.h>

/* A set of requests, a bit for each. */
typedef uint64_t requests;

_Static_assert(POLICY_PARTITION_LIMIT <= 64, "a bit for each request");

static requests one(unsigned request)
{
    return (requests)1 << request;
}

/* A question and the driver's answer: groups and results in the order asked. Too large for a stack
 * that may be a program's thread's. */
struct attempt {
    requests members;
    CUresult result;
    unsigned count;
    uint8_t order[POLICY_PARTITION_LIMIT]; /* requests */
    struct cuda_sm_group groups[POLICY_PARTITION_LIMIT];
    struct cuda_device_resource results[POLICY_PARTITION_LIMIT];
    struct cuda_device_resource remainder;
};

/* ---- What a partition asks for ----------------------------------------------------------------
 */

/* A group's SMs are a multiple of this: of those scheduled together, and even. */
static unsigned unit_of(const struct split_work *work, const struct policy_partition *partition)
{
    unsigned unit = partition->coscheduled_sm_count;

    if (unit == 0)
        unit = work->alignment != 0 ? work->alignment : 2;
    return unit % 2 == 0 ? unit : 2 * unit;
}

/* A count is met by at least as many SMs; per cent are a share, rounded down, so that shares of a
 * whole fit beside each other. Backfilled, any even number of SMs will do from one unit on. */
static unsigned sized(const struct split_work *work, const struct policy_partition *partition)
{
    unsigned sms = split_requested(work, partition), unit = unit_of(work, partition);
    unsigned step = partition->backfill ? 2 : unit;

    if (partition->kind == POLICY_PARTITION_SM_COUNT)
        sms += step - 1;
    sms -= sms % step;
    return sms > unit ? sms : unit;
}

static struct cuda_sm_group group_of(const struct split_work *work,
                                     const struct policy_partition *partition)
{
    const struct place_split *split = work->split;
    struct cuda_sm_group group = {.coscheduled_sm_count = partition->coscheduled_sm_count};

    if (split_is_sized(partition))
        group.sm_count = sized(work, partition);
    if (partition->backfill)
        group.flags |= CUDA_SM_GROUP_BACKFILL;
    if (partition->kind == POLICY_PARTITION_LOCALITY_DOMAIN) {
        group.flags |= CUDA_SM_GROUP_LOCALITY_DOMAIN;
        group.locality_domain = partition->number;
        /* As many as there are, of any domain, would be the whole device: backfilling is for those
         * of this domain that fit no co-scheduled group. */
        if (partition->backfill)
            group.sm_count = split->domain_sms[partition->number] / 2 * 2;
        if (group.sm_count == 0)
            group.flags &= ~(uint32_t)CUDA_SM_GROUP_BACKFILL;
    }
    return group;
}

/* `rest` is what the split leaves over, of which the driver promises nothing. Where the policy says
 * how many SMs are to be scheduled together, it is a group: as many such SMs as are left. */
static bool is_remainder(const struct policy_partition *partition)
{
    return partition->kind == POLICY_PARTITION_SM_REST && partition->coscheduled_sm_count == 0;
}

/* ---- Asking the driver ----------------------------------------------------------------------- */

/* The policy's order, `rest` last: it discovers what the others leave. */
static void put_in_order(const struct split_work *work, struct attempt *attempt)
{
    for (int rest = 0; rest < 2; rest++)
        for (unsigned i = 0; i < work->count; i++)
            if ((attempt->members & one(i)) != 0 &&
                (work->requests[i]->kind == POLICY_PARTITION_SM_REST) == (rest != 0))
                attempt->order[attempt->count++] = (uint8_t)i;
}

static bool ask(const struct split_work *work, requests members, struct attempt *attempt)
{
    memset(attempt, 0, sizeof *attempt);
    attempt->members = members;
    put_in_order(work, attempt);
    if (attempt->count == 0) {
        attempt->remainder = work->whole;
        return true;
    }
    for (unsigned i = 0; i < attempt->count; i++)
        attempt->groups[i] = group_of(work, work->requests[attempt->order[i]]);
    attempt->result = cuda_driver.cuDevSmResourceSplit(
        attempt->results, attempt->count, &work->whole, &attempt->remainder, 0, attempt->groups);
    return attempt->result == CUDA_SUCCESS;
}

static unsigned remaining(const struct attempt *attempt)
{
    return attempt->remainder.type == CUDA_RESOURCE_TYPE_SM ? attempt->remainder.of.sm.sm_count : 0;
}

/* ---- Which requests fit ------------------------------------------------------------------------
 */

/* SMs that default co-scheduled groups can be made of; the others are fragments. */
static unsigned discover(const struct split_work *work)
{
    struct cuda_sm_group group = {0};

    if (cuda_driver.cuDevSmResourceSplit(NULL, 1, &work->whole, NULL, 0, &group) != CUDA_SUCCESS ||
        group.sm_count > work->split->sms)
        return work->split->sms;
    return group.sm_count;
}

/* A number of SMs, and nothing about how they lie: fragments will do, too. */
static bool may_be_fragments(const struct policy_partition *partition)
{
    return split_is_sized(partition) && partition->coscheduled_sm_count == 0;
}

/* Requests that fail by themselves are refused with what the driver said, unless they are only
 * larger than all groups together; the others come back. */
static requests ask_each(const struct split_work *work, requests members, unsigned grouped_sms,
                         struct attempt *attempt)
{
    for (unsigned i = 0; i < work->count; i++) {
        const struct policy_partition *partition = work->requests[i];

        if ((members & one(i)) == 0 || ask(work, one(i), attempt) ||
            (may_be_fragments(partition) && sized(work, partition) > grouped_sms))
            continue;
        members &= ~one(i);
        split_refuse(work, i,
                     split_is_refusal(attempt->result) ? REPORT_REASON_REFUSED_BY_DRIVER
                                                       : REPORT_REASON_QUERY_FAILED,
                     attempt->result);
    }
    return members;
}

/* Whether what the split leaves over will do for a request that did not get a group: enough, and
 * not more than a lack of groups explains. */
static bool remainder_serves(const struct split_work *work, unsigned request, unsigned grouped_sms,
                             const struct attempt *attempt)
{
    const struct policy_partition *partition = work->requests[request];
    unsigned fragments = work->split->sms - grouped_sms, wanted;

    if (!may_be_fragments(partition))
        return false;
    wanted = sized(work, partition);
    if (remaining(attempt) >= wanted + fragments + unit_of(work, partition))
        return false;
    if (partition->kind == POLICY_PARTITION_SM_COUNT)
        wanted = split_requested(work, partition);
    return remaining(attempt) >= wanted;
}

/* All of them, one with the remainder: the last of those with which it works. Two halves of 132 SMs
 * that have 15 co-scheduled groups of 8 are 64 and 68. */
static bool all_with_remainder(const struct split_work *work, requests members,
                               unsigned grouped_sms, struct attempt *attempt, unsigned *remainder)
{
    for (unsigned i = work->count; i-- > 0;) {
        if ((members & one(i)) == 0 || !may_be_fragments(work->requests[i]) ||
            !ask(work, members & ~one(i), attempt) ||
            !remainder_serves(work, i, grouped_sms, attempt))
            continue;
        *remainder = i;
        return true;
    }
    return false;
}

/* One after the other, in the policy's order; who does not fit beside those before is refused.
 * attempt: two of them, the first is the answer. */
static void first_come(const struct split_work *work, requests members, unsigned grouped_sms,
                       struct attempt *attempt, unsigned *remainder)
{
    struct attempt *other = attempt + 1;
    requests left_out = 0;

    ask(work, 0, attempt);
    for (unsigned i = 0; i < work->count; i++) {
        if ((members & one(i)) == 0)
            continue;
        if (ask(work, attempt->members | one(i), other)) {
            *attempt = *other;
        } else {
            left_out |= one(i);
            split_refuse(work, i, REPORT_REASON_NOT_ENOUGH_SMS, other->result);
        }
    }
    for (unsigned i = 0; i < work->count && *remainder == SPLIT_NOBODY; i++) {
        if ((left_out & one(i)) != 0 && remainder_serves(work, i, grouped_sms, attempt)) {
            split_refuse(work, i, REPORT_REASON_NONE, CUDA_SUCCESS);
            *remainder = i;
        }
    }
}

/* ---- Grants ------------------------------------------------------------------------------------
 */

static void give(const struct split_work *work, unsigned request,
                 const struct cuda_device_resource *resource, unsigned coscheduled)
{
    struct place_grant *grant = split_grant(work, request);

    if (resource->of.sm.sm_count == 0)
        return;
    grant->resources = &work->split->resources[request];
    grant->resources[0] = *resource;
    grant->resource_count = 1;
    grant->granted = resource->of.sm.sm_count;
    grant->coscheduled = coscheduled;
}

/* remainder: the request that has it; SPLIT_NOBODY: none. False: no memory. */
static bool give_all(const struct split_work *work, const struct attempt *attempt,
                     unsigned remainder)
{
    work->split->resources = calloc(work->count + 1, sizeof *work->split->resources);
    if (work->split->resources == NULL)
        return false;
    for (unsigned i = 0; i < attempt->count; i++) {
        const struct cuda_device_resource *result = &attempt->results[i];
        unsigned asked = attempt->groups[i].coscheduled_sm_count;

        if (asked == 0)
            asked = result->of.sm.coscheduled_alignment;
        give(work, attempt->order[i], result, asked);
    }
    if (remainder != SPLIT_NOBODY && remaining(attempt) != 0)
        give(work, remainder, &attempt->remainder, 0);
    for (unsigned i = 0; i < work->count; i++) {
        const struct place_grant *grant = split_grant(work, i);

        if (grant->resource_count == 0 && grant->reason == REPORT_REASON_NONE)
            split_refuse(work, i, REPORT_REASON_NOT_ENOUGH_SMS, CUDA_SUCCESS);
    }
    return true;
}

/* Leaves in attempts[0] what is to be carried out. remainder: in and out, the request that gets
 * what is left over. False: no answer; the requests are refused. */
static bool settle(const struct split_work *work, requests members, struct attempt *attempts,
                   unsigned *remainder)
{
    unsigned grouped_sms;

    if (ask(work, members, attempts))
        return true;
    if (!split_is_refusal(attempts->result)) { /* to ask for less would not help */
        split_failed(work, "cuDevSmResourceSplit", attempts->result);
        return false;
    }
    grouped_sms = discover(work);
    members = ask_each(work, members, grouped_sms, attempts);
    if (ask(work, members, attempts))
        return true;
    if (*remainder != SPLIT_NOBODY ||
        !all_with_remainder(work, members, grouped_sms, attempts, remainder))
        first_come(work, members, grouped_sms, attempts, remainder);
    return true;
}

bool split_grouped(const struct split_work *work)
{
    unsigned rest = split_rest(work), remainder = SPLIT_NOBODY;
    struct attempt *attempts;
    requests members = 0;
    bool done = true;

    if (work->count == 0)
        return true;
    attempts = malloc(2 * sizeof *attempts);
    if (attempts == NULL)
        return false;
    if (rest != SPLIT_NOBODY && is_remainder(work->requests[rest]))
        remainder = rest;
    for (unsigned i = 0; i < work->count; i++)
        if (i != remainder && (work->requests[i]->kind != POLICY_PARTITION_SM_REST || i == rest))
            members |= one(i);
    if (settle(work, members, attempts, &remainder))
        done = give_all(work, attempts, remainder);
    free(attempts);
    return done;
}
