/* SPDX-License-Identifier: Apache-2.0 */
/* Sections, keys and rules: what is wrong with them, alone and together. */
#include "test_policy_support.h"

/* ---- [policy] ------------------------------------------------------------------------------- */

static void version_is_required(void **state)
{
    static const char text[] = "[policy]\nmode = observe\n";

    (void)state;
    expect_in_text(text, strlen(text), POLICY_ERROR, 1, 1,
                   "[policy] has no version; this language is \"version = 1\"");
}

static void unknown_version_is_the_only_error(void **state)
{
    static const char text[] = "[policy]\nversion = 2\n[warp x]\nnonsense\n";
    static const char word[] = "[policy]\nversion = 1.0\n";

    (void)state;
    expect_in_text(text, strlen(text), POLICY_ERROR, 2, 11,
                   "version: \"2\" is not a version that this cudapolicy knows; it knows 1");
    expect_in_text(word, strlen(word), POLICY_ERROR, 2, 11,
                   "version: \"1.0\" is not a version that this cudapolicy knows; it knows 1");
}

static void policy_section_comes_first(void **state)
{
    static const char text[] = "[kernel k]\npriority = 1\n[policy]\nversion = 1\n";

    (void)state;
    expect_in_text(text, strlen(text), POLICY_ERROR, 3, 1, "[policy] has to be the first section");
}

static void policy_section_stands_once_and_has_no_name(void **state)
{
    static const char text[] = "[policy mine]\nversion = 1\n";

    (void)state;
    expect_error("[kernel k]\npriority = 1\n[policy]\nmode = enforce\n", 3, 1,
                 "second [policy]; the first is in line 1");
    expect_in_text(text, strlen(text), POLICY_ERROR, 1, 9, "[policy] takes no name");
}

static void mode_is_enforce_or_observe(void **state)
{
    struct policy *policy = expect_clean("mode = observe\n");

    (void)state;
    assert_int_equal(policy->mode, POLICY_MODE_OBSERVE);
    policy_free(policy);
    policy = expect_clean("mode = enforce\n");
    assert_int_equal(policy->mode, POLICY_MODE_ENFORCE);
    policy_free(policy);
    expect_error("mode = observ\n", 1, 8,
                 "mode: \"observ\" is not enforce or observe; did you mean \"observe\"?");
}

static void mode_off_belongs_into_the_environment(void **state)
{
    (void)state;
    expect_error("mode = off\n", 1, 8,
                 "mode: \"off\" cannot stand in a policy, only in the environment "
                 "(CUDAPOLICY_MODE=off); here it is enforce or observe");
}

static void modes_have_names(void **state)
{
    static const enum policy_mode modes[] = {POLICY_MODE_ENFORCE, POLICY_MODE_OBSERVE,
                                             POLICY_MODE_OFF};
    enum policy_mode mode;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        mode = modes[(i + 1) % 3];
        assert_true(policy_mode_parse(policy_mode_name(modes[i]), &mode));
        assert_int_equal(mode, modes[i]);
    }
    assert_string_equal(policy_mode_name(POLICY_MODE_OFF), "off");
    assert_false(policy_mode_parse("", &mode));
    assert_false(policy_mode_parse("OFF", &mode));
    assert_false(policy_mode_parse("0", &mode));
}

/* ---- sections and keys ---------------------------------------------------------------------- */

static void unknown_section_is_an_error_and_its_keys_are_not_looked_at(void **state)
{
    (void)state;
    expect_error("[kernal k]\nnonsense = 1\nname =\n[kernel l]\nname = a\npriority = 1\n", 1, 2,
                 "unknown section \"kernal\"; did you mean \"kernel\"?");
    expect_error("[Kernel k]\n", 1, 2, "unknown section \"Kernel\"; did you mean \"kernel\"?");
    expect_error("[x k]\n", 1, 2, "unknown section \"x\"");
}

