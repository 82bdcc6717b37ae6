/* SPDX-License-Identifier: Apache-2.0 */

/* Matching rules against kernels of which not all is known, and names as people paste them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "decision.h"
#include "match.h"
#include "readable_name.h"

static struct policy *parse(const char *text)
{
    struct policy_diagnostics diagnostics;
    struct policy *policy;

    policy_diagnostics_init(&diagnostics);
    policy = policy_parse(text, strlen(text), "test", &diagnostics);
    policy_diagnostics_release(&diagnostics);
    assert_non_null(policy);
    return policy;
}

static enum match_answer answer_of_grid(const char *ranges, int64_t least, int64_t most)
{
    char text[200];
    struct policy *policy;
    struct match_facts facts = {.form_known = {true, true, true},
                                .grid_blocks = {.known = true, .least = least, .most = most}};
    struct match_verdict verdict;

    snprintf(text, sizeof text,
             "[policy]\nversion = 1\n[kernel k]\ngrid_blocks = %s\npriority = 0\n", ranges);
    policy = parse(text);
    assert_true(kernel_name_make("f", &facts.name));
    match_rule(&policy->rules[0], &facts, &verdict);
    kernel_name_release(&facts.name);
    policy_free(policy);
    return verdict.answer;
}

static void an_extent_matches_when_ranges_hold_all_of_it(void **state)
{
    (void)state;
    assert_int_equal(answer_of_grid("1..4", 1, 4), MATCH_YES);
    assert_int_equal(answer_of_grid("4..", 4, INT64_MAX), MATCH_YES);
    assert_int_equal(answer_of_grid("5..8,1..4", 2, 7), MATCH_YES);
    assert_int_equal(answer_of_grid("1..6,3..9", 2, 9), MATCH_YES);
    assert_int_equal(answer_of_grid("1,2,3", 1, 3), MATCH_YES);
}

static void an_extent_matches_perhaps_when_ranges_hold_some_of_it(void **state)
{
    (void)state;
    assert_int_equal(answer_of_grid("1..4", 4, 5), MATCH_PERHAPS);
    assert_int_equal(answer_of_grid("1..4,6..9", 3, 7), MATCH_PERHAPS);
    assert_int_equal(answer_of_grid("5", 1, 9), MATCH_PERHAPS);
}

static void an_extent_does_not_match_when_ranges_hold_none_of_it(void **state)
{
    (void)state;
    assert_int_equal(answer_of_grid("1..4", 5, 9), MATCH_NO);
    assert_int_equal(answer_of_grid("1..4,9..", 5, 8), MATCH_NO);
}

/* The name made of a signature is the name that the library makes of the mangled one. */
static void names_of_signatures_are_those_of_the_library(void **state)
{
    static const char *const mangled[] = {
        "_ZN2at6native4copyIfEEvPT_i",
        "_Z4axpyv",
        "_Z4axpyPffi",
        "_ZN12_GLOBAL__N_14fillEPf",
        "_ZN12_GLOBAL__N_11SIiE1mIfEEvT_i",
        "_ZN2ns1fILb1EEEvv",
        "_ZN2ns1kIXadL_ZNS_1gEiEEEEvv",
        "_ZN2ns1qIfEEvNS_1PIT_E1QEPS2_",
        "_Z7wrappedIZ3usevEUlfE_EvT_i",
        "_Z1fIXgtLi3ELi2EEEvv",
    };

    (void)state;
    for (size_t i = 0; i < sizeof mangled / sizeof mangled[0]; i++) {
        struct match_facts pasted = {0};
        struct kernel_name name;

        assert_true(kernel_name_make(mangled[i], &name));
        assert_true(name.demangled);
        assert_true(readable_name_fill(name.signature, &pasted));
        assert_string_equal(pasted.name.name, name.name);
        assert_string_equal(pasted.name.last_component, name.last_component);
        assert_true(pasted.form_known[POLICY_NAME_FORM_SIGNATURE]);
        assert_false(pasted.form_known[POLICY_NAME_FORM_MANGLED]);
        kernel_name_release(&pasted.name);
        kernel_name_release(&name);
    }
}

static void broken_signatures_are_survived(void **state)
{
    static const char *const broken[] = {
        "f<", "f<<<<", "f(",    "(", "<",  ">",    "a>b(",
        "{",  "f{",    "void ", " ", "::", "f<(>", "f<a->b>(",
    };

    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        struct match_facts facts = {0};

        assert_true(readable_name_fill(broken[i], &facts));
        assert_non_null(facts.name.name);
        kernel_name_release(&facts.name);
    }
}

static const struct policy_setting_value *decided(const struct policy *policy, const char *kernel,
                                                  enum policy_setting setting)
{
    struct match_facts facts = {0};
    struct decision decision;
    const struct policy_setting_value *value;

    assert_true(readable_name_fill(kernel, &facts));
    decision_make(policy, &facts, &decision);
    value = decision.sources[setting].value;
    decision_release(&decision);
    kernel_name_release(&facts.name);
    return value;
}

static void settings_of_a_group_never_come_from_two_rules(void **state)
{
    struct policy *policy = parse("[policy]\nversion = 1\n"
                                  "[kernel a]\nname = f\nmem_sync_domain = remote\n"
                                  "[kernel b]\nmem_sync_domain_map = 0 2\npriority = -1\n");

    (void)state;
    assert_non_null(decided(policy, "f", POLICY_SETTING_MEM_SYNC_DOMAIN));
    assert_null(decided(policy, "f", POLICY_SETTING_MEM_SYNC_DOMAIN_MAP));
    assert_non_null(decided(policy, "f", POLICY_SETTING_PRIORITY));
    assert_non_null(decided(policy, "g", POLICY_SETTING_MEM_SYNC_DOMAIN_MAP));
    policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_extent_matches_when_ranges_hold_all_of_it),
        cmocka_unit_test(an_extent_matches_perhaps_when_ranges_hold_some_of_it),
        cmocka_unit_test(an_extent_does_not_match_when_ranges_hold_none_of_it),
        cmocka_unit_test(names_of_signatures_are_those_of_the_library),
        cmocka_unit_test(broken_signatures_are_survived),
        cmocka_unit_test(settings_of_a_group_never_come_from_two_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
