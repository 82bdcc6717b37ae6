/* SPDX-License-Identifier: Apache-2.0 */

/* Tables, and what stands in them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library_path.h"
#include "number.h"
#include "printable.h"
#include "table.h"

static void assert_printable(const char *text, const char *expected)
{
    char *copy = printable_copy(text);

    assert_string_equal(copy, expected);
    free(copy);
}

static void printable_copy_keeps_text_and_escapes_the_rest(void **state)
{
    (void)state;
    assert_printable("", "");
    assert_printable("void f<int>(a::b*)", "void f<int>(a::b*)");
    assert_printable("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
                     "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_printable("a\x1b[2J\n\t\x7f", "a\\x1b[2J\\x0a\\x09\\x7f");
    /* not UTF-8: cut short, overlong, a surrogate, a lone continuation, a C1 control */
    assert_printable("\xc3", "\\xc3");
    assert_printable("\xe2\x82", "\\xe2\\x82");
    assert_printable("\xc0\xaf", "\\xc0\\xaf");
    assert_printable("\xed\xa0\x80", "\\xed\\xa0\\x80");
    assert_printable("\x80\x80\x80\x80\x80", "\\x80\\x80\\x80\\x80\\x80");
    assert_printable("\xc2\x9b", "\\xc2\\x9b");
    assert_printable("\xff", "\\xff");
}

static void assert_shortened(const char *text, size_t width, const char *expected)
{
    char *copy = printable_shorten(text, width);

    assert_string_equal(copy, expected);
    assert_true(printable_width(copy) <= width);
    free(copy);
}

static void shortening_takes_the_middle_and_no_half_character(void **state)
{
    (void)state;
    assert_shortened("abcdefghij", 10, "abcdefghij");
    assert_shortened("abcdefghijk", 9, "abcd...jk");
    assert_shortened("abcdef", 4, "a...");
    assert_shortened("abcdef", 3, "...");
    assert_shortened("abcdef", 1, ".");
    assert_shortened("abcdef", 0, "");
    assert_shortened("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 6,
                     "\xc3\xa9\xc3\xa9...\xc3\xa9");
}

static void numbers_have_a_comma_before_each_three_digits(void **state)
{
    struct printable_count count;

    (void)state;
    assert_string_equal(printable_count(&count, 0), "0");
    assert_string_equal(printable_count(&count, 999), "999");
    assert_string_equal(printable_count(&count, 1000), "1,000");
    assert_string_equal(printable_count(&count, -123456), "-123,456");
    assert_string_equal(printable_count(&count, -1234567), "-1,234,567");
    assert_string_equal(printable_count(&count, INT64_MAX), "9,223,372,036,854,775,807");
    assert_string_equal(printable_count(&count, INT64_MIN), "-9,223,372,036,854,775,808");
}

/* What table_print writes at a width of 40. */
static char *printed(const struct table *table, bool wide, const char *indent)
{
    size_t size;
    char *text;
    FILE *stream = open_memstream(&text, &size);

    assert_non_null(stream);
    setenv("COLUMNS", "40", 1);
    table_print(table, stream, wide, indent);
    unsetenv("COLUMNS");
    fclose(stream);
    return text;
}

static struct table *sample(const char *name, const char *note)
{
    struct table *table = table_new();

    table_column(table, "name", TABLE_LEFT, true);
    table_column(table, "count", TABLE_RIGHT, false);
    table_column(table, "note", TABLE_LEFT, false);
    table_cell(table, "%s", name);
    table_count(table, 1234);
    table_cell(table, "%s", note);
    return table;
}

static void columns_are_aligned_and_lines_have_no_blanks_at_their_end(void **state)
{
    struct table *table = sample("f", "x");
    char *text;

    (void)state;
    table_cell(table, "longer");
    table_count(table, 7);
    table_cell(table, "%s", "");
    assert_int_equal(table_rows(table), 2);
    text = printed(table, false, "  ");
    assert_string_equal(text, "  name    count  note\n"
                              "  f       1,234  x\n"
                              "  longer      7\n");
    free(text);
    table_free(table);
}

