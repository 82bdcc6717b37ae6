/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/graph_live.h"

#include <stdlib.h>
#include <string.h>

#include "decide/capture.h"
#include "decide/function.h"
#include "decide/graph.h"
#include "decide/graph_nodes.h"
#include "decide/handle_map.h"
#include "decide/live.h"
#include "decide/node.h"
#include "decide/node_attributes.h"
#include "report/log.h"

/* The executables that stand for one of the program's. */
struct group {
    struct handle_entry base;
    _Atomic(CUgraphExec) siblings[POLICY_ARM_LIMIT]; /* by arm; NULL: the program's own serves it */
    _Atomic(CUgraphExec) last;                       /* launched; NULL: none yet */
    _Atomic uint64_t stream;                         /* into which; 0: it is gone */
    _Atomic(CUevent) launched; /* recorded behind each launch while there are siblings */
    atomic_bool stays;         /* with the last one */
};

static struct handle_map groups = HANDLE_MAP_INITIALISER(struct group);
static atomic_uint group_count;

bool decide_live_graphs_exist(void)
{
    return atomic_load_explicit(&group_count, memory_order_relaxed) != 0;
}

/* ---- The graph in an arm -----------------------------------------------------------------------
 */

/* A node about which rules of arms are, as the program's graph has it. */
struct touched {
    CUgraphNode node;
    struct cuda_kernel_node_params parameters;
    struct decide_node_facts facts;
    struct decide_node_values values;
    struct decide_node_facts now; /* in the arm that it is in for the moment */
};

struct touched_graph {
    struct touched *nodes;
    size_t count, room;
    const char *reason; /* why there can be no siblings; NULL: there can */
};

static bool add_touched(struct touched_graph *graph, const struct touched *touched)
{
    if (graph->count == graph->room) {
        size_t room = graph->room ? graph->room * 2 : 16;
        struct touched *larger = realloc(graph->nodes, room * sizeof *larger);
        if (!larger)
            return false;
        graph->nodes = larger;
        graph->room = room;
    }
    graph->nodes[graph->count++] = *touched;
    return true;
}

static void look_at_kernel(CUgraphNode node, struct touched_graph *graph)
{
    struct touched touched = {.node = node};
    if (!decide_nodes_find(node, &touched.facts) || !cuda_driver.cuGraphKernelNodeGetParams ||
        cuda_driver.cuGraphKernelNodeGetParams(node, &touched.parameters) != CUDA_SUCCESS)
        return;
    decide_node_told(node, &touched.parameters);
    struct decide_known known = decide_function_find(decide_node_function(&touched.parameters),
                                                     touched.facts.library, false);
    const unsigned needs = known.variant ? known.variant->plan->needs : 0;
    if (!(needs & DECIDE_NEED_ARM))
        return;
    if (needs & (DECIDE_NEED_STREAM | DECIDE_NEED_ORDER))
        graph->reason = "a rule asks about the stream that a launch was captured from";
    decide_node_read(node, DECIDE_NODE_SETTINGS, &touched.values);
    touched.now = touched.facts;
    if (!add_touched(graph, &touched))
        graph->reason = "out of memory";
}

static void look_at(CUgraph graph, struct touched_graph *touched, unsigned depth)
{
    size_t count = 0;
    CUgraphNode *nodes = decide_graph_nodes(graph, &count);
    for (size_t i = 0; nodes && i < count; i++) {
        CUgraphNodeType type;
        CUgraph inside;
        if (!decide_graph_node_type(nodes[i], &type))
            continue;
        switch ((int)type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            look_at_kernel(nodes[i], touched);
            break;
        case CU_GRAPH_NODE_TYPE_GRAPH:
            if (depth < DECIDE_GRAPH_DEPTH_LIMIT && decide_graph_inside(nodes[i], &inside))
                look_at(inside, touched, depth + 1);
            break;
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            touched->reason = "it allocates or frees memory";
            break;
        case CUDA_GRAPH_NODE_CONDITIONAL:
            touched->reason = "it has a conditional node";
            break;
        default:
            break;
        }
    }
    free(nodes);
}

/* True when some node is decided about otherwise than without an arm. */
static bool set_arm(struct touched_graph *graph, int arm)
{
    bool differs = false;
    for (size_t i = 0; i < graph->count; i++) {
        struct touched *touched = &graph->nodes[i];
        struct decide_node_values values;
        decide_node_in_arm(touched->node, &touched->parameters, &touched->now, arm);
        decide_nodes_change(touched->node, &touched->now);
        decide_node_read(touched->node, DECIDE_NODE_SETTINGS, &values);
        differs |= touched->now.cell != touched->facts.cell ||
                   memcmp(&values, &touched->values, sizeof values) != 0;
    }
    return differs;
}

