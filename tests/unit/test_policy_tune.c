/* SPDX-License-Identifier: Apache-2.0 */
/* [tune]: which keys are varied, with which values, and what is wrong with that. */
#include "test_policy_support.h"

/* The rules of which [tune] speaks, and its header; the next line is RULE_LINE of the body. */
#define RULES                                                                                      \
    "[partition side]\nsm_count = 16\n"                                                            \
    "[stream nccl]\npriority = 0\npartition = side\n"                                              \
    "[kernel small.ones]\nname = x\n"                                                              \
    "[kernel nccl]\nname = y\npriority = 1\n"                                                      \
    "[tune]\n"
#define RULE_LINE 12u

/* The policy with this one line in [tune]. */
static struct policy *with_line(const char *line)
{
    struct policy_diagnostics diagnostics = {.errors_only = true};
    char text[2000];

    snprintf(text, sizeof text, "%s%s%s\n", POLICY_HEADER, RULES, line);
    struct policy *policy = policy_parse(text, strlen(text), "test.ini", &diagnostics);
    if (policy == NULL) {
        fail_msg("%s", diagnostics_text(&diagnostics));
    }
    policy_diagnostics_release(&diagnostics);
    assert_int_equal(policy->variation_count, 1);
    return policy;
}

static void expect_variation(const char *line, enum policy_section section, const char *name,
                             const char *key, size_t count, ...)
{
    struct policy *policy = with_line(line);
    const struct policy_variation *variation = &policy->variations[0];
    va_list values;

    assert_int_equal(variation->section, section);
    assert_string_equal(variation->name, name);
    assert_string_equal(variation->key, key);
    assert_int_equal(variation->value_count, count);
    va_start(values, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(variation->values[i], va_arg(values, const char *));
    }
    va_end(values);
    policy_free(policy);
}

static void expect_line_error(const char *line, unsigned column, const char *message)
{
    char body[2000];

    snprintf(body, sizeof body, "%s%s\n", RULES, line);
    expect_error(body, RULE_LINE, column, message);
}

static void key_of_a_rule_or_a_partition_is_varied(void **state)
{
    (void)state;
    expect_variation("vary = small.ones.mem_sync_domain = default, remote,leave ; comment",
                     POLICY_SECTION_KERNEL, "small.ones", "mem_sync_domain", 3, "default", "remote",
                     "leave");
    expect_variation("vary=side.sm_count=8,rest", POLICY_SECTION_PARTITION, "side", "sm_count", 2,
                     "8", "rest");
    expect_variation("vary = nccl.cluster_dim = 4 1 1, unset", POLICY_SECTION_KERNEL, "nccl",
                     "cluster_dim", 2, "4 1 1", "unset");
    expect_variation("vary = stream nccl.partition = side, leave", POLICY_SECTION_STREAM, "nccl",
                     "partition", 2, "side", "leave");
}

static void selectors_and_modifiers_are_varied_too(void **state)
{
    (void)state;
    expect_variation("vary = small.ones.grid_blocks = ..4, ..8", POLICY_SECTION_KERNEL,
                     "small.ones", "grid_blocks", 2, "..4", "..8");
    expect_variation("vary = small.ones.graph_nodes = yes, no", POLICY_SECTION_KERNEL, "small.ones",
                     "graph_nodes", 2, "yes", "no");
    expect_variation("vary = \"small.ones.library = \"\"a\"\", b=c, #d\"", POLICY_SECTION_KERNEL,
                     "small.ones", "library", 3, "\"a\"", "b=c", "#d");
}

static void kind_is_needed_only_where_the_key_does_not_tell(void **state)
{
    (void)state;
    expect_variation("vary = kernel nccl.priority = 1, 2", POLICY_SECTION_KERNEL, "nccl",
                     "priority", 2, "1", "2");
    expect_variation("vary = stream\tnccl.priority = 1, 2", POLICY_SECTION_STREAM, "nccl",
                     "priority", 2, "1", "2");
    expect_variation("vary = nccl.index = 1, 2", POLICY_SECTION_STREAM, "nccl", "index", 2, "1",
                     "2");
    expect_line_error("vary = nccl.priority = 1, 2", 8,
                      "vary: there are several \"nccl\" in this policy; say which, as in \"kernel "
                      "nccl.priority\"");
    expect_line_error("vary = kernal nccl.priority = 1, 2", 8,
                      "vary: \"kernal\" is not kernel, stream or partition, the kind of what is "
                      "varied; did you mean \"kernel\"?");
}

