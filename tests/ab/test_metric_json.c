/* SPDX-License-Identifier: Apache-2.0 */

/* Metrics in JSON documents: paths, documents among other output, what stands there. */

#include "metric_support.h"

#include <math.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "metric.h"

static char error[1024];
static struct ab_run_value value;

static bool read_json(const char *option, enum ab_across across)
{
    struct ab_run_files files = {.output = output,
                                 .errors = errors,
                                 .folder = folder,
                                 .arm = "fast",
                                 .block = 12,
                                 .position = 3};
    struct ab_metric metric;
    bool read;

    error[0] = '\0';
    if (!ab_metric_json(&metric, option, error, sizeof error)) {
        fail_msg("%s", error);
    }
    metric.skip = 0;
    metric.across = across;
    read = ab_metric_read(&metric, &files, &value, error, sizeof error);
    ab_metric_release(&metric);
    return read;
}

static void assert_value(const char *option, double expected)
{
    if (!read_json(option, AB_ACROSS_MAX)) {
        fail_msg("%s: %s", option, error);
    }
    assert_true(value.value == expected);
}

static void assert_none(const char *option, const char *part)
{
    if (read_json(option, AB_ACROSS_MAX)) {
        fail_msg("%s: %g", option, value.value);
    }
    assert_true(isnan(value.value));
    assert_contains(error, part);
}

/* ---- Options -------------------------------------------------------------------------------- */

static void options_keep_the_path_as_it_was_given(void **state)
{
    struct ab_metric metric;

    (void)state;
    assert_true(ab_metric_json(&metric, "+speed[GB/s]=out.json:/a/0/b", error, sizeof error));
    assert_string_equal(metric.definition, "out.json:/a/0/b");
    assert_string_equal(metric.name, "speed");
    assert_string_equal(metric.unit, "GB/s");
    assert_int_equal(metric.source, AB_METRIC_JSON);
    assert_int_equal(metric.direction, AB_MORE_IS_BETTER);
    ab_metric_release(&metric);
}

static void assert_refused(const char *text, const char *part)
{
    struct ab_metric metric;

    if (ab_metric_json(&metric, text, error, sizeof error)) {
        fail_msg("'%s' was taken", text);
    }
    assert_contains(error, part);
}

static void wrong_paths_are_refused_with_their_place(void **state)
{
    char deep[400] = "t=";

    (void)state;
    assert_refused("t=", "is empty");
    assert_refused("t=file:", "is empty");
    assert_refused("t=a..b", "'a..b' is wrong at offset 2: a key is missing");
    assert_refused("t=a.", "offset 2: a key is missing");
    assert_refused("t=a.[0]", "offset 2: a key is missing");
    assert_refused("t=a[x]", "offset 1: in brackets");
    assert_refused("t=a[", "offset 1: in brackets");
    assert_refused("t=a[-1]", "offset 1: in brackets");
    assert_refused("t=a[99999999999]", "offset 1: in brackets");
    assert_refused("t=a[0]b", "offset 4: '.' or '['");
    assert_refused("t=a]", "']' without");
    assert_refused("t=/a~2", "offset 2: '~'");
    assert_refused("t=/a~", "offset 2: '~'");
    for (size_t i = 0; i < 120; i++) {
        strcat(deep, "/a");
    }
    assert_refused(deep, "too deep");
    assert_refused("no name", "offset 2");
}

/* ---- Paths ---------------------------------------------------------------------------------- */

static void pointers_and_dotted_paths_lead_to_the_same_place(void **state)
{
    static const char *const paths[] = {
        "t=/runs/1/time", "t=runs[1].time", "t=runs.1.time", "t=.runs[1].time", "t=:/runs/1/time",
    };

    (void)state;
    write_text(output, "{\"runs\": [{\"time\": 3}, {\"time\": 4.5}]}");
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        assert_value(paths[i], 4.5);
    }
}

static void pointers_reach_keys_of_any_kind(void **state)
{
    (void)state;
    write_text(output, "{\"a/b\": 1, \"m~n\": 2, \"\": 3, \"x.y[0]\": 4, \"~1\": 5, \"7\": 6, "
                       "\"p:q\": 7}");
    assert_value("t=/a~1b", 1);
    assert_value("t=/m~0n", 2);
    assert_value("t=/", 3);
    assert_value("t=/x.y[0]", 4);
    assert_value("t=/~01", 5);
    assert_value("t=7", 6);
    assert_value("t=:p:q", 7);
}