static void unknown_key_is_an_error_with_the_nearest_key(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority = 1\ngrid_block = 1\n", 3, 1,
                 "unknown key \"grid_block\" in [kernel]; did you mean \"grid_blocks\"?");
    expect_error("[kernel k]\npriority = 1\n  Name = 1\n", 3, 3,
                 "unknown key \"Name\" in [kernel]; did you mean \"name\"?");
    expect_error("[kernel k]\npriority = 1\nnot-name = 1\n", 3, 1,
                 "unknown key \"not-name\" in [kernel]; did you mean \"not_name\"?");
    expect_error("[kernel k]\npriority = 1\nqqq = 1\n", 3, 1, "unknown key \"qqq\" in [kernel]");
    expect_error("vresion = 1\n", 1, 1,
                 "unknown key \"vresion\" in [policy]; did you mean \"version\"?");
}

static void key_before_the_first_section_is_an_error(void **state)
{
    static const char text[] = "mode = enforce\n" POLICY_HEADER;

    (void)state;
    expect_in_text(text, strlen(text), POLICY_ERROR, 1, 1,
                   "\"mode\" stands before the first [section]");
}

static void key_in_the_wrong_section_is_an_error(void **state)
{
    (void)state;
    expect_error("[stream s]\npriority = 1\ncluster_dim = 4\n", 3, 1,
                 "cluster_dim cannot stand in [stream], only in [kernel]");
    expect_error("[kernel k]\npriority = 1\nkind = legacy\n", 3, 1,
                 "kind cannot stand in [kernel], only in [stream]");
    expect_error("library = x\n", 1, 1,
                 "library cannot stand in [policy], only in [stream] or [kernel]");
    expect_error("[kernel k]\npriority = 1\nmode = enforce\n", 3, 1,
                 "mode cannot stand in [kernel], only in [policy]");
}

static void key_that_cannot_be_repeated_is_an_error_the_second_time(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority = 1\nname = a\npriority = 1\n", 4, 1,
                 "priority is given twice; the first is in line 4");
    expect_error("[kernel k]\npriority = 1\ncaptured = yes\ncaptured = no\n", 4, 1,
                 "captured is given twice; the first is in line 5");
    expect_error("version = 1\n", 1, 1, "version is given twice; the first is in line 2");
}

static void rule_names_are_unique_within_their_kind(void **state)
{
    struct policy *policy =
        expect_clean("[kernel same]\npriority = 1\n[stream same]\npriority = 1\n");

    (void)state;
    policy_free(policy);
    expect_error("[kernel a]\nname = x\npriority = 1\n[kernel b]\nname = y\npriority = 1\n"
                 "[kernel a]\nname = z\npriority = 1\n",
                 7, 1, "second [kernel a]; the first is in line 3");
}

static void adjacent_sections_of_one_name_are_duplicates(void **state)
{
    (void)state;
    expect_error("[kernel a]\npriority = 1\n[kernel a]\nname = z\n", 3, 1,
                 "second [kernel a]; the first is in line 3");
}

static void stream_selector_has_to_name_a_stream_rule(void **state)
{
    (void)state;
    policy_free(expect_clean("[kernel k]\npriority = 1\nstream = later\n[stream later]\n"));
    expect_error(
        "[kernel k]\npriority = 1\nstream = back\nstream = backgrund\n"
        "[stream background]\npriority = 1\n[stream back]\npriority = 2\n",
        4, 10,
        "stream: there is no [stream backgrund] in this policy; did you mean \"background\"?");
    expect_error("[kernel k]\npriority = 1\nstream = k\n", 3, 10,
                 "stream: there is no [stream k] in this policy");
    expect_error("[kernel k]\npriority = 1\nstream = a, b\n[stream a]\n[stream b]\n", 3, 10,
                 "stream: there is no [stream a, b] in this policy");
}

