/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel nodes: what is decided about them, and making it so. */
#include "decide/node.h"

#include <string.h>

#include "decide/function.h"
#include "decide/graph_nodes.h"
#include "decide/launch.h"
#include "decide/live.h"
#include "decide/node_attributes.h"
#include "decide/placement.h"
#include "decide/rules.h"
#include "decide/stream.h"
#include "decide/stream_registry.h"
#include "decide/stream_settings.h"
#include "report/log.h"

static bool rules_exist(void)
{
    return decide_rule_set_now()->rule_count != 0;
}

static uint32_t bit(unsigned setting)
{
    return 1u << setting;
}

uint32_t decide_node_kernel(void *function, const char *library)
{
    struct decide_known known = decide_function_find(function, library, false);
    return known.variant ? known.variant->number : 0;
}

uint32_t decide_node_plain_cell(uint32_t kernel)
{
    struct report_result results[POLICY_SETTING_COUNT];
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
        results[setting] = (struct report_result){.rule = REPORT_RULE_NONE};
    return report_cell(kernel, results, 0);
}

/* ---- Deciding ----------------------------------------------------------------------------------
 */

struct decision {
    CUlaunchConfig config;
    struct cuda_launch_attribute attributes[POLICY_SETTING_COUNT];
    struct decide_launch launch;
    struct decide_verdict verdict;
    struct decide_node_values wanted; /* settings with a value other than the program's */
};

/* Fills decision->wanted: what the verdict says where it differs from what the program has. */
static void compare(struct decision *decision, const struct decide_node_values *program)
{
    struct decide_node_values decided;
    memset(&decision->wanted, 0, sizeof decision->wanted);
    if (!decision->verdict.change)
        return;
    decide_node_gather(decision->verdict.attributes, decision->verdict.config.numAttrs, &decided);
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        struct decide_node_value value = decide_node_default(setting);
        struct decide_node_value own = value;
        if (!(DECIDE_NODE_SETTINGS & bit(setting)))
            continue;
        if (decided.present & bit(setting))
            value = decided.of[setting];
        if (program->present & bit(setting))
            own = program->of[setting];
        /* A value that the program cannot be asked about is set even if it is the default. */
        if (decide_node_value_same(&value, &own) &&
            !((decided.present & ~program->present) & bit(setting)))
            continue;
        decision->wanted.of[setting] = value;
        decision->wanted.present |= (uint16_t)bit(setting);
    }
}

/* program: what the program itself has set on the node. graph: NULL where it is not known. */
static void decide(struct decision *decision, CUgraph graph,
                   const struct cuda_kernel_node_params *parameters, const char *library,
                   bool cooperative, const struct decide_node_values *program, int arm)
{
    unsigned count = 0;
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        struct decide_node_value none = decide_node_default(setting);
        if ((program->present & bit(setting)) &&
            !decide_node_value_same(&program->of[setting], &none))
            decision->attributes[count++] = decide_node_attribute(setting, &program->of[setting]);
    }
    decision->config = (CUlaunchConfig){
        .gridDimX = parameters->grid_x,
        .gridDimY = parameters->grid_y,
        .gridDimZ = parameters->grid_z,
        .blockDimX = parameters->block_x,
        .blockDimY = parameters->block_y,
        .blockDimZ = parameters->block_z,
        .sharedMemBytes = parameters->shared_memory,
        .attrs = count ? (CUlaunchAttribute *)(void *)decision->attributes : NULL,
        .numAttrs = count,
    };
    decision->launch = (struct decide_launch){
        .function = (CUfunction)decide_node_function(parameters),
        .config = &decision->config,
        .cooperative = cooperative,
        .library = library,
        .context = parameters->context,
        .body = decide_nodes_in_body(graph),
    };
    decide_node(&decision->launch, &decision->verdict, arm);
    compare(decision, program);
}

/* ---- Making it so ------------------------------------------------------------------------------
 */

static const struct decide_node_value *value_of(const struct decide_node_values *values,
                                                unsigned setting)
{
    return values->present & bit(setting) ? &values->of[setting] : NULL;
}

/* A call of the program may hang on it, so a driver that failed once is asked once more. */
static bool write_back(CUgraphNode node, unsigned setting, const struct decide_node_value *value)
{
    return decide_node_write(node, setting, value) == CUDA_SUCCESS ||
           decide_node_write(node, setting, value) == CUDA_SUCCESS;
}

/*
 * Takes settings back to what the program has, as far as the node is known to have another value.
 * What cannot be taken back stays in the injection.
 */
