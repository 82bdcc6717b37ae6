/* SPDX-License-Identifier: Apache-2.0 */
#include "test_report_support.h"

#include "report/summary.h"

static const char whole_report[] =
    "{'format': 'cudapolicy report', 'schema': 1, 'complete': true, 'mode': 'enforce',"
    " 'process': {'host': 'node1', 'pid': 17, 'argv0': './app', 'running': false},"
    " 'launches': 1234567, 'kernels': [{}, {}],"
    " 'rules': [{'section': 'kernel', 'name': 'small', 'line': 3, 'matched': true, 'kernels': 2,"
    "  'launches': 1200000, 'applied': 1199000, 'already_so': 0, 'kept': 10,"
    "  'refused': {'graph': 900, 'one domain': 90}},"
    " {'section': 'stream', 'name': 'b\xc3\xa4"
    "ckground', 'line': 9, 'matched': true, 'kernels': 0,"
    "  'launches': 0, 'on_streams': {'streams': 3, 'applied': 3, 'refused': {}}},"
    " {'section': 'kernel', 'name': 'typo', 'line': 20, 'matched': false, 'kernels': 0,"
    "  'launches': 0}]}";

static json_t *parse(const char *text_with_quotes)
{
    char *copy = strdup(text_with_quotes);
    for (char *next = copy; *next != '\0'; next++)
        *next = *next == '\'' ? '"' : *next;
    json_t *report = json_loads(copy, 0, NULL);
    free(copy);
    assert_non_null(report);
    return report;
}

static char printed[65536];

static const char *print(const json_t *report, report_summary_hint hint)
{
    FILE *stream = fmemopen(printed, sizeof printed, "w");
    assert_non_null(stream);
    assert_true(report_summary_print(report, stream, hint, NULL));
    fclose(stream);
    return printed;
}

static bool nearest(const json_t *report, const json_t *rule, char *hint, size_t size,
                    void *context)
{
    (void)report;
    (void)context;
    const char *name = json_string_value(json_object_get(rule, "name"));
    snprintf(hint, size, "nearest kernels of %s:\033[2J a, b", name == NULL ? "" : name);
    return true;
}

static void test_table_lists_rules_and_those_that_matched_nothing(void **state)
{
    (void)state;
    json_t *report = parse(whole_report);
    assert_string_equal(
        print(report, NULL),
        "cudapolicy: ./app (pid 17 on node1), mode enforce: 1,234,567 launches of 2 kernels\n"
        "  rule               kernels   launches    applied  already so  kept  refused\n"
        "  kernel small             2  1,200,000  1,199,000           0    10  900 (graph), 90 "
        "(one domain)\n"
        "  stream b\xc3\xa4"
        "ckground        -  3 streams          3           0     0  0\n"
        "  matched nothing: kernel typo (line 20)\n");
    json_decref(report);
}

static void test_hint_follows_a_rule_that_matched_nothing_without_control_characters(void **state)
{
    (void)state;
    json_t *report = parse(whole_report);
    assert_non_null(strstr(print(report, nearest),
                           "kernel typo (line 20); nearest kernels of typo:?[2J a, b\n"));
    json_decref(report);
}

static void test_unfinished_reports_say_so(void **state)
{
    (void)state;
    json_t *report = parse(whole_report);
    json_object_set_new(report, "complete", json_false());
    assert_non_null(strstr(print(report, NULL), "2 kernels (incomplete: "));
    json_object_set_new(json_object_get(report, "process"), "running", json_true());
    assert_non_null(strstr(print(report, NULL), "2 kernels (still running)\n"));
    json_decref(report);
}

static void test_report_of_other_types_is_survived(void **state)
{
    (void)state;
    static const char *const reports[] = {
        "{}", "[]", "{'rules': 3}", "{'rules': [3, null, {}, {'name': 4, 'refused': [1]}]}",
        "{'rules': [{'launches': 1, 'refused': {'a': 'b', '': 2}, 'name': '\\n'}], 'process': 1}"};
    for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++) {
        json_t *report = parse(reports[i]);
        print(report, nearest);
        json_decref(report);
    }
    char *name = malloc(3000);
    memset(name, 'n', 2999);
    name[2999] = '\0';
    memcpy(name + 505, "\xf0\x9f\x98\x80", 4);
    json_t *report = json_pack("{s:[{s:i, s:s, s:s}]}", "rules", "launches", 1, "section", "kernel",
                               "name", name);
    assert_non_null(strstr(print(report, NULL), "nnn..."));
    json_decref(report);
    free(name);
}

static void test_only_reports_of_this_schema_are_loaded(void **state)
{
    (void)state;
    static const struct {
        const char *content, *error;
    } files[] = {
        {"{\"format\": \"cudapolicy report\", \"schema\": 2}", "schema 2, this is schema 1"},
        {"{\"schema\": 1}", "not a report"},
        {"[]", "not a report"},
        {"{\"format\":", ":1:"},
        {"", ": "},
    };
    char error[512];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        FILE *stream = fopen(in_folder("file"), "w");
        fputs(files[i].content, stream);
        fclose(stream);
        assert_null(report_load(in_folder("file"), error, sizeof error));
        assert_non_null(strstr(error, files[i].error));
    }
    assert_null(report_load(in_folder("nowhere"), error, sizeof error));
    FILE *stream = fopen(in_folder("file"), "w");
    fputs("{\"format\": \"cudapolicy report\", \"schema\": 1}", stream);
    fclose(stream);
    json_t *report = report_load(in_folder("file"), error, sizeof error);
    assert_non_null(report);
    json_decref(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_lists_rules_and_those_that_matched_nothing),
        cmocka_unit_test(test_hint_follows_a_rule_that_matched_nothing_without_control_characters),
        cmocka_unit_test(test_unfinished_reports_say_so),
        cmocka_unit_test(test_report_of_other_types_is_survived),
        cmocka_unit_test_setup_teardown(test_only_reports_of_this_schema_are_loaded, make_folder,
                                        remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
