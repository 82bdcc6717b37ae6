/* SPDX-License-Identifier: Apache-2.0 */
/* Graph nodes and executable graphs. */
#include "cuda/interface.h"
#include "matrix.h"

exercise_function exercise_add_kernel_node_v1, exercise_add_kernel_node_v2, exercise_add_node_v1,
    exercise_add_node_v2, exercise_add_child_graph_node, exercise_kernel_node_set_params_v1,
    exercise_kernel_node_get_params_v1, exercise_kernel_node_get_params_v2,
    exercise_node_get_params, exercise_kernel_node_set_params_v2, exercise_node_set_params,
    exercise_kernel_node_set_attribute, exercise_kernel_node_copy_attributes, exercise_destroy_node,
    exercise_graph_destroy, exercise_graph_clone, exercise_graph_instantiate_with_log,
    exercise_graph_instantiate_with_flags, exercise_graph_instantiate_with_params,
    exercise_graph_exec_update_v1, exercise_graph_exec_update_v2,
    exercise_exec_kernel_node_set_params_v1, exercise_exec_kernel_node_set_params_v2,
    exercise_exec_node_set_params, exercise_exec_node_set, exercise_exec_child_set_params,
    exercise_exec_memory_set_params, exercise_node_set_enabled, exercise_graph_upload,
    exercise_graph_launch, exercise_graph_exec_destroy;

static const char *result_problem(CUresult result)
{
    return result == CUDA_SUCCESS ? NULL : problem("the program got %d", (int)result);
}

/* The first version of the parameters ends before kernel; the driver reads no further. */
static const struct cuda_kernel_node_params *kernel_parameters(void)
{
    static void *pointer;
    static void *arguments[] = {&pointer};
    static struct cuda_kernel_node_params parameters = {
        .grid_x = 2,
        .grid_y = 1,
        .grid_z = 1,
        .block_x = 64,
        .block_y = 1,
        .block_z = 1,
        .kernel_params = arguments,
    };

    parameters.function = fixture.function;
    return &parameters;
}

static struct cuda_graph_node_params *node_parameters(void)
{
    static struct cuda_graph_node_params parameters;

    parameters =
        (struct cuda_graph_node_params){.type = CU_GRAPH_NODE_TYPE_KERNEL, .node.bytes = {0}};
    parameters.node.kernel = *kernel_parameters();
    return &parameters;
}

static CUgraphExec executable(void)
{
    CUgraphExec made;

    CHECK(RAW(cuGraphInstantiateWithFlags)(&made, fixture.graph, 0));
    return made;
}

/* ---- nodes ------------------------------------------------------------------------------------
 */

static const char *added(CUresult result, const CUgraphNode *node)
{
    const char *wrong = result_problem(result);

    return wrong != NULL ? wrong : node_problem(*node);
}

const char *exercise_add_kernel_node_v1(const struct row *row, void *function)
{
    CUresult (*add)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const void *) = function;
    CUgraphNode node = NULL;

    (void)row;
    return added(add(&node, fixture.graph, &fixture.node, 1, kernel_parameters()), &node);
}

const char *exercise_add_kernel_node_v2(const struct row *row, void *function)
{
    return exercise_add_kernel_node_v1(row, function);
}

const char *exercise_add_node_v1(const struct row *row, void *function)
{
    CUresult (*add)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, void *) = function;
    CUgraphNode node = NULL;

    (void)row;
    return added(add(&node, fixture.graph, &fixture.node, 1, node_parameters()), &node);
}

const char *exercise_add_node_v2(const struct row *row, void *function)
{
    CUresult (*add)(CUgraphNode *, CUgraph, const CUgraphNode *, const void *, size_t, void *) =
        function;
    CUgraphNode node = NULL;

    (void)row;
    return added(add(&node, fixture.graph, &fixture.node, NULL, 1, node_parameters()), &node);
}

const char *exercise_add_child_graph_node(const struct row *row, void *function)
{
    CUresult (*add)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph) = function;
    CUgraph child;
    CUgraphNode node = NULL;

    (void)row;
    CHECK(RAW(cuGraphCreate)(&child, 0));
    return result_problem(add(&node, fixture.graph, NULL, 0, child));
}