static void take_back(CUgraphNode node, struct decide_node_injection *injection, uint32_t settings)
{
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        if (!(injection->settings & settings & DECIDE_NODE_SETTINGS & bit(setting)))
            continue;
        if (write_back(node, setting, &injection->program[setting]))
            injection->settings &= (uint16_t)~bit(setting);
        else
            report_log_once(REPORT_LOG_WARN, "%s could not be taken back from a graph node",
                            policy_setting_key(setting));
    }
}

/* Writes the wanted values over those that the node has now. Stops at the first refusal. */
static CUresult write_wanted(CUgraphNode node, const struct decide_node_values *wanted,
                             const struct decide_node_values *now,
                             const struct decide_node_values *program,
                             struct decide_node_injection *injection)
{
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        const struct decide_node_value *value = value_of(wanted, setting);
        const struct decide_node_value *present = value_of(now, setting);
        if (!value)
            continue;
        if (!present || !decide_node_value_same(value, present)) {
            CUresult result = decide_node_write(node, setting, value);
            if (result != CUDA_SUCCESS)
                return result;
        }
        const struct decide_node_value *own = value_of(program, setting);
        injection->program[setting] = own ? *own : decide_node_default(setting);
        injection->settings |= (uint16_t)bit(setting);
    }
    return CUDA_SUCCESS;
}

/* The engine has to hear that nothing was changed; it takes only errors for it that a changed
 * launch can come back with. */
static void tell_refused(struct decision *decision, CUresult result)
{
    if (!decide_launch_refused(&decision->launch, &decision->verdict, result) &&
        !decide_launch_refused(&decision->launch, &decision->verdict, CUDA_ERROR_NOT_SUPPORTED))
        return;
    decide_launch_repeated(&decision->launch, &decision->verdict, CUDA_SUCCESS);
}

static void make_so(CUgraphNode node, struct decision *decision,
                    const struct decide_node_values *now, const struct decide_node_values *program,
                    struct decide_node_injection *injection)
{
    take_back(node, injection, ~(uint32_t)decision->wanted.present);
    if (!decision->verdict.change)
        return;
    CUresult result = write_wanted(node, &decision->wanted, now, program, injection);
    if (result == CUDA_SUCCESS) {
        decide_launch_accepted(&decision->launch, &decision->verdict);
        return;
    }
    take_back(node, injection, ~0u);
    tell_refused(decision, result);
}

/* Where the node runs, after its attributes are made. */
static void settle_place(CUgraphNode node, const struct cuda_kernel_node_params *parameters,
                         struct decision *decision, struct decide_node_injection *injection)
{
    const struct place_partition *wanted =
        decision->verdict.change ? decision->verdict.move.partition : NULL;
    const struct place_partition *of_stream = injection->place.stream;
    enum report_reason reason = REPORT_REASON_NONE;
    if (!wanted && of_stream &&
        decide_placement_fits(&decision->launch, of_stream, injection->place.unsafe_residency) ==
            REPORT_REASON_NONE)
        wanted = of_stream;
    if (injection->place.partition != wanted) {
        if (injection->place.partition)
            decide_node_place_take_back(node, &injection->place);
        if (wanted)
            reason = decide_node_place_make(node, parameters, wanted, &injection->place);
    }
    if (injection->place.partition || of_stream)
        injection->settings |= (uint16_t)bit(POLICY_SETTING_PARTITION);
    else
        injection->settings &= (uint16_t)~bit(POLICY_SETTING_PARTITION);
    if (reason != REPORT_REASON_NONE && wanted != of_stream)
        decide_launch_not_moved(&decision->verdict, reason);
}

/* ---- Explicit nodes ----------------------------------------------------------------------------
 */

/* Decides about the attributes of a node anew. What the program has is what the node has, but for
 * our injections. */
static void decide_attributes(CUgraphNode node, const struct cuda_kernel_node_params *parameters,
                              struct decide_node_facts *facts, struct decision *decision, int arm)
{
    struct decide_node_values now, program;
    const struct decide_rule_set *rules;
    do { /* what is read depends on the rules */
        bool cooperative = false;
        rules = decide_rule_set_now();
        memset(&now, 0, sizeof now);
        if (rules_exist() || facts->injection.settings) {
            decide_node_read(node, DECIDE_NODE_SETTINGS, &now);
            cooperative = decide_node_is_cooperative(node);
        }
        program = now;
        for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
            if (!(facts->injection.settings & DECIDE_NODE_SETTINGS & bit(setting)))
                continue;
            program.of[setting] = facts->injection.program[setting];
            program.present |= (uint16_t)bit(setting);
        }
        decide(decision, decide_nodes_graph_of(node), parameters, facts->library, cooperative,
               &program, arm);
    } while (rules != decide_rule_set_now());
    make_so(node, decision, &now, &program, &facts->injection);
    facts->cell = decision->verdict.cell;
}

