/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: their kernel nodes, made in every form, asked about and changed. */
#include "told.h"

#include <string.h>

#include "cuda/interface.h"

/* ---- Parameters ---- */

/* Which function or kernel a node is to have. */
static void fill(const struct told_line *line, const char *name, const char *form,
                 struct cuda_kernel_node_params *parameters)
{
    struct told_kernel kernel = told_kernel(name);
    unsigned grid[3], block[3];
    const char *context = told_text(line, "context");
    told_three(line, "grid", grid, 4);
    told_three(line, "block", block, 64);
    memset(parameters, 0, sizeof *parameters);
    if (strstr(form, "kernel") != NULL)
        parameters->kernel = kernel.kernel;
    else if (strstr(form, "library") != NULL)
        cuKernelGetFunction(&parameters->function, kernel.kernel);
    else
        parameters->function = kernel.function;
    if (context != NULL)
        parameters->context = told_contexts[told_place(context)];
    parameters->grid_x = grid[0];
    parameters->grid_y = grid[1];
    parameters->grid_z = grid[2];
    parameters->block_x = block[0];
    parameters->block_y = block[1];
    parameters->block_z = block[2];
    parameters->kernel_params = told_arguments();
}

static CUDA_KERNEL_NODE_PARAMS_v1 first_version(const struct cuda_kernel_node_params *parameters)
{
    CUDA_KERNEL_NODE_PARAMS_v1 first;
    memcpy(&first, parameters, sizeof first);
    return first;
}

static CUDA_KERNEL_NODE_PARAMS_v2 second_version(const struct cuda_kernel_node_params *parameters)
{
    CUDA_KERNEL_NODE_PARAMS_v2 second;
    memcpy(&second, parameters, sizeof second);
    return second;
}

static struct cuda_graph_node_params generic(const struct cuda_kernel_node_params *parameters)
{
    struct cuda_graph_node_params all;
    memset(&all, 0, sizeof all);
    all.type = CU_GRAPH_NODE_TYPE_KERNEL;
    all.node.kernel = *parameters;
    return all;
}

typedef int (*node_and_pointer)(CUgraphNode, void *);
typedef int (*executable_node_and_pointer)(CUgraphExec, CUgraphNode, void *);

/* ---- Nodes ---- */

/* The form of a line: function, kernel or library's function, then "_v1" or "_generic". */
static const char *form_of(const struct told_line *line)
{
    const char *form = told_text(line, "form");
    return form == NULL ? "function" : form;
}

static int add(const struct told_line *line, const struct cuda_kernel_node_params *parameters,
               CUgraphNode *node)
{
    CUgraph graph = told_graphs[told_place(told_word(line, 2))];
    const char *form = form_of(line), *after = told_text(line, "after");
    const CUgraphNode *first = after == NULL ? NULL : &told_nodes[told_place(after)];
    size_t count = after == NULL ? 0 : 1;
    if (strstr(form, "_v1") != NULL) {
        CUDA_KERNEL_NODE_PARAMS_v1 given = first_version(parameters);
        return (int)cuGraphAddKernelNode(node, graph, first, count, &given);
    }
    if (strstr(form, "_generic") != NULL) {
        struct cuda_graph_node_params given = generic(parameters);
        int (*any)(CUgraphNode *, CUgraph, const CUgraphNode *, const void *, size_t, void *) =
            (int (*)(CUgraphNode *, CUgraph, const CUgraphNode *, const void *, size_t,
                     void *))told_symbol("cuGraphAddNode_v2");
        return any == NULL ? -2 : any(node, graph, first, NULL, count, &given);
    }
    CUDA_KERNEL_NODE_PARAMS_v2 given = second_version(parameters);
    return (int)cuGraphAddKernelNode_v2(node, graph, first, count, &given);
}

/* node nN gN KERNEL [form=] [grid=] [block=] [context=cN] [after=nN] */
static int do_node(const struct told_line *line)
{
    struct cuda_kernel_node_params parameters;
    fill(line, told_word(line, 3), form_of(line), &parameters);
    return add(line, &parameters, &told_nodes[told_place(told_word(line, 1))]);
}