const char *exercise_kernel_node_set_params_v1(const struct row *row, void *function)
{
    CUresult (*set)(CUgraphNode, const void *) = function;
    CUgraphNode node = covered_node();
    CUresult result;

    (void)row;
    recording.forget();
    result = set(node, kernel_parameters());
    return added(result, &node);
}

const char *exercise_kernel_node_set_params_v2(const struct row *row, void *function)
{
    return exercise_kernel_node_set_params_v1(row, function);
}

static const char *told(CUresult result, const struct cuda_kernel_node_params *parameters)
{
    if (result != CUDA_SUCCESS)
        return result_problem(result);
    return parameters->function == fixture.function && parameters->grid_x != 0
               ? NULL
               : "other parameters than the node's";
}

const char *exercise_kernel_node_get_params_v1(const struct row *row, void *function)
{
    CUresult (*get)(CUgraphNode, void *) = function;
    struct cuda_kernel_node_params parameters = {0};

    (void)row;
    return told(get(fixture.node, &parameters), &parameters);
}

const char *exercise_kernel_node_get_params_v2(const struct row *row, void *function)
{
    return exercise_kernel_node_get_params_v1(row, function);
}

const char *exercise_node_get_params(const struct row *row, void *function)
{
    CUresult (*get)(CUgraphNode, void *) = function;
    struct cuda_graph_node_params parameters = {0};

    (void)row;
    return told(get(fixture.node, &parameters), &parameters.node.kernel);
}

const char *exercise_node_set_params(const struct row *row, void *function)
{
    CUresult (*set)(CUgraphNode, void *) = function;
    CUgraphNode node = covered_node();
    CUresult result;

    (void)row;
    recording.forget();
    result = set(node, node_parameters());
    return added(result, &node);
}

/* The program's own setting gives way to the rule's. */
const char *exercise_kernel_node_set_attribute(const struct row *row, void *function)
{
    CUresult (*set)(CUgraphNode, CUkernelNodeAttrID, const CUkernelNodeAttrValue *) = function;
    const CUkernelNodeAttrValue value = {.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT};
    CUgraphNode node = covered_node();
    CUresult result;

    (void)row;
    recording.forget();
    result = set(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value);
    return added(result, &node);
}

const char *exercise_kernel_node_copy_attributes(const struct row *row, void *function)
{
    CUresult (*copy)(CUgraphNode, CUgraphNode) = function;
    CUgraphNode to = covered_node(), from = fixture.node;
    CUresult result;

    (void)row;
    recording.forget();
    result = copy(to, from);
    return added(result, &to);
}

const char *exercise_destroy_node(const struct row *row, void *function)
{
    CUresult (*destroy)(CUgraphNode) = function;

    (void)row;
    return result_problem(destroy(fixture.node));
}

const char *exercise_graph_destroy(const struct row *row, void *function)
{
    CUresult (*destroy)(CUgraph) = function;

    (void)row;
    return result_problem(destroy(fixture.graph));
}

const char *exercise_graph_clone(const struct row *row, void *function)
{
    CUresult (*clone)(CUgraph *, CUgraph) = function;
    CUgraph made = NULL;

    (void)row;
    return result_problem(clone(&made, fixture.graph));
}

/* ---- executable graphs ------------------------------------------------------------------------
 */

static const char *instantiated(CUresult result, const CUgraphExec *made)
{
    const char *wrong = result_problem(result);

    return wrong == NULL && *made == NULL ? "no executable graph" : wrong;
}

const char *exercise_graph_instantiate_with_log(const struct row *row, void *function)
{
    CUresult (*instantiate)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t) = function;
    CUgraphExec made = NULL;
    CUgraphNode node;
    char log[16];

    (void)row;
    return instantiated(instantiate(&made, fixture.graph, &node, log, sizeof log), &made);
}

const char *exercise_graph_instantiate_with_flags(const struct row *row, void *function)
{
    CUresult (*instantiate)(CUgraphExec *, CUgraph, unsigned long long) = function;
    CUgraphExec made = NULL;

    (void)row;
    return instantiated(instantiate(&made, fixture.graph, 0), &made);
}