static void decide_again(CUgraphNode node, const struct cuda_kernel_node_params *parameters,
                         struct decide_node_facts *facts)
{
    struct decision decision;
    decide_attributes(node, parameters, facts, &decision, DECIDE_ARM_NONE);
    settle_place(node, parameters, &decision, &facts->injection);
    facts->cell = decision.verdict.cell;
}

void decide_node_in_arm(CUgraphNode node, const struct cuda_kernel_node_params *parameters,
                        struct decide_node_facts *facts, int arm)
{
    struct decision decision;
    decide_attributes(node, parameters, facts, &decision, arm);
}

void decide_node_added(CUgraph graph, CUgraphNode node,
                       const struct cuda_kernel_node_params *parameters, const char *library)
{
    struct decision decision;
    struct decide_node_values program = {0};
    struct decide_node_facts facts = {.library = library};
    /* Nobody has set anything on it: only what is to be changed need be asked. */
    decide(&decision, graph, parameters, library, false, &program, DECIDE_ARM_NONE);
    if (decision.wanted.present) {
        decide_node_read(node, decision.wanted.present, &program);
        make_so(node, &decision, &program, &program, &facts.injection);
    } else if (decision.verdict.change) {
        decide_launch_accepted(&decision.launch, &decision.verdict);
    }
    settle_place(node, parameters, &decision, &facts.injection);
    facts.cell = decision.verdict.cell;
    facts.kernel = decide_node_kernel(decide_node_function(parameters), library);
    decide_nodes_enter(graph, node, &facts);
    report_count_launch(facts.cell, REPORT_LAUNCH_NODE, 1);
}

void decide_node_changed(CUgraphNode node, const struct cuda_kernel_node_params *parameters,
                         const char *library)
{
    struct decide_node_facts facts;
    decide_nodes_find(node, &facts);
    /* With parameters of its own the node is where they say, off its partition (measured). */
    facts.injection.place.partition = NULL;
    facts.library = library;
    facts.kernel = decide_node_kernel(decide_node_function(parameters), library);
    decide_again(node, parameters, &facts);
    decide_nodes_change(node, &facts);
    report_count_launch(facts.cell, REPORT_LAUNCH_NODE, 1);
}

/* After the program touched the attributes of a known node. */
static void attributes_touched(CUgraphNode node, struct decide_node_facts *facts)
{
    struct cuda_kernel_node_params parameters;
    memset(&parameters, 0, sizeof parameters);
    if ((rules_exist() || facts->injection.settings) && cuda_driver.cuGraphKernelNodeGetParams &&
        cuda_driver.cuGraphKernelNodeGetParams(node, &parameters) == CUDA_SUCCESS) {
        decide_node_told(node, &parameters); /* rules are about what the program has */
        decide_again(node, &parameters, facts);
    }
    decide_nodes_change(node, facts);
}

void decide_node_attribute_set(CUgraphNode node, int attribute)
{
    struct decide_node_facts facts;
    int setting = decide_node_setting_of(attribute);
    /* Whether it is cooperative decides about its partition. */
    bool about = setting >= 0 || attribute < 0 || attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    if (!about || !decide_nodes_find(node, &facts))
        return;
    if (attribute < 0)
        facts.injection.settings &= (uint16_t)bit(POLICY_SETTING_PARTITION);
    else if (setting >= 0)
        facts.injection.settings &= (uint16_t)~bit((unsigned)setting);
    attributes_touched(node, &facts);
}

void decide_node_attributes_copied(CUgraphNode destination, CUgraphNode source)
{
    struct decide_node_facts facts, from;
    if (destination == source || !decide_nodes_find(destination, &facts))
        return;
    decide_nodes_find(source, &from);
    from.injection.place = facts.injection.place; /* no attribute */
    from.injection.settings &= (uint16_t)~bit(POLICY_SETTING_PARTITION);
    from.injection.settings |= facts.injection.settings & (uint16_t)bit(POLICY_SETTING_PARTITION);
    facts.injection = from.injection;
    attributes_touched(destination, &facts);
}

/* Other settings fit every grid and every kernel. */
bool decide_node_give_back(CUgraphNode node, CUresult result)
{
    const uint32_t clusters =
        bit(POLICY_SETTING_CLUSTER_DIM) | bit(POLICY_SETTING_PREFERRED_CLUSTER_DIM);
    struct decide_node_facts facts;
    if (((int)result != CUDA_RESULT_INVALID_CLUSTER_SIZE &&
         (int)result != CUDA_RESULT_LAUNCH_OUT_OF_RESOURCES &&
         (int)result != CUDA_RESULT_COOPERATIVE_LAUNCH_TOO_LARGE) ||
        !decide_nodes_find(node, &facts) || !(facts.injection.settings & clusters))
        return false;
    take_back(node, &facts.injection, clusters);
    decide_nodes_change(node, &facts);
    return !(facts.injection.settings & clusters);
}