/* set_node nN KERNEL [form=] ... */
static int do_set_node(const struct told_line *line)
{
    CUgraphNode node = told_nodes[told_place(told_word(line, 1))];
    struct cuda_kernel_node_params parameters;
    const char *form = form_of(line);
    fill(line, told_word(line, 2), form, &parameters);
    if (strstr(form, "_v1") != NULL) {
        CUDA_KERNEL_NODE_PARAMS_v1 given = first_version(&parameters);
        return (int)cuGraphKernelNodeSetParams(node, &given);
    }
    if (strstr(form, "_generic") != NULL) {
        struct cuda_graph_node_params given = generic(&parameters);
        node_and_pointer set = (node_and_pointer)told_symbol("cuGraphNodeSetParams");
        return set == NULL ? -2 : set(node, &given);
    }
    CUDA_KERNEL_NODE_PARAMS_v2 given = second_version(&parameters);
    return (int)cuGraphKernelNodeSetParams_v2(node, &given);
}

/* set_executable xN nN KERNEL [form=] ... */
static int do_set_executable(const struct told_line *line)
{
    CUgraphExec executable = told_executables[told_place(told_word(line, 1))];
    CUgraphNode node = told_nodes[told_place(told_word(line, 2))];
    struct cuda_kernel_node_params parameters;
    const char *form = form_of(line);
    fill(line, told_word(line, 3), form, &parameters);
    if (strstr(form, "_v1") != NULL) {
        CUDA_KERNEL_NODE_PARAMS_v1 given = first_version(&parameters);
        return (int)cuGraphExecKernelNodeSetParams(executable, node, &given);
    }
    if (strstr(form, "_generic") != NULL) {
        struct cuda_graph_node_params given = generic(&parameters);
        executable_node_and_pointer set =
            (executable_node_and_pointer)told_symbol("cuGraphExecNodeSetParams");
        return set == NULL ? -2 : set(executable, node, &given);
    }
    CUDA_KERNEL_NODE_PARAMS_v2 given = second_version(&parameters);
    return (int)cuGraphExecKernelNodeSetParams_v2(executable, node, &given);
}

static void say_parameters(const char *form, int result,
                           const struct cuda_kernel_node_params *parameters, bool all)
{
    told_say("%s %d %s grid %u", form, result, told_function_name(parameters->function),
             parameters->grid_x);
    if (all)
        told_say(" kernel %s context %s", told_kernel_name(parameters->kernel),
                 told_context_name(parameters->context));
    told_say(", ");
}

/* about_node nN: its parameters in each form */
static int do_about_node(const struct told_line *line)
{
    CUgraphNode node = told_nodes[told_place(told_word(line, 1))];
    node_and_pointer any = (node_and_pointer)told_symbol("cuGraphNodeGetParams");
    struct cuda_kernel_node_params parameters;
    struct cuda_graph_node_params all;
    CUDA_KERNEL_NODE_PARAMS_v1 first;
    CUDA_KERNEL_NODE_PARAMS_v2 second;
    int result;
    memset(&first, 0, sizeof first);
    memset(&parameters, 0, sizeof parameters);
    result = (int)cuGraphKernelNodeGetParams(node, &first);
    memcpy(&parameters, &first, sizeof first);
    say_parameters("v1", result, &parameters, false);
    memset(&second, 0, sizeof second);
    result = (int)cuGraphKernelNodeGetParams_v2(node, &second);
    memcpy(&parameters, &second, sizeof parameters);
    say_parameters("v2", result, &parameters, true);
    if (any != NULL) {
        memset(&all, 0, sizeof all);
        int generic_result = any(node, &all);
        say_parameters("generic", generic_result, &all.node.kernel, true);
    }
    return result;
}

/* set_again nN [grid=] [form=]: with what it was read to have, as programs do that change one
 * member; set_executable_again xN nN likewise */