static void all_errors_are_reported_at_once_in_file_order(void **state)
{
    static const char text[] =
        "[policy]\nversion = 1\nmood = 1\n[kernel k]\nname = a[\nstream = b\n"
        "mem_sync_domain_map = 0 1\nphysical_domain = 3\n[kernl l]\n"
        "[kernel k]\npriority = x\n";
    static const unsigned lines[] = {3, 5, 6, 8, 9, 10, 11};
    struct policy_diagnostics diagnostics = {0};

    (void)state;
    assert_null(policy_parse(text, strlen(text), "test.ini", &diagnostics));
    assert_int_equal(diagnostics.error_count, sizeof lines / sizeof lines[0]);
    for (size_t i = 0; i < diagnostics.count; i++) {
        assert_int_equal(diagnostics.items[i].place.line, lines[i]);
    }
    policy_diagnostics_release(&diagnostics);
}

static void diagnostics_are_printed_with_their_place(void **state)
{
    struct policy_diagnostics diagnostics = {0};

    (void)state;
    assert_null(policy_parse("[policy]\n", 9, "dir/a\nb.ini", &diagnostics));
    policy_diagnose(&diagnostics, POLICY_WARNING, (struct policy_place){0}, "whole %s", "file");
    assert_string_equal(diagnostics_text(&diagnostics),
                        "dir/a?b.ini: warning: whole file\n"
                        "dir/a?b.ini:1:1: error: [policy] has no version; this language is "
                        "\"version = 1\"\n");
    policy_diagnostics_release(&diagnostics);
}

static void diagnostics_of_two_texts_may_share_a_list(void **state)
{
    struct policy_diagnostics diagnostics = {0};

    (void)state;
    assert_null(policy_parse("", 0, "bad.ini", &diagnostics));
    struct policy *policy =
        policy_parse(POLICY_HEADER, strlen(POLICY_HEADER), "good.ini", &diagnostics);
    assert_non_null(policy);
    assert_string_equal(policy->path, "good.ini");
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
}

/* ---- contradictions ------------------------------------------------------------------------- */

static void domain_map_and_physical_domain_exclude_each_other(void **state)
{
    static const char message[] = "mem_sync_domain_map and physical_domain in one rule: both set "
                                  "the map; physical_domain = N "
                                  "is short for mem_sync_domain_map = N N";

    (void)state;
    expect_error("[kernel k]\nmem_sync_domain_map = 0 1\nphysical_domain = 1\n", 3, 1, message);
    expect_error("[stream k]\nphysical_domain = 1\nmem_sync_domain_map = leave\n", 3, 1, message);
}

static void preferred_cluster_is_a_multiple_of_the_cluster(void **state)
{
    (void)state;
    policy_free(
        expect_clean_kernel("name = x\ncluster_dim = 2,1,2\npreferred_cluster_dim = 4,3,2"));
    expect_error("[kernel k]\nname = x\ncluster_dim = 4\npreferred_cluster_dim = 6\n", 4, 1,
                 "preferred_cluster_dim = 6 is not a multiple of cluster_dim = 4");
    expect_error("[kernel k]\nname = x\npreferred_cluster_dim = 4,3\ncluster_dim = 4,2\n", 3, 1,
                 "preferred_cluster_dim = 4,3 is not a multiple of cluster_dim = 4,2");
    expect_error("[kernel k]\nname = x\ncluster_dim = 2\npreferred_cluster_dim = 4,1,2\n", 4, 1,
                 "preferred_cluster_dim = 4,1,2 has another z than cluster_dim = 2");
}

static void preferred_cluster_needs_a_cluster(void **state)
{
    (void)state;
    policy_free(expect_clean_kernel("name = x\npreferred_cluster_dim = 4"));
    policy_free(expect_clean_kernel("name = x\npreferred_cluster_dim = 4\ncluster_dim = leave"));
    expect_error(
        "[kernel k]\nname = x\ncluster_dim = unset\npreferred_cluster_dim = 4\n"
        "unsafe_cluster = yes\n",
        4, 1,
        "preferred_cluster_dim together with cluster_dim = unset: a preferred cluster needs "
        "a cluster");
}

