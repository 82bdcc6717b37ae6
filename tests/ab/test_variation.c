/* SPDX-License-Identifier: Apache-2.0 */

/* Other values in the text of a policy, and the policies that a choice of values makes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "space.h"
#include "variation.h"

#define HEAD "[policy]\nversion = 1\n"

/* A choice for the kernel rule k. */
static struct variation_choice kernel_k(const char *key, const char *value)
{
    return (struct variation_choice){POLICY_SECTION_KERNEL, "k", key, value};
}

static void expect_choices(const char *text, const struct variation_choice *choices, size_t count,
                           const char *expected)
{
    size_t length = 0;
    char *result = variation_text(text, strlen(text), choices, count, &length);

    assert_string_equal(result, expected);
    assert_int_equal(length, strlen(expected));
    free(result);
}

static void expect_choice(const char *text, struct variation_choice choice, const char *expected)
{
    expect_choices(text, &choice, 1, expected);
}

static void value_stands_in_the_place_of_the_old_one(void **state)
{
    (void)state;
    expect_choice(HEAD "[kernel k]\n  priority\t=  5   ; urgent\nname = a\n",
                  kernel_k("priority", "-1"),
                  HEAD "[kernel k]\n  priority\t=  -1   ; urgent\nname = a\n");
    expect_choice(HEAD "[kernel k]\nname=\"a \"\"b\"\"\" # quoted\n", kernel_k("name", "c"),
                  HEAD "[kernel k]\nname=c # quoted\n");
    expect_choice(HEAD "[kernel k]\nname=a", kernel_k("name", "b"), HEAD "[kernel k]\nname=b");
}

static void value_gets_quotes_where_it_needs_them(void **state)
{
    (void)state;
    expect_choice(HEAD "[kernel k]\nname = a\n", kernel_k("name", "x #1"),
                  HEAD "[kernel k]\nname = \"x #1\"\n");
    expect_choice(HEAD "[kernel k]\nname = a\n", kernel_k("name", "\"x\""),
                  HEAD "[kernel k]\nname = \"\"\"x\"\"\"\n");
}

static void other_sections_keep_their_values(void **state)
{
    static const char text[] = HEAD "[kernel k.2]\npriority = 1\n[stream k]\npriority = 2\n"
                                    "[partition k]\nsm_count = 8\n[ kernel  k ] ; this\n"
                                    "priority = 3\n[kernel kk]\npriority = 4\n";

    (void)state;
    expect_choice(text, kernel_k("priority", "9"),
                  HEAD "[kernel k.2]\npriority = 1\n[stream k]\npriority = 2\n"
                       "[partition k]\nsm_count = 8\n[ kernel  k ] ; this\n"
                       "priority = 9\n[kernel kk]\npriority = 4\n");
    expect_choice(text,
                  (struct variation_choice){POLICY_SECTION_PARTITION, "k", "sm_count", "rest"},
                  HEAD "[kernel k.2]\npriority = 1\n[stream k]\npriority = 2\n"
                       "[partition k]\nsm_count = rest\n[ kernel  k ] ; this\n"
                       "priority = 3\n[kernel kk]\npriority = 4\n");
    expect_choice(text, (struct variation_choice){POLICY_SECTION_KERNEL, "no", "priority", "9"},
                  text);
}

static void repeated_key_becomes_one_and_its_comments_stay(void **state)
{
    (void)state;
    expect_choice(HEAD "[kernel k]\nname = a ; first\npriority = 0\nname = b\n"
                       "  name = \"c\"  ; third\n\n[kernel l]\nname = d\n",
                  kernel_k("name", "x"),
                  HEAD "[kernel k]\nname = x ; first\npriority = 0\n  ; third\n\n"
                       "[kernel l]\nname = d\n");
}