static int do_set_again(const struct told_line *line)
{
    CUgraphNode node = told_nodes[told_place(told_word(line, 1))];
    unsigned grid = (unsigned)told_option(line, "grid", 0);
    if (strstr(form_of(line), "_v1") != NULL) {
        CUDA_KERNEL_NODE_PARAMS_v1 first;
        int result = (int)cuGraphKernelNodeGetParams(node, &first);
        first.gridDimX = grid != 0 ? grid : first.gridDimX;
        return result != 0 ? result : (int)cuGraphKernelNodeSetParams(node, &first);
    }
    CUDA_KERNEL_NODE_PARAMS_v2 second;
    int result = (int)cuGraphKernelNodeGetParams_v2(node, &second);
    second.gridDimX = grid != 0 ? grid : second.gridDimX;
    return result != 0 ? result : (int)cuGraphKernelNodeSetParams_v2(node, &second);
}

static int do_set_executable_again(const struct told_line *line)
{
    CUgraphExec executable = told_executables[told_place(told_word(line, 1))];
    CUgraphNode node = told_nodes[told_place(told_word(line, 2))];
    unsigned grid = (unsigned)told_option(line, "grid", 0);
    if (strstr(form_of(line), "_v1") != NULL) {
        CUDA_KERNEL_NODE_PARAMS_v1 first;
        int result = (int)cuGraphKernelNodeGetParams(node, &first);
        first.gridDimX = grid != 0 ? grid : first.gridDimX;
        return result != 0 ? result : (int)cuGraphExecKernelNodeSetParams(executable, node, &first);
    }
    CUDA_KERNEL_NODE_PARAMS_v2 second;
    int result = (int)cuGraphKernelNodeGetParams_v2(node, &second);
    second.gridDimX = grid != 0 ? grid : second.gridDimX;
    return result != 0 ? result : (int)cuGraphExecKernelNodeSetParams_v2(executable, node, &second);
}

/* copy_node_attributes TO FROM; set_node_attribute nN ID VALUE; get_node_attribute nN ID */
static int do_copy_node_attributes(const struct told_line *line)
{
    return (int)cuGraphKernelNodeCopyAttributes(told_nodes[told_place(told_word(line, 1))],
                                                told_nodes[told_place(told_word(line, 2))]);
}

static int do_set_node_attribute(const struct told_line *line)
{
    CUkernelNodeAttrValue value;
    int number = (int)told_number(told_word(line, 3));
    memset(&value, 0, sizeof value);
    memcpy(&value, &number, sizeof number);
    return (int)cuGraphKernelNodeSetAttribute(told_nodes[told_place(told_word(line, 1))],
                                              (CUkernelNodeAttrID)told_number(told_word(line, 2)),
                                              &value);
}

static int do_get_node_attribute(const struct told_line *line)
{
    CUkernelNodeAttrValue value;
    int number;
    memset(&value, 0, sizeof value);
    int result = (int)cuGraphKernelNodeGetAttribute(
        told_nodes[told_place(told_word(line, 1))],
        (CUkernelNodeAttrID)told_number(told_word(line, 2)), &value);
    memcpy(&number, &value, sizeof number);
    told_say("%d", number);
    return result;
}

/* ---- Graphs ---- */

static int do_graph(const struct told_line *line)
{
    return (int)cuGraphCreate(&told_graphs[told_place(told_word(line, 1))], 0);
}

/* child nN gN gCHILD [form=_generic] [inner=gN]: inner is then the graph inside */
static int do_child(const struct told_line *line)
{
    CUgraphNode *node = &told_nodes[told_place(told_word(line, 1))];
    CUgraph graph = told_graphs[told_place(told_word(line, 2))];
    CUgraph child = told_graphs[told_place(told_word(line, 3))];
    const char *inner = told_text(line, "inner");
    int result = (int)cuGraphAddChildGraphNode(node, graph, NULL, 0, child);
    if (result == 0 && inner != NULL)
        result = (int)cuGraphChildGraphNodeGetGraph(*node, &told_graphs[told_place(inner)]);
    return result;
}

/* conditional nN gN gBODY: gBODY is then its body */
static int do_conditional(const struct told_line *line)
{
    struct cuda_graph_node_params all;
    int (*any)(CUgraphNode *, CUgraph, const CUgraphNode *, const void *, size_t, void *) =
        (int (*)(CUgraphNode *, CUgraph, const CUgraphNode *, const void *, size_t,
                 void *))told_symbol("cuGraphAddNode_v2");
    if (any == NULL)
        return -2;
    memset(&all, 0, sizeof all);
    all.type = CUDA_GRAPH_NODE_CONDITIONAL;
    all.node.conditional.handle = 1;
    all.node.conditional.size = 1;
    int result = any(&told_nodes[told_place(told_word(line, 1))],
                     told_graphs[told_place(told_word(line, 2))], NULL, NULL, 0, &all);
    if (result == 0)
        told_graphs[told_place(told_word(line, 3))] = all.node.conditional.graphs[0];
    return result;
}

