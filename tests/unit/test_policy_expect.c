/* SPDX-License-Identifier: Apache-2.0 */
/* [expect]: conditions on what rules count, and how they are judged by a report. */
#include "test_policy_support.h"

#include <jansson.h>

#include "decide/expect.h"
#include "policy/expect.h"

/* The rules of which [expect] speaks, and its header; the next line is LINE of the body. */
#define RULES                                                                                      \
    "[kernel small]\nname = s\npriority = 0\n"                                                     \
    "[kernel both]\nname = b\npriority = 0\n"                                                      \
    "[stream both]\npriority = 0\n"                                                                \
    "[kernel a:b]\nname = c\npriority = 0\nrank = 1..2\n"                                          \
    "[expect]\n"
#define LINE 14u

static struct policy *with_lines(const char *lines)
{
    char body[2000];

    snprintf(body, sizeof body, "%s%s\n", RULES, lines);
    return expect_clean(body);
}

static void expect_condition(const struct policy *policy, size_t i, const char *text)
{
    char found[POLICY_EXPECTATION_TEXT_SIZE];

    assert_true(i < policy->expectation_count);
    policy_expectation_text(policy, &policy->expectations[i], found, sizeof found);
    assert_string_equal(found, text);
}

static void expect_line_error(const char *line, unsigned column, const char *message)
{
    char body[2000];

    snprintf(body, sizeof body, "%s%s\n", RULES, line);
    expect_error(body, LINE, column, message);
}

static void expect_line_warning(const char *line, unsigned column, const char *message)
{
    char body[2000];

    snprintf(body, sizeof body, "%s%s\n", RULES, line);
    expect_warning(body, LINE, column, message);
}

static void lines_hold_conditions_of_a_rule(void **state)
{
    struct policy *policy = with_lines("rule small: launches >= 1, refused = 0 ; comment\n"
                                       "\n# comment\n"
                                       "  kernel both :applied<=3,kept != 2\n"
                                       "stream both: streams > 1\n"
                                       "rule a:b: replayed < 7");

    (void)state;
    assert_int_equal(policy->expectation_count, 6);
    expect_condition(policy, 0, "kernel small: launches >= 1");
    expect_condition(policy, 1, "kernel small: refused = 0");
    expect_condition(policy, 2, "kernel both: applied <= 3");
    expect_condition(policy, 3, "kernel both: kept != 2");
    expect_condition(policy, 4, "stream both: streams > 1");
    expect_condition(policy, 5, "kernel a:b: replayed < 7");
    assert_int_equal(policy->expectations[1].place.line, POLICY_HEADER_LINES + LINE);
    assert_int_equal(policy->expectations[1].place.column, 28);
    policy_free(policy);
}

static void other_sections_may_follow(void **state)
{
    struct policy *policy = expect_clean("[expect]\nrule k: launches >= 1\n"
                                         "[kernel k]\npriority = 0\n");

    (void)state;
    assert_int_equal(policy->expectation_count, 1);
    assert_int_equal(policy->rule_count, 1);
    policy_free(policy);
}

static void rule_has_to_be_there_and_the_only_one(void **state)
{
    (void)state;
    expect_line_error("rule smal: launches > 0", 6,
                      "there is no rule \"smal\" in this policy; did you mean \"small\"?");
    expect_line_error("stream small: streams > 0", 8,
                      "there is no stream rule \"small\" in this policy");
    expect_line_error("rule both: launches > 0", 6,
                      "there are a kernel rule and a stream rule \"both\"; say which, as in "
                      "\"kernel both: ...\"");
}

#define FORM ", as in \"rule NAME: launches >= 1, refused = 0\""

static void line_has_its_form(void **state)
{
    (void)state;
    expect_line_error("small launches > 0", 1,
                      "\"small launches > 0\" has no colon after a rule's name" FORM);
    expect_line_error("small: launches > 0", 1, "\"small\" is not rule, kernel or stream" FORM);
    expect_line_error("kernl small: launches > 0", 1,
                      "\"kernl\" is not rule, kernel or stream" FORM "; did you mean \"kernel\"?");
    expect_line_error("rule : launches > 0", 5, "the rule's name is missing" FORM);
    expect_line_error("rule small:", 11, "nothing is expected after the colon" FORM);
    expect_line_error("rule small: launches > 0,", 26, "a condition is missing" FORM);
    expect_line_error("rule small: launches", 13,
                      "\"launches\" is no condition with =, !=, <, <=, > or >=" FORM);
    expect_line_error("rule small: launches >", 23, "a number is missing" FORM);
}