static void key_that_is_not_there_comes_after_the_last_one(void **state)
{
    (void)state;
    expect_choice(HEAD "[kernel k]\n\tname = a ; comment\n\n; about l\n[kernel l]\nname = d\n",
                  kernel_k("priority", "0"),
                  HEAD "[kernel k]\n\tname = a ; comment\n\tpriority = 0\n\n; about l\n"
                       "[kernel l]\nname = d\n");
    expect_choice(HEAD "[kernel k] ; empty\n; nothing\n", kernel_k("priority", "0"),
                  HEAD "[kernel k] ; empty\npriority = 0\n; nothing\n");
    expect_choice(HEAD "[kernel k]\nname = a", kernel_k("priority", "0"),
                  HEAD "[kernel k]\nname = a\npriority = 0\n");
    expect_choice(HEAD "[kernel k]\nname = a\nname = b", kernel_k("name", "c"),
                  HEAD "[kernel k]\nname = c\n");
}

static void comment_with_a_key_in_it_is_no_key(void **state)
{
    (void)state;
    expect_choice(HEAD "[kernel k]\n; priority = 1\nname = a # priority = 2\n",
                  kernel_k("priority", "0"),
                  HEAD "[kernel k]\n; priority = 1\nname = a # priority = 2\npriority = 0\n");
}

static void several_choices_are_made_at_once(void **state)
{
    const struct variation_choice choices[] = {
        kernel_k("priority", "1"),
        kernel_k("final", "yes"),
        {POLICY_SECTION_PARTITION, "side", "sm_count", "16"},
        kernel_k("partition", "side"),
    };

    (void)state;
    expect_choices(HEAD "[partition side]\nsm_count = 8\n[kernel k]\npriority = 0\nname = x\n",
                   choices, 4,
                   HEAD "[partition side]\nsm_count = 16\n[kernel k]\npriority = 1\nname = x\n"
                        "final = yes\npartition = side\n");
}

static void lines_end_as_they_did(void **state)
{
    (void)state;
    expect_choice("[policy]\r\nversion = 1\r\n[kernel k]\r\npriority = 0 ; c\r\n",
                  kernel_k("priority", "1"),
                  "[policy]\r\nversion = 1\r\n[kernel k]\r\npriority = 1 ; c\r\n");
    expect_choice("[policy]\r\nversion = 1\r\n[kernel k]\r\nname = a\r\n",
                  kernel_k("priority", "1"),
                  "[policy]\r\nversion = 1\r\n[kernel k]\r\nname = a\r\npriority = 1\r\n");
    expect_choice("\xef\xbb\xbf[policy]\r\nversion = 1\r\n[kernel k]\r\nname = a",
                  kernel_k("priority", "1"),
                  "\xef\xbb\xbf[policy]\r\nversion = 1\r\n[kernel k]\r\nname = a\r\n"
                  "priority = 1\r\n");
}

static void tune_section_goes_with_its_keys_alone(void **state)
{
    (void)state;
    expect_choices(HEAD "; before\n[tune] ; here\n; what is tried\nvary = k.priority = 0, 1\n"
                        "\nvary = k.name = a, b\n\n; about k\n[kernel k]\npriority = 0\n",
                   NULL, 0, HEAD "; before\n\n; about k\n[kernel k]\npriority = 0\n");
    expect_choices(HEAD "[kernel k]\npriority = 0\n\n[tune]\nvary = k.priority = 0, 1", NULL, 0,
                   HEAD "[kernel k]\npriority = 0\n\n");
    expect_choices(HEAD "[tune]\n[kernel k]\npriority = 0\n", NULL, 0,
                   HEAD "[kernel k]\npriority = 0\n");
}

static void text_without_choices_stays_as_it_is(void **state)
{
    static const char text[] = "; head\n\n[policy]  # p\nversion=1\n\n\t[kernel k] ;x\n name = "
                               "\"a;b\" ; c\n\n\n";

    (void)state;
    expect_choices(text, NULL, 0, text);
    expect_choices("", NULL, 0, "");
}

/* ---- spaces --------------------------------------------------------------------------------- */

static struct policy *parse(const char *text)
{
    struct policy_diagnostics diagnostics = {.errors_only = true};
    struct policy *policy = policy_parse(text, strlen(text), "test.ini", &diagnostics);

    if (policy == NULL) {
        policy_diagnostics_print(&diagnostics, stderr);
    }
    assert_non_null(policy);
    policy_diagnostics_release(&diagnostics);
    return policy;
}

/* The space of what the text's own [tune] says. */
static bool make(struct space *space, const char *text, bool each, size_t limit, char *error)
{
    struct policy *policy = parse(text);
    bool made = space_make(space, text, strlen(text), policy, policy->variations,
                           policy->variation_count, each, limit, error, 300);

    policy_free(policy);
    return made;
}

