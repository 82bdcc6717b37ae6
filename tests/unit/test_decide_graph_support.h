/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of graphs share: kernels, nodes, launches of the program, and the report's cells.
 */
#ifndef CUDAPOLICY_TEST_DECIDE_GRAPH_SUPPORT_H
#define CUDAPOLICY_TEST_DECIDE_GRAPH_SUPPORT_H

#include "test_decide_stream_support.h"

#include "decide/graph_nodes.h"

/* ---- Kernels and nodes of the program ---- */

static inline CUfunction program_function(const char *name)
{
    CUmodule module;
    CUfunction function;
    EXPECT(cuModuleLoadData(&module, "any"));
    EXPECT(cuModuleGetFunction(&function, module, name));
    decide_function_named(function, name, module);
    return function;
}

static inline CUkernel program_kernel(const char *name)
{
    CUlibrary library;
    CUkernel kernel;
    EXPECT(cuLibraryLoadData(&library, "any", NULL, NULL, 0, NULL, NULL, 0));
    EXPECT(cuLibraryGetKernel(&kernel, library, name));
    decide_function_named(kernel, name, library);
    return kernel;
}

static inline CUDA_KERNEL_NODE_PARAMS parameters_of(CUfunction function, unsigned blocks)
{
    CUDA_KERNEL_NODE_PARAMS parameters;
    memset(&parameters, 0, sizeof parameters);
    parameters.func = function;
    parameters.gridDimX = blocks;
    parameters.gridDimY = parameters.gridDimZ = 1;
    parameters.blockDimX = 32;
    parameters.blockDimY = parameters.blockDimZ = 1;
    return parameters;
}

static inline const struct cuda_kernel_node_params *as_ours(const CUDA_KERNEL_NODE_PARAMS *theirs)
{
    return (const struct cuda_kernel_node_params *)(const void *)theirs;
}

static inline CUgraph program_graph(void)
{
    CUgraph graph;
    EXPECT(cuGraphCreate(&graph, 0));
    return graph;
}

static inline CUgraphNode program_adds(CUgraph graph, CUfunction function, unsigned blocks)
{
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(function, blocks);
    EXPECT(cuGraphAddKernelNode(&node, graph, NULL, 0, &parameters));
    decide_node_added(graph, node, as_ours(&parameters), "graph.so");
    return node;
}

static inline void program_changes(CUgraphNode node, CUfunction function, unsigned blocks)
{
    CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(function, blocks);
    EXPECT(cuGraphKernelNodeSetParams(node, &parameters));
    decide_node_changed(node, as_ours(&parameters), "graph.so");
}

static inline void program_sets_on_node(CUgraphNode node, int attribute, uint32_t word)
{
    CUkernelNodeAttrValue value;
    memset(&value, 0, sizeof value);
    memcpy(&value, &word, sizeof word);
    EXPECT(cuGraphKernelNodeSetAttribute(node, (CUkernelNodeAttrID)attribute, &value));
    decide_node_attribute_set(node, attribute);
}

static inline void program_copies_to_node(CUgraphNode destination, CUgraphNode source)
{
    EXPECT(cuGraphKernelNodeCopyAttributes(destination, source));
    decide_node_attributes_copied(destination, source);
}

static inline uint32_t node_has(CUgraphNode node, int attribute)
{
    CUkernelNodeAttrValue value;
    uint32_t word;
    memset(&value, 0, sizeof value);
    EXPECT(cuGraphKernelNodeGetAttribute(node, (CUkernelNodeAttrID)attribute, &value));
    memcpy(&word, &value, sizeof word);
    return attribute == MAP ? word & 0xffff : word;
}

static inline void program_destroys_graph(CUgraph graph)
{
    decide_graph_gone(graph);
    EXPECT(cuGraphDestroy(graph));
}

/* ---- Launches of the program ---- */

