/* SPDX-License-Identifier: Apache-2.0 */

/* Lines of what programs print, and the numbers in them. */

#include "metric_support.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>

#include "decimal.h"
#include "lines.h"
#include "metric.h"

/* All lines of a file, one behind the other, with '|' behind each. */
static void assert_lines(const char *bytes, size_t length, enum ab_lines_kind kind, size_t limit,
                         const char *expected)
{
    struct ab_lines lines;
    char all[512] = "";

    write_bytes(output, bytes, length);
    assert_true(ab_lines_open(&lines, output, kind, limit));
    while (ab_lines_next(&lines)) {
        snprintf(all + strlen(all), sizeof all - strlen(all), "%d:%s%s|", (int)lines.number,
                 lines.line, lines.cut ? "~" : "");
    }
    ab_lines_close(&lines);
    assert_string_equal(all, expected);
}

#define assert_terminal(text, expected)                                                            \
    assert_lines(text, sizeof(text) - 1, AB_LINES_TERMINAL, 100, expected)

static void lines_end_at_newlines_and_carriage_returns(void **state)
{
    (void)state;
    assert_terminal("", "");
    assert_terminal("a", "1:a|");
    assert_terminal("a\n", "1:a|");
    assert_terminal("a\n\nb", "1:a|2:|3:b|");
    assert_terminal("a\r\nb\r\n", "1:a|2:b|");
    assert_terminal(" 10%\r 50%\r100%\nend\n", "1: 10%|1: 50%|1:100%|2:end|");
    assert_lines("a\r\nb", 4, AB_LINES_RAW, 100, "1:a\r|2:b|");
}

static void escape_sequences_are_left_out(void **state)
{
    (void)state;
    assert_terminal("\x1b[1;32mtime\x1b[0m 5\n", "1:time 5|");
    assert_terminal("\x1b]0;title\x07x\x1b]8;;http://a\x1b\\y\n", "1:xy|");
    assert_terminal("\x1b(Bx\x1b[?25hy\x1b=z", "1:xyz|");
    assert_terminal("\x1b[12\nnext\n\x1b]no end\nlast\x1b", "1:|2:next|3:|4:last|");
    assert_lines("\x1b[1mx", 5, AB_LINES_RAW, 100, "1:\x1b[1mx|");
}

static void long_lines_are_cut_and_the_next_one_is_whole(void **state)
{
    (void)state;
    assert_lines("0123456789\nabcde\nabcdef", 23, AB_LINES_TERMINAL, 5,
                 "1:01234~|2:abcde|3:abcde~|");
}

static void a_line_of_many_megabytes_takes_no_more_memory_than_its_limit(void **state)
{
    struct ab_lines lines;
    char *bytes = malloc(8 << 20);

    (void)state;
    memset(bytes, 'x', 8 << 20);
    bytes[(8 << 20) - 3] = '\n';
    write_bytes(output, bytes, 8 << 20);
    free(bytes);
    assert_true(ab_lines_open(&lines, output, AB_LINES_TERMINAL, 1000));
    assert_true(ab_lines_next(&lines));
    assert_int_equal(lines.length, 1000);
    assert_true(lines.capacity <= 1001);
    assert_true(ab_lines_next(&lines));
    assert_string_equal(lines.line, "xx");
    assert_false(ab_lines_next(&lines));
    ab_lines_close(&lines);
}

static void bytes_of_all_kinds_come_through(void **state)
{
    struct ab_lines lines;

    (void)state;
    write_bytes(output, "a\0b\xff\n", 5);
    assert_true(ab_lines_open(&lines, output, AB_LINES_TERMINAL, 100));
    assert_true(ab_lines_next(&lines));
    assert_int_equal(lines.length, 4);
    assert_memory_equal(lines.line, "a\0b\xff", 5);
    ab_lines_close(&lines);
}

static void only_regular_files_are_read(void **state)
{
    struct ab_lines lines;

    (void)state;
    assert_false(ab_lines_open(&lines, folder, AB_LINES_RAW, 10));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_false(ab_lines_open(&lines, in_folder("pipe"), AB_LINES_RAW, 10));
    assert_false(ab_lines_open(&lines, in_folder("missing"), AB_LINES_RAW, 10));
    assert_int_equal(errno, ENOENT);
}

static void assert_last(size_t count, const char *expected)
{
    char *last = ab_last_lines(output, count);

    assert_string_equal(last, expected);
    free(last);
}

static void last_lines_are_printable_and_short(void **state)
{
    char *bytes = malloc(300000), *last;

    (void)state;
    assert_last(3, "");
    write_text(output, "one\ntwo\n\nthree\x01\xff\n\x1b[31mfour\x1b[0m\n");
    assert_last(2, "three\\x01\\xff\nfour");
    assert_last(0, "");
    assert_last(9, "one\ntwo\nthree\\x01\\xff\nfour");
    memset(bytes, 'y', 300000);
    memcpy(bytes + 299990, "\nend", 4);
    write_bytes(output, bytes, 300000);
    free(bytes);
    last = ab_last_lines(output, 5);
    assert_string_equal(last, "endyyyyyy");
    free(last);
}

static void assert_number(const char *text, double expected)
{
    double value = -1;

    assert_true(ab_decimal_read(text, strlen(text), &value));
    assert_true(value == expected);
}

static void numbers_have_signs_points_exponents_and_commas(void **state)
{
    (void)state;
    assert_number("5", 5);
    assert_number(" -5.25 ", -5.25);
    assert_number("+.5", 0.5);
    assert_number("5.", 5);
    assert_number("1e3", 1000);
    assert_number("1.5E-3", 0.0015);
    assert_number("1,234", 1234);
    assert_number("-12,345,678.5e1", -123456785);
    assert_number("00012", 12);
}

static void other_texts_are_no_numbers(void **state)
{
    static const char *const texts[] = {
        "",     " ",   "-",     ".",     "e5",     "nan",  "inf",      "-inf",
        "0x10", "1e",  "5ms",   "1,23",  "1,2345", ",123", "1,234,",   "1234,567",
        "1 2",  "--5", "1e999", "1.2.3", "1_000",  "1e+",  "1,234,56", "1.5,123",
    };
    double value;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (ab_decimal_read(texts[i], strlen(texts[i]), &value)) {
            fail_msg("'%s' was read as %g", texts[i], value);
        }
    }
}

static void a_number_of_endless_digits_is_none(void **state)
{
    char text[5000];
    double value;

    (void)state;
    memset(text, '1', sizeof text);
    assert_int_equal(ab_decimal_scan(text, sizeof text, &value), 0);
    assert_false(ab_decimal_read(text, sizeof text, &value));
    assert_int_equal(ab_decimal_scan(text, 300, &value), 300);
    /* only what belongs to the text is read */
    assert_int_equal(ab_decimal_scan("12", 1, &value), 1);
    assert_true(value == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_its_folder(lines_end_at_newlines_and_carriage_returns),
        in_its_folder(escape_sequences_are_left_out),
        in_its_folder(long_lines_are_cut_and_the_next_one_is_whole),
        in_its_folder(a_line_of_many_megabytes_takes_no_more_memory_than_its_limit),
        in_its_folder(bytes_of_all_kinds_come_through),
        in_its_folder(only_regular_files_are_read),
        in_its_folder(last_lines_are_printable_and_short),
        cmocka_unit_test(numbers_have_signs_points_exponents_and_commas),
        cmocka_unit_test(other_texts_are_no_numbers),
        cmocka_unit_test(a_number_of_endless_digits_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
