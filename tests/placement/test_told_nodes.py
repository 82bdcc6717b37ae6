# SPDX-License-Identifier: Apache-2.0
"""Graph nodes on partitions: what programs read of them and what they can do with them."""

from told import BEGIN, END, KERNELS, MAIN, SIDE, WHOLE, equal, expect, main, on_streams, same, test

FORMS = ("function", "library", "kernel")

NODE_RULES = KERNELS.replace("name = to_side", "name = to_side\nname = plain")


def graphs(lines, policy=KERNELS, **variables):
    return same(BEGIN + "stream s0 1\n" + lines + "\ndestroy s0\n" + END, policy, **variables)


def where(ran):
    return [sms for _, sms in ran.replayed]


# ---- Explicit nodes --------------------------------------------------------------------------------

@test
def explicit_nodes_are_placed_and_tell_what_the_program_gave_them():
    lines = "graph g0\n"
    number = 0
    for form in FORMS:
        for way in ("", "_v1", "_generic"):
            if form == "kernel" and way == "_v1":
                continue
            lines += f"node n{number} g0 to_side form={form}{way}\nabout_node n{number}\n"
            number += 1
    lines += f"""
        node n{number} g0 to_main form=kernel context=c0
        about_node n{number}
        node n{number + 1} g0 plain
        about_node n{number + 1}
        instantiate x0 g0
        replay x0 s0
        executable_destroy x0
        graph_destroy g0
        """
    for version in ("12050", "13000", "13020", "13040"):
        ran = graphs(lines, RECORDING_DRIVER_VERSION=version)
        equal(where(ran), [SIDE] * number + [MAIN, WHOLE])
        ran.fate("to_side", "applied")


@test
def nodes_of_rules_without_graph_nodes_stay():
    ran = graphs("""
        graph g0
        node n0 g0 eager
        about_node n0
        instantiate x0 g0
        replay x0 s0
        executable_destroy x0
        graph_destroy g0
        """)
    equal(where(ran), [WHOLE])
    ran.fate("eager", "refused", "graph")


@test
def nodes_that_would_not_be_resident_at_once_stay():
    ran = graphs("""
        graph g0
        node n0 g0 to_side grid=513 form=kernel
        about_node n0
        node n1 g0 to_side grid=512 form=kernel
        node n2 g0 to_side grid=4225 form=kernel
        instantiate x0 g0
        replay x0 s0
        set_node n0 to_side grid=4 form=kernel
        set_node n1 to_side grid=513 form=kernel
        about_node n1
        instantiate x1 g0
        replay x1 s0
        executable_destroy x0
        executable_destroy x1
        graph_destroy g0
        """)
    equal(where(ran), [WHOLE, SIDE, SIDE] + [SIDE, WHOLE, SIDE])
    expect(("refused", "would not be co-resident") in ran.fates("to_side"), ran.fates("to_side"))


@test
def a_node_that_becomes_a_cooperative_one_goes_back():
    """Cooperative is an attribute of nodes, set after they were added."""
    unsafe = KERNELS.replace("allow_legacy = yes", "allow_legacy = yes\nunsafe_residency = yes")
    ran = graphs("""
        graph g0
        node n0 g0 to_side grid=600 form=kernel
        node n1 g0 to_side grid=512 form=kernel
        set_node_attribute n1 2 1
        node n2 g0 to_side grid=600 form=kernel
        set_node_attribute n2 2 1
        node n3 g0 to_side grid=600 form=kernel
        copy_node_attributes n3 n1
        about_node n1
        about_node n2
        about_node n3
        instantiate x0 g0
        replay x0 s0
        set_node_attribute n2 2 0
        about_node n2
        instantiate x1 g0
        replay x1 s0
        executable_destroy x0
        executable_destroy x1
        graph_destroy g0
        """, unsafe)
    equal(where(ran), [SIDE, WHOLE, WHOLE, WHOLE] + [SIDE, WHOLE, SIDE, WHOLE])
    expect("hangs=1" not in ran.result.files["record"], "a node that hangs")


@test
def nodes_in_other_contexts_stay_there():
    ran = graphs("""
        create_context c1 0
        load
        graph g0
        node n0 g0 to_side form=kernel context=c1
        node n1 g0 to_side form=kernel
        node n2 g0 to_side
        node n3 g0 to_side form=kernel context=c0
        about_node n0
        about_node n1
        about_node n2
        about_node n3
        graph_destroy g0
        unload
        destroy_context c1
        current c0
        """)
    expect(("refused", "not in the primary context") in ran.fates("to_side"), ran.fates("to_side"))
    equal([line["sms"] for line in ran.calls("cuGraphKernelNodeSetParams_v2", ours=True)], [str(SIDE)])


@test
def a_function_of_another_context_stays_there():
    ran = graphs("""
        create_context c1 0
        load
        graph g0
        current c1
        node n0 g0 to_side
        current c0
        about_node n0
        set_node n0 to_side
        about_node n0
        graph_destroy g0
        current c1
        unload
        destroy_context c1
        current c0
        """)
    expect(("applied", "") in ran.fates("to_side"), ran.fates("to_side"))


