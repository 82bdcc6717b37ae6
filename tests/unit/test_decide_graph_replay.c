/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch of an executable graph counts, and that nothing is left when graphs end. */
#include "test_decide_graph_support.h"

#include <malloc.h>
#include <pthread.h>

static void captured_launches_are_counted_at_each_replay(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = ruled*\nmem_sync_domain = remote\n");
    CUfunction ruled = program_function("ruled1"), plain = program_function("plain1");
    CUstream stream = program_creates("graph.so");
    program_begins_capture(stream);
    for (int i = 0; i < 3; i++)
        program_launches(ruled, stream, 4);
    program_launches(plain, stream, 4);
    CUgraph graph = program_ends_capture(stream);
    CUgraphExec executable = program_instantiates(graph);
    program_destroys_graph(graph);
    for (int i = 0; i < 5; i++)
        program_launches_graph(executable, stream);
    assert_counted(3, "ruled1", CAPTURED, MEM_SYNC_DOMAIN, APPLIED, NONE);
    assert_counted(15, "ruled1", REPLAYED, MEM_SYNC_DOMAIN, APPLIED, NONE);
    assert_counted(5, "plain1", REPLAYED, MEM_SYNC_DOMAIN, NONE, NONE);
    assert_int_equal(counted("ruled1", REPORT_LAUNCH_EAGER), 0);
}

static void a_stream_that_joined_is_counted_too(void **state)
{
    (void)state;
    CUevent fork_event, join_event;
    support_begin("[kernel k]\nname = joined\nmem_sync_domain = remote\n");
    CUfunction function = program_function("joined");
    CUstream origin = program_creates("graph.so"), side = program_creates("graph.so");
    EXPECT(cuEventCreate(&fork_event, 0));
    EXPECT(cuEventCreate(&join_event, 0));
    program_begins_capture(origin);
    EXPECT(cuEventRecord(fork_event, origin));
    EXPECT(cuStreamWaitEvent(side, fork_event, 0));
    program_launches(function, side, 4);
    program_launches(function, origin, 4);
    EXPECT(cuEventRecord(join_event, side));
    EXPECT(cuStreamWaitEvent(origin, join_event, 0));
    CUgraphExec executable = program_instantiates(program_ends_capture(origin));
    program_launches_graph(executable, origin);
    assert_counted(2, "joined", REPLAYED, MEM_SYNC_DOMAIN, APPLIED, NONE);
}

static void explicit_nodes_are_counted_as_they_are_when_instantiated(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = explicit\nmem_sync_domain = remote\nwhen_set = keep\n");
    CUgraph graph = program_graph();
    CUgraphNode node = program_adds(graph, program_function("explicit"), 4);
    CUstream stream = program_creates("graph.so");
    program_launches_graph(program_instantiates(graph), stream);
    assert_counted(1, "explicit", REPLAYED, MEM_SYNC_DOMAIN, APPLIED, NONE);
    program_sets_on_node(node, MAP, MAP_OF(1, 1));
    program_sets_on_node(node, DOMAIN, 1);
    program_launches_graph(program_instantiates(graph), stream);
    assert_int_equal(counted("explicit", REPORT_LAUNCH_REPLAYED), 2);
    assert_counted(1, "explicit", REPLAYED, MEM_SYNC_DOMAIN, APPLIED, NONE);
}

static void nodes_made_in_ways_not_seen_are_counted_without_outcomes(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = unseen\nmem_sync_domain = remote\n");
    CUgraph graph = program_graph();
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(program_function("unseen"), 4);
    EXPECT(cuGraphAddKernelNode(&node, graph, NULL, 0, &parameters));
    program_launches_graph(program_instantiates(graph), program_creates("graph.so"));
    assert_counted(1, "unseen", REPLAYED, MEM_SYNC_DOMAIN, NONE, NONE);
}