static void numbers_are_whole_and_not_negative(void **state)
{
    (void)state;
    expect_line_error("rule small: launches > -1", 24, "\"-1\" is not a whole number from 0");
    expect_line_error("rule small: launches == 1", 23, "\"= 1\" is not a whole number from 0");
    expect_line_error("rule small: launches > 9223372036854775808", 24,
                      "\"9223372036854775808\" is too large a number");
    policy_free(with_lines("rule small: launches < 9223372036854775807"));
}

static void quantity_is_one_that_the_rule_has(void **state)
{
    (void)state;
    expect_line_error("rule small: launchs > 0", 13,
                      "\"launchs\" is nothing that is counted: launches, eager, captured, node, "
                      "replayed, kernels, streams, applied, already_so, kept or refused; did you "
                      "mean \"launches\"?");
    expect_line_error("rule small: streams > 0", 13, "streams: a kernel rule has none");
}

static void conditions_that_cannot_hold_are_errors(void **state)
{
    (void)state;
    expect_line_error("rule small: launches < 0", 13,
                      "no count is less than 0: this can never hold");
    expect_line_error("rule small: launches > 5, launches <= 5", 27,
                      "launches: this and the condition in line 16 before it can never both hold");
    policy_free(with_lines("rule small: launches > 5, launches <= 6, applied = 0"));
}

static void conditions_that_say_nothing_are_warned_of(void **state)
{
    (void)state;
    expect_line_warning("rule small: launches >= 0", 13,
                        "launches: every count is at least 0: this says nothing");
    expect_line_warning("stream both: launches >= 1", 14,
                        "launches: [stream both] sets its streams' attributes when they are "
                        "created, and launches on them are not counted for it; did you mean "
                        "\"streams\"?");
    expect_warning("[kernel k]\nfinal = yes\n[expect]\nrule k: launches > 0\n", 4, 9,
                   "launches: [kernel k] has no setting, so this stays 0");
    expect_warning("[expect]\n", 1, 1, "[expect] expects nothing");
}

static void section_is_there_once_without_a_name(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority = 0\n[expect]\n[expect]\nrule k: kept = 0\n", 4, 1,
                 "second [expect]; the first is in line 5");
    expect_error("[kernel k]\npriority = 0\n[expect k]\nrule k: kept = 0\n", 3, 9,
                 "[expect] takes no name");
}