# ---- Parameters that the program sets --------------------------------------------------------------

@test
def nodes_keep_their_partition_when_the_program_sets_their_parameters():
    for made in FORMS:
        for form in FORMS:
            for way in ("", "_v1", "_generic"):
                if form == "kernel" and way == "_v1":
                    continue
                ran = graphs(f"""
                    graph g0
                    node n0 g0 to_side form={made}
                    set_node n0 to_side form={form}{way} grid=6
                    about_node n0
                    set_again n0 grid=7
                    about_node n0
                    set_again n0 grid=8 form=_v1
                    about_node n0
                    instantiate x0 g0
                    replay x0 s0
                    executable_destroy x0
                    graph_destroy g0
                    """)
                equal(where(ran), [SIDE], (made, form, way))


@test
def a_node_gets_the_partition_of_the_kernel_that_it_has_now():
    ran = graphs("""
        graph g0
        node n0 g0 to_side form=kernel
        node n1 g0 to_side form=library
        node n2 g0 plain form=kernel
        set_node n0 to_main form=kernel
        set_node n1 plain form=library
        set_node n2 to_side form=kernel
        about_node n0
        about_node n1
        about_node n2
        instantiate x0 g0
        replay x0 s0
        executable_destroy x0
        graph_destroy g0
        """)
    equal(ran.replayed, [("to_main", MAIN), ("plain", WHOLE), ("to_side", SIDE)])


@test
def executable_graphs_keep_partitions_when_the_program_changes_a_node():
    for made in FORMS:
        ran = graphs(f"""
            graph g0
            node n0 g0 to_side form={made}
            instantiate x0 g0
            set_executable x0 n0 to_side form={made} grid=5
            replay x0 s0
            set_executable x0 n0 to_side form=function_v1 grid=6
            replay x0 s0
            set_executable x0 n0 to_side form=library_generic grid=7
            replay x0 s0
            set_executable x0 n0 to_side form=kernel grid=8
            replay x0 s0
            set_executable x0 n0 plain form=kernel grid=9
            replay x0 s0
            set_executable x0 n0 plain form=function grid=9
            replay x0 s0
            set_executable_again x0 n0 grid=10
            replay x0 s0
            set_executable x0 n0 to_side form=kernel grid=0
            set_executable x0 n0 to_side form=function block=4096
            replay x0 s0
            who
            executable_destroy x0
            graph_destroy g0
            """)
        equal(where(ran), [SIDE] * 8, made)


@test
def attributes_of_nodes_are_set_and_copied_and_partitions_are_none_of_them():
    ran = graphs("""
        graph g0
        node n0 g0 to_side form=kernel
        node n1 g0 plain form=kernel
        node n2 g0 to_main form=kernel
        set_node_attribute n0 8 -2
        set_node_attribute n0 10 1
        copy_node_attributes n1 n0
        copy_node_attributes n2 n0
        get_node_attribute n1 8
        get_node_attribute n1 10
        get_node_attribute n2 8
        copy_node_attributes n0 n1
        get_node_attribute n0 8
        about_node n0
        about_node n1
        about_node n2
        instantiate x0 g0
        replay x0 s0
        executable_destroy x0
        graph_destroy g0
        """)
    equal(where(ran), [SIDE, WHOLE, MAIN])


# ---- Graphs of graphs, updates ---------------------------------------------------------------------

@test
def clones_and_child_graphs_keep_partitions_and_what_they_tell():
    ran = graphs("""
        graph g0
        node n0 g0 to_side form=kernel
        node n1 g0 to_side form=library
        clone g1 g0
        find n2 n0 g1
        find n3 n1 g1
        about_node n2
        about_node n3
        set_again n2 grid=6
        about_node n2
        graph g2
        child n4 g2 g1 inner=g3
        first g3 n5
        about_node n5
        set_again n5 grid=7
        about_node n5
        clone g4 g2
        find n6 n4 g4
        instantiate x0 g1
        instantiate x1 g2
        instantiate x2 g4
        replay x0 s0
        replay x1 s0
        replay x2 s0
        set_executable x0 n2 to_side form=kernel grid=9
        set_executable x1 n5 to_side form=library grid=9
        replay x0 s0
        executable_destroy x0
        executable_destroy x1
        executable_destroy x2
        graph_destroy g4
        graph_destroy g2
        graph_destroy g1
        node_destroy n0
        graph_destroy g0
        """)
    equal(where(ran), [SIDE] * 8)


@test
def executable_graphs_are_updated_from_graphs_made_the_same_way():
    for form in FORMS:
        ran = graphs(f"""
            graph g0
            node n0 g0 to_side form={form}
            node n1 g0 plain form={form} after=n0
            instantiate x0 g0
            graph g1
            node n2 g1 to_side form={form} grid=6
            node n3 g1 plain form={form} after=n2
            update x0 g1
            replay x0 s0
            set_node n2 to_side form={form} grid=8
            update x0 g1
            replay x0 s0
            executable_destroy x0
            graph_destroy g0
            graph_destroy g1
            """)
        equal(where(ran), [SIDE, WHOLE] * 2, form)


