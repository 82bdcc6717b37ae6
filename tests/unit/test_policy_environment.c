/* SPDX-License-Identifier: Apache-2.0 */
/* [env]: variables of the environment, and when they are to be set. */
#include "test_policy_support.h"

#include "policy/environment.h"

static void variables_are_read_with_their_values(void **state)
{
    struct policy *policy = expect_clean("[env]\n"
                                         "CUDA_MODULE_LOADING = EAGER ; comment\n"
                                         "  _x1=a = b:c\n"
                                         "EMPTY = \"\"\n"
                                         "QUOTED = \" \"\"q\"\" ; no comment \" # comment\n"
                                         "[kernel k]\npriority = 0\n"
                                         "[env replace]\n"
                                         "NCCL_MAX_CTAS = 4\n");
    static const char *const expected[][2] = {{"CUDA_MODULE_LOADING", "EAGER"},
                                              {"_x1", "a = b:c"},
                                              {"EMPTY", ""},
                                              {"QUOTED", " \"q\" ; no comment "},
                                              {"NCCL_MAX_CTAS", "4"}};

    (void)state;
    assert_int_equal(policy->variable_count, 5);
    for (size_t i = 0; i < policy->variable_count; i++) {
        assert_string_equal(policy->variables[i].name, expected[i][0]);
        assert_string_equal(policy->variables[i].value, expected[i][1]);
        assert_int_equal(policy->variables[i].replace, i == 4);
    }
    policy_free(policy);
}

static void section_is_env_or_env_replace_each_once(void **state)
{
    (void)state;
    expect_error("[env replce]\nA = 1\n", 1, 6,
                 "\"replce\": the section is [env] or [env replace]; did you mean \"replace\"?");
    expect_error("[env]\nA = 1\n[env]\nB = 1\n", 3, 1, "second [env]; the first is in line 3");
    expect_error("[env replace]\n[env]\n[env replace]\n", 3, 1,
                 "second [env replace]; the first is in line 3");
}

static void name_is_that_of_a_variable(void **state)
{
    (void)state;
    expect_error("[env]\n1A = 1\n", 2, 1,
                 "\"1A\" is not the name of a variable: letters, digits and _, no digit first");
    expect_error("[env]\nA-B = 1\n", 2, 1,
                 "\"A-B\" is not the name of a variable: letters, digits and _, no digit first");
    expect_error("[env]\nA.B = 1\n", 2, 1,
                 "\"A.B\" is not a key: keys have letters, digits and _ only");
}

static void variable_is_given_once_in_both_sections_together(void **state)
{
    (void)state;
    expect_error("[env]\nA = 1\nA = 1\n", 3, 1, "A is given twice; the first is in line 4");
    expect_error("[env]\nA = 1\n[env replace]\nA = 2\n", 4, 1,
                 "A is given twice; the first is in line 4");
}

static void value_is_there_and_printable(void **state)
{
    (void)state;
    expect_error("[env]\nA =\n", 2, 4, "A: the value is missing; \"\" is the empty one");
    expect_error("[env]\nA = a\tb\n", 2, 5, "A: there is a tab in the value");
    expect_error("[env]\nA = a\001b\n", 2, 6, "control character (byte 0x01) in the value");
}

static void value_has_a_limit(void **state)
{
    char body[POLICY_VARIABLE_VALUE_LIMIT + 100];
    int start = snprintf(body, sizeof body, "[env]\nA = ");

    (void)state;
    memset(body + start, 'x', POLICY_VARIABLE_VALUE_LIMIT + 1);
    body[start + POLICY_VARIABLE_VALUE_LIMIT] = '\0';
    policy_free(expect_clean(body));
    body[start + POLICY_VARIABLE_VALUE_LIMIT] = 'x';
    body[start + POLICY_VARIABLE_VALUE_LIMIT + 1] = '\0';
    expect_error(body, 2, 5, "A: the value has 4001 bytes; at most 4000 are allowed");
}

static void expect_refused(const char *section, const char *name, const char *reason)
{
    char body[200], message[300];

    snprintf(body, sizeof body, "%s\n%s = 1\n", section, name);
    snprintf(message, sizeof message, "%s cannot be set here: %s", name, reason);
    expect_error(body, 2, 1, message);
}

static void what_a_policy_must_not_set_is_refused_with_the_reason(void **state)
{
    static const char *const names[] = {
        "LD_PRELOAD",     "LD_LIBRARY_PATH", "LD_",
        "GLIBC_TUNABLES", "CUDAPOLICY_FILE", "PATH",
        "HOME",           "PYTHONPATH",      "BASH_ENV",
        "RANK",           "SLURM_JOB_ID",    "CUDA_INJECTION64_PATH"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *fault = policy_variable_fault(names[i], false);

        assert_non_null(fault);
        expect_refused("[env]", names[i], fault);
        expect_refused("[env replace]", names[i], fault);
    }
    expect_refused("[env]", "LD_PRELOAD", "it says what code the loader puts into a program");
    assert_null(policy_variable_fault("LDX", false));
    assert_null(policy_variable_fault("PATHS", false));
}

