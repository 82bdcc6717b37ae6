/* SPDX-License-Identifier: Apache-2.0 */

/* --same-output: what runs have to agree on. */

#include "metric_support.h"

#include <math.h>

#include "same_output.h"

static char error[1024];

static struct ab_same_output *new_same(const char *definition, double relative, double absolute)
{
    struct ab_same_output *same =
        ab_same_output_new(definition, relative, absolute, error, sizeof error);

    if (same == NULL) {
        fail_msg("%s", error);
    }
    return same;
}

/* A run that left bytes in the file called "result" and on standard output. */
static enum ab_same check_bytes(struct ab_same_output *same, const char *bytes, size_t length,
                                bool reference)
{
    write_bytes(output, bytes, length);
    write_bytes(in_folder("result"), bytes, length);
    error[0] = '\0';
    return ab_same_output_check(same, output, folder, "fast", reference, error, sizeof error);
}

static enum ab_same check(struct ab_same_output *same, const char *text, bool reference)
{
    return check_bytes(same, text, strlen(text), reference);
}

static enum ab_same compare(const char *definition, double relative, double absolute,
                            const char *reference, const char *text)
{
    struct ab_same_output *same = new_same(definition, relative, absolute);
    enum ab_same result;

    assert_int_equal(check(same, reference, true), AB_SAME);
    result = check(same, text, false);
    ab_same_output_free(same);
    return result;
}

static void assert_different(const char *definition, double relative, double absolute,
                             const char *reference, const char *text, const char *part)
{
    assert_int_equal(compare(definition, relative, absolute, reference, text), AB_DIFFERENT);
    assert_contains(error, part);
}

#define assert_same(definition, relative, absolute, reference, text)                               \
    assert_int_equal(compare(definition, relative, absolute, reference, text), AB_SAME)

/* ---- Definitions ---------------------------------------------------------------------------- */

static void assert_refused(const char *definition, double relative, double absolute,
                           const char *part)
{
    assert_null(ab_same_output_new(definition, relative, absolute, error, sizeof error));
    assert_contains(error, part);
}

static void wrong_definitions_are_refused(void **state)
{
    (void)state;
    assert_refused("", 0, 0, "neither");
    assert_refused("//", 0, 0, "empty");
    assert_refused("/loss (/", 0, 0, "is wrong at offset 6");
    assert_refused("/x/", -1, 0, "tolerance");
    assert_refused("/x/", 0, NAN, "tolerance");
    assert_refused("file", INFINITY, 0, "tolerance");
    ab_same_output_free(NULL);
}

/* ---- Matches -------------------------------------------------------------------------------- */

static void only_what_matches_is_compared(void **state)
{
    (void)state;
    assert_same("/loss \\S+/", 0, 0, "time 5\nloss 1.5 time 1\n", "time 7\n\nloss 1.5 time 2\n");
    assert_different("/loss \\S+/", 0, 0, "loss 1.5\nx\nloss 1.25", "loss 1.5\nx\nloss 1.26",
                     "line 3: 'loss 1.26', in the baseline 'loss 1.25': 1.26 instead of 1.25, a "
                     "difference of 0.01 where 0 is allowed");
    assert_different("/^sum.*/", 0, 0, "sum a\n", "sum b\n",
                     "line 1: 'sum b', in the baseline 'sum a'");
}

static void matches_that_are_missing_or_more_differ(void **state)
{
    (void)state;
    assert_different("/loss.*/", 0, 0, "loss 1\nloss 2\n", "loss 1\n",
                     "ends behind line 1, where the baseline has 'loss 2'");
    assert_different("/loss.*/", 0, 0, "loss 1\n", "loss 1\n\nloss 2\n",
                     "line 3: 'loss 2', where the baseline has nothing more");
}