static void an_update_changes_what_is_replayed(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = update1\nmem_sync_domain = remote\n");
    CUgraphExecUpdateResultInfo info;
    CUgraph first = program_graph(), second = program_graph();
    program_adds(first, program_function("update1"), 4);
    program_adds(second, program_function("update2"), 4);
    CUstream stream = program_creates("graph.so");
    CUgraphExec executable = program_instantiates(first);
    program_launches_graph(executable, stream);
    EXPECT(cuGraphExecUpdate(executable, second, &info));
    decide_graph_updated(executable, second);
    program_launches_graph(executable, stream);
    program_launches_graph(executable, stream);
    assert_int_equal(counted("update1", REPORT_LAUNCH_REPLAYED), 1);
    assert_int_equal(counted("update2", REPORT_LAUNCH_REPLAYED), 2);
}

static void program_updates_node(CUgraphExec executable, CUgraphNode node, CUfunction function)
{
    CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(function, 4);
    EXPECT(cuGraphExecKernelNodeSetParams(executable, node, &parameters));
    decide_graph_node_updated(executable, node, as_ours(&parameters));
}

static void one_nodes_update_changes_what_is_replayed(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = one1\nmem_sync_domain = remote\n");
    CUgraph graph = program_graph();
    CUfunction one = program_function("one1"), two = program_function("one2");
    CUgraphNode node = program_adds(graph, one, 4);
    program_adds(graph, one, 4);
    CUstream stream = program_creates("graph.so");
    CUgraphExec executable = program_instantiates(graph);
    program_updates_node(executable, node, one); /* other arguments only */
    program_launches_graph(executable, stream);
    assert_counted(2, "one1", REPLAYED, MEM_SYNC_DOMAIN, APPLIED, NONE);
    program_updates_node(executable, node, two);
    program_updates_node(executable, node, two);
    program_launches_graph(executable, stream);
    assert_counted(3, "one1", REPLAYED, MEM_SYNC_DOMAIN, APPLIED, NONE);
    assert_counted(1, "one2", REPLAYED, MEM_SYNC_DOMAIN, NONE, NONE);
    program_updates_node(executable, node, one);
    program_launches_graph(executable, stream);
    assert_counted(5, "one1", REPLAYED, MEM_SYNC_DOMAIN, APPLIED, NONE);
    assert_int_equal(counted("one2", REPORT_LAUNCH_REPLAYED), 1);
    /* another executable of the same graph is not touched */
    program_launches_graph(program_instantiates(graph), stream);
    assert_counted(7, "one1", REPLAYED, MEM_SYNC_DOMAIN, APPLIED, NONE);
}

static void a_clone_is_counted_like_its_original(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = cloned\nmem_sync_domain = remote\n");
    CUgraph graph = program_graph(), clone;
    program_adds(graph, program_function("cloned"), 4);
    EXPECT(cuGraphClone(&clone, graph));
    decide_graph_cloned(clone, graph);
    program_destroys_graph(graph);
    program_launches_graph(program_instantiates(clone), program_creates("graph.so"));
    assert_counted(1, "cloned", REPLAYED, MEM_SYNC_DOMAIN, APPLIED, NONE);
}

static void child_graphs_are_counted_with_their_parent(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = child\nmem_sync_domain = remote\n");
    CUgraph child = program_graph(), parent = program_graph(), top = program_graph(), clone;
    CUgraphNode inside, outside;
    program_adds(child, program_function("child"), 4);
    EXPECT(cuGraphAddChildGraphNode(&inside, parent, NULL, 0, child));
    decide_child_graph_added(parent, inside, child);
    EXPECT(cuGraphAddChildGraphNode(&outside, top, NULL, 0, parent));
    decide_child_graph_added(top, outside, parent);
    EXPECT(cuGraphAddChildGraphNode(&outside, top, NULL, 0, child));
    decide_child_graph_added(top, outside, child);
    CUstream stream = program_creates("graph.so");
    program_launches_graph(program_instantiates(top), stream);
    assert_counted(2, "child", REPLAYED, MEM_SYNC_DOMAIN, APPLIED, NONE);
    EXPECT(cuGraphClone(&clone, top));
    decide_graph_cloned(clone, top);
    program_launches_graph(program_instantiates(clone), stream);
    assert_counted(4, "child", REPLAYED, MEM_SYNC_DOMAIN, APPLIED, NONE);
}

static void nothing_is_asked_when_a_graph_is_launched(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = quiet\nmem_sync_domain = remote\n");
    CUgraph graph = program_graph();
    program_adds(graph, program_function("quiet"), 4);
    CUgraphExec executable = program_instantiates(graph);
    recording_driver_forget();
    decide_graph_launched(executable);
    assert_int_equal(recording_driver_call_count(NULL), 0);
}

