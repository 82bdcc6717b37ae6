/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel nodes that are moved to a partition, asked about there, and moved back. */
#include "test_decide_place_support.h"

#define RULES "[kernel k]\nname = goes\npartition = side\ngraph_nodes = yes\n"

static struct cuda_kernel_node_params has(CUgraphNode node)
{
    struct cuda_kernel_node_params parameters;
    EXPECT(cuda_driver.cuGraphKernelNodeGetParams(node, &parameters));
    return parameters;
}

static CUgraphNode adds_kernel(CUgraph graph, CUkernel kernel, unsigned blocks)
{
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(NULL, blocks);
    parameters.kern = kernel;
    EXPECT(cuGraphAddKernelNode(&node, graph, NULL, 0, &parameters));
    decide_node_added(graph, node, as_ours(&parameters), "graph.so");
    return node;
}

static void a_node_is_on_its_partition_and_tells_the_program_s_parameters(void **state)
{
    (void)state;
    place_begin(RULES);
    CUkernel kernel = program_kernel("goes");
    CUcontext primary;
    EXPECT(cuCtxGetCurrent(&primary));
    CUgraphNode node = adds_kernel(program_graph(), kernel, 4);
    struct cuda_kernel_node_params now = has(node), told = now;
    assert_ptr_equal(now.context, place_side()->context);
    assert_true(decide_node_told(node, &told));
    assert_ptr_equal(told.context, primary);
    assert_ptr_equal(told.kernel, kernel);
    assert_int_equal(told.grid_x, 4);
}

static void a_function_without_a_kernel_goes_by_the_current_context(void **state)
{
    (void)state;
    place_begin(RULES);
    CUcontext primary, current;
    EXPECT(cuCtxGetCurrent(&primary));
    CUfunction function = program_function("goes");
    CUgraphNode node = program_adds(program_graph(), function, 4);
    assert_ptr_equal(has(node).context, place_side()->context);
    EXPECT(cuCtxGetCurrent(&current));
    assert_ptr_equal(current, primary);
    struct cuda_kernel_node_params given = has(node), changed;
    given.function = function;
    given.kernel = NULL;
    assert_true(decide_node_placed(node, &given, &changed, &current));
    assert_ptr_equal(current, place_side()->context);
    assert_true(decide_node_enter(current));
    decide_node_leave(current);
    EXPECT(cuCtxGetCurrent(&current));
    assert_ptr_equal(current, primary);
}

static void a_context_that_cannot_be_entered_leaves_the_node_where_it_is(void **state)
{
    (void)state;
    place_begin(RULES);
    CUfunction function = program_function("goes");
    CUcontext primary;
    EXPECT(cuCtxGetCurrent(&primary));
    recording_driver_configure("FAIL", "cuCtxPushCurrent_v2:*=1");
    CUgraphNode node = program_adds(program_graph(), function, 4);
    recording_driver_configure("FAIL", "");
    assert_ptr_equal(has(node).context, primary);
}

static void a_node_goes_back_in_the_form_that_the_program_gave(void **state)
{
    (void)state;
    place_begin(RULES);
    CUcontext primary;
    EXPECT(cuCtxGetCurrent(&primary));
    CUkernel kernel = program_kernel("goes");
    CUgraph graph = program_graph();
    CUgraphNode by_kernel = adds_kernel(graph, kernel, 4);
    CUgraphNode by_function = program_adds(graph, program_function("goes"), 4);
    decide_graph_for_device(graph);
    assert_ptr_equal(has(by_kernel).context, primary);
    assert_ptr_equal(has(by_kernel).kernel, kernel);
    assert_ptr_equal(has(by_function).context, primary);
    assert_null(has(by_function).kernel);
    struct cuda_kernel_node_params told;
    assert_false(decide_node_told(by_kernel, &told));
}

static void an_attribute_leaves_a_node_on_its_partition_and_cooperation_does_not(void **state)
{
    (void)state;
    place_begin(RULES);
    CUcontext primary;
    EXPECT(cuCtxGetCurrent(&primary));
    CUgraphNode node = adds_kernel(program_graph(), program_kernel("goes"), 4);
    program_sets_on_node(node, PRIORITY, (uint32_t)-1);
    assert_ptr_equal(has(node).context, place_side()->context);
    program_sets_on_node(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1);
    assert_ptr_equal(has(node).context, primary);
    program_sets_on_node(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 0);
    assert_ptr_equal(has(node).context, place_side()->context);
}

static void a_node_set_to_arguments_read_from_it_keeps_them(void **state)
{
    (void)state;
    place_begin(RULES);
    CUlibrary library;
    CUkernel kernel;
    unsigned argument = 41;
    void *arguments[] = {&argument};
    EXPECT(cuLibraryLoadData(&library, "kernel goes params=4", NULL, NULL, 0, NULL, NULL, 0));
    EXPECT(cuLibraryGetKernel(&kernel, library, "goes"));
    decide_function_named(kernel, "goes", library);
    CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(NULL, 4);
    CUgraphNode node;
    CUgraph graph = program_graph();
    parameters.kern = kernel;
    parameters.kernelParams = arguments;
    EXPECT(cuGraphAddKernelNode(&node, graph, NULL, 0, &parameters));
    decide_node_added(graph, node, as_ours(&parameters), "graph.so");
    for (int i = 0; i < 3; i++) {
        EXPECT(cuGraphKernelNodeGetParams(node, &parameters));
        parameters.func = NULL;
        parameters.ctx = NULL;
        EXPECT(cuGraphKernelNodeSetParams(node, &parameters));
        decide_node_changed(node, as_ours(&parameters), "graph.so");
        assert_ptr_equal(has(node).context, place_side()->context);
        assert_int_equal(*(unsigned *)has(node).kernel_params[0], 41);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(a_node_is_on_its_partition_and_tells_the_program_s_parameters),
        PLACE_TEST(a_function_without_a_kernel_goes_by_the_current_context),
        PLACE_TEST(a_context_that_cannot_be_entered_leaves_the_node_where_it_is),
        PLACE_TEST(a_node_goes_back_in_the_form_that_the_program_gave),
        PLACE_TEST(an_attribute_leaves_a_node_on_its_partition_and_cooperation_does_not),
        PLACE_TEST(a_node_set_to_arguments_read_from_it_keeps_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