@test
def executable_graphs_are_updated_from_captures_made_the_same_way():
    capture = """
        begin s0
        launch s0 to_side form={form}
        latest s0 n{number}
        about_node n{number}
        launch s0 plain grid={grid} form={form}
        end s0 g{number}
        """
    for form in ("plain", "kernel", "ex"):
        for policy in (KERNELS, on_streams("graph_nodes = yes"),
                       KERNELS + "[stream placed]\nindex = 0\npartition = main\ngraph_nodes = yes\n"):
            ran = graphs(capture.format(form=form, number=0, grid=4) + "instantiate x0 g0\nreplay x0 s0\n"
                         + capture.format(form=form, number=1, grid=8) + """
                update x0 g1
                replay x0 s0
                set_node n1 to_side grid=6
                about_node n1
                set_again n1 grid=7
                about_node n1
                set_node_attribute n1 8 -1
                about_node n1
                update x0 g1
                replay x0 s0
                set_executable x0 n0 to_side grid=12 form=function
                set_executable x0 n0 to_side grid=12 form=kernel
                replay x0 s0
                executable_destroy x0
                graph_destroy g0
                graph_destroy g1
                """, policy)
            wanted = [SIDE, WHOLE] if policy is KERNELS else [SIDE, SIDE] if "name" not in policy \
                else [SIDE, MAIN]
            equal(where(ran), wanted * 4, (form, policy))


@test
def a_node_that_leaves_its_kernel_s_rule_goes_to_its_stream_s_partition():
    policy = KERNELS + "[stream placed]\nindex = 0\npartition = main\ngraph_nodes = yes\n"
    ran = graphs("""
        begin s0
        launch s0 to_side form=kernel
        latest s0 n0
        launch s0 plain form=kernel
        latest s0 n1
        end s0 g0
        instantiate x0 g0
        replay x0 s0
        set_node n0 plain form=kernel
        set_node n1 plain form=kernel grid=4000
        about_node n0
        about_node n1
        instantiate x1 g0
        replay x1 s0
        executable_destroy x0
        executable_destroy x1
        graph_destroy g0
        """, policy)
    equal(ran.replayed, [("to_side", SIDE), ("plain", MAIN), ("plain", MAIN), ("plain", WHOLE)])


# ---- Where partitions do not go --------------------------------------------------------------------

@test
def bodies_of_conditional_nodes_get_no_partition():
    policy = KERNELS + "[stream placed]\nindex = 1\npartition = main\ngraph_nodes = yes\n"
    ran = graphs("""
        stream s1 1
        graph g0
        conditional n0 g0 g1
        node n1 g1 to_side form=kernel
        about_node n1
        set_node n1 to_side form=kernel grid=6
        about_node n1
        graph g2
        node n2 g2 plain
        child n3 g1 g2 inner=g3
        node n4 g3 to_side form=kernel
        about_node n4
        node n5 g0 to_main form=kernel
        about_node n5
        conditional n6 g0 g4
        begin_to s0 g4
        launch s0 to_side
        latest s0 n7
        launch s0 to_main
        end s0 g5
        about_node n7
        conditional n8 g0 g6
        begin_to s1 g6
        launch s1 plain
        latest s1 n9
        end s1 g5
        about_node n9
        instantiate x0 g0
        replay x0 s0
        executable_destroy x0
        graph_destroy g2
        graph_destroy g0
        destroy s1
        """, policy)
    equal(ran.fates("to_side"), [("refused", "body of a conditional node")])
    equal(ran.fates("to_main"), [("applied", ""), ("refused", "body of a conditional node")])
    for line in ran.record:
        if line.symbol.startswith("cuLaunch") and line.fields.get("kernel") == "plain":
            equal(line["sms"], str(WHOLE))


@test
def graphs_for_launches_by_the_device_get_their_partitions_taken_back():
    device_launch = 4
    for form in ("function", "params"):
        ran = graphs(f"""
            graph g0
            node n0 g0 to_side form=kernel
            node n1 g0 to_main form=library
            graph g1
            node n2 g1 to_side form=kernel
            child n3 g0 g1 inner=g2
            first g2 n4
            instantiate x0 g0 flags={device_launch} form={form}
            about_node n0
            about_node n1
            about_node n4
            replay x0 s0
            instantiate x1 g1
            replay x1 s0
            executable_destroy x0
            executable_destroy x1
            graph_destroy g0
            graph_destroy g1
            """)
        equal(where(ran), [WHOLE, WHOLE, WHOLE, SIDE], form)
    ran = graphs(f"""
        begin s0
        launch s0 plain
        latest s0 n0
        end s0 g0
        instantiate x0 g0 flags={device_launch}
        about_node n0
        replay x0 s0
        executable_destroy x0
        graph_destroy g0
        """, on_streams("graph_nodes = yes"))
    equal(where(ran), [WHOLE])


if __name__ == "__main__":
    main()