static void an_unknown_executable_counts_nothing(void **state)
{
    (void)state;
    support_begin("");
    CUgraphExec executable;
    CUgraph graph = program_graph();
    CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(program_function("before"), 4);
    CUgraphNode node;
    EXPECT(cuGraphAddKernelNode(&node, graph, NULL, 0, &parameters));
    EXPECT(cuGraphInstantiate(&executable, graph, 0));
    program_launches_graph(executable, program_creates("graph.so"));
    assert_int_equal(counted("before", REPORT_LAUNCH_REPLAYED), 0);
}

/* ---- Ends ---- */

static void assert_known(size_t nodes, size_t graphs)
{
    size_t node_count, graph_count;
    decide_nodes_count(&node_count, &graph_count);
    assert_int_equal(node_count, nodes);
    assert_int_equal(graph_count, graphs);
}

static void the_end_of_a_graph_ends_its_nodes_and_the_graphs_inside(void **state)
{
    (void)state;
    support_begin("[kernel k]\nname = end*\nmem_sync_domain = remote\n");
    CUfunction function = program_function("end1");
    CUgraph child = program_graph(), parent = program_graph();
    CUgraphNode inside;
    program_adds(child, function, 4);
    CUgraphNode node = program_adds(parent, function, 4);
    program_adds(parent, function, 4);
    EXPECT(cuGraphAddChildGraphNode(&inside, parent, NULL, 0, child));
    decide_child_graph_added(parent, inside, child);
    decide_graph_owned((CUgraph)(uintptr_t)0x1230, parent);
    assert_known(4, 4);
    decide_node_gone(node);
    EXPECT(cuGraphDestroyNode(node));
    assert_known(3, 4);
    program_destroys_graph(parent);
    assert_known(1, 1);
    program_destroys_graph(child);
    assert_known(0, 0);
}

static void the_end_of_a_child_graph_node_ends_the_graph_inside(void **state)
{
    (void)state;
    support_begin("");
    CUgraph child = program_graph(), parent = program_graph();
    CUgraphNode one, other;
    program_adds(child, program_function("inside"), 4);
    EXPECT(cuGraphAddChildGraphNode(&one, parent, NULL, 0, child));
    decide_child_graph_added(parent, one, child);
    EXPECT(cuGraphAddChildGraphNode(&other, parent, NULL, 0, child));
    decide_child_graph_added(parent, other, child);
    assert_known(3, 4);
    decide_node_gone(one);
    EXPECT(cuGraphDestroyNode(one));
    assert_known(2, 3);
    program_destroys_graph(parent);
    assert_known(1, 1);
}

static void stale_owners_do_not_make_rings(void **state)
{
    (void)state;
    CUgraph a = (CUgraph)(uintptr_t)0x10, b = (CUgraph)(uintptr_t)0x20,
            c = (CUgraph)(uintptr_t)0x30;
    support_begin("");
    decide_graph_owned(b, a);
    decide_graph_owned(c, b);
    decide_graph_owned(a, c);
    decide_graph_owned(a, a);
    assert_known(0, 3);
    decide_graph_gone(a);
    assert_known(0, 0);
}

static void nodes_without_a_graph_are_kept_up_to_a_limit(void **state)
{
    (void)state;
    support_begin("");
    for (uintptr_t i = 1; i <= DECIDE_ORPHAN_LIMIT + 100; i++) {
        const struct decide_node_facts facts = {.cell = (uint32_t)i};
        decide_nodes_change((CUgraphNode)(i * 16), &facts);
    }
    struct decide_node_facts facts;
    assert_known(DECIDE_ORPHAN_LIMIT, 0);
    assert_false(decide_nodes_find((CUgraphNode)(uintptr_t)16, &facts));
    assert_true(decide_nodes_find((CUgraphNode)(uintptr_t)(16 * 200), &facts));
    assert_int_equal(facts.cell, 200);
}

