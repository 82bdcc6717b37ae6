/* SPDX-License-Identifier: Apache-2.0 */
#include "place/split.h"

#include <errno.h>
#include <stdlib.h>

#include "place/split_parts.h"

enum {
    VERSION_RESOURCE_LIMITS = 13000, /* resources tell the least partition and the alignment */
    VERSION_LOCALITY_DOMAINS = 13040,
};

/* ---- What the ways to split share ----------------------------------------------------------- */

struct place_grant *split_grant(const struct split_work *work, unsigned request)
{
    return &work->split->grants[work->requests[request]->index];
}

bool split_is_sized(const struct policy_partition *partition)
{
    return partition->kind == POLICY_PARTITION_SM_COUNT ||
           partition->kind == POLICY_PARTITION_SM_PERCENT;
}

unsigned split_rest(const struct split_work *work)
{
    for (unsigned i = 0; i < work->count; i++)
        if (work->requests[i]->kind == POLICY_PARTITION_SM_REST)
            return i;
    return SPLIT_NOBODY;
}

unsigned split_requested(const struct split_work *work, const struct policy_partition *partition)
{
    if (partition->kind == POLICY_PARTITION_SM_COUNT)
        return partition->number;
    if (partition->kind == POLICY_PARTITION_SM_PERCENT)
        return (unsigned)(((uint64_t)work->split->sms * partition->number + 50) / 100);
    return 0;
}

void split_refuse(const struct split_work *work, unsigned request, enum report_reason reason,
                  CUresult result)
{
    struct place_grant *grant = split_grant(work, request);

    grant->reason = reason;
    grant->result = result;
}

bool split_is_refusal(CUresult result)
{
    return (int)result == CUDA_RESULT_INVALID_VALUE || (int)result == CUDA_RESULT_NOT_SUPPORTED ||
           (int)result == CUDA_RESULT_INVALID_RESOURCE_TYPE ||
           (int)result == CUDA_RESULT_INVALID_RESOURCE_CONFIGURATION;
}

static void note_failure(struct place_split *split, const char *failed, CUresult result)
{
    if (split->failed != NULL)
        return;
    split->failed = failed;
    split->result = result;
}

void split_failed(const struct split_work *work, const char *failed, CUresult result)
{
    enum report_reason reason =
        split_is_refusal(result) ? REPORT_REASON_REFUSED_BY_DRIVER : REPORT_REASON_QUERY_FAILED;

    note_failure(work->split, failed, result);
    for (unsigned i = 0; i < work->count; i++)
        split_refuse(work, i, reason, result);
}

/* ---- The device --------------------------------------------------------------------------------
 */

/* False: the driver did not answer, which is noted. */
static bool attribute(struct place_split *split, int number, unsigned *value)
{
    CUresult result;
    int answer = 0;

    if (cuda_driver.cuDeviceGetAttribute == NULL)
        return false;
    result = cuda_driver.cuDeviceGetAttribute(&answer, (CUdevice_attribute)number, split->device);
    if (result != CUDA_SUCCESS) {
        note_failure(split, "cuDeviceGetAttribute", result);
        return false;
    }
    *value = answer > 0 ? (unsigned)answer : 0;
    return true;
}

/* Before CUDA 13.0 no resource tells what a partition must have at least and be a multiple of. The
 * CUDA driver API reference of 12.4, "Green Contexts", says it for each architecture. */
static void limits_by_architecture(struct place_split *split)
{
    unsigned major = 0;

    if (!attribute(split, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major) || major < 6)
        return;
    if (major == 6) {
        split->minimum = split->alignment = 1;
    } else if (major == 7) {
        split->minimum = split->alignment = 2;
    } else if (major == 8) {
        split->minimum = 4;
        split->alignment = 2;
    } else {
        split->minimum = split->alignment = 8;
    }
}

/* False: the SMs cannot be divided; all requests are refused. */
static bool ask_sms(struct split_work *work, int version)
{
    struct place_split *split = work->split;
    CUresult result;

    if (cuda_driver.cuDeviceGetDevResource == NULL)
        return false;
    result = cuda_driver.cuDeviceGetDevResource(split->device, &work->whole, CUDA_RESOURCE_TYPE_SM);
    if (result != CUDA_SUCCESS) {
        split_failed(work, "cuDeviceGetDevResource", result);
        return false;
    }
    split->sms = work->whole.of.sm.sm_count;
    if (version >= VERSION_RESOURCE_LIMITS) {
        split->minimum = work->whole.of.sm.minimum_partition_size;
        split->alignment = work->whole.of.sm.coscheduled_alignment;
    }
    if (split->minimum == 0 || split->alignment == 0)
        limits_by_architecture(split);
    work->alignment = split->alignment;
    return true;
}

