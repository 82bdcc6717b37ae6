/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions for misspelt words and for patterns that matched nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "policy/suggest.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const keys[] = {
    "name",        "not_name",    "name_form",       "library",
    "stream",      "grid_blocks", "mem_sync_domain", "mem_sync_domain_map",
    "cluster_dim", "priority",    "partition",       "when_set",
};

static void distance_counts_each_kind_of_edit_once(void **state)
{
    (void)state;
    assert_int_equal(suggest_distance("", ""), 0);
    assert_int_equal(suggest_distance("abc", "abc"), 0);
    assert_int_equal(suggest_distance("", "abc"), 3);
    assert_int_equal(suggest_distance("abc", ""), 3);
    assert_int_equal(suggest_distance("abc", "abxc"), 1);
    assert_int_equal(suggest_distance("abc", "ac"), 1);
    assert_int_equal(suggest_distance("abc", "axc"), 1);
    assert_int_equal(suggest_distance("abc", "acb"), 1);
    assert_int_equal(suggest_distance("ca", "abc"), 3); /* exchanged bytes are not edited again */
    assert_int_equal(suggest_distance("kitten", "sitting"), 3);
}

static void distance_is_the_same_in_both_directions(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(keys); i++) {
        for (size_t j = 0; j < COUNT(keys); j++) {
            assert_int_equal(suggest_distance(keys[i], keys[j]),
                             suggest_distance(keys[j], keys[i]));
        }
    }
}

static void special_characters_of_globs_are_plain_in_words(void **state)
{
    (void)state;
    assert_int_equal(suggest_distance("a*", "abcd"), 3);
    assert_int_equal(suggest_distance("[a]", "a"), 2);
    assert_int_equal(suggest_distance("a\\", "a\\"), 0);
}

static void misspelt_key_finds_its_neighbour(void **state)
{
    (void)state;
    assert_string_equal(suggest_nearest("nmae", keys, COUNT(keys)), "name");
    assert_string_equal(suggest_nearest("libary", keys, COUNT(keys)), "library");
    assert_string_equal(suggest_nearest("mem-sync-domain", keys, COUNT(keys)), "mem_sync_domain");
    assert_string_equal(suggest_nearest("mem_sync_domian_map", keys, COUNT(keys)),
                        "mem_sync_domain_map");
    assert_string_equal(suggest_nearest("clusterdims", keys, COUNT(keys)), "cluster_dim");
    assert_string_equal(suggest_nearest("prio rity", keys, COUNT(keys)), "priority");
}

static void far_word_gets_no_suggestion(void **state)
{
    (void)state;
    assert_null(suggest_nearest("colour", keys, COUNT(keys)));
    assert_null(suggest_nearest("x", keys, COUNT(keys)));
    assert_null(suggest_nearest("", keys, COUNT(keys)));
    assert_null(suggest_nearest("name", keys, 0));
    assert_null(suggest_nearest("ab", (const char *const[]){"cd"}, 1));
}

static void first_of_equally_near_candidates_wins(void **state)
{
    static const char *const candidates[] = {"abcx", "abcy"};

    (void)state;
    assert_ptr_equal(suggest_nearest("abcz", candidates, 2), candidates[0]);
}

static void glob_distance_is_zero_for_a_match_and_counts_edits_beside_the_stars(void **state)
{
    (void)state;
    assert_int_equal(suggest_glob_distance("*", "anything"), 0);
    assert_int_equal(suggest_glob_distance("*", ""), 0);
    assert_int_equal(suggest_glob_distance("a*b?[0-9]", "axxxbz7"), 0);
    assert_int_equal(suggest_glob_distance("a*b?[0-9]", "axxxbzz"), 1);
    assert_int_equal(suggest_glob_distance("nccl_*", "ncclDevKernel_AllReduce"), 1);
    assert_int_equal(suggest_glob_distance("nccldev*", "ncclDevKernel_AllReduce"), 1);
    assert_int_equal(suggest_glob_distance("operator\\[\\]", "operator[]"), 0);
    assert_int_equal(suggest_glob_distance("ab[", "ab"), 0);
}

static void pattern_finds_the_kernel_it_was_meant_for(void **state)
{
    static const char *const kernels[] = {
        "at::native::vectorized_elementwise_kernel",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        "triton_poi_fused_add_0",
    };

    (void)state;
    assert_string_equal(suggest_nearest_to_glob("ncclKernel_AllReduce*", kernels, 3), kernels[1]);
    assert_string_equal(suggest_nearest_to_glob("at::native::vectorised_*", kernels, 3),
                        kernels[0]);
    assert_null(suggest_nearest_to_glob("cutlass::*", kernels, 3));
    assert_null(suggest_nearest_to_glob("*", kernels, 0));
}

static void only_the_beginning_of_long_words_is_compared(void **state)
{
    enum { LENGTH = 100000 };
    char *left = malloc(LENGTH + 1);
    char *right = malloc(LENGTH + 1);

    (void)state;
    assert_non_null(left);
    assert_non_null(right);
    memset(left, 'a', LENGTH);
    memset(right, 'a', LENGTH);
    left[LENGTH] = '\0';
    right[LENGTH] = '\0';
    left[SUGGEST_LENGTH_LIMIT] = 'b';
    assert_int_equal(suggest_distance(left, right), 0);
    left[SUGGEST_LENGTH_LIMIT - 1] = 'b';
    assert_int_equal(suggest_distance(left, right), 1);
    assert_int_equal(suggest_distance("", right), SUGGEST_LENGTH_LIMIT);
    assert_int_equal(suggest_distance(left, ""), SUGGEST_LENGTH_LIMIT);
    free(left);
    free(right);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distance_counts_each_kind_of_edit_once),
        cmocka_unit_test(distance_is_the_same_in_both_directions),
        cmocka_unit_test(special_characters_of_globs_are_plain_in_words),
        cmocka_unit_test(misspelt_key_finds_its_neighbour),
        cmocka_unit_test(far_word_gets_no_suggestion),
        cmocka_unit_test(first_of_equally_near_candidates_wins),
        cmocka_unit_test(glob_distance_is_zero_for_a_match_and_counts_edits_beside_the_stars),
        cmocka_unit_test(pattern_finds_the_kernel_it_was_meant_for),
        cmocka_unit_test(only_the_beginning_of_long_words_is_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