static void nothing_that_matches_is_no_output(void **state)
{
    struct ab_same_output *same = new_same("/loss/", 0, 0);

    (void)state;
    assert_int_equal(check(same, "loss", false), AB_SAME_NO_OUTPUT);
    assert_contains(error, "nothing to compare with");
    assert_int_equal(check(same, "profit", true), AB_SAME_NO_OUTPUT);
    assert_contains(error, "no line of standard output matches 'loss'");
    assert_int_equal(check(same, "loss", false), AB_SAME_NO_OUTPUT);
    assert_int_equal(check(same, "loss", true), AB_SAME);
    assert_int_equal(check(same, "profit", false), AB_SAME_NO_OUTPUT);
    assert_contains(error, "no line of standard output matches 'loss'");
    unlink(output);
    assert_int_equal(ab_same_output_check(same, output, folder, "fast", false, error, sizeof error),
                     AB_SAME_NO_OUTPUT);
    assert_contains(error, "No such file");
    ab_same_output_free(same);
}

static void a_reference_serves_many_runs_and_can_be_replaced(void **state)
{
    struct ab_same_output *same = new_same("/loss.*/", 0, 0);

    (void)state;
    assert_int_equal(check(same, "loss 1\nloss 2", true), AB_SAME);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(check(same, "loss 1\nloss 2", false), AB_SAME);
        assert_int_equal(check(same, "loss 1\nloss 3", false), AB_DIFFERENT);
    }
    assert_int_equal(check(same, "loss 7", true), AB_SAME);
    assert_int_equal(check(same, "loss 7", false), AB_SAME);
    ab_same_output_free(same);
}

static void an_expression_that_takes_too_long_is_an_error(void **state)
{
    struct ab_same_output *same = new_same("/^(a+)+$/", 0, 0);
    char line[100];

    (void)state;
    memset(line, 'a', sizeof line);
    memcpy(line + sizeof line - 2, "!", 2);
    assert_int_equal(check(same, line, true), AB_SAME_NO_OUTPUT);
    assert_contains(error, "takes too long");
    assert_int_equal(check(same, "aaa", true), AB_SAME);
    assert_int_equal(check(same, line, false), AB_SAME_NO_OUTPUT);
    assert_contains(error, "takes too long");
    ab_same_output_free(same);
}

/* ---- Numbers -------------------------------------------------------------------------------- */

static void numbers_are_compared_with_a_tolerance(void **state)
{
    (void)state;
    assert_same("result", 0.01, 0, "a 100 b -200\n", "a 101 b -198\n");
    assert_different("result", 0.01, 0, "a 100 b -200\n", "a 101 b -197.5\n",
                     "-197.5 instead of -200, a difference of 2.5 where 2 is allowed");
    assert_same("result", 0, 0.5, "x=1e-3,y=2", "x=0.5,y=2.5");
    assert_different("result", 0, 0.5, "x=0", "x=0.51", "0.51 instead of 0");
    assert_same("result", 0.1, 1, "0", "1");
    assert_different("result", 0.1, 0, "0", "1e-300", "instead of 0");
    assert_same("result", 0, 0, "1.50", "1.5");
    assert_same("result", 0, 0, "-0", "0");
}

static void without_a_tolerance_digits_beyond_a_double_count(void **state)
{
    (void)state;
    assert_different("result", 0, 0, "9007199254740993", "9007199254740992", "instead of");
    assert_same("result", 1e-15, 0, "9007199254740993", "9007199254740992");
}

static void nan_is_equal_to_nan_alone(void **state)
{
    (void)state;
    assert_same("result", 0.1, 0, "loss nan, -inf", "loss NaN, -Infinity");
    assert_same("result", 0, 0, "-nan", "nan");
    assert_different("result", 0.1, 9, "loss nan", "loss 1", "1 instead of nan");
    assert_different("result", 0.1, 9, "loss 1", "loss nan", "nan instead of 1");
    assert_different("result", 0.1, 9, "inf", "-inf", "-inf instead of inf");
    assert_different("result", 0.1, 9, "inf", "1e300", "instead of inf");
    assert_different("result", 0.1, 9, "Info", "info", "line 1: 'info', in the baseline 'Info'");
    assert_different("result", 0.1, 9, "nano", "nan", "line 1: 'nan', in the baseline 'nano'");
}

static void digits_inside_words_are_text(void **state)
{
    (void)state;
    assert_different("result", 0.5, 9, "sm_90", "sm_91", "'sm_91'");
    assert_different("result", 0.5, 9, "h100", "h101", "'h101'");
    assert_different("result", 0.5, 9,
                     "\xc3\xa9"
                     "5",
                     "\xc3\xa9"
                     "6",
                     "in the baseline");
    assert_different("result", 0.5, 9, "5ms", "5us", "in the baseline");
    assert_same("result", 0.5, 0, "5ms", "5.1ms");
}