/* cuGreenCtxStreamCreate came with 12.5, the others with 12.4. */
bool place_split_possible(void)
{
    return cuda_driver.cuDeviceGetDevResource != NULL &&
           (cuda_driver.cuDevSmResourceSplitByCount != NULL ||
            cuda_driver.cuDevSmResourceSplit != NULL) &&
           cuda_driver.cuDevResourceGenerateDesc != NULL && cuda_driver.cuGreenCtxCreate != NULL &&
           cuda_driver.cuCtxFromGreenCtx != NULL && cuda_driver.cuGreenCtxStreamCreate != NULL;
}

/* ---- Locality domains --------------------------------------------------------------------------
 */

/*
 * Attribute 157 is one number for all domains of a device. A split that is not carried out (no
 * results) finds what each of them has, in the smallest co-scheduled groups that there are: the
 * default ones may leave some out. Where it fails the attribute has to do. SMs of no domain are
 * what is left.
 */
static void ask_domain_sms(struct split_work *work)
{
    struct place_split *split = work->split;
    struct cuda_sm_group groups[PLACE_DOMAIN_LIMIT] = {{0}};
    unsigned count = split->domains < PLACE_DOMAIN_LIMIT ? split->domains : PLACE_DOMAIN_LIMIT;
    CUresult result = (CUresult)CUDA_RESULT_NOT_SUPPORTED;
    unsigned each = 0, inside = 0;

    for (unsigned i = 0; i < count; i++) {
        groups[i].flags = CUDA_SM_GROUP_LOCALITY_DOMAIN;
        groups[i].locality_domain = i;
        groups[i].coscheduled_sm_count = 2;
    }
    if (cuda_driver.cuDevSmResourceSplit != NULL)
        result = cuda_driver.cuDevSmResourceSplit(NULL, count, &work->whole, NULL, 0, groups);
    if (result != CUDA_SUCCESS &&
        !attribute(split, CUDA_DEVICE_LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT, &each))
        return;
    for (unsigned i = 0; i < count; i++) {
        split->domain_sms[i] = result == CUDA_SUCCESS ? groups[i].sm_count : each;
        inside += split->domain_sms[i];
    }
    if (inside < split->sms)
        split->outside_domains = split->sms - inside;
}

/* False: the driver did not say. The device's own domains, not pretended ones. */
static bool ask_domains(struct split_work *work, int version)
{
    struct place_split *split = work->split;
    unsigned count = 0;

    split->domains = 1;
    if (version < VERSION_LOCALITY_DOMAINS) {
        split->domain_sms[0] = split->sms;
        return true;
    }
    if (!attribute(split, CUDA_DEVICE_LOCALITY_DOMAIN_COUNT, &count))
        return false;
    if (count > 1) {
        split->domains = count;
        ask_domain_sms(work);
    } else {
        split->domain_sms[0] = split->sms;
    }
    return true;
}

static enum report_reason domain_reason(const struct place_split *split, unsigned domain)
{
    if (split->domains < 2)
        return REPORT_REASON_NO_LOCALITY_DOMAINS;
    if (domain >= split->domains || domain >= PLACE_DOMAIN_LIMIT)
        return REPORT_REASON_NO_SUCH_LOCALITY_DOMAIN;
    /* The device's own are made with this function alone. */
    if (!split->fake && !split->grouped)
        return REPORT_REASON_DRIVER_TOO_OLD;
    return REPORT_REASON_NONE;
}

/* ---- The split ---------------------------------------------------------------------------------
 */