static void devices_are_given_only_where_there_is_no_choice(void **state)
{
    (void)state;
    policy_free(expect_clean("[env]\nCUDA_VISIBLE_DEVICES = 0\n"));
    expect_refused("[env replace]", "CUDA_VISIBLE_DEVICES",
                   "which devices a process has is for its launcher to say; [env] may give a value "
                   "where there is none");
}

static void misspelt_well_known_name_gets_a_warning(void **state)
{
    (void)state;
    expect_warning("[env]\nCUDA_DEVICE_MAX_CONECTIONS = 1\n", 2, 1,
                   "CUDA_DEVICE_MAX_CONECTIONS is no variable of CUDA or NCCL that is known here; "
                   "did you mean \"CUDA_DEVICE_MAX_CONNECTIONS\"?");
    expect_warning("[env]\nnccl_debug = INFO\n", 2, 1,
                   "nccl_debug is no variable of CUDA or NCCL that is known here; did you mean "
                   "\"NCCL_DEBUG\"?");
    assert_null(policy_variable_meant("NCCL_MIN_CTAS"));
    assert_null(policy_variable_meant("NCCL_MAX_CTAS"));
    assert_null(policy_variable_meant("NCCL_SOMETHING_NEW"));
    assert_null(policy_variable_meant("OMP_NUM_THREADS"));
    assert_null(policy_variable_meant(""));
}

static void value_of_the_user_stays_unless_it_is_to_be_replaced(void **state)
{
    const struct policy_variable keep = {.name = "A", .value = "1"};
    const struct policy_variable replace = {.name = "A", .value = "1", .replace = true};

    (void)state;
    assert_true(policy_variable_is_to_be_set(&keep, NULL));
    assert_false(policy_variable_is_to_be_set(&keep, "2"));
    assert_false(policy_variable_is_to_be_set(&keep, ""));
    assert_true(policy_variable_is_to_be_set(&replace, NULL));
    assert_true(policy_variable_is_to_be_set(&replace, "2"));
    assert_false(policy_variable_is_to_be_set(&replace, "1"));
    assert_int_equal(policy_variable_state(&keep, "1"), POLICY_VARIABLE_APPLIED);
    assert_int_equal(policy_variable_state(&keep, "2"), POLICY_VARIABLE_KEPT);
    assert_int_equal(policy_variable_state(&replace, "2"), POLICY_VARIABLE_NOT_REPLACED);
    assert_int_equal(policy_variable_state(&replace, NULL), POLICY_VARIABLE_MISSING);
}

static void policy_that_only_observes_sets_nothing(void **state)
{
    const struct policy enforcing = {.mode = POLICY_MODE_ENFORCE, .mode_given = true};
    const struct policy observing = {.mode = POLICY_MODE_OBSERVE, .mode_given = true};

    (void)state;
    assert_true(policy_applies_variables(&enforcing, NULL));
    assert_true(policy_applies_variables(&enforcing, ""));
    assert_false(policy_applies_variables(&enforcing, "observe"));
    assert_false(policy_applies_variables(&enforcing, "off"));
    assert_false(policy_applies_variables(&observing, NULL));
    assert_true(policy_applies_variables(&observing, "enforce"));
}

static void same_variables_are_the_same_in_any_order(void **state)
{
    struct policy *one = expect_clean("[env]\nA = 1\nB = 2\n");
    struct policy *other = expect_clean("[env]\nB = 2\nA = 1\n");
    struct policy *replacing = expect_clean("[env]\nA = 1\n[env replace]\nB = 2\n");
    struct policy *less = expect_clean("[env]\nA = 1\n");
    struct policy *another = expect_clean("[env]\nA = 1\nB = 3\n");

    (void)state;
    assert_true(policy_variables_same(one, other));
    assert_false(policy_variables_same(one, replacing));
    assert_false(policy_variables_same(one, less));
    assert_false(policy_variables_same(less, one));
    assert_false(policy_variables_same(one, another));
    policy_free(one);
    policy_free(other);
    policy_free(replacing);
    policy_free(less);
    policy_free(another);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_are_read_with_their_values),
        cmocka_unit_test(section_is_env_or_env_replace_each_once),
        cmocka_unit_test(name_is_that_of_a_variable),
        cmocka_unit_test(variable_is_given_once_in_both_sections_together),
        cmocka_unit_test(value_is_there_and_printable),
        cmocka_unit_test(value_has_a_limit),
        cmocka_unit_test(what_a_policy_must_not_set_is_refused_with_the_reason),
        cmocka_unit_test(devices_are_given_only_where_there_is_no_choice),
        cmocka_unit_test(misspelt_well_known_name_gets_a_warning),
        cmocka_unit_test(value_of_the_user_stays_unless_it_is_to_be_replaced),
        cmocka_unit_test(policy_that_only_observes_sets_nothing),
        cmocka_unit_test(same_variables_are_the_same_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