static void expect_names(const struct space *space, size_t count, const char *const *names)
{
    assert_int_equal(space->candidate_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(space->candidates[i].name, names[i]);
    }
}

static void space_has_all_combinations_and_the_base_first(void **state)
{
    static const char *const names[] = {
        "base",
        "k.priority=1, k.final=yes",
        "k.priority=1, k.final=no",
        "k.priority=2, k.final=yes",
        "k.priority=2, k.final=no",
    };
    struct space space;
    char error[300];

    (void)state;
    assert_true(make(&space,
                     HEAD "[kernel k]\npriority = 0\n[tune]\nvary = k.priority = 1, 2\n"
                          "vary = k.final = yes, no\n",
                     false, 4, error));
    expect_names(&space, 5, names);
    assert_string_equal(space.candidates[0].arm, "base");
    assert_string_equal(space.candidates[0].text, HEAD "[kernel k]\npriority = 0\n");
    assert_string_equal(space.candidates[3].arm, "k.priority-2+k.final-yes");
    assert_string_equal(space.candidates[3].text, HEAD "[kernel k]\npriority = 2\nfinal = yes\n");
    assert_int_equal(space.candidates[3].length, strlen(space.candidates[3].text));
    assert_int_equal(space.left_out_count, 0);
    space_release(&space);
}

static void each_varies_one_key_at_a_time(void **state)
{
    static const char *const names[] = {"base", "k.priority=1", "k.priority=2", "k.final=yes"};
    struct space space;
    char error[300];

    (void)state;
    assert_true(make(&space,
                     HEAD "[kernel k]\npriority = 0\n[tune]\nvary = k.priority = 1, 2\n"
                          "vary = k.final = yes, no\n",
                     true, 4, error));
    expect_names(&space, 4, names);
    assert_int_equal(space.left_out_count, 1);
    assert_string_equal(space.left_out[0].name, "k.final=no");
    assert_string_equal(space.left_out[0].reason, "it says the same as base");
    space_release(&space);
}

static void values_that_mean_the_same_are_tried_once(void **state)
{
    static const char *const names[] = {"base", "k.cluster_dim=4"};
    struct space space;
    char error[300];

    (void)state;
    assert_true(make(&space,
                     HEAD "[kernel k]\nname = x\ncluster_dim = 2\n[tune]\n"
                          "vary = k.cluster_dim = 2 1 1, 4, 4 1\n",
                     false, 64, error));
    expect_names(&space, 2, names);
    assert_int_equal(space.left_out_count, 2);
    assert_string_equal(space.left_out[1].reason, "it says the same as k.cluster_dim=4");
    space_release(&space);
}

static void contradictory_combination_is_left_out_with_its_reason(void **state)
{
    static const char *const names[] = {
        "base",
        "k.cluster_dim=2, k.preferred_cluster_dim=4",
        "k.cluster_dim=2, k.preferred_cluster_dim=6",
        "k.cluster_dim=4, k.preferred_cluster_dim=4",
    };
    struct space space;
    char error[300];

    (void)state;
    assert_true(make(&space,
                     HEAD "[kernel k]\nname = x\n[tune]\nvary = k.cluster_dim = 2, 4\n"
                          "vary = k.preferred_cluster_dim = 4, 6\n",
                     false, 64, error));
    expect_names(&space, 4, names);
    assert_int_equal(space.left_out_count, 1);
    assert_string_equal(space.left_out[0].name, "k.cluster_dim=4, k.preferred_cluster_dim=6");
    assert_non_null(strstr(space.left_out[0].reason, "preferred_cluster_dim"));
    assert_null(strstr(space.left_out[0].reason, "cluster_dim=4,"));
    space_release(&space);
}

static void space_of_contradictions_alone_is_an_error(void **state)
{
    struct space space;
    char error[300];

    (void)state;
    assert_false(make(&space,
                      HEAD "[kernel k]\nname = x\nmem_sync_domain_map = 0 2\n[tune]\n"
                           "vary = k.physical_domain = 1, 2\n",
                      false, 64, error));
    assert_non_null(strstr(error, "every combination of values is left out; the first, since "));
    space_release(&space);
}