const char *exercise_graph_instantiate_with_params(const struct row *row, void *function)
{
    CUresult (*instantiate)(CUgraphExec *, CUgraph, void *) = function;
    CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {0};
    CUgraphExec made = NULL;

    (void)row;
    return instantiated(instantiate(&made, fixture.graph, &parameters), &made);
}

const char *exercise_graph_exec_update_v1(const struct row *row, void *function)
{
    CUresult (*update)(CUgraphExec, CUgraph, CUgraphNode *, void *) = function;
    CUgraphExec made = executable();
    CUgraphNode node;
    CUgraphExecUpdateResult what;

    (void)row;
    return result_problem(update(made, fixture.graph, &node, &what));
}

const char *exercise_graph_exec_update_v2(const struct row *row, void *function)
{
    CUresult (*update)(CUgraphExec, CUgraph, void *) = function;
    CUgraphExec made = executable();
    CUgraphExecUpdateResultInfo what;

    (void)row;
    return result_problem(update(made, fixture.graph, &what));
}

const char *exercise_exec_kernel_node_set_params_v1(const struct row *row, void *function)
{
    CUresult (*set)(CUgraphExec, CUgraphNode, const void *) = function;

    (void)row;
    return result_problem(set(executable(), fixture.node, kernel_parameters()));
}

const char *exercise_exec_kernel_node_set_params_v2(const struct row *row, void *function)
{
    return exercise_exec_kernel_node_set_params_v1(row, function);
}

const char *exercise_exec_node_set_params(const struct row *row, void *function)
{
    CUresult (*set)(CUgraphExec, CUgraphNode, void *) = function;

    (void)row;
    return result_problem(set(executable(), fixture.node, node_parameters()));
}

/* Calls about nodes of other kinds than the fixture's: what the driver answers comes through. */
static const char *refusal_problem(CUresult result)
{
    return result == CUDA_ERROR_INVALID_VALUE ? NULL : problem("the program got %d", (int)result);
}

const char *exercise_exec_node_set(const struct row *row, void *function)
{
    CUresult (*set)(CUgraphExec, CUgraphNode, const void *) = function;
    const struct cuda_graph_node_params parameters = {0};

    (void)row;
    return refusal_problem(set(executable(), fixture.node, &parameters));
}

const char *exercise_exec_child_set_params(const struct row *row, void *function)
{
    CUresult (*set)(CUgraphExec, CUgraphNode, CUgraph) = function;

    (void)row;
    return refusal_problem(set(executable(), fixture.node, fixture.graph));
}

const char *exercise_exec_memory_set_params(const struct row *row, void *function)
{
    CUresult (*set)(CUgraphExec, CUgraphNode, const void *, CUcontext) = function;
    const struct cuda_graph_node_params parameters = {0};

    (void)row;
    return refusal_problem(set(executable(), fixture.node, &parameters, NULL));
}

const char *exercise_node_set_enabled(const struct row *row, void *function)
{
    CUresult (*set)(CUgraphExec, CUgraphNode, unsigned) = function;

    (void)row;
    return result_problem(set(executable(), fixture.node, 0));
}

const char *exercise_graph_upload(const struct row *row, void *function)
{
    CUresult (*upload)(CUgraphExec, CUstream) = function;
    const char *wrong = result_problem(upload(executable(), NULL));
    const struct recording_call *call = recording.call_named(row->symbol, 0);

    if (wrong != NULL || call == NULL)
        return wrong;
    return __builtin_strcmp(call->stream_name, row->per_thread ? "per_thread" : "legacy") == 0
               ? NULL
               : problem("NULL meant the stream %s", call->stream_name);
}

const char *exercise_graph_launch(const struct row *row, void *function)
{
    CUresult (*launch)(CUgraphExec, CUstream) = function;
    const char *wrong = result_problem(launch(executable(), NULL));
    const struct recording_call *call = recording.call_named(row->symbol, 0);

    if (wrong != NULL || call == NULL)
        return wrong;
    return __builtin_strcmp(call->stream_name, row->per_thread ? "per_thread" : "legacy") == 0
               ? NULL
               : problem("NULL meant the stream %s", call->stream_name);
}

const char *exercise_graph_exec_destroy(const struct row *row, void *function)
{
    CUresult (*destroy)(CUgraphExec) = function;

    (void)row;
    return result_problem(destroy(executable()));
}