static void rule_has_to_be_there(void **state)
{
    (void)state;
    expect_line_error("vary = smal.ones.priority = 1, 2", 8,
                      "vary: there is no rule or partition \"smal.ones\" in this policy; did you "
                      "mean \"small.ones\"?");
    expect_line_error("vary = stream small.ones.priority = 1, 2", 15,
                      "vary: there is no stream \"small.ones\" in this policy");
    expect_line_error("vary = partition sid.sm_count = 1, 2", 18,
                      "vary: there is no partition \"sid\" in this policy; did you mean \"side\"?");
}

static void rule_that_could_not_be_read_is_not_missed(void **state)
{
    (void)state;
    expect_error("[kernal k]\npriority = 0\n[tune]\nvary = k.priority = 0, 1\n", 1, 2,
                 "unknown section \"kernal\"; did you mean \"kernel\"?");
}

static void key_has_to_be_one_of_its_section(void **state)
{
    (void)state;
    expect_line_error("vary = side.sm_cout = 1, 2", 13,
                      "unknown key \"sm_cout\" in [partition]; did you mean \"sm_count\"?");
    expect_line_error("vary = small.ones.sm_count = 1, 2", 19,
                      "sm_count cannot stand in [kernel], only in [partition]");
    expect_line_error("vary = kernel nccl.kind = created, legacy", 20,
                      "kind cannot stand in [kernel], only in [stream]");
}

static void values_have_to_be_right_for_the_key(void **state)
{
    (void)state;
    expect_line_error("vary = small.ones.mem_sync_domain = default,  remot", 47,
                      "mem_sync_domain: \"remot\" is not default, remote, leave or unset; did you "
                      "mean \"remote\"?");
    expect_line_error("vary = side.sm_count = 8, 2000", 27,
                      "sm_count: 2000 is out of range (1 to 1024)");
    expect_line_error("vary = stream nccl.priority = unset, 1", 31,
                      "priority: unset cannot stand in [stream]: there is nothing to take away "
                      "when a stream is created");
    expect_line_error("vary = stream nccl.partition = side, other", 38,
                      "partition: there is no [partition other] in this policy");
    expect_line_error("vary = kernel nccl.stream = nccl, other", 35,
                      "stream: there is no [stream other] in this policy");
    expect_line_error("vary = kernel nccl.name = a, [", 30,
                      "name: '[' without a closing ']' (write \\[ for the character itself)");
}

static void there_are_two_values_at_least_and_none_twice(void **state)
{
    (void)state;
    expect_line_error("vary = side.sm_count = 8", 23,
                      "vary: one value leaves no choice; give two or more with commas between "
                      "them");
    expect_line_error("vary = side.sm_count =", 23, "vary: a value is missing");
    expect_line_error("vary = side.sm_count = 8,", 26, "vary: a value is missing");
    expect_line_error("vary = side.sm_count = 8, 16, 8", 31,
                      "vary: the value \"8\" is given twice");
}

static void line_has_a_rule_a_key_and_values(void **state)
{
    (void)state;
    expect_line_error("vary = priority = 1, 2", 8,
                      "vary: \"priority\" is not RULE.KEY, as in \"vary = RULE.KEY = VALUE, "
                      "VALUE\"");
    expect_line_error("vary = small. = 1, 2", 8,
                      "vary: \"small.\" is not RULE.KEY, as in \"vary = RULE.KEY = VALUE, VALUE\"");
    expect_line_error("vary = small.ones.priority", 8,
                      "vary: \"small.ones.priority\" gives no values, as in \"vary = RULE.KEY = "
                      "VALUE, VALUE\"");
    expect_line_error("vary =", 7, "vary: the value is missing");
    expect_line_error("varry = side.sm_count = 1, 2", 1,
                      "unknown key \"varry\" in [tune]; did you mean \"vary\"?");
}