static void numbers_may_take_more_room(void **state)
{
    (void)state;
    assert_same("result", 0.2, 0, "loss:  9.9 |\n", "loss: 10.1 |\n");
    assert_same("result", 0.2, 0, "loss: 9.9|", "loss:10.1|");
    assert_same("result", 0.2, 0, "a  b \r\n", "a b\n");
    assert_different("result", 0.2, 0, "a b", "ab", "'ab'");
}

/* ---- Files ---------------------------------------------------------------------------------- */

static void the_whole_file_is_compared(void **state)
{
    (void)state;
    assert_same("result", 0, 0, "", "");
    assert_same("result", 0, 0, "a\nb\n", "a\nb");
    assert_different("result", 0, 0, "a\nb\nc\n", "a\nx\nc\n",
                     "result: line 2: 'x', in the baseline 'b'");
    assert_different("result", 0, 0, "a\nb\n", "a\n", "ends behind line 1");
    assert_different("result", 0, 0, "a\n", "a\nb\n",
                     "line 2: 'b', where the baseline has nothing");
    assert_different("result", 0, 0, "a\n", "", "ends behind line 0");
    assert_different("result", 0, 0, "\x1b[1mx", "x", "'\\x1b[1mx'");
}

static void of_a_long_line_the_part_that_differs_is_shown(void **state)
{
    static const char head[] = "0 and many words, xxx"
                               "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                               "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9=";
    char was[200], is[200];

    (void)state;
    snprintf(was, sizeof was, "%sone", head);
    snprintf(is, sizeof is, "%stwo", head);
    assert_different("result", 0, 0, was, is, "\xc3\xa9=two', in the baseline '...\xc3\xa9");
    assert_null(strstr(error, "\\x"));
    assert_null(strstr(error, "words"));
}

static void a_file_of_an_earlier_run_is_no_output_of_this_one(void **state)
{
    struct ab_same_output *same = new_same("result", 0, 0);

    (void)state;
    assert_int_equal(check(same, "5", true), AB_SAME);
    ab_same_output_before(same, folder, "fast");
    assert_int_equal(ab_same_output_check(same, output, folder, "fast", false, error, sizeof error),
                     AB_SAME_NO_OUTPUT);
    assert_contains(error, "left by an earlier run");
    ab_same_output_before(same, folder, "fast");
    assert_int_equal(check(same, "5", false), AB_SAME);
    unlink(in_folder("result"));
    ab_same_output_before(same, folder, "fast");
    assert_int_equal(check(same, "5", false), AB_SAME);
    ab_same_output_free(same);
}

static void files_are_found_by_arm_or_absolute(void **state)
{
    char path[PATH_MAX];
    struct ab_same_output *same = new_same("{arm}.txt", 0, 0);

    (void)state;
    assert_int_equal(check(same, "", true), AB_SAME_NO_OUTPUT);
    assert_contains(error, "fast.txt: No such file");
    write_text(in_folder("fast.txt"), "5");
    assert_int_equal(check(same, "", true), AB_SAME);
    ab_same_output_free(same);
    snprintf(path, sizeof path, "%s/fast.txt", folder);
    same = new_same(path, 0, 0);
    assert_int_equal(check(same, "", true), AB_SAME);
    ab_same_output_free(same);
    same = new_same(".", 0, 0);
    assert_int_equal(check(same, "", true), AB_SAME_NO_OUTPUT);
    assert_contains(error, "not a regular file");
    ab_same_output_free(same);
}