static void every_comparison_holds_as_it_says(void **state)
{
    static const struct {
        enum policy_comparison comparison;
        bool below, equal, above; /* of counts 4, 5, 6 with 5 */
    } expected[] = {
        {POLICY_COMPARISON_EQUAL, false, true, false},
        {POLICY_COMPARISON_NOT_EQUAL, true, false, true},
        {POLICY_COMPARISON_LESS, true, false, false},
        {POLICY_COMPARISON_AT_MOST, true, true, false},
        {POLICY_COMPARISON_MORE, false, false, true},
        {POLICY_COMPARISON_AT_LEAST, false, true, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const struct policy_expectation expectation = {.comparison = expected[i].comparison,
                                                       .number = 5};

        assert_int_equal(policy_expectation_holds(&expectation, 4), expected[i].below);
        assert_int_equal(policy_expectation_holds(&expectation, 5), expected[i].equal);
        assert_int_equal(policy_expectation_holds(&expectation, 6), expected[i].above);
    }
}

/* ---- Judged by a report ---- */

/* Every number is another one. */
static const char report_text[] =
    "{\"facts\": {\"job\": {\"rank\": \"2\", \"host\": \"h\"}}, \"rules\": ["
    "{\"section\": \"stream\", \"name\": \"both\", \"launches\": 1000, \"kernels\": 0,"
    " \"launches_by_kind\": {\"eager\": 1000}, \"applied\": 1, \"already_so\": 2, \"kept\": 3,"
    " \"refused\": {}, \"refused_total\": 4, \"on_streams\": {\"streams\": 9, \"applied\": 10,"
    " \"already_so\": 20, \"kept\": 30, \"refused\": {}, \"refused_total\": 40}},"
    "{\"section\": \"kernel\", \"name\": \"both\", \"launches\": 15, \"kernels\": 7,"
    " \"launches_by_kind\": {\"eager\": 1, \"captured\": 2, \"node\": 4, \"replayed\": 8},"
    " \"applied\": 11, \"already_so\": 12, \"kept\": 13, \"refused\": {\"a\": 14, \"b\": 14},"
    " \"refused_total\": 14, \"on_streams\": {\"streams\": 0}},"
    "{\"section\": \"kernel\", \"name\": \"both\", \"launches\": 100}]}";

static void expect_count(const char *line, bool asked, bool held, int64_t count)
{
    struct policy *policy = with_lines(line);
    json_t *report = json_loads(report_text, 0, NULL);
    struct decide_judgement judgement;

    assert_non_null(report);
    judgement = decide_expect_judge(policy, &policy->expectations[0], report);
    assert_int_equal(judgement.asked, asked);
    assert_int_equal(judgement.held, held);
    assert_int_equal(judgement.count, count);
    json_decref(report);
    policy_free(policy);
}

static void each_quantity_is_taken_from_its_place_in_the_report(void **state)
{
    (void)state;
    expect_count("kernel both: eager = 1", true, true, 1);
    expect_count("kernel both: captured = 2", true, true, 2);
    expect_count("kernel both: node = 4", true, true, 4);
    expect_count("kernel both: replayed = 8", true, true, 8);
    expect_count("kernel both: kernels = 7", true, true, 7);
    expect_count("kernel both: applied = 11", true, true, 11);
    expect_count("kernel both: already_so = 12", true, true, 12);
    expect_count("kernel both: kept = 13", true, true, 13);
    expect_count("kernel both: refused = 14", true, true, 14);
    expect_count("stream both: streams = 9", true, true, 9);
}

static void launches_and_streams_of_a_stream_rule_count_together(void **state)
{
    (void)state;
    expect_count("stream both: applied = 11", true, true, 11);
    expect_count("stream both: already_so = 22", true, true, 22);
    expect_count("stream both: kept = 33", true, true, 33);
    expect_count("stream both: refused = 0", true, false, 44);
}

static void rules_of_one_name_count_together(void **state)
{
    (void)state;
    expect_count("kernel both: launches = 115", true, true, 115);
}

static void rule_that_the_report_lacks_counts_nothing(void **state)
{
    (void)state;
    expect_count("kernel small: launches >= 1", true, false, 0);
}

static void process_that_the_rule_leaves_out_is_not_asked(void **state)
{
    struct policy *policy = with_lines("rule a:b: launches >= 1");
    json_t *report = json_loads(report_text, 0, NULL), *member;
    struct decide_judgement judgement;

    (void)state;
    expect_count("rule a:b: launches >= 1", true, false, 0); /* rank 2 of 1..2 */
    json_object_set_new(json_object_get(json_object_get(report, "facts"), "job"), "rank",
                        json_string("3"));
    judgement = decide_expect_judge(policy, &policy->expectations[0], report);
    assert_false(judgement.asked);
    member = decide_expect_json(policy, &policy->expectations[0], &judgement);
    assert_true(json_is_null(json_object_get(member, "held")));
    json_decref(member);
    json_object_del(json_object_get(json_object_get(report, "facts"), "job"), "rank");
    assert_false(decide_expect_judge(policy, &policy->expectations[0], report).asked);
    json_decref(report);
    policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_hold_conditions_of_a_rule),
        cmocka_unit_test(other_sections_may_follow),
        cmocka_unit_test(rule_has_to_be_there_and_the_only_one),
        cmocka_unit_test(line_has_its_form),
        cmocka_unit_test(numbers_are_whole_and_not_negative),
        cmocka_unit_test(quantity_is_one_that_the_rule_has),
        cmocka_unit_test(conditions_that_cannot_hold_are_errors),
        cmocka_unit_test(conditions_that_say_nothing_are_warned_of),
        cmocka_unit_test(section_is_there_once_without_a_name),
        cmocka_unit_test(every_comparison_holds_as_it_says),
        cmocka_unit_test(each_quantity_is_taken_from_its_place_in_the_report),
        cmocka_unit_test(launches_and_streams_of_a_stream_rule_count_together),
        cmocka_unit_test(rules_of_one_name_count_together),
        cmocka_unit_test(rule_that_the_report_lacks_counts_nothing),
        cmocka_unit_test(process_that_the_rule_leaves_out_is_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
