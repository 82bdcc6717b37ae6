/* SPDX-License-Identifier: Apache-2.0 */
#include "test_report_support.h"

#include "report/template.h"

static char out[256], error[512];

static bool expand(const char *template, const char *job, const char *rank)
{
    const struct report_template_values values = {
        .host = "node1.site", .pid = 4711, .job = job, .rank = rank};
    return report_expand_template(template, &values, out, sizeof out, error, sizeof error);
}

static void test_directives_stand_for_their_values(void **state)
{
    (void)state;
    assert_true(expand("/tmp/%h-%p-%j-%r.json", "17", "3"));
    assert_string_equal(out, "/tmp/node1.site-4711-17-3.json");
    assert_true(expand("plain", NULL, NULL));
    assert_string_equal(out, "plain");
    assert_true(expand("100%%%p", NULL, NULL));
    assert_string_equal(out, "100%4711");
}

static void test_missing_job_and_rank_have_names(void **state)
{
    (void)state;
    assert_true(expand("%j.%r", NULL, ""));
    assert_string_equal(out, "nojob.norank");
}

static void test_own_host_and_pid_are_the_defaults(void **state)
{
    (void)state;
    char wanted[512], host[256] = "";
    const struct report_template_values values = {0};
    gethostname(host, sizeof host - 1);
    snprintf(wanted, sizeof wanted, "%s.%ld", host, (long)getpid());
    assert_true(report_expand_template("%h.%p", &values, out, sizeof out, error, sizeof error));
    assert_string_equal(out, wanted);
}

static void test_value_never_leads_to_another_folder(void **state)
{
    (void)state;
    assert_true(expand("a/%j", "../../etc/passwd", NULL));
    assert_string_equal(out, "a/_._.._etc_passwd");
    assert_true(expand("a/%j", "..", NULL));
    assert_string_equal(out, "a/_.");
    assert_true(expand("%j", "%p\n 1", NULL)); /* nor is it expanded again */
    assert_string_equal(out, "_p__1");
}

static void test_wrong_templates_are_refused_with_a_reason(void **state)
{
    (void)state;
    assert_false(expand("", NULL, NULL));
    assert_non_null(strstr(error, "is empty"));
    assert_false(expand("a-%x", NULL, NULL));
    assert_non_null(strstr(error, "'a-%x'"));
    assert_non_null(strstr(error, "none of %h (host)"));
    assert_false(expand("a-%", NULL, NULL));
    assert_non_null(strstr(error, "single %"));
    assert_string_equal(out, "");
}

static void test_text_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    const struct report_template_values values = {.pid = 1234};
    assert_true(report_expand_template("ab%p", &values, out, 7, error, sizeof error));
    assert_string_equal(out, "ab1234");
    assert_false(report_expand_template("ab%p", &values, out, 6, error, sizeof error));
    assert_string_equal(out, "");
    assert_non_null(strstr(error, "too long"));
    assert_false(report_expand_template("a", &values, out, 0, error, sizeof error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_directives_stand_for_their_values),
        cmocka_unit_test(test_missing_job_and_rank_have_names),
        cmocka_unit_test(test_own_host_and_pid_are_the_defaults),
        cmocka_unit_test(test_value_never_leads_to_another_folder),
        cmocka_unit_test(test_wrong_templates_are_refused_with_a_reason),
        cmocka_unit_test(test_text_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
