/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/placement.h"

#include "decide/cluster.h"
#include "decide/device.h"
#include "decide/function.h"
#include "decide/graph_nodes.h"
#include "decide/setting.h"
#include "decide/stream.h"
#include "decide/stream_default.h"
#include "decide/stream_registry.h"
#include "decide/stream_rules.h"
#include "place/move.h"
#include "place/partition.h"
#include "place/thread.h"

/* Side streams of the legacy streams; those of per-thread streams are their threads'. */
static struct place_sides legacy_sides[DECIDE_DEVICE_LIMIT];

/* Attributes by which work after the launch may begin before the launch ends: the join would come
 * too late for them. And the one that ties a node to the graph that the launch is captured into. */
static const uint32_t unmovable = 1u << CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION |
                                  1u << CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT |
                                  1u << CUDA_ATTRIBUTE_LAUNCH_COMPLETION_EVENT |
                                  1u << CUDA_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;

bool decide_partition_is_on(const struct policy_partition *partition, int device)
{
    return partition->device.count == 0 || decide_device_is(&partition->device, device);
}

enum report_reason decide_placement_partition(int device, const struct policy_setting_value *value,
                                              const struct place_partition **partition)
{
    *partition = NULL;
    if (device < 0)
        return REPORT_REASON_DEVICE_UNKNOWN;
    place_device_active(device, decide_stream_mode() == POLICY_MODE_ENFORCE);
    const struct place_partition *found = place_partition_find(device, value->value.partition);
    uint32_t reason = atomic_load_explicit(&found->reason, memory_order_acquire);
    if (reason == REPORT_REASON_NONE)
        *partition = found;
    return (enum report_reason)reason;
}

/* ---- The stream of the launch ------------------------------------------------------------------
 */

static bool is_default(const struct decide_stream *stream)
{
    return stream->kind == DECIDE_STREAM_LEGACY || stream->kind == DECIDE_STREAM_PER_THREAD;
}

/* A node, which has no stream, is for the current device. */
static int device_of(const struct decide_case *at)
{
    return at->stream && at->stream->device >= 0 ? at->stream->device : decide_device_current();
}

/* The stream's handle, of default streams their own. */
static CUstream handle_of(const struct decide_case *at)
{
    switch (at->stream->kind) {
    case DECIDE_STREAM_LEGACY:
        return CU_STREAM_LEGACY;
    case DECIDE_STREAM_PER_THREAD:
        return CU_STREAM_PER_THREAD;
    default:
        return at->launch->config->hStream;
    }
}

/* Only a capture begun in a graph can be in the body of a conditional node. */
static bool in_body(const struct decide_case *at)
{
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph graph = NULL;
    const CUgraphNode *dependencies;
    size_t count;
    if (!at->stream)
        return at->launch->body;
    if (!decide_nodes_bodies_exist())
        return false;
    return !cuda_driver.cuStreamGetCaptureInfo ||
           cuda_driver.cuStreamGetCaptureInfo(handle_of(at), &status, &id, &graph, &dependencies,
                                              &count) != CUDA_SUCCESS ||
           decide_nodes_in_body(graph);
}

/* Events and side streams belong to the primary context, and so must the stream. */
static bool in_primary_context(const struct decide_stream *stream, int device)
{
    CUcontext primary = place_primary_context(device), context = stream->context;
    if (!primary)
        return false;
    if (is_default(stream) &&
        (!cuda_driver.cuCtxGetCurrent || cuda_driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS))
        return false;
    return context == primary;
}

static bool has_unmovable(const struct decide_case *at)
{
    for (uint32_t left = at->present & unmovable & ~at->removed; left; left &= left - 1) {
        unsigned id = (unsigned)__builtin_ctz(left);
        const struct cuda_launch_attribute *own = decide_case_own(at, id);
        if (id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION || own->value.number != 0)
            return true;
    }
    return false;
}

/* Why the launch cannot be moved from its stream, wherever to. */
static enum report_reason check_stream(const struct decide_case *at, int device, bool allow_legacy)
{
    const struct decide_stream *stream = at->stream;
    if (!stream || (stream->kind == DECIDE_STREAM_UNKNOWN && !stream->context))
        return REPORT_REASON_STREAM_UNKNOWN;
    if (stream->kind == DECIDE_STREAM_LEGACY && !allow_legacy)
        return REPORT_REASON_LEGACY_STREAM;
    if (!in_primary_context(stream, device))
        return REPORT_REASON_OTHER_CONTEXT;
    return REPORT_REASON_NONE;
}

