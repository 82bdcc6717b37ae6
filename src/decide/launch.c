/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/launch.h"

#include <string.h>

#include "decide/attributes.h"
#include "decide/capture.h"
#include "decide/cluster.h"
#include "decide/device.h"
#include "decide/function.h"
#include "decide/live.h"
#include "decide/placement.h"
#include "decide/prepared.h"
#include "decide/recipe.h"
#include "decide/settle.h"
#include "decide/stream.h"

/* ---- What the rules are asked about ---------------------------------------------------------- */

static bool names_default_stream(const struct decide_launch *launch)
{
    CUstream stream = launch->config->hStream;
    return stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

static const struct decide_stream *stream_of(const struct decide_case *at)
{
    const struct decide_launch *launch = at->launch;
    return decide_stream_find_by(at->variant->kernel->set, launch->config->hStream,
                                 launch->per_thread_default, launch->library);
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
    bool merges = !node && at->variant->merges && names_default_stream(at->launch);
    struct decide_asked asked = {
        .grid_blocks = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ,
        .block_threads =
            saturated((uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ),
        .shared_memory = config->sharedMemBytes,
        .captured = at->in_graph,
        .device = -1,
        .arm = at->arm,
    };
    if (!node && (merges || at->variant->places ||
                  (plan->needs & (DECIDE_NEED_STREAM | DECIDE_NEED_ORDER | DECIDE_NEED_DEVICE))))
        asked.stream = at->stream = stream_of(at);
    if (plan->needs & (DECIDE_NEED_DEVICE | DECIDE_NEED_ORDER))
        asked.device = device_of(at);
    if (merges && at->stream->profile->merges)
        profile = at->stream->profile;
    else if (at->stream && at->stream->partition)
        profile = at->stream->profile->placement;
    return decide_resolve(plan, &asked, profile);
}

/* What the settings of the resolution need beside the launch itself. */
static void look_around(struct decide_case *at, bool node)
{
    const struct decide_resolution *resolution = at->resolution;
    if (!at->stream && !node && (resolution->keeps || resolution->places))
        at->stream = stream_of(at);
    if (!resolution->by_device)
        return;
    at->device = atomic_load_explicit(&decide_device_uniform, memory_order_acquire);
    if (at->device)
        return;
    if (!at->stream && !node)
        at->stream = stream_of(at);
    at->device = decide_device_class_of(device_of(at));
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

/* Turns the outcome of every setting that was to be made into another one. */
static void overrule(union decide_results *results, uint8_t from_outcome, uint8_t to)
{
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
        if (decide_result_outcome(results->of[setting]) == from_outcome)
            results->of[setting] = to;
}

static void remember(const struct decide_case *at, const struct decide_cell *cell,
                     struct decide_verdict *verdict)
{
    verdict->internal.variant = at->variant;
    verdict->internal.cell = cell;
    verdict->internal.remember = at->shapes[DECIDE_SHAPE_OF_CLUSTER] ||
                                 at->shapes[DECIDE_SHAPE_OF_PREFERRED] ||
                                 at->shapes[DECIDE_SHAPE_OF_PLACE] || verdict->output_index[0] >= 0;
    verdict->internal.has_shapes = true;
    for (unsigned i = 0; i < DECIDE_CASE_SHAPES; i++) {
        verdict->internal.shapes[i] = at->shapes[i];
        verdict->internal.shape_uses[i] = at->shape_uses[i];
    }
}

/* The stream's partition holds whatever the mode is now and whatever a kernel rule says: a launch
 * that must not stay there is made elsewhere. */
static void guard(struct decide_case *at, bool enforce)
{
    uint8_t result = at->results.of[POLICY_SETTING_PARTITION];
    bool by_kernel = at->resolution->kernel_settings >> POLICY_SETTING_PARTITION & 1;
    bool settled =
        enforce && (!by_kernel || result == DECIDE_APPLIED || result == DECIDE_ALREADY_SO);
    if (at->stream && at->stream->partition && !settled)
        decide_placement_guard(at);
}

/* What was decided is not to be made. */
static void drop(struct decide_case *at)
{
    at->set = at->removed = 0;
    at->move = NULL;
    for (unsigned i = 0; i < DECIDE_CASE_SHAPES; i++)
        at->shapes[i] = NULL;
}

static void settle(struct decide_case *at, struct decide_verdict *verdict, bool enforce)
{
    decide_settle_scan(at);
    decide_settle(at);
    verdict->change = (at->set | at->removed) != 0 || at->move;
    if (verdict->change && at->observe)
        overrule(&at->results, REPORT_OUTCOME_APPLIED,
                 DECIDE_RESULT(REPORT_OUTCOME_APPLIED, REPORT_REASON_OBSERVE));
    if (!enforce)
        drop(at);
    if (at->variant->places)
        guard(at, enforce);
    verdict->change = (at->set | at->removed) != 0 || at->move;
    if (verdict->change && !decide_attributes_merge(at, verdict)) {
        overrule(&at->results, REPORT_OUTCOME_APPLIED,
                 DECIDE_REFUSED(REPORT_REASON_TOO_MANY_ATTRIBUTES));
        verdict->change = false;
    }
    if (verdict->change)
        decide_placement_finish(at, verdict);
    const struct decide_cell *cell =
        decide_kernel_cell(at->variant, at->resolution, &at->results, at->from_stream, at->detail);
    verdict->cell = cell->number;
    if (!verdict->change)
        verdict->output_index[0] = -1;
    /* Also of a launch that stays as it is: that it fits its stream's partition is worth knowing.
     */
    if (verdict->change || at->shapes[DECIDE_SHAPE_OF_PLACE])
        remember(at, cell, verdict);
}

/* Who observes wants to know what is launched; otherwise most launches take ways too short for it.
 */
static void note_shape(uint32_t kernel, const CUlaunchConfig *config)
{
    report_kernel_shape(kernel, (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ,
                        config->blockDimX * config->blockDimY * config->blockDimZ,
                        config->sharedMemBytes);
}

/* Rules that ask about the launch, launches of a new kind, clusters in a new shape, observing. */
static void decide_in_full(const struct decide_launch *launch, struct decide_verdict *verdict,
                           struct decide_known known, int arm)
{
    uint8_t mode = __atomic_load_n(&report_control_now()->part.mode, __ATOMIC_RELAXED);
    bool node = verdict->kind == REPORT_LAUNCH_NODE;
    struct decide_case at = {
        .launch = launch,
        .variant = known.variant,
        .serial = known.serial,
        .arm = arm,
        .in_graph = verdict->kind != REPORT_LAUNCH_EAGER,
        .observe = mode == POLICY_MODE_OBSERVE,
    };
    /* An array that is not there is for the driver to complain about. */
    bool broken = launch->config->numAttrs && !launch->config->attrs;
    verdict->change = false;
    verdict->internal.remember = false;
    verdict->cell = 0;
    if (!known.variant)
        return;
    if (at.observe && !node)
        note_shape(known.variant->number, launch->config);
    at.resolution =
        mode == POLICY_MODE_OFF || broken ? decide_resolution_none() : resolve(&at, node);
    look_around(&at, node);
    if (known.variant->places && !node && !broken && !at.stream &&
        decide_stream_partition(launch->config->hStream))
        at.stream = stream_of(&at); /* no rule is asked about it while the mode is off */
    verdict->move.partition = NULL;
    if (mode == POLICY_MODE_ENFORCE && !broken) {
        const struct decide_recipe *recipe = decide_recipe_of(&at);
        if (recipe)
            decide_recipe_keep_shaped(recipe, known.variant, launch->config, arm);
        /* What the program set on the stream may have to be kept. */
        uint32_t owned = recipe && recipe->stream_keeps && at.stream
                             ? decide_stream_own(at.stream) & recipe->stream_keeps
                             : 0;
        if (recipe && !owned &&
            decide_recipe_follow(recipe, known.variant, known.serial, launch, verdict))
            return;
    }
    settle(&at, verdict, mode == POLICY_MODE_ENFORCE);
}

void decide_launch_in_full(const struct decide_launch *given, struct decide_verdict *verdict)
{
    struct decide_launch named = *given;
    const struct decide_launch *launch = &named;

    named.library = decide_launch_library(given);
    named.caller = NULL;
    verdict->kind = decide_stream_is_capturing(launch->config->hStream, launch->per_thread_default)
                        ? REPORT_LAUNCH_CAPTURED
                        : REPORT_LAUNCH_EAGER;
    struct decide_known known = decide_function_find(launch->function, launch->library,
                                                     launch->layer == DECIDE_LAYER_RUNTIME);
    int arm = DECIDE_ARM_NONE;
    if (verdict->kind == REPORT_LAUNCH_EAGER) {
        if (known.variant && known.variant->step)
            decide_live_begin_step();
        arm = __atomic_load_n(&report_control_now()->part.arm, __ATOMIC_RELAXED);
    } else if (known.variant && known.variant->step) {
        report_note("warning", "live: the step kernel is launched by a graph, where it begins no "
                               "step: count graph launches");
    }
    decide_in_full(launch, verdict, known, arm);
}

static inline __attribute__((always_inline)) void follow(const struct decide_recipe *recipe,
                                                         struct decide_known known,
                                                         const struct decide_launch *launch,
                                                         struct decide_verdict *verdict)
{
    verdict->kind = REPORT_LAUNCH_EAGER;
    if (launch->config->numAttrs != 0 || recipe->careful) {
        decide_recipe_launch(recipe, known.variant, known.serial, launch, verdict);
        return;
    }
    verdict->cell = recipe->cell->number;
    verdict->change = recipe->set != 0;
    if (recipe->set)
        decide_recipe_finish(recipe, recipe->cell, known.variant, launch, verdict, recipe->append,
                             recipe->count);
}

/* Where the rules ask about the launch's shape. */
static __attribute__((noinline)) void launch_by_shape(const struct decide_launch *launch,
                                                      struct decide_verdict *verdict,
                                                      struct decide_known known)
{
    const struct decide_recipe *recipe = decide_recipe_shaped(known.variant, launch->config);
    if (recipe)
        follow(recipe, known, launch, verdict);
    else
        decide_launch_in_full(launch, verdict);
}

static inline __attribute__((always_inline)) void launch_known(const struct decide_launch *launch,
                                                               struct decide_verdict *verdict,
                                                               struct decide_known known)
{
    const struct decide_recipe *recipe =
        atomic_load_explicit(&known.variant->plain, memory_order_acquire);
    if (recipe)
        follow(recipe, known, launch, verdict);
    else
        launch_by_shape(launch, verdict, known);
}

/* Where the rules ask who the caller is. */
static __attribute__((noinline)) void launch_for_library(const struct decide_launch *launch,
                                                         struct decide_verdict *verdict,
                                                         struct decide_known known)
{
    known.variant =
        decide_kernel_variant_known(known.variant->kernel, decide_launch_library(launch));
    if (known.variant)
        launch_known(launch, verdict, known);
    else
        decide_launch_in_full(launch, verdict);
}

/*
 * The short way, for most launches: the control word is as at the start (so no stream captures),
 * the function is known, and so is the outcome. Every other way is a tail call, so this one needs
 * no frame.
 */
void decide_launch(const struct decide_launch *launch, struct decide_verdict *verdict)
{
    uint64_t control = __atomic_load_n(&report_control_now()->whole, __ATOMIC_RELAXED);
    const struct decide_function *entry =
        handle_map_guess(&decide_functions, (uintptr_t)launch->function);
    verdict->internal.remember = false;
    if (__builtin_expect(!entry || control != report_control_expected_now() ||
                             (uint8_t)control != POLICY_MODE_ENFORCE ||
                             decide_recipe_condition(launch, false) != 0,
                         0)) {
        decide_launch_in_full(launch, verdict);
        return;
    }
    struct decide_known known = decide_function_read(entry, launch->function);
    if (__builtin_expect(!known.variant, 0) ||
        (known.variant->merges && names_default_stream(launch)) ||
        (known.variant->places && decide_stream_partition(launch->config->hStream)))
        decide_launch_in_full(launch, verdict);
    else if (known.variant->any_library) {
        if (__builtin_expect(decide_prepared_is_free(launch->function), 0))
            decide_function_prepare(launch->function, known.variant);
        launch_known(launch, verdict, known);
    } else
        launch_for_library(launch, verdict, known);
}

void decide_node(const struct decide_launch *launch, struct decide_verdict *verdict, int arm)
{
    verdict->kind = REPORT_LAUNCH_NODE;
    decide_in_full(launch, verdict, decide_function_find(launch->function, launch->library, false),
                   arm);
}

/* ---- Afterwards ---------------------------------------------------------------------------------
 */

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

/* Settings whose refusal is remembered with a shape. */
static const uint32_t of_shapes[DECIDE_CASE_SHAPES] = {
    [DECIDE_SHAPE_OF_CLUSTER] = CLUSTERS,
    [DECIDE_SHAPE_OF_PREFERRED] = CLUSTERS,
    [DECIDE_SHAPE_OF_PLACE] = 1u << POLICY_SETTING_PARTITION,
};

static uint32_t by_shape(const struct decide_verdict *verdict)
{
    const uint32_t place = of_shapes[DECIDE_SHAPE_OF_PLACE];
    bool kept = verdict->internal.has_shapes && verdict->internal.shapes[DECIDE_SHAPE_OF_PLACE];
    return CLUSTERS | (kept ? place : 0);
}

static uint32_t applied_of(const union decide_results *results)
{
    uint32_t applied = 0;
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
        if (decide_result_outcome(results->of[setting]) == REPORT_OUTCOME_APPLIED)
            applied |= 1u << setting;
    return applied;
}

/*
 * Which of the settings made is to blame. Errors 701, 720 and 912 are what clusters cause. An
 * attribute that the driver does not know gives error 1, so with that a cluster, which was checked,
 * and a partition come after the hints; memory-sync settings, which were checked against the
 * device, come last.
 */
static uint32_t blame(uint32_t applied, CUresult result)
{
    const uint32_t place = applied & 1u << POLICY_SETTING_PARTITION;
    uint32_t hints = applied & ~(uint32_t)(CLUSTERS | MEM_SYNC | place);
    bool unknown =
        (int)result == CUDA_RESULT_INVALID_VALUE || (int)result == CUDA_RESULT_NOT_SUPPORTED;
    if (unknown && hints)
        return hints;
    if (applied & (CLUSTERS | place))
        return applied & (CLUSTERS | place);
    return hints ? hints : applied;
}

static void blame_variant(struct decide_variant *variant, uint32_t settings, CUresult result)
{
    if (!settings)
        return;
    atomic_store(&variant->refused_result, (uint32_t)result);
    atomic_fetch_or(&variant->refused, settings);
    atomic_store(&variant->plain, NULL);
}

void decide_launch_not_moved(struct decide_verdict *verdict, enum report_reason reason)
{
    const struct decide_cell *cell = verdict->internal.cell;
    union decide_results results = cell->results;
    verdict->move.partition = NULL;
    verdict->internal.shapes[DECIDE_SHAPE_OF_PLACE] = NULL;
    if (!cell->resolution) /* cell 0, which tells nothing apart */
        return;
    if (results.of[POLICY_SETTING_PARTITION] == DECIDE_APPLIED)
        results.of[POLICY_SETTING_PARTITION] = DECIDE_REFUSED(reason);
    cell = decide_kernel_cell(verdict->internal.variant, cell->resolution, &results,
                              cell->from_stream, cell->detail);
    verdict->internal.cell = cell;
    verdict->cell = cell->number;
}

bool decide_launch_refused(const struct decide_launch *launch, struct decide_verdict *verdict,
                           CUresult result)
{
    (void)launch;
    if (!verdict->change || !can_be_caused(result))
        return false;
    struct decide_variant *variant = verdict->internal.variant;
    const struct decide_cell *cell = verdict->internal.cell;
    union decide_results results = cell->results;
    uint32_t blamed = blame(applied_of(&results), result);
    for (unsigned i = 0; i < DECIDE_CASE_SHAPES; i++)
        if ((blamed & of_shapes[i]) && verdict->internal.has_shapes)
            decide_shape_refused(verdict->internal.shapes[i], verdict->internal.shape_uses[i],
                                 (uint32_t)result);
    blame_variant(variant, blamed & ~by_shape(verdict), result);
    verdict->internal.blamed = blamed;
    overrule(&results, REPORT_OUTCOME_APPLIED,
             DECIDE_RESULT(REPORT_OUTCOME_REFUSED, REPORT_REASON_REFUSED_BY_DRIVER));
    if (cell->resolution) /* else cell 0, which tells nothing apart */
        verdict->cell = decide_kernel_cell(variant, cell->resolution, &results, cell->from_stream,
                                           (uint32_t)result)
                            ->number;
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
    for (unsigned i = 0; i < DECIDE_CASE_SHAPES; i++)
        if ((blamed & of_shapes[i]) && verdict->internal.has_shapes)
            decide_shape_not_refused(verdict->internal.shapes[i], verdict->internal.shape_uses[i]);
    blamed &= ~by_shape(verdict);
    if (!blamed)
        return;
    atomic_fetch_and(&variant->refused, ~blamed);
    /* Another thread may have found the refusal meanwhile, and what to do with it. */
    atomic_store(&variant->plain, NULL);
}

void decide_launch_remember(const struct decide_launch *launch, struct decide_verdict *verdict)
{
    for (unsigned i = 0; i < DECIDE_CASE_SHAPES && verdict->internal.has_shapes; i++)
        if (verdict->internal.shapes[i])
            decide_shape_accepted(verdict->internal.shapes[i], verdict->internal.shape_uses[i]);
    decide_attributes_copy_back(launch, verdict);
}