static void key_is_varied_once(void **state)
{
    (void)state;
    expect_error(RULES "vary = side.sm_count = 8, 16\nvary = nccl.index = 1, 2\n"
                       "vary = partition side.sm_count = 1, 2\n",
                 RULE_LINE + 2, 18,
                 "vary: side.sm_count is varied twice; the first time is in line 14");
}

static void section_is_there_once_and_has_no_name(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority = 0\n[tune]\nvary = k.priority = 0, 1\n[tune]\n", 5, 1,
                 "second [tune]; the first is in line 5");
    expect_error("[kernel k]\npriority = 0\n[tune all]\nvary = k.priority = 0, 1\n", 3, 7,
                 "[tune] takes no name");
    expect_warning("[kernel k]\npriority = 0\n[tune]\n", 3, 1, "[tune] varies nothing");
}

static void section_stands_anywhere_and_changes_nothing(void **state)
{
    struct policy *policy =
        expect_clean("[tune]\nvary = k.priority = 0, 1\n[kernel k]\npriority = 5\n");

    (void)state;
    assert_int_equal(policy->rule_count, 1);
    assert_int_equal(policy->rules[0].settings[POLICY_SETTING_PRIORITY].value.priority, 5);
    assert_int_equal(policy->variation_count, 1);
    policy_free(policy);
}

static void partition_that_is_only_tried_is_not_called_unused(void **state)
{
    struct policy *policy = expect_clean("[partition side]\nsm_count = 16\n"
                                         "[kernel k]\nname = x\npartition = leave\n"
                                         "[tune]\nvary = k.partition = leave, side\n");

    (void)state;
    policy_free(policy);
}

static void numbers_of_lines_and_values_are_bounded(void **state)
{
    struct policy_diagnostics diagnostics = {0};
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);

    (void)state;
    assert_non_null(stream);
    fprintf(stream, "%s", POLICY_HEADER);
    for (unsigned i = 0; i <= POLICY_VARIATION_LIMIT; i++) {
        fprintf(stream, "[kernel k%u]\nname = k%u\npriority = 0\n", i, i);
    }
    fprintf(stream, "[tune]\nvary = k0.priority = 0");
    for (unsigned i = 1; i <= POLICY_VARIATION_VALUE_LIMIT; i++) {
        fprintf(stream, ",%u", i);
    }
    for (unsigned i = 1; i <= POLICY_VARIATION_LIMIT; i++) {
        fprintf(stream, "\nvary = k%u.priority = 0, 1", i);
    }
    assert_int_equal(fclose(stream), 0);
    assert_null(policy_parse(text, length, "test.ini", &diagnostics));
    assert_int_equal(diagnostics.error_count, 2);
    assert_string_equal(diagnostics.items[0].message, "vary: more than 256 values");
    assert_string_equal(diagnostics.items[1].message, "vary: [tune] has at most 64 lines");
    policy_diagnostics_release(&diagnostics);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_of_a_rule_or_a_partition_is_varied),
        cmocka_unit_test(selectors_and_modifiers_are_varied_too),
        cmocka_unit_test(kind_is_needed_only_where_the_key_does_not_tell),
        cmocka_unit_test(rule_has_to_be_there),
        cmocka_unit_test(rule_that_could_not_be_read_is_not_missed),
        cmocka_unit_test(key_has_to_be_one_of_its_section),
        cmocka_unit_test(values_have_to_be_right_for_the_key),
        cmocka_unit_test(there_are_two_values_at_least_and_none_twice),
        cmocka_unit_test(line_has_a_rule_a_key_and_values),
        cmocka_unit_test(key_is_varied_once),
        cmocka_unit_test(section_is_there_once_and_has_no_name),
        cmocka_unit_test(section_stands_anywhere_and_changes_nothing),
        cmocka_unit_test(partition_that_is_only_tried_is_not_called_unused),
        cmocka_unit_test(numbers_of_lines_and_values_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