static void only_flexible_columns_are_shortened_to_fit(void **state)
{
    struct table *table = sample("abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", "whole");
    char *text;

    (void)state;
    text = printed(table, false, "");
    assert_string_equal(text, "name                        count  note\n"
                              "abcdefghijklmnop...tuvwxyz  1,234  whole\n");
    free(text);
    text = printed(table, true, "");
    assert_non_null(strstr(text, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"));
    free(text);
    table_free(table);
}

static void what_cannot_be_shortened_stays_whole(void **state)
{
    struct table *table = sample("short", "a note that is longer than the forty columns there are");
    char *text = printed(table, false, "");

    (void)state;
    assert_non_null(strstr(text, "short"));
    assert_non_null(strstr(text, "a note that is longer than the forty columns there are\n"));
    free(text);
    table_free(table);
}

static void assert_product(const char *text, int dimensions, int64_t least, int64_t expected)
{
    int64_t product;

    assert_true(number_parse_product(text, dimensions, least, &product));
    assert_int_equal(product, expected);
}

static void numbers_are_read_whole_or_not_at_all(void **state)
{
    static const char *const wrong[] = {"",     " 1",      "1 ",   "+1",         "-1",  "1,", ",1",
                                        "1,,2", "1,2,3,4", "0x10", "4294967296", "one", "1;2"};
    int64_t product;

    (void)state;
    assert_product("7", 3, 1, 7);
    assert_product("2,3,4", 3, 1, 24);
    assert_product("2x3", 3, 1, 6);
    assert_product("0", 1, 0, 0);
    assert_product("4294967295", 1, 0, 4294967295);
    assert_product("2147483647,2147483647", 3, 1, INT64_C(4611686014132420609));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(number_parse_product(wrong[i], 3, 1, &product));
    }
    assert_false(number_parse_product("2147483647,2147483647,2147483647", 3, 1, &product));
    assert_false(number_parse_product("1,2", 1, 0, &product));
    assert_false(number_parse_product("0", 3, 1, &product));
}

static void assert_preload(const char *present, const char *expected)
{
    char *value = library_path_preload("/lib/libcudapolicy.so", present);

    assert_string_equal(value, expected);
    free(value);
}

static void the_library_is_appended_to_a_preload_once(void **state)
{
    (void)state;
    assert_preload(NULL, "/lib/libcudapolicy.so");
    assert_preload("", "/lib/libcudapolicy.so");
    assert_preload(" : ", "/lib/libcudapolicy.so");
    assert_preload("a.so", "a.so:/lib/libcudapolicy.so");
    assert_preload("a.so b.so:c.so", "a.so:b.so:c.so:/lib/libcudapolicy.so");
    assert_preload("/lib/libcudapolicy.so", "/lib/libcudapolicy.so");
    assert_preload("/old/libcudapolicy.so:a.so:libcudapolicy.so", "a.so:/lib/libcudapolicy.so");
    assert_preload("/a/notlibcudapolicy.so", "/a/notlibcudapolicy.so:/lib/libcudapolicy.so");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printable_copy_keeps_text_and_escapes_the_rest),
        cmocka_unit_test(shortening_takes_the_middle_and_no_half_character),
        cmocka_unit_test(numbers_have_a_comma_before_each_three_digits),
        cmocka_unit_test(columns_are_aligned_and_lines_have_no_blanks_at_their_end),
        cmocka_unit_test(only_flexible_columns_are_shortened_to_fit),
        cmocka_unit_test(what_cannot_be_shortened_stays_whole),
        cmocka_unit_test(numbers_are_read_whole_or_not_at_all),
        cmocka_unit_test(the_library_is_appended_to_a_preload_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