static bool restore_values(const struct touched *touched)
{
    struct decide_node_values now;
    bool restored = true;
    decide_node_read(touched->node, touched->values.present, &now);
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
        if ((touched->values.present >> setting & 1) &&
            !decide_node_value_same(&now.of[setting], &touched->values.of[setting]))
            restored &= decide_node_write(touched->node, setting, &touched->values.of[setting]) ==
                        CUDA_SUCCESS;
    return restored;
}

/* The graph as the program has it. What a node does not tell is as it was when it is decided about
 * as before; what it does tell is looked at. */
static void restore(struct touched_graph *graph)
{
    set_arm(graph, DECIDE_ARM_NONE);
    for (size_t i = 0; i < graph->count; i++) {
        /* A cluster and a preferred one depend on each other. */
        if (!restore_values(&graph->nodes[i]) && !restore_values(&graph->nodes[i]))
            report_log_once(REPORT_LOG_WARN,
                            "an arm's attributes could not be taken back from a graph node");
        decide_nodes_change(graph->nodes[i].node, &graph->nodes[i].facts);
    }
}

static void say_one(const char *reason)
{
    report_note("warning", "live: one executable graph for all arms, in none of them: %s", reason);
}

/* ---- Groups ------------------------------------------------------------------------------------
 */

static void destroy(CUgraphExec sibling)
{
    decide_graph_executable_gone(sibling);
    if (cuda_driver.cuGraphExecDestroy)
        cuda_driver.cuGraphExecDestroy(sibling);
}

static void destroy_all(CUgraphExec siblings[POLICY_ARM_LIMIT])
{
    for (unsigned arm = 0; arm < POLICY_ARM_LIMIT; arm++)
        if (siblings[arm])
            destroy(siblings[arm]);
}

/* Locked. */
static void remove_group(CUgraphExec executable)
{
    if (handle_map_remove(&groups, (uintptr_t)executable))
        atomic_fetch_sub_explicit(&group_count, 1, memory_order_relaxed);
}

static bool enter(CUgraphExec executable, CUgraphExec siblings[POLICY_ARM_LIMIT])
{
    handle_map_lock(&groups);
    remove_group(executable); /* of a handle that ended without our being told */
    struct group *group = handle_map_new(&groups);
    for (unsigned arm = 0; group && arm < POLICY_ARM_LIMIT; arm++)
        atomic_store_explicit(&group->siblings[arm], siblings[arm], memory_order_relaxed);
    bool entered = group && handle_map_insert(&groups, group, (uintptr_t)executable);
    if (entered)
        atomic_fetch_add_explicit(&group_count, 1, memory_order_relaxed);
    handle_map_unlock(&groups);
    return entered;
}

/* Copies the siblings. False: there are none. */
static bool siblings_of(CUgraphExec executable, CUgraphExec siblings[POLICY_ARM_LIMIT], bool take)
{
    bool found = false;
    memset(siblings, 0, POLICY_ARM_LIMIT * sizeof *siblings);
    handle_map_lock(&groups);
    struct group *group = handle_map_find(&groups, (uintptr_t)executable);
    for (unsigned arm = 0; group && arm < POLICY_ARM_LIMIT; arm++) {
        siblings[arm] = atomic_load_explicit(&group->siblings[arm], memory_order_relaxed);
        found |= siblings[arm] != NULL;
        if (take)
            atomic_store_explicit(&group->siblings[arm], NULL, memory_order_release);
    }
    if (group && take)
        atomic_store_explicit(&group->stays, false, memory_order_release);
    handle_map_unlock(&groups);
    return found;
}

/* From now on the program's own executable serves all arms. */
static void drop(CUgraphExec executable, const char *reason)
{
    CUgraphExec siblings[POLICY_ARM_LIMIT];
    if (!siblings_of(executable, siblings, true))
        return;
    destroy_all(siblings);
    say_one(reason);
}

/* ---- Making and changing -----------------------------------------------------------------------
 */