/* Bytes in use by the heap, where the C library tells (a sanitizer's allocator says 0). */
static size_t heap_in_use(void)
{
#if __GLIBC_PREREQ(2, 33)
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

static void a_hundred_thousand_rounds_leave_nothing(void **state)
{
    (void)state;
    enum { WARM = 1000, ROUNDS = 100000 };
    size_t before = 0;
    recording_driver_configure("KEEP", "0");
    support_begin("[kernel k]\nname = churn\nmem_sync_domain = remote\n");
    CUfunction function = program_function("churn");
    CUstream stream = program_creates("graph.so");
    for (int round = 0; round < ROUNDS; round++) {
        if (round == WARM)
            before = heap_in_use();
        program_begins_capture(stream);
        program_launches(function, stream, 4);
        program_launches(function, stream, 4);
        CUgraph graph = program_ends_capture(stream);
        CUgraphExec executable = program_instantiates(graph);
        if (round % 2)
            program_destroys_graph(graph);
        program_launches_graph(executable, stream);
        program_destroys_executable(executable);
        if (round % 2 == 0)
            program_destroys_graph(graph);
    }
    assert_known(0, 0);
    assert_in_range(heap_in_use(), 0, before + 65536);
    assert_int_equal(counted("churn", REPORT_LAUNCH_REPLAYED), 2 * ROUNDS);
}

/* ---- Threads ---- */

enum {
    THREADS = 8,
    THREAD_ROUNDS = 100,
};

static CUcontext thread_context;
static CUfunction thread_function;

static void *capture_and_replay(void *unused)
{
    (void)unused;
    cuCtxSetCurrent(thread_context);
    CUstream stream;
    if (program_try_create(&stream, &(struct decide_stream_request){.flags = CU_STREAM_NON_BLOCKING,
                                                                    .library = "graph.so"}))
        return (void *)1;
    for (int round = 0; round < THREAD_ROUNDS; round++) {
        CUgraph graph;
        CUgraphExec executable;
        if (cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
            return (void *)2;
        decide_capture_began(stream, false);
        if (program_launches_with(thread_function, stream, 4, NULL, 0))
            return (void *)3;
        if (cuStreamEndCapture(stream, &graph))
            return (void *)4;
        decide_capture_ended(stream, false);
        if (cuGraphInstantiate(&executable, graph, 0))
            return (void *)5;
        decide_graph_instantiated(executable, graph);
        for (int i = 0; i < 3; i++)
            decide_graph_launched(executable);
        decide_graph_gone(graph);
        decide_graph_executable_gone(executable);
        cuGraphDestroy(graph);
        cuGraphExecDestroy(executable);
    }
    return NULL;
}

static void threads_capture_and_replay_at_the_same_time(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    recording_driver_configure("KEEP", "0");
    support_begin("[kernel k]\nname = threads\nmem_sync_domain = remote\n");
    EXPECT(cuCtxGetCurrent(&thread_context));
    thread_function = program_function("threads");
    uint32_t before = gate();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, capture_and_replay, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failure;
        pthread_join(threads[i], &failure);
        assert_null(failure);
    }
    assert_int_equal(gate(), before);
    assert_known(0, 0);
    assert_int_equal(counted("threads", REPORT_LAUNCH_REPLAYED), 3 * THREADS * THREAD_ROUNDS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, support_setup, support_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(captured_launches_are_counted_at_each_replay),
        TEST(a_stream_that_joined_is_counted_too),
        TEST(explicit_nodes_are_counted_as_they_are_when_instantiated),
        TEST(nodes_made_in_ways_not_seen_are_counted_without_outcomes),
        TEST(an_update_changes_what_is_replayed),
        TEST(one_nodes_update_changes_what_is_replayed),
        TEST(a_clone_is_counted_like_its_original),
        TEST(child_graphs_are_counted_with_their_parent),
        TEST(nothing_is_asked_when_a_graph_is_launched),
        TEST(an_unknown_executable_counts_nothing),
        TEST(the_end_of_a_graph_ends_its_nodes_and_the_graphs_inside),
        TEST(the_end_of_a_child_graph_node_ends_the_graph_inside),
        TEST(stale_owners_do_not_make_rings),
        TEST(nodes_without_a_graph_are_kept_up_to_a_limit),
        TEST(threads_capture_and_replay_at_the_same_time),
        TEST(a_hundred_thousand_rounds_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