static void replacing_a_cluster_needs_unsafe_cluster(void **state)
{
    static const char message[] =
        "when_set = replace in a rule with a cluster replaces the program's own cluster, which its "
        "kernel may rely on; this needs unsafe_cluster = yes";

    (void)state;
    expect_error("[kernel k]\nname = x\ncluster_dim = 2\nwhen_set = replace\n", 4, 1, message);
    expect_error("[kernel k]\nname = x\nwhen_set = replace\npreferred_cluster_dim = 2\n", 3, 1,
                 message);
    policy_free(expect_clean_kernel("name=x\ncluster_dim = 2\nwhen_set = replace\n"
                                    "unsafe_cluster = yes"));
    policy_free(expect_clean_kernel("name=x\ncluster_dim = 2\nwhen_set = keep"));
    policy_free(expect_clean_kernel("cluster_scheduling = spread\nwhen_set = replace"));
    policy_free(expect_clean_kernel("cluster_dim = leave\nwhen_set = replace"));
}

static void removing_a_cluster_needs_unsafe_cluster(void **state)
{
    (void)state;
    expect_error(
        "[kernel k]\ncluster_dim = unset\n", 2, 1,
        "cluster_dim = unset takes away the program's own cluster, which its kernel may rely "
        "on; this needs unsafe_cluster = yes");
    policy_free(expect_clean_kernel("preferred_cluster_dim = unset"));
}

static void unset_and_keep_exclude_each_other(void **state)
{
    (void)state;
    expect_error("[kernel k]\nmem_sync_domain = unset\nwhen_set = keep\n", 2, 1,
                 "mem_sync_domain = unset together with when_set = keep: the program's own value "
                 "cannot be taken away and kept");
}

static void graph_nodes_and_captured_no_exclude_each_other(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority = 1\ngraph_nodes = yes\ncaptured = no\n", 4, 1,
                 "graph_nodes = yes together with captured = no: the rule matches no graph node");
    policy_free(expect_clean_kernel("graph_nodes = yes\ncaptured = yes"));
    policy_free(expect_clean_kernel("graph_nodes = no\ncaptured = no"));
}

static void what_cannot_change_while_a_program_runs_depends_on_no_arm(void **state)
{
    (void)state;
    expect_error("[stream s]\npriority = 1\narm = 1\n", 3, 1,
                 "arm cannot stand in [stream]: it holds when the program starts or a stream is "
                 "created, and cannot change with the arm; this needs process arms (cudapolicy ab "
                 "without --live)");
    expect_error("[partition p]\nsm_count = 8\narm = 0\n", 3, 1,
                 "arm cannot stand in [partition]: it holds when the program starts or a stream is "
                 "created, and cannot change with the arm; this needs process arms (cudapolicy ab "
                 "without --live)");
    expect_error("[partition p]\nsm_count = 8\n[kernel k]\nname = x\narm = 0\npartition = p\n", 6,
                 1,
                 "a partition together with arm: launches that go to a partition and back within "
                 "one run would wait for each other; this needs process arms (cudapolicy ab "
                 "without --live)");
    policy_free(expect_clean("[kernel k]\nname = x\narm = 0\npriority = 1\n"
                             "[kernel l]\nname = x\narm = 1..3,5\npriority = 2\n"));
}

static void default_streams_have_nothing_of_creation(void **state)
{
    (void)state;
    expect_error("[stream s]\npriority = 1\nkind = legacy\nindex = 0\n", 4, 1,
                 "index together with kind = legacy: the program does not create that stream");
    expect_error(
        "[stream s]\npriority = 1\ncreated_priority = 0\nkind = per_thread\n", 4, 1,
        "created_priority together with kind = per_thread: the program does not create that "
        "stream");
    expect_error("[stream s]\npriority = 1\nkind = created\nkind = legacy\nflags = blocking\n", 5,
                 1, "flags together with kind = legacy: the program does not create that stream");
    policy_free(expect_clean_stream("kind = legacy\nlibrary = x\ndevice = 0\nrank = 1"));
    policy_free(expect_clean_stream("kind = created\nindex = 0\nflags = blocking"));
}

