/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/settle.h"

#include "decide/cluster.h"
#include "decide/placement.h"
#include "decide/setting.h"
#include "decide/stream.h"

void decide_settle_scan(struct decide_case *at)
{
    const CUlaunchConfig *config = at->launch->config;
    const struct cuda_launch_attribute *own = (const void *)config->attrs;
    at->present = 0;
    /* A launch that has too many is not changed, so nothing more need be read of it. */
    unsigned count = own && config->numAttrs <= DECIDE_ATTRIBUTE_LIMIT ? config->numAttrs : 0;
    for (unsigned i = 0; i < count; i++) {
        uint32_t id = own[i].id;
        if (id >= 32)
            continue;
        at->present |= 1u << id;
        at->last[id] = (uint8_t)i;
    }
}

/* ---- Settings that only the device, the driver and the graph can forbid ---------------------- */

static enum report_reason check_domains(const struct decide_case *at, enum policy_setting setting,
                                        const union policy_value *value)
{
    int domains = at->device->domains;
    if (domains < 0)
        return REPORT_REASON_QUERY_FAILED;
    if (domains <= 1)
        return REPORT_REASON_ONE_DOMAIN;
    if (setting == POLICY_SETTING_MEM_SYNC_DOMAIN_MAP &&
        (value->mem_sync_domain_map.default_domain >= domains ||
         value->mem_sync_domain_map.remote_domain >= domains))
        return REPORT_REASON_NO_SUCH_DOMAIN;
    return REPORT_REASON_NONE;
}

static enum report_reason check_general(struct decide_case *at, enum policy_setting setting,
                                        bool graph_nodes)
{
    const struct decide_setting *about = &decide_settings[setting];
    if (atomic_load_explicit(&at->variant->refused, memory_order_relaxed) >> setting & 1) {
        at->detail = atomic_load_explicit(&at->variant->refused_result, memory_order_relaxed);
        return REPORT_REASON_REFUSED_BY_DRIVER;
    }
    if (decide_settings_too_new() >> setting & 1)
        return REPORT_REASON_DRIVER_TOO_OLD;
    if (at->launch->layer == DECIDE_LAYER_RUNTIME && !about->runtime_layer)
        return REPORT_REASON_RUNTIME_LAYER;
    if (at->in_graph && !about->mem_sync && !graph_nodes)
        return REPORT_REASON_GRAPH;
    if (about->by_device && !at->device)
        return REPORT_REASON_DEVICE_UNKNOWN;
    return REPORT_REASON_NONE;
}

/* ---- Clusters -------------------------------------------------------------------------------- */