void decide_node_decide_again(CUgraphNode node)
{
    struct decide_node_facts facts;
    if (decide_nodes_find(node, &facts))
        attributes_touched(node, &facts);
}

/* ---- Captured nodes ----------------------------------------------------------------------------
 */

/* What the stream gives to a captured launch that does not have the attribute itself. */
static void read_stream(const struct decide_launch *launch, struct decide_node_values *values)
{
    uint32_t words[DECIDE_STREAM_SLOTS];
    memset(values, 0, sizeof *values);
    if (!decide_stream_words(launch->config->hStream, launch->per_thread_default, words))
        return;
    for (enum decide_stream_slot slot = 0; slot < DECIDE_STREAM_SLOTS; slot++) {
        enum policy_setting setting = decide_stream_slot_setting(slot);
        values->of[setting].words[0] = words[slot];
        values->present |= (uint16_t)bit(setting);
    }
}

/* What the capture would have put into the node without our change of the launch: the launch's own
 * attribute, else the stream's, else the default. */
static void note_injection(const struct decide_launch *launch, const struct decide_verdict *verdict,
                           struct decide_node_injection *injection)
{
    struct decide_node_values own, made, stream;
    decide_node_gather((const struct cuda_launch_attribute *)(const void *)launch->config->attrs,
                       launch->config->numAttrs, &own);
    decide_node_gather(verdict->attributes, verdict->config.numAttrs, &made);
    read_stream(launch, &stream);
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        if (!(DECIDE_NODE_SETTINGS & bit(setting)))
            continue;
        struct decide_node_value without = decide_node_default(setting);
        if (stream.present & bit(setting))
            without = stream.of[setting];
        struct decide_node_value with = without;
        if (own.present & bit(setting))
            without = own.of[setting];
        if (made.present & bit(setting))
            with = made.of[setting];
        if (decide_node_value_same(&with, &without))
            continue;
        injection->program[setting] = without;
        injection->settings |= (uint16_t)bit(setting);
    }
}

/* Without us the program would read a node in the primary context. */
static void note_place(const struct decide_launch *launch, const struct decide_verdict *verdict,
                       struct decide_node_injection *injection)
{
    const struct decide_stream *stream =
        handle_map_find(&decide_streams, decide_stream_key(launch->config->hStream));
    const struct place_partition *of_stream = stream ? stream->partition : NULL;
    const struct place_partition *moved = verdict->change ? verdict->move.partition : NULL;
    const struct place_partition *partition = moved ? moved : of_stream;
    if (!partition || partition->index == PLACE_WHOLE_DEVICE)
        return;
    CUkernel kernel = decide_function_kernel_of(launch->function);
    injection->settings |= (uint16_t)bit(POLICY_SETTING_PARTITION);
    injection->place = (struct decide_node_place){
        .partition = partition,
        /* Told of a node that was launched by that handle. */
        .kernel = (CUfunction)(void *)kernel == launch->function ? kernel : NULL,
        .stream = of_stream,
        .unsafe_residency = of_stream && decide_stream_placing_rule(stream)->unsafe_residency,
        .function = decide_function_to_ask(launch->function),
        .context = place_primary_context(partition->device),
    };
}

void decide_captured(const struct decide_launch *launch, const struct decide_verdict *verdict)
{
    CUstream stream = launch->config->hStream;
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph graph = NULL;
    const CUgraphNode *dependencies = NULL;
    size_t count = 0;
    if (!stream && launch->per_thread_default)
        stream = CU_STREAM_PER_THREAD;
    /* After a launch the stream depends on its node alone. */
    if (!cuda_driver.cuStreamGetCaptureInfo ||
        cuda_driver.cuStreamGetCaptureInfo(stream, &status, &id, &graph, &dependencies, &count) !=
            CUDA_SUCCESS ||
        status != CU_STREAM_CAPTURE_STATUS_ACTIVE || count != 1 || !graph)
        return;
    struct decide_node_facts facts = {.cell = verdict->cell,
                                      .library = decide_launch_library(launch)};
    facts.kernel = decide_node_kernel(launch->function, facts.library);
    if (verdict->change)
        note_injection(launch, verdict, &facts.injection);
    if (place_wanted())
        note_place(launch, verdict, &facts.injection);
    decide_nodes_enter(graph, dependencies[0], &facts);
}

void decide_node_gone(CUgraphNode node)
{
    decide_nodes_forget(node);
}