static void binary_files_are_compared_by_bytes(void **state)
{
    struct ab_same_output *same = new_same("result", 0, 0);

    (void)state;
    assert_int_equal(check_bytes(same, "a\0b\xff", 4, true), AB_SAME);
    assert_int_equal(check_bytes(same, "a\0b\xff", 4, false), AB_SAME);
    assert_int_equal(check_bytes(same, "a\0c\xff", 4, false), AB_DIFFERENT);
    assert_contains(error, "the byte at offset 2 is 0x63, in the baseline 0x62");
    assert_int_equal(check_bytes(same, "a\0b", 3, false), AB_DIFFERENT);
    assert_contains(error, "shorter than in the baseline: the file ends after 3 bytes");
    assert_int_equal(check_bytes(same, "a\0b\xff+", 5, false), AB_DIFFERENT);
    assert_contains(error, "longer than in the baseline, where the file ends after 4 bytes");
    assert_int_equal(check(same, "text", false), AB_DIFFERENT);
    assert_int_equal(check(same, "", false), AB_DIFFERENT);
    assert_contains(error, "ends after 0 bytes");
    ab_same_output_free(same);
}

static void a_tolerance_needs_text(void **state)
{
    struct ab_same_output *same = new_same("result", 0, 0.1);

    (void)state;
    assert_int_equal(check_bytes(same, "a\0b", 3, true), AB_SAME);
    assert_int_equal(check_bytes(same, "a\0b", 3, false), AB_SAME_NO_OUTPUT);
    assert_contains(error, "is no text");
    assert_int_equal(check(same, "1", true), AB_SAME);
    assert_int_equal(check_bytes(same, "1\0", 2, false), AB_SAME_NO_OUTPUT);
    ab_same_output_free(same);
}

static void bytes_beyond_the_first_block_are_compared(void **state)
{
    struct ab_same_output *same = new_same("result", 0, 0);
    char *bytes = calloc(1, 200000);

    (void)state;
    assert_int_equal(check_bytes(same, bytes, 200000, true), AB_SAME);
    assert_int_equal(check_bytes(same, bytes, 131072, false), AB_DIFFERENT);
    assert_contains(error, "ends after 131072 bytes");
    bytes[150000] = 1;
    assert_int_equal(check_bytes(same, bytes, 200000, false), AB_DIFFERENT);
    assert_contains(error, "offset 150000 is 0x01, in the baseline 0x00");
    free(bytes);
    ab_same_output_free(same);
}

static void lines_of_megabytes_are_compared_to_their_end(void **state)
{
    struct ab_same_output *same = new_same("result", 0, 0);
    size_t size = 3 << 20;
    char *bytes = malloc(2 * size);

    (void)state;
    memset(bytes, 'x', 2 * size);
    assert_int_equal(check_bytes(same, bytes, size, true), AB_SAME);
    assert_int_equal(check_bytes(same, bytes, size, false), AB_SAME);
    bytes[size - 1] = 'y';
    assert_int_equal(check_bytes(same, bytes, size, false), AB_DIFFERENT);
    assert_contains(error, "line 1: '...xxx");
    assert_true(strlen(error) < 400);
    bytes[size - 1] = 'x';
    /* too long for a line: bytes */
    assert_int_equal(check_bytes(same, bytes, 2 * size, true), AB_SAME);
    bytes[2 * size - 1] = 'y';
    assert_int_equal(check_bytes(same, bytes, 2 * size, false), AB_DIFFERENT);
    assert_contains(error, "offset 6291455 is 0x79");
    free(bytes);
    ab_same_output_free(same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_definitions_are_refused),
        in_its_folder(a_file_of_an_earlier_run_is_no_output_of_this_one),
        in_its_folder(only_what_matches_is_compared),
        in_its_folder(matches_that_are_missing_or_more_differ),
        in_its_folder(nothing_that_matches_is_no_output),
        in_its_folder(a_reference_serves_many_runs_and_can_be_replaced),
        in_its_folder(an_expression_that_takes_too_long_is_an_error),
        in_its_folder(numbers_are_compared_with_a_tolerance),
        in_its_folder(without_a_tolerance_digits_beyond_a_double_count),
        in_its_folder(nan_is_equal_to_nan_alone),
        in_its_folder(digits_inside_words_are_text),
        in_its_folder(numbers_may_take_more_room),
        in_its_folder(the_whole_file_is_compared),
        in_its_folder(of_a_long_line_the_part_that_differs_is_shown),
        in_its_folder(files_are_found_by_arm_or_absolute),
        in_its_folder(binary_files_are_compared_by_bytes),
        in_its_folder(a_tolerance_needs_text),
        in_its_folder(bytes_beyond_the_first_block_are_compared),
        in_its_folder(lines_of_megabytes_are_compared_to_their_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