static bool cooperative(const struct decide_case *at)
{
    const struct cuda_launch_attribute *own = decide_case_own(at, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
    return at->launch->cooperative || (own && own->value.number != 0);
}

static struct decide_cluster_question question_of(const struct decide_case *at,
                                                  enum decide_shape_purpose purpose, uint32_t x,
                                                  uint32_t y, uint32_t z)
{
    return (struct decide_cluster_question){
        .function = at->launch->function,
        .serial = at->serial,
        .config = at->launch->config,
        .device = at->device,
        .purpose = purpose,
        .x = x,
        .y = y,
        .z = z,
        .cooperative = cooperative(at),
        .partition = at->target,
        .in_graph = at->in_graph,
        .observe = at->observe,
    };
}

static uint8_t ask_shape(struct decide_case *at, const struct decide_cluster_question *question)
{
    struct decide_cluster_answer answer;
    decide_cluster_ask(question, &answer);
    if (answer.reason == REPORT_REASON_COMPILE_TIME_CLUSTER)
        return DECIDE_KEPT(REPORT_REASON_COMPILE_TIME_CLUSTER);
    if (answer.reason == REPORT_REASON_REFUSED_BY_DRIVER)
        at->detail = answer.result;
    if (answer.reason != REPORT_REASON_NONE)
        return DECIDE_REFUSED(answer.reason);
    unsigned which = question->purpose == DECIDE_SHAPE_PREFERRED ? DECIDE_SHAPE_OF_PREFERRED
                                                                 : DECIDE_SHAPE_OF_CLUSTER;
    at->shapes[which] = answer.shape;
    at->shape_uses[which] = answer.use;
    return DECIDE_APPLIED;
}

static enum report_reason check_clusters(const struct decide_case *at, enum policy_setting setting)
{
    if (at->device->clusters < 0)
        return REPORT_REASON_QUERY_FAILED;
    if (at->device->clusters == 0)
        return REPORT_REASON_NO_CLUSTERS;
    if (setting != POLICY_SETTING_PREFERRED_CLUSTER_DIM || at->device->major >= 10)
        return REPORT_REASON_NONE;
    return at->device->major < 0 ? REPORT_REASON_QUERY_FAILED : REPORT_REASON_COMPUTE_CAPABILITY;
}

static uint8_t set_cluster(struct decide_case *at, const struct decide_choice *choice)
{
    const union policy_value *value = &choice->value->value;
    struct decide_cluster_question question = question_of(
        at, DECIDE_SHAPE_CLUSTER, value->cluster_dim.x, value->cluster_dim.y, value->cluster_dim.z);
    uint8_t result = ask_shape(at, &question);
    if (result == DECIDE_APPLIED && !at->target)
        atomic_store_explicit(&at->variant->recent_shape, at->shapes[0], memory_order_release);
    return result;
}

/* The cluster that the launch will have: ours, its own, or the function's. */
static bool regular_cluster(const struct decide_case *at,
                            const struct decide_cluster_question *question, uint32_t cluster[3])
{
    const struct cuda_launch_attribute *attribute;
    if (at->set & 1u << POLICY_SETTING_CLUSTER_DIM)
        attribute = &at->resolution->choices[POLICY_SETTING_CLUSTER_DIM].attribute;
    else if (at->removed & 1u << CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        attribute = NULL;
    else
        attribute = decide_case_own(at, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    if (!attribute)
        return decide_cluster_required(question, cluster);
    cluster[0] = attribute->value.cluster_dim.x;
    cluster[1] = attribute->value.cluster_dim.y;
    cluster[2] = attribute->value.cluster_dim.z;
    return cluster[0] && cluster[1] && cluster[2];
}

static uint8_t set_preferred_cluster(struct decide_case *at, const struct decide_choice *choice)
{
    uint32_t cluster[3];
    const union policy_value *value = &choice->value->value;
    struct decide_cluster_question question =
        question_of(at, DECIDE_SHAPE_PREFERRED, value->cluster_dim.x, value->cluster_dim.y,
                    value->cluster_dim.z);
    if (!regular_cluster(at, &question, cluster))
        return DECIDE_REFUSED(at->in_graph ? REPORT_REASON_CAPTURE_UNPROVEN
                                           : REPORT_REASON_NOT_A_MULTIPLE);
    if (value->cluster_dim.x % cluster[0] != 0 || value->cluster_dim.y % cluster[1] != 0 ||
        value->cluster_dim.z != cluster[2])
        return DECIDE_REFUSED(REPORT_REASON_NOT_A_MULTIPLE);
    return ask_shape(at, &question);
}

/* Replacing the program's cluster must not break the multiple that its own preferred cluster is. */
static bool own_preferred_fits(const struct decide_case *at, const struct decide_choice *choice)
{
    const struct cuda_launch_attribute *own =
        decide_case_own(at, CUDA_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION);
    const union policy_value *value = &choice->value->value;
    return !own || (own->value.cluster_dim.x % value->cluster_dim.x == 0 &&
                    own->value.cluster_dim.y % value->cluster_dim.y == 0 &&
                    own->value.cluster_dim.z == value->cluster_dim.z);
}

/* ---- One setting of a kernel rule ------------------------------------------------------------ */

enum report_reason decide_settle_check(struct decide_case *at, enum policy_setting setting,
                                       const struct decide_choice *choice)
{
    enum report_reason reason = check_general(at, setting, choice->graph_nodes);
    if (reason != REPORT_REASON_NONE)
        return reason;
    if (decide_settings[setting].mem_sync)
        return check_domains(at, setting, &choice->value->value);
    if (policy_setting_group(setting) == POLICY_GROUP_CLUSTER)
        return check_clusters(at, setting);
    return REPORT_REASON_NONE;
}

static uint8_t settle_value(struct decide_case *at, enum policy_setting setting,
                            const struct decide_choice *choice)
{
    enum report_reason reason = decide_settle_check(at, setting, choice);
    if (reason != REPORT_REASON_NONE)
        return DECIDE_REFUSED(reason);
    if (setting == POLICY_SETTING_CLUSTER_DIM)
        return set_cluster(at, choice);
    if (setting == POLICY_SETTING_PREFERRED_CLUSTER_DIM)
        return set_preferred_cluster(at, choice);
    return DECIDE_APPLIED;
}

static uint8_t settle_set(struct decide_case *at, enum policy_setting setting,
                          const struct decide_choice *choice)
{
    const struct decide_setting *about = &decide_settings[setting];
    const struct cuda_launch_attribute *own = decide_case_own(at, about->attribute);
    bool keep = choice->value->when_set == POLICY_WHEN_SET_KEEP;
    if (own) {
        bool cluster = setting == POLICY_SETTING_CLUSTER_DIM;
        if (decide_setting_same(about, own, &choice->attribute))
            return DECIDE_ALREADY_SO;
        if (cluster && (keep || !choice->unsafe_cluster))
            return DECIDE_KEPT(REPORT_REASON_OWN_CLUSTER);
        if (keep)
            return DECIDE_KEPT(REPORT_REASON_OWN_VALUE);
        if (cluster && !own_preferred_fits(at, choice))
            return DECIDE_REFUSED(REPORT_REASON_NOT_A_MULTIPLE);
    } else if (keep && about->on_streams && at->stream &&
               decide_stream_own(at->stream) >> about->attribute & 1) {
        return DECIDE_KEPT(REPORT_REASON_OWN_VALUE);
    }
    uint8_t result = settle_value(at, setting, choice);
    if (result == DECIDE_APPLIED)
        at->set |= 1u << setting;
    return result;
}

static uint8_t settle_removal(struct decide_case *at, enum policy_setting setting,
                              const struct decide_choice *choice)
{
    const struct decide_setting *about = &decide_settings[setting];
    const struct cuda_launch_attribute *own = decide_case_own(at, about->attribute);
    bool serialization = setting == POLICY_SETTING_PROGRAMMATIC_SERIALIZATION;
    uint8_t result = DECIDE_APPLIED;
    if (!own || (serialization && own->value.number == 0))
        return DECIDE_ALREADY_SO;
    if (setting == POLICY_SETTING_CLUSTER_DIM && !choice->unsafe_cluster)
        return DECIDE_KEPT(REPORT_REASON_OWN_CLUSTER);
    if (at->in_graph && !about->mem_sync && !serialization && !choice->graph_nodes)
        return DECIDE_REFUSED(REPORT_REASON_GRAPH);
    if (setting == POLICY_SETTING_CLUSTER_DIM) {
        if (at->launch->layer == DECIDE_LAYER_RUNTIME)
            return DECIDE_REFUSED(REPORT_REASON_RUNTIME_LAYER);
        struct decide_cluster_question question = question_of(at, DECIDE_SHAPE_REMOVAL, 0, 0, 0);
        result = ask_shape(at, &question);
    }
    if (result == DECIDE_APPLIED)
        at->removed |= 1u << about->attribute;
    return result;
}

static uint8_t settle_kernel(struct decide_case *at, enum policy_setting setting)
{
    const struct decide_choice *choice = &at->resolution->choices[setting];
    if (setting == POLICY_SETTING_PARTITION)
        return decide_placement_settle(at, choice);
    switch (choice->value->action) {
    case POLICY_ACTION_SET:
        return settle_set(at, setting, choice);
    case POLICY_ACTION_UNSET:
        return settle_removal(at, setting, choice);
    case POLICY_ACTION_LEAVE:
    case POLICY_ACTION_ABSENT:
        break;
    }
    return DECIDE_LEFT;
}

/* ---- One setting of a default stream's rule -------------------------------------------------- */

/*
 * What the device can was looked at when the profile was made. A created stream has the setting
 * itself, and its captured launches carry it into the graph; so here it needs no graph_nodes
 * either.
 */
enum report_reason decide_settle_check_stream(struct decide_case *at, enum policy_setting setting)
{
    if (atomic_load_explicit(&at->variant->refused, memory_order_relaxed) >> setting & 1) {
        at->detail = atomic_load_explicit(&at->variant->refused_result, memory_order_relaxed);
        return REPORT_REASON_REFUSED_BY_DRIVER;
    }
    if (at->launch->layer == DECIDE_LAYER_RUNTIME && !decide_settings[setting].runtime_layer)
        return REPORT_REASON_RUNTIME_LAYER;
    return REPORT_REASON_NONE;
}

static uint8_t settle_stream(struct decide_case *at, enum policy_setting setting)
{
    const struct decide_stream_setting *merged = &at->resolution->profile->settings[setting];
    const struct decide_choice *choice = &at->resolution->stream_choices[setting];
    const struct decide_setting *about = &decide_settings[setting];
    if (merged->result.outcome != REPORT_OUTCOME_APPLIED)
        return DECIDE_RESULT(merged->result.outcome, merged->result.reason);
    if (setting == POLICY_SETTING_PARTITION)
        return decide_placement_settle_stream(at, choice);
    const struct cuda_launch_attribute *own = decide_case_own(at, about->attribute);
    if (own && !(at->removed >> about->attribute & 1))
        return decide_setting_same(about, own, &choice->attribute)
                   ? DECIDE_ALREADY_SO
                   : DECIDE_KEPT(REPORT_REASON_OWN_VALUE);
    if (choice->value->when_set == POLICY_WHEN_SET_KEEP && at->stream &&
        decide_stream_own(at->stream) >> about->attribute & 1)
        return DECIDE_KEPT(REPORT_REASON_OWN_VALUE);
    enum report_reason reason = decide_settle_check_stream(at, setting);
    if (reason != REPORT_REASON_NONE)
        return DECIDE_REFUSED(reason);
    at->set |= 1u << setting;
    at->from_stream |= 1u << setting;
    return DECIDE_APPLIED;
}

/* ---- All ------------------------------------------------------------------------------------- */

void decide_settle(struct decide_case *at)
{
    const struct decide_resolution *resolution = at->resolution;
    at->results.words[0] = at->results.words[1] = 0;
    at->from_stream = at->set = at->removed = at->detail = 0;
    for (unsigned i = 0; i < DECIDE_CASE_SHAPES; i++)
        at->shapes[i] = NULL;
    decide_placement_begin(at);
    /* In the order of the settings, so that the preferred cluster finds the cluster decided. */
    for (uint32_t left = resolution->kernel_settings; left; left &= left - 1) {
        unsigned setting = (unsigned)__builtin_ctz(left);
        at->results.of[setting] = settle_kernel(at, setting);
    }
    for (uint32_t left = resolution->stream_settings & ~at->set; left; left &= left - 1) {
        unsigned setting = (unsigned)__builtin_ctz(left);
        if (setting == POLICY_SETTING_PARTITION && at->results.of[setting] != 0)
            continue;
        uint8_t result = settle_stream(at, setting);
        if (at->results.of[setting] == 0) {
            at->results.of[setting] = result;
            at->from_stream |= 1u << setting;
        }
    }
}