/* clone gN gFROM; find nN nFROM gN */
static int do_clone(const struct told_line *line)
{
    return (int)cuGraphClone(&told_graphs[told_place(told_word(line, 1))],
                             told_graphs[told_place(told_word(line, 2))]);
}

static int do_find(const struct told_line *line)
{
    return (int)cuGraphNodeFindInClone(&told_nodes[told_place(told_word(line, 1))],
                                       told_nodes[told_place(told_word(line, 2))],
                                       told_graphs[told_place(told_word(line, 3))]);
}

/* first gN nN: the first of its nodes */
static int do_first(const struct told_line *line)
{
    size_t count = 1;
    return (int)cuGraphGetNodes(told_graphs[told_place(told_word(line, 1))],
                                &told_nodes[told_place(told_word(line, 2))], &count);
}

/* instantiate xN gN [flags=] [form=log|params] */
static int do_instantiate(const struct told_line *line)
{
    CUgraphExec *executable = &told_executables[told_place(told_word(line, 1))];
    CUgraph graph = told_graphs[told_place(told_word(line, 2))];
    const char *form = form_of(line);
    unsigned long long flags = (unsigned long long)told_option(line, "flags", 0);
    if (strcmp(form, "params") == 0) {
        CUDA_GRAPH_INSTANTIATE_PARAMS parameters;
        memset(&parameters, 0, sizeof parameters);
        parameters.flags = flags;
        return (int)cuGraphInstantiateWithParams(executable, graph, &parameters);
    }
    return (int)cuGraphInstantiateWithFlags(executable, graph, flags);
}

static int do_update(const struct told_line *line)
{
    CUgraphExecUpdateResultInfo info;
    memset(&info, 0, sizeof info);
    int result = (int)cuGraphExecUpdate_v2(told_executables[told_place(told_word(line, 1))],
                                           told_graphs[told_place(told_word(line, 2))], &info);
    told_say("%d", (int)info.result);
    return result;
}

static int do_replay(const struct told_line *line)
{
    return (int)cuGraphLaunch(told_executables[told_place(told_word(line, 1))],
                              told_stream(told_word(line, 2)));
}

static int do_graph_destroy(const struct told_line *line)
{
    return (int)cuGraphDestroy(told_graphs[told_place(told_word(line, 1))]);
}

static int do_node_destroy(const struct told_line *line)
{
    return (int)cuGraphDestroyNode(told_nodes[told_place(told_word(line, 1))]);
}

static int do_executable_destroy(const struct told_line *line)
{
    return (int)cuGraphExecDestroy(told_executables[told_place(told_word(line, 1))]);
}

int told_do_graph(const struct told_line *line)
{
    static const struct {
        const char *name;
        int (*function)(const struct told_line *line);
    } operations[] = {
        {"node", do_node},
        {"set_node", do_set_node},
        {"set_executable", do_set_executable},
        {"about_node", do_about_node},
        {"set_again", do_set_again},
        {"set_executable_again", do_set_executable_again},
        {"copy_node_attributes", do_copy_node_attributes},
        {"set_node_attribute", do_set_node_attribute},
        {"get_node_attribute", do_get_node_attribute},
        {"graph", do_graph},
        {"child", do_child},
        {"conditional", do_conditional},
        {"clone", do_clone},
        {"find", do_find},
        {"first", do_first},
        {"instantiate", do_instantiate},
        {"update", do_update},
        {"replay", do_replay},
        {"graph_destroy", do_graph_destroy},
        {"node_destroy", do_node_destroy},
        {"executable_destroy", do_executable_destroy},
    };
    for (unsigned i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (strcmp(line->words[0], operations[i].name) == 0)
            return operations[i].function(line);
    return -1;
}