static inline CUresult program_launches_with(CUfunction function, CUstream stream, unsigned blocks,
                                             CUlaunchAttribute *attributes, unsigned count)
{
    CUlaunchConfig config;
    struct decide_verdict verdict;
    memset(&config, 0, sizeof config);
    config.gridDimX = blocks;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 32;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = attributes;
    config.numAttrs = count;
    const struct decide_launch launch = {
        .function = function, .config = &config, .library = "graph.so"};
    CUresult result;
    decide_launch(&launch, &verdict);
    if (verdict.change) {
        result = cuLaunchKernelEx(&verdict.config, function, NULL, NULL);
        if (result == CUDA_SUCCESS) {
            decide_launch_accepted(&launch, &verdict);
        } else if (decide_launch_refused(&launch, &verdict, result)) {
            result = cuLaunchKernelEx(&config, function, NULL, NULL);
            decide_launch_repeated(&launch, &verdict, result);
        }
    } else {
        result = cuLaunchKernelEx(&config, function, NULL, NULL);
    }
    report_count_launch(verdict.cell, verdict.kind, 1);
    if (verdict.kind == REPORT_LAUNCH_CAPTURED && result == CUDA_SUCCESS)
        decide_captured(&launch, &verdict);
    return result;
}

static inline void program_launches(CUfunction function, CUstream stream, unsigned blocks)
{
    EXPECT(program_launches_with(function, stream, blocks, NULL, 0));
}

static inline void program_begins_capture(CUstream stream)
{
    EXPECT(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    decide_capture_began(stream, false);
}

static inline CUgraph program_ends_capture(CUstream stream)
{
    CUgraph graph;
    EXPECT(cuStreamEndCapture(stream, &graph));
    decide_capture_ended(stream, false);
    return graph;
}

static inline CUgraphExec program_instantiates(CUgraph graph)
{
    CUgraphExec executable;
    EXPECT(cuGraphInstantiate(&executable, graph, 0));
    decide_graph_instantiated(executable, graph);
    return executable;
}

static inline void program_launches_graph(CUgraphExec executable, CUstream stream)
{
    EXPECT(cuGraphLaunch(executable, stream));
    decide_graph_launched(executable);
}

static inline void program_destroys_executable(CUgraphExec executable)
{
    decide_graph_executable_gone(executable);
    EXPECT(cuGraphExecDestroy(executable));
}

/* ---- The report ---- */

/* Launches of a kernel that threads counted, where the setting came out like this; setting -1:
 * in whatever way. */
static inline uint64_t counted_as(const char *kernel, enum report_launch_kind kind, int setting,
                                  enum report_outcome outcome, enum report_reason reason)
{
    const struct report_cell_row *cells = report_image_region(REPORT_REGION_CELLS);
    const struct report_kernel_row *kernels = report_image_region(REPORT_REGION_KERNELS);
    uint64_t sum = 0;
    report_lock();
    for (uint32_t i = 0; i < report_counts.cells; i++) {
        if (strcmp(report_image_text(kernels[cells[i].kernel].mangled), kernel) != 0)
            continue;
        if (setting >= 0 && (cells[i].results[setting].outcome != outcome ||
                             cells[i].results[setting].reason != reason))
            continue;
        for (uint32_t shard = 0; shard < report_counts.shards; shard++)
            sum += __atomic_load_n(&report_image_shard(shard)->launches[i][kind], __ATOMIC_RELAXED);
    }
    report_unlock();
    return sum;
}

static inline uint64_t counted(const char *kernel, enum report_launch_kind kind)
{
    return counted_as(kernel, kind, -1, REPORT_OUTCOME_NONE, REPORT_REASON_NONE);
}

#define assert_counted(expected, kernel, kind, setting, outcome, reason)                           \
    assert_int_equal(counted_as(kernel, REPORT_LAUNCH_##kind, POLICY_SETTING_##setting,            \
                                REPORT_OUTCOME_##outcome, REPORT_REASON_##reason),                 \
                     expected)

#endif