static void a_star_stands_for_all_elements_and_members(void **state)
{
    (void)state;
    write_text(output, "{\"a\": [{\"t\": 1}, {\"t\": 5}, {\"t\": 3}], \"r\": {\"0\": [1, 2, 3], "
                       "\"1\": [7, 8, 9]}}");
    assert_value("t=a[*].t", 3);
    assert_int_equal(value.count, 3);
    assert_value("t=r[*]", 8); /* the slower rank's median */
    assert_none("t=a[*].t[*]", "no '*' at /a/0/t: there is the number 1");
    assert_none("t=a[*].u", "no 'u' at /a/0: there is an object with \"t\"");
}

static void a_path_that_leads_nowhere_tells_how_far_it_led(void **state)
{
    (void)state;
    write_text(output, "{\"a\": {\"b\": [1, 2], \"c\": \"x\\u001by\", \"n\": null, \"e\": {}, "
                       "\"t\": true}}");
    assert_none("t=z", "standard output: no 'z' at the top: there is an object with \"a\"");
    assert_none("t=a.z", "no 'z' at /a: there is an object with \"b\", \"c\", \"n\"");
    assert_none("t=a.b[2]", "no '2' at /a/b: there is an array of 2");
    assert_none("t=a.b.01", "no '01' at /a/b");
    assert_none("t=/a/b/-", "no '-' at /a/b");
    assert_none("t=a.b.0.x", "no 'x' at /a/b/0: there is the number 1");
    assert_none("t=a[0]", "no '0' at /a: there is an object");
    write_text(output, "{\"a\": {\"0\": 5}}");
    assert_value("t=a.0", 5);
    assert_none("t=a[0]", "no '0' at /a: there is an object with \"0\"");
    write_text(output, "{\"a\": {\"b\": [1, 2], \"c\": \"x\\u001by\", \"n\": null, \"e\": {}, "
                       "\"t\": true}}");
    assert_none("t=a.c.x", "no 'x' at /a/c: there is the text \"x\\x1by\"");
    assert_none("t=a.c", "at /a/c there is the text \"x\\x1by\", no number");
    assert_none("t=a.n", "at /a/n there is null");
    assert_none("t=a.t", "at /a/t there is true");
    assert_none("t=a.e", "at /a/e there is an empty object");
    assert_none("t=a.e[*]", "there is no number");
    assert_none("t=a", "at /a there is an object with");
}

/* ---- Values --------------------------------------------------------------------------------- */

static void arrays_are_iterations_and_arrays_of_them_ranks(void **state)
{
    (void)state;
    write_text(output, "{\"one\": [5, 1, 3], \"two\": [[5, 1, 3], [9, 8, 7, null]], \"bad\": [1, "
                       "\"x\"], \"mixed\": [[1], 2], \"none\": [], \"half\": [[1], []]}");
    assert_value("t=one", 3);
    assert_int_equal(value.count, 3);
    assert_value("t=two", 8);
    assert_int_equal(value.count, 6);
    assert_true(read_json("t=two", AB_ACROSS_SUM));
    assert_true(value.value == 11);
    assert_value("t=two[1]", 8);
    assert_none("t=bad", "at /bad/1 there is the text \"x\", no number");
    assert_none("t=mixed", "at /mixed/1 there is the number 2");
    assert_none("t=none", "without numbers");
    assert_none("t=half", "without numbers, beside others");
}

/* ---- Documents ------------------------------------------------------------------------------ */

static void the_last_document_among_other_lines_is_read(void **state)
{
    (void)state;
    write_text(output,
               "[rank 0] start\n{\"t\": 1}\nnoise {\"t\": 9}\n[0] more\n{\"t\": 2} \r\n[0] end\n");
    assert_value("t=t", 2);
    write_text(output, "log\n  {\n  \"t\":\n 3\n}\nlog\n[INFO]\n{broken\n");
    assert_value("t=t", 3);
    write_text(output, "4.5\n");
    assert_value("t=.", 4.5);
    write_text(output, "x\n[1, 2, 6]");
    assert_value("t=.", 2);
}