static void space_that_is_too_large_says_how_large(void **state)
{
    static const char text[] = HEAD "[kernel k]\nname = x\n[tune]\nvary = k.priority = 1, 2, 3\n"
                                    "vary = k.final = yes, no\n";
    struct space space;
    char error[300];

    (void)state;
    assert_false(make(&space, text, false, 5, error));
    assert_string_equal(error, "3 x 2 values make 6 candidates, more than 5: vary fewer keys, one "
                               "at a time (--each), or give a larger --limit");
    space_release(&space);
    assert_false(make(&space, text, true, 4, error));
    assert_string_equal(error, "3 + 2 values make 5 candidates, more than 4: vary fewer keys, or "
                               "give a larger --limit");
    space_release(&space);
}

static void kind_is_in_the_name_where_names_are_shared(void **state)
{
    static const char *const names[] = {"base", "kernel k.priority=1", "kernel k.priority=2",
                                        "k.sm_count=16"};
    struct space space;
    char error[300];

    (void)state;
    assert_true(make(&space,
                     HEAD "[kernel k]\npriority = 0\n[stream k]\npriority = 0\n"
                          "[partition k]\nsm_count = 8\n[tune]\n"
                          "vary = kernel k.priority = 1, 2\nvary = k.sm_count = 8, 16\n",
                     true, 64, error));
    expect_names(&space, 4, names);
    assert_string_equal(space.candidates[1].arm, "kernel-k.priority-1");
    space_release(&space);
}

static void names_of_arms_are_short_and_differ(void **state)
{
    struct space space;
    char error[300];

    (void)state;
    assert_true(make(&space,
                     HEAD
                     "[kernel k]\nname = x\npriority = 0\n[tune]\n"
                     "vary = k.name = a*, a?, aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                     "aaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
                     false, 64, error));
    assert_int_equal(space.candidate_count, 4);
    assert_string_equal(space.candidates[1].arm, "candidate-1");
    assert_string_equal(space.candidates[2].arm, "candidate-2");
    assert_string_equal(space.candidates[3].arm, "candidate-3");
    space_release(&space);
    assert_true(make(&space,
                     HEAD "[kernel k]\nname = x\npriority = 0\n[tune]\nvary = k.name = a*, a?\n",
                     false, 64, error));
    assert_string_equal(space.candidates[1].arm, "k.name-a-");
    assert_string_equal(space.candidates[2].arm, "candidate-2");
    space_release(&space);
    assert_true(make(&space,
                     HEAD "[kernel k]\nname = x\npriority = 0\n[tune]\n"
                          "vary = k.mem_sync_domain = default, remote\nvary = k.priority = 1, 2\n",
                     false, 64, error));
    assert_string_equal(space.candidates[1].arm, "default+1");
    assert_string_equal(space.candidates[4].arm, "remote+2");
    space_release(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(value_stands_in_the_place_of_the_old_one),
        cmocka_unit_test(value_gets_quotes_where_it_needs_them),
        cmocka_unit_test(other_sections_keep_their_values),
        cmocka_unit_test(repeated_key_becomes_one_and_its_comments_stay),
        cmocka_unit_test(key_that_is_not_there_comes_after_the_last_one),
        cmocka_unit_test(comment_with_a_key_in_it_is_no_key),
        cmocka_unit_test(several_choices_are_made_at_once),
        cmocka_unit_test(lines_end_as_they_did),
        cmocka_unit_test(tune_section_goes_with_its_keys_alone),
        cmocka_unit_test(text_without_choices_stays_as_it_is),
        cmocka_unit_test(space_has_all_combinations_and_the_base_first),
        cmocka_unit_test(each_varies_one_key_at_a_time),
        cmocka_unit_test(values_that_mean_the_same_are_tried_once),
        cmocka_unit_test(contradictory_combination_is_left_out_with_its_reason),
        cmocka_unit_test(space_of_contradictions_alone_is_an_error),
        cmocka_unit_test(space_that_is_too_large_says_how_large),
        cmocka_unit_test(kind_is_in_the_name_where_names_are_shared),
        cmocka_unit_test(names_of_arms_are_short_and_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