/* False: one of them could not be made. */
static bool make_siblings(CUgraph graph, struct touched_graph *touched,
                          const struct decide_live_call *call,
                          CUgraphExec siblings[POLICY_ARM_LIMIT], bool *any)
{
    bool made = true;
    for (unsigned arm = 0; arm < decide_live_arms && made; arm++) {
        if (!set_arm(touched, (int)arm))
            continue;
        made = call->make(call, &siblings[arm], graph) == CUDA_SUCCESS && siblings[arm];
        if (made)
            decide_graph_instantiated(siblings[arm], graph);
        else
            siblings[arm] = NULL;
        *any = true;
    }
    restore(touched);
    return made;
}

void decide_live_graph_instantiated(CUgraphExec executable, CUgraph graph, unsigned long long flags,
                                    const struct decide_live_call *call)
{
    struct touched_graph touched = {0};
    CUgraphExec siblings[POLICY_ARM_LIMIT] = {0};
    bool any = false;
    if (!decide_live_arms)
        return;
    look_at(graph, &touched, 0);
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
        touched.reason = "it can be launched by the device";
    if (touched.count && touched.reason) {
        say_one(touched.reason);
    } else if (touched.count && !make_siblings(graph, &touched, call, siblings, &any)) {
        destroy_all(siblings);
        say_one("the driver refused another executable");
    } else if (any && !enter(executable, siblings)) {
        destroy_all(siblings);
        say_one("out of memory");
    } else if (any) {
        report_note("info", "live: an executable graph for each arm");
    }
    free(touched.nodes);
}

void decide_live_graph_changed(CUgraphExec executable, CUgraph graph, CUgraphNode node,
                               const struct cuda_kernel_node_params *parameters,
                               const struct decide_live_call *call)
{
    struct touched_graph touched = {0};
    CUgraphExec siblings[POLICY_ARM_LIMIT];
    bool repeated = true;
    if (!decide_live_graphs_exist() || !siblings_of(executable, siblings, false))
        return;
    if (graph)
        look_at(graph, &touched, 0);
    if (touched.count && touched.reason) {
        free(touched.nodes);
        drop(executable, touched.reason);
        return;
    }
    for (unsigned arm = 0; arm < POLICY_ARM_LIMIT && repeated; arm++) {
        if (!siblings[arm])
            continue;
        set_arm(&touched, (int)arm);
        repeated = call->repeat(call, siblings[arm]) == CUDA_SUCCESS;
        if (repeated && graph && !node)
            decide_graph_updated(siblings[arm], graph);
        if (repeated && parameters)
            decide_graph_node_updated(siblings[arm], node, parameters);
    }
    restore(&touched);
    free(touched.nodes);
    if (!repeated)
        drop(executable, "a change of it was refused in an arm");
}

/* ---- Launching ---------------------------------------------------------------------------------
 */

/* Tells streams apart; of per-thread streams the thread counts. */
static uint64_t key_of(CUstream stream, bool per_thread_default)
{
    static _Atomic uint64_t threads;
    static _Thread_local uint64_t thread;
    if (stream == CU_STREAM_LEGACY || (stream == NULL && !per_thread_default))
        return 1;
    if (stream != NULL && stream != CU_STREAM_PER_THREAD)
        return (uintptr_t)stream;
    if (!thread)
        thread = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
    return UINT64_MAX - thread;
}

