/* SPDX-License-Identifier: Apache-2.0 */
#include "place/device.h"

#include <stdio.h>

#include "place/capture_mode.h"
#include "place/move.h"
#include "place/side.h"
#include "place/split.h"
#include "report/log.h"
#include "report/report.h"

_Static_assert(POLICY_PARTITION_LIMIT <= 64, "bits of place_device.said");

/* What became of one partition, before anybody can see it. */
struct made {
    enum report_reason reason;
    CUresult result;    /* what the driver said, */
    const char *failed; /* when this function was called; NULL: nothing to say */
    unsigned requested, sms, coscheduled;
    cuda_green_context green;
    CUcontext context;
    CUstream probe;
};

uint32_t place_generation_next(void)
{
    static _Atomic uint32_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

/* ---- Making ------------------------------------------------------------------------------------
 */

static bool is_active(int device)
{
    unsigned flags = 0;
    int active = 0;
    return cuda_driver.cuDevicePrimaryCtxGetState &&
           cuda_driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS &&
           active;
}

/* The handle of a primary context that is active. Retaining it is the only way to be told, so the
 * count is put back at once. */
static CUresult ask_primary(int device, CUcontext *primary)
{
    if (!cuda_driver.cuDevicePrimaryCtxRetain || !cuda_driver.cuDevicePrimaryCtxRelease)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = cuda_driver.cuDevicePrimaryCtxRetain(primary, device);
    if (result == CUDA_SUCCESS)
        cuda_driver.cuDevicePrimaryCtxRelease(device);
    return result;
}

/* The last of them came with CUDA 12.5. */
static bool driver_is_new_enough(void)
{
    return cuda_driver.cuDevResourceGenerateDesc && cuda_driver.cuGreenCtxCreate &&
           cuda_driver.cuGreenCtxDestroy && cuda_driver.cuCtxFromGreenCtx &&
           cuda_driver.cuGreenCtxStreamCreate;
}

static void destroy(struct made *made)
{
    if (made->probe && cuda_driver.cuStreamDestroy)
        cuda_driver.cuStreamDestroy(made->probe);
    if (made->green)
        cuda_driver.cuGreenCtxDestroy(made->green);
    made->probe = NULL;
    made->green = NULL;
}

/* The calls that make one partition, as far as they succeed; the function that did not, or NULL. */
static const char *make_steps(struct made *made, const struct place_grant *grant, int device)
{
    cuda_resource_description description;
    made->result = cuda_driver.cuDevResourceGenerateDesc(&description, grant->resources,
                                                         (unsigned)grant->resource_count);
    if (made->result != CUDA_SUCCESS)
        return "cuDevResourceGenerateDesc";
    made->result = cuda_driver.cuGreenCtxCreate(&made->green, description, device,
                                                CUDA_GREEN_CONTEXT_DEFAULT_STREAM);
    if (made->result != CUDA_SUCCESS) {
        made->green = NULL;
        return "cuGreenCtxCreate";
    }
    made->result = cuda_driver.cuCtxFromGreenCtx(&made->context, made->green);
    if (made->result != CUDA_SUCCESS)
        return "cuCtxFromGreenCtx";
    made->result =
        cuda_driver.cuGreenCtxStreamCreate(&made->probe, made->green, CU_STREAM_NON_BLOCKING, 0);
    if (made->result != CUDA_SUCCESS) {
        made->probe = NULL;
        return "cuGreenCtxStreamCreate";
    }
    return NULL;
}

static void make_green(struct made *made, const struct place_grant *grant, int device, bool create)
{
    if (!driver_is_new_enough()) {
        made->reason = REPORT_REASON_DRIVER_TOO_OLD;
        return;
    }
    if (!create)
        return;
    made->failed = make_steps(made, grant, device);
    if (!made->failed)
        return;
    made->reason = made->result == CUDA_ERROR_OUT_OF_MEMORY ? REPORT_REASON_OUT_OF_MEMORY
                                                            : REPORT_REASON_REFUSED_BY_DRIVER;
    destroy(made);
}

static void make_granted(struct made *made, const struct place_split *split, size_t index,
                         bool create)
{
    const struct place_grant *grant = &split->grants[index];
    made->reason = grant->reason;
    made->requested = grant->requested;
    made->sms = grant->granted;
    made->coscheduled = grant->coscheduled;
    if (grant->reason == REPORT_REASON_NONE) {
        make_green(made, grant, split->device, create);
    } else if (grant->result != CUDA_SUCCESS) {
        made->result = grant->result;
        made->failed = split->failed;
    }
}

struct selection {
    const struct place_wish *wish;
    int device;
};

static bool is_selected(const struct policy_partition *partition, void *context)
{
    const struct selection *selection = context;
    return !selection->wish->selected || selection->wish->selected(partition, selection->device);
}

/* False when a capture is in the way. */
static bool make_all(struct made *made, unsigned *sms, const struct place_device *device,
                     const struct place_wish *wish, bool create)
{
    struct selection selection = {wish, device->device};
    size_t count = wish->policy->partition_count;
    struct place_split *split =
        place_split_make(wish->policy, device->device, wish->fake_domains, is_selected, &selection);
    bool refused = false;
    for (size_t i = 0; i < count; i++) {
        if (!split)
            made[i].reason = REPORT_REASON_OUT_OF_MEMORY;
        else
            make_granted(&made[i], split, i, create);
        refused |= place_refused_by_capture(made[i].result);
    }
    if (split && split->fake)
        report_fact("partitions", "fake_locality_domains", "%u", split->domains);
    *sms = split ? split->sms : 0;
    place_split_free(split);
    for (size_t i = 0; i < count && refused; i++)
        destroy(&made[i]);
    return !refused;
}

static void no_primary(struct made *made, size_t count, CUresult result)
{
    for (size_t i = 0; i < count; i++) {
        made[i].reason = REPORT_REASON_QUERY_FAILED;
        made[i].result = result;
        made[i].failed = "cuDevicePrimaryCtxRetain";
    }
}

/* ---- The report --------------------------------------------------------------------------------
 */

static const char *request_text(char *text, size_t size, const struct policy_partition *partition,
                                unsigned sms)
{
    switch (partition->kind) {
    case POLICY_PARTITION_SM_REST:
        return "rest";
    case POLICY_PARTITION_LOCALITY_DOMAIN:
        snprintf(text, size, "locality domain %u", partition->number);
        return text;
    case POLICY_PARTITION_SM_PERCENT:
        snprintf(text, size, "%u%% (%u)", partition->number, sms);
        return text;
    default:
        snprintf(text, size, "%u", partition->number);
        return text;
    }
}

static void say(const struct policy_partition *partition, int device, const struct made *made)
{
    char request[48];
    if (made->reason == REPORT_REASON_NONE)
        report_log(REPORT_LOG_INFO, "partition %s of device %d: %u SMs (requested: %s)",
                   partition->name, device, made->sms,
                   request_text(request, sizeof request, partition, made->requested));
    else if (made->reason == REPORT_REASON_NO_LOCALITY_DOMAINS)
        /* One line for all of them: they have the same remedy. */
        report_log_once(
            REPORT_LOG_WARN,
            "device %d has no locality domains: what rules send to one stays where it is "
            "(CUDAPOLICY_FAKE_LOCALITY_DOMAINS=2 rehearses them)",
            device);
    else if (made->failed)
        report_log(REPORT_LOG_WARN, "partition %s of device %d cannot be made: %s (%s: error %d)",
                   partition->name, device, report_reason_text(made->reason), made->failed,
                   (int)made->result);
    else
        report_log(REPORT_LOG_WARN, "partition %s of device %d cannot be made: %s", partition->name,
                   device, report_reason_text(made->reason));
}

static void report_partition(struct place_device *device, const struct policy_partition *partition,
                             const struct made *made)
{
    const char *site = partition->layer != POLICY_LAYER_JOB ? "site " : "";
    char section[160], request[48];
    uint64_t bit = UINT64_C(1) << partition->index;
    /* Where its `device` selector leaves the device out, nothing was to be made. */
    if (made->reason == REPORT_REASON_NO_PARTITION)
        return;
    /* No name has a blank: the site's are told from the job's. */
    snprintf(section, sizeof section, "partition.%s%s.%d", site, partition->name, device->device);
    report_fact(section, "requested", "%s",
                request_text(request, sizeof request, partition, made->requested));
    report_fact(section, "granted", "%u", made->reason == REPORT_REASON_NONE ? made->sms : 0);
    report_fact(section, "reason", "%s", report_reason_text(made->reason));
    if (!(device->said & bit))
        say(partition, device->device, made);
    device->said |= bit;
}

/* ---- What others see ---------------------------------------------------------------------------
 */

static void publish(struct place_partition *partition, const struct made *made, uint32_t generation)
{
    partition->sms = made->sms;
    partition->coscheduled = made->coscheduled;
    partition->green = made->green;
    partition->probe = made->probe;
    __atomic_store_n(&partition->context, made->context, __ATOMIC_RELAXED);
    atomic_store_explicit(&partition->generation, generation, memory_order_release);
    atomic_store_explicit(&partition->reason, made->reason, memory_order_release);
}

static void withdraw(struct place_partition *partition, uint32_t generation)
{
    atomic_store_explicit(&partition->reason, REPORT_REASON_NO_PARTITION, memory_order_release);
    atomic_store_explicit(&partition->generation, generation, memory_order_release);
}

bool place_device_make(struct place_device *device, const struct place_wish *wish, bool create)
{
    size_t count = wish->policy->partition_count;
    struct made made[POLICY_PARTITION_LIMIT] = {0}, whole = {0};
    struct place_capture_mode mode = place_capture_mode_relax();
    bool settled = is_active(device->device);
    if (settled) {
        CUresult result = ask_primary(device->device, &whole.context);
        if (place_refused_by_capture(result)) {
            settled = false;
        } else if (result != CUDA_SUCCESS) {
            no_primary(made, count, result);
            whole.reason = REPORT_REASON_QUERY_FAILED;
        } else {
            settled = make_all(made, &whole.sms, device, wish, create);
        }
    }
    place_capture_mode_restore(mode);
    if (!settled)
        return false;
    uint32_t generation = place_generation_next();
    for (size_t i = 0; i < count; i++) {
        publish(&device->partitions[i], &made[i], generation);
        report_partition(device, &wish->policy->partitions[i], &made[i]);
    }
    publish(&device->partitions[PLACE_WHOLE_DEVICE], &whole, generation);
    atomic_store_explicit(&device->primary, whole.context, memory_order_release);
    return true;
}

void place_device_empty(struct place_device *device)
{
    uint32_t generation = place_generation_next();
    atomic_store_explicit(&device->primary, NULL, memory_order_release);
    for (unsigned i = 0; i < PLACE_PLACES; i++)
        withdraw(&device->partitions[i], generation);
}

void place_device_unmake(struct place_device *device)
{
    struct place_capture_mode mode = place_capture_mode_relax();
    place_device_empty(device);
    place_move_device_gone(device->device);
    for (unsigned i = 0; i < POLICY_PARTITION_LIMIT; i++) {
        struct place_partition *partition = &device->partitions[i];
        struct made made = {.green = partition->green, .probe = partition->probe};
        partition->green = NULL;
        partition->probe = NULL;
        destroy(&made);
    }
    place_capture_mode_restore(mode);
}

void place_device_lose(struct place_partition *partition)
{
    struct place_capture_mode mode = place_capture_mode_relax();
    /* Whether the green context lives on without its context is not documented: it is left alone.
     */
    struct made made = {.probe = partition->probe};
    withdraw(partition, place_generation_next());
    place_sides_gone(partition->device, partition->index);
    partition->green = NULL;
    partition->probe = NULL;
    destroy(&made);
    place_capture_mode_restore(mode);
}