/* ---- warnings about one rule ---------------------------------------------------------------- */

static void kernel_rule_without_a_setting_is_a_warning(void **state)
{
    (void)state;
    expect_warning("[kernel k]\nname = x\n", 1, 1,
                   "[kernel k] has no setting, so it changes nothing");
    policy_free(expect_clean("[kernel k]\nname = x\nfinal = yes\n"));
}

static void stream_rule_without_a_setting_is_a_warning_unless_it_is_named(void **state)
{
    (void)state;
    expect_warning("[stream s]\nindex = 0\n", 1, 1,
                   "[stream s] has no setting and no kernel rule names it, so it changes nothing");
    policy_free(expect_clean("[stream s]\nindex = 0\n[kernel k]\nstream = s\npriority = 1\n"));
    policy_free(expect_clean("[stream s]\nindex = 0\nfinal = yes\n"));
}

static void modifier_without_effect_is_a_warning(void **state)
{
    (void)state;
    expect_warning(
        "[kernel k]\nmem_sync_domain = default\ngraph_nodes = yes\n", 3, 1,
        "graph_nodes = yes has no effect: the rule has no setting but memory-synchronization "
        "ones, which graphs take anyway");
    policy_free(expect_clean("[kernel k]\nname = x\nshared_memory_carveout = 50\n"
                             "graph_nodes = yes\n"));
    expect_warning("[kernel k]\nname = x\ncluster_dim = 2\nunsafe_cluster = yes\n", 4, 1,
                   "unsafe_cluster = yes has no effect without when_set = replace or cluster_dim = "
                   "unset");
    expect_warning("[kernel k]\npriority = leave\nwhen_set = keep\n", 3, 1,
                   "when_set has no effect: the rule has only leave and unset");
    expect_warning("[kernel k]\npriority = 1\nname_form = mangled\n", 3, 1,
                   "name_form has no effect without name or not_name");
}

static void cluster_on_a_catch_all_is_a_warning(void **state)
{
    static const char message[] = "cluster_dim in a rule that does not name its kernels: a cluster "
                                  "helps the kernels that it was chosen for and slows others down";

    (void)state;
    expect_warning("[kernel k]\ncluster_dim = 2\n", 2, 1, message);
    expect_warning("[kernel k]\nlibrary = x\ncluster_dim = 2\n", 3, 1, message);
    expect_warning("[kernel k]\nname = abc\nname = **\ncluster_dim = 2\n", 4, 1, message);
    policy_free(expect_clean_kernel("name = *x\ncluster_dim = 2"));
    policy_free(expect_clean_kernel("cluster_dim = leave"));
}

/* A policy of which nothing is to be said. */
static const char clean[] = "[policy]\nversion = 1\nmode = observe\n"
                            "[stream side]\ncreated_priority = ..-1\nlibrary = liba*\n"
                            "[kernel one]\nname = f*\nstream = side\ncluster_dim = 2\n"
                            "when_set = replace\nunsafe_cluster = yes\n"
                            "[kernel two]\nname_form = mangled\nname = _Z1gv\npriority = -1\n"
                            "when_set = keep\ngraph_nodes = yes\ncaptured = yes\n"
                            "[kernel three]\nname = h\nnot_name = hh\nrank = 0\n"
                            "mem_sync_domain = default\nmem_sync_domain_map = 0 1\n";

static void expect_no_warning_beside_errors(const char *text, size_t length, size_t *errors)
{
    struct policy_diagnostics diagnostics = {0};

    policy_free(policy_parse(text, length, "test.ini", &diagnostics));
    if (diagnostics.error_count != 0 && diagnostics.warning_count != 0) {
        fail_msg("%s\n\tof\n%.*s", diagnostics_text(&diagnostics), (int)length, text);
    }
    *errors += diagnostics.error_count != 0;
    policy_diagnostics_release(&diagnostics);
}