/* By a name that means the same to every variant of a function. */
static CUstream stream_of(CUstream stream, bool per_thread_default)
{
    if (stream)
        return stream;
    return per_thread_default ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

/* Another thread that launches the same graph for the first time may have made one meanwhile. */
static CUevent event_of(struct group *group)
{
    CUevent event = atomic_load_explicit(&group->launched, memory_order_acquire), made = NULL;
    if (event || !cuda_driver.cuEventCreate || !cuda_driver.cuEventDestroy ||
        cuda_driver.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return event;
    if (atomic_compare_exchange_strong(&group->launched, &event, made))
        return made;
    cuda_driver.cuEventDestroy(made);
    return event;
}

/* What was launched last was a sibling, which is no longer there: nothing else orders the program's
 * own executable behind it. An event does whatever became of the stream. */
static void wait_for_last(const struct group *group, CUstream stream, bool per_thread_default)
{
    CUevent event = atomic_load_explicit(&group->launched, memory_order_acquire);
    if (event && cuda_driver.cuStreamWaitEvent)
        cuda_driver.cuStreamWaitEvent(stream_of(stream, per_thread_default), event, 0);
}

static CUgraphExec present(const struct group *group, CUgraphExec executable)
{
    const union report_control control = {
        .whole = __atomic_load_n(&report_control_now()->whole, __ATOMIC_RELAXED)};
    CUgraphExec sibling =
        control.part.mode == POLICY_MODE_ENFORCE && control.part.arm < POLICY_ARM_LIMIT
            ? atomic_load_explicit(&group->siblings[control.part.arm], memory_order_acquire)
            : NULL;
    return sibling ? sibling : executable;
}

static bool is_sibling(const struct group *group, CUgraphExec executable)
{
    for (unsigned arm = 0; arm < POLICY_ARM_LIMIT; arm++)
        if (atomic_load_explicit(&group->siblings[arm], memory_order_acquire) == executable)
            return true;
    return false;
}

static struct group *group_of(CUgraphExec executable)
{
    return decide_live_graphs_exist() ? handle_map_find(&groups, (uintptr_t)executable) : NULL;
}

CUgraphExec decide_live_graph_pick(CUgraphExec executable, CUstream stream, bool per_thread_default)
{
    struct group *group = group_of(executable);
    if (!group)
        return executable;
    CUgraphExec last = atomic_load_explicit(&group->last, memory_order_acquire);
    bool stays = atomic_load_explicit(&group->stays, memory_order_acquire);
    if (last && last != executable && !is_sibling(group, last)) {
        wait_for_last(group, stream, per_thread_default);
        return executable;
    }
    if (!stays && last &&
        atomic_load_explicit(&group->stream, memory_order_acquire) !=
            key_of(stream, per_thread_default)) {
        atomic_store_explicit(&group->stays, stays = true, memory_order_release);
        report_note("warning", "live: an executable graph stays in one arm: it is launched into "
                               "more than one stream");
    }
    return stays ? last : present(group, executable);
}

void decide_live_graph_launched(CUgraphExec executable, CUgraphExec launched, CUstream stream,
                                bool per_thread_default)
{
    struct group *group = group_of(executable);
    if (!group)
        return;
    atomic_store_explicit(&group->last, launched, memory_order_release);
    atomic_store_explicit(&group->stream, key_of(stream, per_thread_default), memory_order_release);
    CUevent event = is_sibling(group, launched) ? event_of(group) : NULL;
    if (event && cuda_driver.cuEventRecord)
        cuda_driver.cuEventRecord(event, stream_of(stream, per_thread_default));
}

void decide_live_graph_give_up(CUgraphExec executable, CUstream stream, bool per_thread_default)
{
    struct group *group = group_of(executable);
    if (group && atomic_load_explicit(&group->last, memory_order_acquire) != executable)
        wait_for_last(group, stream, per_thread_default);
}

void decide_live_graph_refused(CUgraphExec executable)
{
    drop(executable, "the driver refused the launch of another executable");
}

/* ---- Ends --------------------------------------------------------------------------------------
 */

void decide_live_graph_gone(CUgraphExec executable)
{
    CUgraphExec siblings[POLICY_ARM_LIMIT];
    if (!decide_live_graphs_exist())
        return;
    if (siblings_of(executable, siblings, true))
        destroy_all(siblings);
    handle_map_lock(&groups);
    struct group *group = handle_map_find(&groups, (uintptr_t)executable);
    CUevent event = group ? atomic_exchange(&group->launched, NULL) : NULL;
    remove_group(executable);
    handle_map_unlock(&groups);
    if (event)
        cuda_driver.cuEventDestroy(event);
}

void decide_live_stream_gone(CUstream stream)
{
    size_t position = 0;
    struct group *group;
    if (!decide_live_graphs_exist())
        return;
    handle_map_lock(&groups);
    while ((group = handle_map_next(&groups, &position))) {
        uint64_t key = (uintptr_t)stream;
        if (!stream)
            key = atomic_load_explicit(&group->stream, memory_order_relaxed);
        atomic_compare_exchange_strong(&group->stream, &key, 0);
    }
    handle_map_unlock(&groups);
}

void decide_live_graphs_forget(void)
{
    size_t position = 0;
    struct group *group;
    handle_map_lock(&groups);
    while ((group = handle_map_next(&groups, &position)))
        remove_group((CUgraphExec)(uintptr_t)atomic_load_explicit(&group->base.handle,
                                                                  memory_order_relaxed));
    handle_map_unlock(&groups);
}

void decide_live_graphs_start(void)
{
    handle_map_after_fork(&groups);
    atomic_store_explicit(&group_count, 0, memory_order_relaxed);
}