/* Takes the requests out that are refused, or cannot be met whatever the others get. */
static void sift(struct split_work *work)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < work->count; i++) {
        const struct policy_partition *partition = work->requests[i];
        struct place_grant *grant = split_grant(work, i);

        grant->requested = split_requested(work, partition);
        if (grant->reason == REPORT_REASON_NONE &&
            partition->kind == POLICY_PARTITION_LOCALITY_DOMAIN)
            grant->reason = domain_reason(work->split, partition->number);
        if (grant->reason == REPORT_REASON_NONE && grant->requested > work->split->sms)
            grant->reason = REPORT_REASON_NOT_ENOUGH_SMS;
        if (grant->reason == REPORT_REASON_NONE)
            work->requests[kept++] = partition;
    }
    work->count = kept;
}

static void refuse_domains(struct split_work *work)
{
    for (unsigned i = 0; i < work->count; i++)
        if (work->requests[i]->kind == POLICY_PARTITION_LOCALITY_DOMAIN)
            split_refuse(work, i, REPORT_REASON_QUERY_FAILED, work->split->result);
}

static int ask_version(struct place_split *split)
{
    CUresult result;
    int version = 0;

    if (cuda_driver.cuDriverGetVersion == NULL)
        return 0;
    result = cuda_driver.cuDriverGetVersion(&version);
    if (result == CUDA_SUCCESS)
        return version;
    note_failure(split, "cuDriverGetVersion", result);
    return 0;
}

/* False: no memory. */
static bool divide(struct split_work *work, unsigned fake_domains)
{
    struct place_split *split = work->split;
    int version = ask_version(split);
    bool known = version != 0;

    if (!ask_sms(work, version)) {
        if (split->sms == 0)
            attribute(split, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &split->sms);
        split->domains = 1;
        for (unsigned i = 0; i < work->count; i++)
            if (split_grant(work, i)->reason == REPORT_REASON_NONE)
                split_refuse(work, i, REPORT_REASON_DRIVER_TOO_OLD, CUDA_SUCCESS);
        sift(work); /* the requested numbers */
        return true;
    }
    known = ask_domains(work, version) && known;
    split->fake =
        split->domains < 2 && fake_domains >= 2 && cuda_driver.cuDevSmResourceSplitByCount != NULL;
    /* Parts of a device that stand for domains have to be whole groups, which only this one makes
     * without any domain. */
    split->grouped = cuda_driver.cuDevSmResourceSplit != NULL && !split->fake;
    if (split->fake)
        split->domains = fake_domains < PLACE_DOMAIN_LIMIT ? fake_domains : PLACE_DOMAIN_LIMIT;
    else if (!known)
        refuse_domains(work);
    if (!place_split_possible())
        for (unsigned i = 0; i < work->count; i++)
            split_refuse(work, i, REPORT_REASON_DRIVER_TOO_OLD, CUDA_SUCCESS);
    sift(work);
    if (split->grouped)
        return split_grouped(work);
    return split_counted(work);
}

struct place_split *
place_split_make(const struct policy *policy, CUdevice device, unsigned fake_domains,
                 bool (*selected)(const struct policy_partition *partition, void *context),
                 void *context)
{
    struct place_split *split = calloc(1, sizeof *split);
    struct split_work work = {.split = split};

    if (split == NULL)
        return NULL;
    split->device = device;
    split->grant_count = policy->partition_count;
    split->grants = calloc(policy->partition_count + 1, sizeof *split->grants);
    if (split->grants == NULL) {
        place_split_free(split);
        return NULL;
    }
    for (size_t i = 0; i < policy->partition_count; i++) {
        const struct policy_partition *partition = &policy->partitions[i];

        if ((selected == NULL || selected(partition, context)) &&
            work.count < POLICY_PARTITION_LIMIT)
            work.requests[work.count++] = partition;
        else
            split->grants[partition->index].reason = REPORT_REASON_NO_PARTITION;
    }
    if (!divide(&work, fake_domains)) {
        place_split_free(split);
        return NULL;
    }
    return split;
}

void place_split_free(struct place_split *split)
{
    if (split == NULL)
        return;
    free(split->resources);
    free(split->grants);
    free(split);
}

int place_fake_domains_parse(const char *text)
{
    unsigned long number;
    char *end;
    int saved = errno;

    if (text == NULL || text[0] == '\0')
        return 0;
    if (text[0] < '0' || text[0] > '9')
        return -1;
    number = strtoul(text, &end, 10); /* too large a number comes back as ULONG_MAX */
    errno = saved;
    if (*end != '\0' || number == 1 || number > PLACE_DOMAIN_LIMIT)
        return -1;
    return (int)number;
}