/* Whatever is broken in it, there is no warning beside the error: it would be of what the error
 * made of the text. */
static void an_error_brings_no_warnings_of_its_consequences(void **state)
{
    static const char bytes[] = "x]= ;\n\"";
    char text[sizeof clean];
    size_t length = sizeof clean - 1, errors = 0;

    (void)state;
    policy_free(expect_clean_text(clean, length));
    for (size_t i = 0; i < length; i++) {
        if (clean[i] == '\n') {
            continue; /* two lines become one, and its error may be about the end of it alone */
        }
        for (size_t j = 0; j < sizeof bytes - 1; j++) {
            memcpy(text, clean, length);
            text[i] = bytes[j];
            expect_no_warning_beside_errors(text, length, &errors);
        }
        memcpy(text, clean, i);
        memcpy(text + i, clean + i + 1, length - i - 1);
        expect_no_warning_beside_errors(text, length - 1, &errors);
    }
    assert_true(errors > length); /* there were some */
}

static void a_broken_header_is_one_error(void **state)
{
    static const struct {
        const char *good, *broken;
    } headers[] = {
        {"[policy]", "[policy"},
        {"[policy]", "[]"},
        {"[policy]", "[plicy]"},
        {"[stream side]", "[stream side"},
        {"[stream side]", "[stream]"},
        {"[stream side]", "[streem side]"},
        {"[stream side]", "[stream s/ide!]"},
        {"[kernel one]", "[kernel one"},
        {"[kernel two]", "[kernel]"},
        {"version = 1", ""},
        {"version = 1", "version = 3"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        const char *place = strstr(clean, headers[i].good);
        struct policy_diagnostics diagnostics = {0};
        char text[sizeof clean + 16];

        snprintf(text, sizeof text, "%.*s%s%s", (int)(place - clean), clean, headers[i].broken,
                 place + strlen(headers[i].good));
        assert_null(policy_parse(text, strlen(text), "test.ini", &diagnostics));
        if (diagnostics.error_count != 1 || diagnostics.warning_count != 0) {
            fail_msg("%s: %s", headers[i].broken, diagnostics_text(&diagnostics));
        }
        policy_diagnostics_release(&diagnostics);
    }
}

static void warnings_of_another_text_are_kept(void **state)
{
    static const char warned[] = "[policy]\nversion = 1\n[kernel k]\nname = x\n";
    static const char no_version[] = "[policy]\n[kernel k]\nname = x\n";
    struct policy_diagnostics diagnostics = {0};

    (void)state;
    policy_free(policy_parse(warned, sizeof warned - 1, "test.ini", &diagnostics));
    assert_int_equal(diagnostics.warning_count, 1);
    assert_null(policy_parse(no_version, sizeof no_version - 1, "test.ini", &diagnostics));
    assert_int_equal(diagnostics.warning_count, 1);
    assert_int_equal(diagnostics.error_count, 1);
    assert_int_equal(diagnostics.count, 2);
    policy_diagnostics_release(&diagnostics);
}

/* Warnings that come beside the one about separated kernels; that one is at the same rule. */
static size_t warnings_with(const char *body, const char *fragment)
{
    struct policy_diagnostics diagnostics = {0};
    size_t count = 0;
    char text[4096];

    snprintf(text, sizeof text, "%s%s", POLICY_HEADER, body);
    struct policy *policy = policy_parse(text, strlen(text), "test.ini", &diagnostics);
    if (policy == NULL) {
        fail_msg("%s", diagnostics_text(&diagnostics));
    }
    for (size_t i = 0; i < diagnostics.count; i++) {
        count += strstr(diagnostics.items[i].message, fragment) != NULL;
    }
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
    return count;
}

static void map_entry_that_the_domain_never_uses_is_a_warning(void **state)
{
    static const char unused[] = "is never used";

    (void)state;
    expect_warning(
        "[kernel k]\nmem_sync_domain = default\nmem_sync_domain_map = 0 2\n", 3, 1,
        "the map's entry for remote, 2, is never used: the rule's launches are in default");
    assert_int_equal(
        warnings_with("[kernel k]\nmem_sync_domain = remote\nmem_sync_domain_map = 3 2\n",
                      "the map's entry for default, 3, is never used: the rule's launches are in "
                      "remote"),
        1);
    /* The driver's own entry beside the one that matters is no mistake. */
    assert_int_equal(
        warnings_with("[kernel k]\nmem_sync_domain = remote\nmem_sync_domain_map = 0 2\n", unused),
        0);
    assert_int_equal(
        warnings_with("[kernel k]\nmem_sync_domain = default\nmem_sync_domain_map = 2 1\n", unused),
        0);
    /* The program's own domain may be the other one. */
    assert_int_equal(
        warnings_with("[kernel k]\nmem_sync_domain = default\nmem_sync_domain_map = 0 2\n"
                      "when_set = keep\n",
                      unused),
        0);
    assert_int_equal(warnings_with("[kernel k]\nmem_sync_domain_map = 3 2\n", unused), 0);
    assert_int_equal(
        warnings_with("[stream s]\nmem_sync_domain = default\nmem_sync_domain_map = 0 2\n", unused),
        0);
    assert_int_equal(
        warnings_with("[kernel k]\nmem_sync_domain = default\nphysical_domain = 2\n", unused), 0);
}

static void separated_kernels_are_one_warning_in_a_policy(void **state)
{
    static const char separated[] = "may put kernels into another physical domain";

    (void)state;
    expect_warning(
        "[kernel k]\nname = a\nmem_sync_domain = remote\n"
        "[kernel l]\nname = b\nphysical_domain = 3\n",
        3, 1,
        "[kernel k] may put kernels into another physical domain than others: where two "
        "concurrent kernels talk through device-scope atomics or fences, separating them "
        "breaks them silently");
    assert_int_equal(warnings_with("[stream s]\nphysical_domain = 1\n", separated), 1);
    assert_int_equal(warnings_with("[kernel k]\nmem_sync_domain_map = 0 2\n", separated), 1);
    assert_int_equal(
        warnings_with("[kernel k]\nmem_sync_domain=default\nmem_sync_domain_map = 1 1\n",
                      separated),
        1);
    /* These bring kernels together, or leave them where they are. */
    assert_int_equal(warnings_with("[kernel k]\nmem_sync_domain = default\n", separated), 0);
    assert_int_equal(warnings_with("[kernel k]\nmem_sync_domain = leave\n", separated), 0);
    assert_int_equal(warnings_with("[kernel k]\nphysical_domain = 0\n", separated), 0);
    assert_int_equal(warnings_with("[kernel k]\nmem_sync_domain_map = 0 1\n", separated), 0);
    assert_int_equal(
        warnings_with("[kernel k]\nmem_sync_domain=remote\nmem_sync_domain_map = 0 0\n", separated),
        0);
}

static void pattern_for_another_form_of_the_name_is_a_warning(void **state)
{
    (void)state;
    expect_warning("[kernel k]\npriority = 1\nname = foo<*\n", 3, 1,
                   "\"foo<*\" has template arguments, which names have only with name_form = "
                   "signature");
    expect_warning("[kernel k]\npriority = 1\nnot_name = _Z3foo*\n", 3, 1,
                   "\"_Z3foo*\" looks like a mangled name, which needs name_form = mangled");
    policy_free(expect_clean_kernel("name = foo<*\nname_form = signature"));
    policy_free(expect_clean_kernel("name = _Z3foo*\nname_form = mangled"));
    policy_free(expect_clean_kernel("name = (anonymous namespace)::foo"));
}

static void library_pattern_with_a_path_is_a_warning(void **state)
{
    (void)state;
    expect_warning(
        "[kernel k]\npriority = 1\nlibrary = /usr/lib/libnccl.so*\n", 3, 1,
        "\"/usr/lib/libnccl.so*\" has a /, but libraries are matched by their base name");
    expect_warning("[stream k]\npriority = 1\nnot_library = */libnccl.so*\n", 3, 1,
                   "\"*/libnccl.so*\" has a /, but libraries are matched by their base name");
}

static void rule_that_excludes_all_that_it_selects_is_a_warning(void **state)
{
    (void)state;
    expect_warning("[kernel k]\npriority = 1\nname = nccl*\nnot_name = n*\n", 4, 1,
                   "the rule can never match: not_name excludes all that name selects");
    expect_warning("[stream k]\npriority = 1\nlibrary = a\nlibrary = b\nnot_library = ?\n", 5, 1,
                   "the rule can never match: not_library excludes all that library selects");
    policy_free(expect_clean_kernel("name = n*\nnot_name = nccl*"));
    policy_free(expect_clean_kernel("name = a\nname = b\nnot_name = a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_is_required),
        cmocka_unit_test(unknown_version_is_the_only_error),
        cmocka_unit_test(policy_section_comes_first),
        cmocka_unit_test(policy_section_stands_once_and_has_no_name),
        cmocka_unit_test(mode_is_enforce_or_observe),
        cmocka_unit_test(mode_off_belongs_into_the_environment),
        cmocka_unit_test(modes_have_names),
        cmocka_unit_test(unknown_section_is_an_error_and_its_keys_are_not_looked_at),
        cmocka_unit_test(unknown_key_is_an_error_with_the_nearest_key),
        cmocka_unit_test(key_before_the_first_section_is_an_error),
        cmocka_unit_test(key_in_the_wrong_section_is_an_error),
        cmocka_unit_test(key_that_cannot_be_repeated_is_an_error_the_second_time),
        cmocka_unit_test(rule_names_are_unique_within_their_kind),
        cmocka_unit_test(adjacent_sections_of_one_name_are_duplicates),
        cmocka_unit_test(stream_selector_has_to_name_a_stream_rule),
        cmocka_unit_test(all_errors_are_reported_at_once_in_file_order),
        cmocka_unit_test(diagnostics_are_printed_with_their_place),
        cmocka_unit_test(diagnostics_of_two_texts_may_share_a_list),
        cmocka_unit_test(domain_map_and_physical_domain_exclude_each_other),
        cmocka_unit_test(preferred_cluster_is_a_multiple_of_the_cluster),
        cmocka_unit_test(preferred_cluster_needs_a_cluster),
        cmocka_unit_test(replacing_a_cluster_needs_unsafe_cluster),
        cmocka_unit_test(removing_a_cluster_needs_unsafe_cluster),
        cmocka_unit_test(unset_and_keep_exclude_each_other),
        cmocka_unit_test(graph_nodes_and_captured_no_exclude_each_other),
        cmocka_unit_test(what_cannot_change_while_a_program_runs_depends_on_no_arm),
        cmocka_unit_test(default_streams_have_nothing_of_creation),
        cmocka_unit_test(an_error_brings_no_warnings_of_its_consequences),
        cmocka_unit_test(a_broken_header_is_one_error),
        cmocka_unit_test(warnings_of_another_text_are_kept),
        cmocka_unit_test(kernel_rule_without_a_setting_is_a_warning),
        cmocka_unit_test(stream_rule_without_a_setting_is_a_warning_unless_it_is_named),
        cmocka_unit_test(modifier_without_effect_is_a_warning),
        cmocka_unit_test(cluster_on_a_catch_all_is_a_warning),
        cmocka_unit_test(map_entry_that_the_domain_never_uses_is_a_warning),
        cmocka_unit_test(separated_kernels_are_one_warning_in_a_policy),
        cmocka_unit_test(pattern_for_another_form_of_the_name_is_a_warning),
        cmocka_unit_test(library_pattern_with_a_path_is_a_warning),
        cmocka_unit_test(rule_that_excludes_all_that_it_selects_is_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