static enum report_reason check_node(const struct decide_case *at, int device)
{
    CUcontext context = at->launch->context, primary = place_primary_context(device);
    if (!context &&
        (!cuda_driver.cuCtxGetCurrent || cuda_driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS))
        return REPORT_REASON_QUERY_FAILED;
    return primary && context == primary ? REPORT_REASON_NONE : REPORT_REASON_OTHER_CONTEXT;
}

/* ---- The partition -----------------------------------------------------------------------------
 */

static enum report_reason find_target(struct decide_case *at, const struct decide_choice *choice)
{
    const struct place_partition *partition;
    if (decide_settings_too_new() >> POLICY_SETTING_PARTITION & 1)
        return REPORT_REASON_DRIVER_TOO_OLD;
    if (at->launch->layer == DECIDE_LAYER_RUNTIME)
        return REPORT_REASON_RUNTIME_LAYER;
    if (at->in_graph && !choice->graph_nodes)
        return REPORT_REASON_GRAPH;
    if (at->in_graph && in_body(at))
        return REPORT_REASON_CONDITIONAL;
    int device = device_of(at);
    enum report_reason reason = decide_placement_partition(device, choice->value, &partition);
    if (reason == REPORT_REASON_NONE && !at->stream)
        reason = check_node(at, device);
    else if (reason == REPORT_REASON_NONE && partition != at->stream->partition)
        reason = check_stream(at, device, choice->allow_legacy);
    if (reason == REPORT_REASON_NONE)
        at->target = partition;
    return reason;
}

void decide_placement_begin(struct decide_case *at)
{
    const struct decide_choice *choice = &at->resolution->choices[POLICY_SETTING_PARTITION];
    at->move = NULL;
    at->target = at->stream ? at->stream->partition : NULL;
    at->target_reason = REPORT_REASON_NONE;
    if (at->resolution->places && choice->value->action == POLICY_ACTION_SET)
        at->target_reason = find_target(at, choice);
}

