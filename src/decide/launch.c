/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/launch.h"

#include <string.h>

#include "decide/attributes.h"
#include "decide/capture.h"
#include "decide/cluster.h"
#include "decide/device.h"
#include "decide/function.h"
#include "decide/settle.h"
#include "decide/start.h"
#include "decide/stream.h"

/* ---- What the rules are asked about
 * ---------------------------------------------------------------- */

static bool names_default_stream(const struct decide_launch *launch)
{
    CUstream stream = launch->config->hStream;
    return stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

static const struct decide_stream *stream_of(const struct decide_launch *launch)
{
    return decide_stream_find(launch->config->hStream, launch->per_thread_default, launch->library);
}

/* The device that the launch goes to: of its stream, else of the current context. */
static int device_of(const struct decide_case *at)
{
    return at->stream && at->stream->device >= 0 ? at->stream->device : decide_device_current();
}

static uint32_t saturated(uint64_t value)
{
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* Where the rules that hold depend on the launch. */
static __attribute__((noinline)) const struct decide_resolution *resolve(struct decide_case *at,
                                                                         bool node)
{
    const CUlaunchConfig *config = at->launch->config;
    struct decide_plan *plan = at->variant->plan;
    const struct decide_stream_profile *profile = NULL;
    bool merges = !node && decide_start_state.merges && names_default_stream(at->launch);
    struct decide_asked asked = {
        .grid_blocks = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ,
        .block_threads =
            saturated((uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ),
        .shared_memory = config->sharedMemBytes,
        .captured = at->in_graph,
        .device = -1,
    };
    if (!node &&
        (merges || (plan->needs & (DECIDE_NEED_STREAM | DECIDE_NEED_ORDER | DECIDE_NEED_DEVICE))))
        asked.stream = at->stream = stream_of(at->launch);
    if (plan->needs & (DECIDE_NEED_DEVICE | DECIDE_NEED_ORDER))
        asked.device = device_of(at);
    if (merges && at->stream->profile->merges)
        profile = at->stream->profile;
    return decide_resolve(plan, &asked, profile);
}

/* What the settings of the resolution need beside the launch itself. */
static void look_around(struct decide_case *at, bool node)
{
    const struct decide_resolution *resolution = at->resolution;
    if (!at->stream && !node && resolution->keeps)
        at->stream = stream_of(at->launch);
    if (!resolution->by_device)
        return;
    at->device = atomic_load_explicit(&decide_device_uniform, memory_order_acquire);
    if (at->device)
        return;
    if (!at->stream && !node)
        at->stream = stream_of(at->launch);
    at->device = decide_device_class_of(device_of(at));
}

/* ---- Outcomes
 * ---------------------------------------------------------------------------------------- */

/* Turns the outcome of every setting that was to be made into another one. */
static void overrule(union decide_results *results, uint8_t from_outcome, uint8_t to)
{
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
        if (results->of[setting] >> 5 == from_outcome)
            results->of[setting] = to;
}

static void remember(const struct decide_case *at, struct decide_verdict *verdict)
{
    verdict->internal.variant = at->variant;
    verdict->internal.resolution = at->resolution;
    verdict->internal.results[0] = at->results.words[0];
    verdict->internal.results[1] = at->results.words[1];
    verdict->internal.from_stream = at->from_stream;
    for (unsigned i = 0; i < 2; i++) {
        verdict->internal.shapes[i] = at->shapes[i];
        verdict->internal.shape_uses[i] = at->shape_uses[i];
    }
}

static void settle(struct decide_case *at, struct decide_verdict *verdict, bool node)
{
    look_around(at, node);
    decide_settle_scan(at);
    decide_settle(at);
    verdict->change = (at->set | at->removed) != 0;
    if (verdict->change && at->observe) {
        overrule(&at->results, REPORT_OUTCOME_APPLIED,
                 DECIDE_RESULT(REPORT_OUTCOME_APPLIED, REPORT_REASON_OBSERVE));
        verdict->change = false;
    }
    if (verdict->change && !decide_attributes_merge(at, verdict)) {
        overrule(&at->results, REPORT_OUTCOME_APPLIED,
                 DECIDE_RESULT(REPORT_OUTCOME_REFUSED, REPORT_REASON_TOO_MANY_ATTRIBUTES));
        verdict->change = false;
    }
    if (verdict->change)
        remember(at, verdict);
    verdict->cell =
        decide_kernel_cell(at->variant, at->resolution, &at->results, at->from_stream, at->detail);
}

static void decide(const struct decide_launch *launch, struct decide_verdict *verdict,
                   struct decide_known known, bool node)
{
    struct decide_case at;
    at.launch = launch;
    at.variant = known.variant;
    at.serial = known.serial;
    at.device = NULL;
    at.stream = NULL;
    at.in_graph = verdict->kind != REPORT_LAUNCH_EAGER;
    uint8_t mode = __atomic_load_n(&report_control->part.mode, __ATOMIC_RELAXED);
    at.observe = mode == POLICY_MODE_OBSERVE;
    if (mode == POLICY_MODE_OFF) {
        at.resolution = decide_resolution_none();
    } else {
        const struct decide_plan *plan = known.variant->plan;
        at.resolution = plan->needs == 0 && !decide_start_state.merges
                            ? atomic_load_explicit(&plan->recent, memory_order_acquire)
                            : NULL;
        if (!at.resolution)
            at.resolution = resolve(&at, node);
    }
    if (at.resolution->kernel_settings | at.resolution->stream_settings) {
        settle(&at, verdict, node);
        return;
    }
    at.results.words[0] = at.results.words[1] = 0;
    verdict->change = false;
    verdict->cell = decide_kernel_cell(at.variant, at.resolution, &at.results, 0, 0);
}

void decide_launch(const struct decide_launch *launch, struct decide_verdict *verdict)
{
    struct decide_known known = decide_function_find(launch->function, launch->library,
                                                     launch->layer == DECIDE_LAYER_RUNTIME);
    verdict->kind = decide_stream_is_capturing(launch->config->hStream, launch->per_thread_default)
                        ? REPORT_LAUNCH_CAPTURED
                        : REPORT_LAUNCH_EAGER;
    if (known.variant) {
        decide(launch, verdict, known, false);
        return;
    }
    verdict->change = false;
    verdict->cell = 0;
}

void decide_node(const struct decide_launch *launch, struct decide_verdict *verdict)
{
    struct decide_known known = decide_function_find(launch->function, launch->library, false);
    verdict->kind = REPORT_LAUNCH_NODE;
    verdict->change = false;
    verdict->cell = 0;
    if (known.variant)
        decide(launch, verdict, known, true);
}

/* ---- Afterwards
 * --------------------------------------------------------------------------------------- */

static bool can_be_caused(CUresult result)
{
    switch ((int)result) {
    case CUDA_RESULT_INVALID_VALUE:
    case CUDA_RESULT_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_RESULT_COOPERATIVE_LAUNCH_TOO_LARGE:
    case CUDA_RESULT_NOT_SUPPORTED:
    case CUDA_RESULT_INVALID_CLUSTER_SIZE:
        return true;
    default:
        return false;
    }
}

enum {
    CLUSTERS = 1 << POLICY_SETTING_CLUSTER_DIM | 1 << POLICY_SETTING_PREFERRED_CLUSTER_DIM,
    MEM_SYNC = 1 << POLICY_SETTING_MEM_SYNC_DOMAIN | 1 << POLICY_SETTING_MEM_SYNC_DOMAIN_MAP,
};

static uint32_t applied_of(const union decide_results *results)
{
    uint32_t applied = 0;
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
        if (results->of[setting] >> 5 == REPORT_OUTCOME_APPLIED)
            applied |= 1u << setting;
    return applied;
}

/*
 * Which of the settings made is to blame. Errors 701, 720 and 912 are what clusters cause. An
 * attribute that the driver does not know gives error 1, so with that a cluster, which was checked,
 * comes after the hints; memory-sync settings, which were checked against the device, come last.
 */
static uint32_t blame(uint32_t applied, CUresult result)
{
    uint32_t hints = applied & ~(uint32_t)(CLUSTERS | MEM_SYNC);
    bool unknown =
        (int)result == CUDA_RESULT_INVALID_VALUE || (int)result == CUDA_RESULT_NOT_SUPPORTED;
    if (unknown && hints)
        return hints;
    if (applied & CLUSTERS)
        return applied & CLUSTERS;
    return hints ? hints : applied;
}

static void blame_variant(struct decide_variant *variant, uint32_t settings, CUresult result)
{
    if (!settings)
        return;
    atomic_store_explicit(&variant->refused_result, (uint32_t)result, memory_order_relaxed);
    atomic_fetch_or_explicit(&variant->refused, settings, memory_order_relaxed);
}

bool decide_launch_refused(const struct decide_launch *launch, struct decide_verdict *verdict,
                           CUresult result)
{
    (void)launch;
    if (!verdict->change || !can_be_caused(result))
        return false;
    struct decide_variant *variant = verdict->internal.variant;
    union decide_results results = {
        .words = {verdict->internal.results[0], verdict->internal.results[1]}};
    uint32_t blamed = blame(applied_of(&results), result);
    for (unsigned i = 0; i < 2; i++)
        if (blamed & CLUSTERS)
            decide_shape_refused(verdict->internal.shapes[i], verdict->internal.shape_uses[i],
                                 (uint32_t)result);
    blame_variant(variant, blamed & ~(uint32_t)CLUSTERS, result);
    verdict->internal.blamed = blamed;
    overrule(&results, REPORT_OUTCOME_APPLIED,
             DECIDE_RESULT(REPORT_OUTCOME_REFUSED, REPORT_REASON_REFUSED_BY_DRIVER));
    verdict->cell = decide_kernel_cell(variant, verdict->internal.resolution, &results,
                                       verdict->internal.from_stream, (uint32_t)result);
    return true;
}

void decide_launch_repeated(const struct decide_launch *launch, struct decide_verdict *verdict,
                            CUresult result)
{
    (void)launch;
    if (result == CUDA_SUCCESS)
        return;
    struct decide_variant *variant = verdict->internal.variant;
    uint32_t blamed = verdict->internal.blamed;
    for (unsigned i = 0; i < 2; i++)
        if (blamed & CLUSTERS)
            decide_shape_not_refused(verdict->internal.shapes[i], verdict->internal.shape_uses[i]);
    atomic_fetch_and_explicit(&variant->refused, ~(blamed & ~(uint32_t)CLUSTERS),
                              memory_order_relaxed);
}

void decide_launch_accepted(const struct decide_launch *launch, struct decide_verdict *verdict)
{
    if (!verdict->change)
        return;
    for (unsigned i = 0; i < 2; i++)
        if (verdict->internal.shapes[i])
            decide_shape_accepted(verdict->internal.shapes[i], verdict->internal.shape_uses[i]);
    decide_attributes_copy_back(launch, verdict);
}