static void output_without_a_document_says_so(void **state)
{
    (void)state;
    assert_none("t=t", "holds no JSON object or array: it is empty");
    write_text(output, "");
    assert_none("t=t", "it is empty");
    write_text(output, "plain text\n");
    assert_none("t=t", "holds no JSON object or array on lines of its own");
    write_text(output, "{\"t\": 1, \"t\": 2}\n");
    assert_none("t=t", "duplicate object key");
    write_text(output, "{\"t\": NaN}\n");
    assert_none("t=t", "NaN");
    write_text(output, "{\"t\": 1e999}\n");
    assert_none("t=t", "overflow");
    write_bytes(output, "\0\xff{\n\0[\n{\"\xff\": 1}\n", 16);
    assert_none("t=t", "no JSON object or array");
}

static void endless_brackets_are_given_up(void **state)
{
    char *bytes = malloc(512 << 10);

    (void)state;
    memset(bytes, '[', 512 << 10);
    write_bytes(output, bytes, 512 << 10);
    assert_none("t=t", "standard output holds no JSON");
    for (size_t i = 0; i < 512 << 10; i += 2) {
        memcpy(bytes + i, "[\n", 2);
    }
    write_bytes(output, bytes, 512 << 10);
    assert_none("t=t", "standard output holds no JSON");
    memset(bytes, ' ', 512 << 10);
    write_bytes(output, bytes, 512 << 10);
    assert_none("t=t", "standard output holds no JSON");
    free(bytes);
}

static void files_are_found_below_the_folder_by_arm_block_and_position(void **state)
{
    (void)state;
    write_text(in_folder("fast-12-3.json"), "{\"t\": 8}");
    assert_value("t={arm}-{block}-{position}.json:t", 8);
    assert_none("t={arm}.json:t", "fast.json: No such file");
    assert_none("t={other}.json:t", "{other}.json: No such file");
}

static void files_have_to_be_one_document(void **state)
{
    (void)state;
    write_text(in_folder("a.json"), "{\"t\": 8}\n{\"t\": 9}\n");
    assert_none("t=a.json:t", "a.json:2:1: no JSON: end of file expected");
    write_text(in_folder("a.json"), "{\"t\": {\"x\": 1, \"x\": 2}}");
    assert_none("t=a.json:t.x", "duplicate object key");
    write_text(in_folder("a.json"), "");
    assert_none("t=a.json:t", "is empty");
    write_text(in_folder("a.json"), "{\"t\": 8");
    assert_none("t=a.json:t", "a.json:1:");
    assert_int_equal(truncate(in_folder("a.json"), (off_t)65 << 20), 0);
    assert_none("t=a.json:t", "larger than 64 MiB");
    unlink(in_folder("a.json"));
    assert_int_equal(mkfifo(in_folder("a.json"), 0600), 0);
    assert_none("t=a.json:t", "not a regular file");
}

static void of_output_too_large_for_memory_the_end_is_read(void **state)
{
    FILE *file = fopen(output, "we");

    (void)state;
    /* a hole of NULs, then lines */
    assert_int_equal(fseeko(file, (off_t)70 << 20, SEEK_SET), 0);
    fputs("\n{\"t\": 2}\nlast words\n", file);
    fclose(file);
    assert_value("t=t", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_keep_the_path_as_it_was_given),
        cmocka_unit_test(wrong_paths_are_refused_with_their_place),
        in_its_folder(pointers_and_dotted_paths_lead_to_the_same_place),
        in_its_folder(pointers_reach_keys_of_any_kind),
        in_its_folder(a_star_stands_for_all_elements_and_members),
        in_its_folder(a_path_that_leads_nowhere_tells_how_far_it_led),
        in_its_folder(arrays_are_iterations_and_arrays_of_them_ranks),
        in_its_folder(the_last_document_among_other_lines_is_read),
        in_its_folder(output_without_a_document_says_so),
        in_its_folder(endless_brackets_are_given_up),
        in_its_folder(files_are_found_below_the_folder_by_arm_block_and_position),
        in_its_folder(files_have_to_be_one_document),
        in_its_folder(of_output_too_large_for_memory_the_end_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