static bool cooperative(const struct decide_case *at)
{
    const struct cuda_launch_attribute *own = decide_case_own(at, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
    return at->launch->cooperative || (own && own->value.number != 0);
}

/* The cluster that the launch will have, as far as attributes say so. */
static const struct cuda_launch_attribute *cluster_of(const struct decide_case *at)
{
    if (at->set & 1u << POLICY_SETTING_CLUSTER_DIM)
        return &at->resolution->choices[POLICY_SETTING_CLUSTER_DIM].attribute;
    if (at->removed & 1u << CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        return NULL;
    return decide_case_own(at, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
}

static enum report_reason check_shape(struct decide_case *at, bool unsafe_residency)
{
    const struct cuda_launch_attribute *cluster = cluster_of(at);
    struct decide_cluster_question question = {
        .function = at->launch->function,
        .serial = at->serial,
        .config = at->launch->config,
        .device = decide_device_class_of(at->target->device),
        .purpose = DECIDE_SHAPE_PLACED,
        .partition = at->target,
        .unsafe_residency = unsafe_residency,
        .cooperative = cooperative(at),
        .in_graph = at->in_graph,
        .observe = at->observe,
    };
    struct decide_cluster_answer answer;
    /* A node's grid can be changed later, and one that does not fit then hangs (measured). */
    if (at->in_graph && question.cooperative)
        return REPORT_REASON_COOPERATIVE_CAPACITY;
    if (cluster) {
        question.x = cluster->value.cluster_dim.x;
        question.y = cluster->value.cluster_dim.y;
        question.z = cluster->value.cluster_dim.z;
    }
    decide_cluster_ask(&question, &answer);
    if (answer.reason == REPORT_REASON_REFUSED_BY_DRIVER)
        at->detail = answer.result;
    at->shapes[DECIDE_SHAPE_OF_PLACE] = answer.shape;
    at->shape_uses[DECIDE_SHAPE_OF_PLACE] = answer.use;
    return answer.reason;
}

/* ---- Results -----------------------------------------------------------------------------------
 */

uint8_t decide_placement_settle(struct decide_case *at, const struct decide_choice *choice)
{
    enum report_reason reason = at->target_reason;
    if (choice->value->action != POLICY_ACTION_SET)
        return DECIDE_LEFT;
    if (atomic_load_explicit(&at->variant->refused, memory_order_relaxed) >>
            POLICY_SETTING_PARTITION &
        1) {
        at->detail = atomic_load_explicit(&at->variant->refused_result, memory_order_relaxed);
        reason = REPORT_REASON_REFUSED_BY_DRIVER;
    }
    if (reason == REPORT_REASON_NONE && has_unmovable(at))
        reason = REPORT_REASON_PROGRAMMATIC;
    if (reason == REPORT_REASON_NONE)
        reason = check_shape(at, choice->unsafe_residency);
    if (reason != REPORT_REASON_NONE) {
        at->shapes[DECIDE_SHAPE_OF_PLACE] = NULL;
        return DECIDE_REFUSED(reason);
    }
    if (at->stream && at->target == at->stream->partition)
        return DECIDE_ALREADY_SO;
    at->move = at->target;
    return DECIDE_APPLIED;
}

/* NONE: the launch stays on its stream's partition. Else why not, and it goes to the whole device.
 */
static enum report_reason leave_unless_safe(struct decide_case *at, bool graph_nodes,
                                            bool unsafe_residency)
{
    const struct decide_stream *stream = at->stream;
    enum report_reason reason = REPORT_REASON_NONE;
    at->move = NULL;
    at->target = stream->partition;
    if (at->in_graph && !graph_nodes)
        reason = REPORT_REASON_GRAPH;
    else if (at->in_graph && in_body(at))
        reason = REPORT_REASON_CONDITIONAL;
    else
        reason = check_shape(at, unsafe_residency);
    if (reason == REPORT_REASON_NONE)
        return REPORT_REASON_NONE;
    at->shapes[DECIDE_SHAPE_OF_PLACE] = NULL;
    uint32_t removed = at->removed;
    /* It permits the launch to begin earlier, on which no program can rely. */
    at->removed |= at->present & 1u << CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    /* What cannot be moved stays where it is. */
    if (has_unmovable(at) || check_stream(at, stream->device, false) != REPORT_REASON_NONE) {
        at->removed = removed;
        return REPORT_REASON_NONE;
    }
    at->move = place_partition_find(stream->device, PLACE_WHOLE_DEVICE);
    return reason;
}

uint8_t decide_placement_settle_stream(struct decide_case *at, const struct decide_choice *choice)
{
    enum report_reason reason =
        leave_unless_safe(at, choice->graph_nodes, choice->unsafe_residency);
    return reason == REPORT_REASON_NONE ? DECIDE_APPLIED : DECIDE_REFUSED(reason);
}

void decide_placement_guard(struct decide_case *at)
{
    const struct policy_rule *rule = decide_stream_placing_rule(at->stream);
    leave_unless_safe(at, rule->graph_nodes, rule->unsafe_residency);
}

enum report_reason decide_placement_fits(const struct decide_launch *launch,
                                         const struct place_partition *partition,
                                         bool unsafe_residency)
{
    struct decide_known known = decide_function_find(launch->function, launch->library, false);
    struct decide_case at = {
        .launch = launch,
        .variant = known.variant,
        .serial = known.serial,
        .target = partition,
    };
    if (!known.variant)
        return REPORT_REASON_FUNCTION_UNKNOWN;
    decide_settle_scan(&at);
    if (cooperative(&at)) /* as of every node */
        return REPORT_REASON_COOPERATIVE_CAPACITY;
    return check_shape(&at, unsafe_residency);
}

void decide_placement_mirror(CUstream stream, bool per_thread_default)
{
    enum decide_stream_kind kind = decide_stream_default_kind(stream, per_thread_default);
    struct place_sides *sides;
    int device = -1;
    if (!place_wanted())
        return;
    if (kind != DECIDE_STREAM_CREATED)
        device = decide_device_current();
    switch (kind) {
    case DECIDE_STREAM_LEGACY:
        if (device >= 0 && device < DECIDE_DEVICE_LIMIT)
            place_sides_mirror(&legacy_sides[device], CU_STREAM_LEGACY);
        break;
    case DECIDE_STREAM_PER_THREAD:
        sides = place_thread_sides(device);
        if (sides)
            place_sides_mirror(sides, CU_STREAM_PER_THREAD);
        break;
    case DECIDE_STREAM_CREATED:
    case DECIDE_STREAM_UNKNOWN: {
        struct decide_stream *entry = handle_map_find(&decide_streams, decide_stream_key(stream));
        if (entry)
            place_sides_mirror(&entry->sides, stream);
        break;
    }
    }
}

void decide_placement_finish(const struct decide_case *at, struct decide_verdict *verdict)
{
    const struct decide_stream *stream = at->stream;
    verdict->move.partition = at->move;
    if (!at->move || !stream) /* of a node, the partition is all there is to know */
        return;
    verdict->move.stream = handle_of(at);
    if (stream->kind == DECIDE_STREAM_LEGACY) {
        verdict->move.sides = &legacy_sides[at->move->device];
    } else if (stream->kind == DECIDE_STREAM_PER_THREAD) {
        verdict->move.sides = place_thread_sides(at->move->device);
    } else {
        /* The registry's own entry, which readers see as constant but for this. */
        verdict->move.sides = (struct place_sides *)(uintptr_t)&stream->sides;
    }
}
