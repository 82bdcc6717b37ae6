/* SPDX-License-Identifier: Apache-2.0 */
/* Globs: what each element matches, what is reported as malformed, and that time stays bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "policy/glob.h"

struct match_case {
    const char *pattern, *text;
    bool matches;
};

static void check(const struct match_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (glob_matches(cases[i].pattern, cases[i].text) != cases[i].matches) {
            fail_msg("pattern \"%s\" on \"%s\" should %smatch", cases[i].pattern, cases[i].text,
                     cases[i].matches ? "" : "not ");
        }
    }
}

#define CHECK(cases) check(cases, sizeof(cases) / sizeof((cases)[0]))

static void plain_bytes_match_themselves_and_the_whole_text(void **state)
{
    static const struct match_case cases[] = {
        {"", "", true},        {"", "a", false},       {"a", "", false},
        {"abc", "abc", true},  {"abc", "abcd", false}, {"abc", "xabc", false},
        {"abc", "abd", false}, {"(a)", "(a)", true},   {"{x}#1", "{x}#1", true},
        {"]", "]", true},      {"-", "-", true},       {"a!^b", "a!^b", true},
    };
    (void)state;
    CHECK(cases);
}

static void star_takes_any_bytes_across_scopes_and_slashes(void **state)
{
    static const struct match_case cases[] = {
        {"*", "", true},
        {"*", "anything", true},
        {"a*", "a", true},
        {"*a", "bca", true},
        {"*a", "ab", false},
        {"a*c", "abbbc", true},
        {"a*c", "abbb", false},
        {"at::*kernel", "at::native::vectorized_elementwise_kernel", true},
        {"lib*/x", "lib/a/b/x", true},
        {"**a**b**", "xaxbx", true},
        {"*ab*ab", "abab", true},
        {"*ab*abc", "ababab", false},
        {"a*b*c", "a-c-b-c", true},
        {"*.so", "libc.so.6", false},
        {".*", ".hidden", true},
        {"*", ".hidden", true},
    };
    (void)state;
    CHECK(cases);
}

static void question_mark_takes_one_byte(void **state)
{
    static const struct match_case cases[] = {
        {"?", "a", true},
        {"?", "", false},
        {"?", "ab", false},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"?*", "", false},
        {"?*", "x", true},
        {"*?", "", false},
        {"?", "\303\251", false},
        {"?"
         "?",
         "\303\251", true},
        {"?", "\377", true},
    };
    (void)state;
    CHECK(cases);
}

static void set_takes_one_of_its_bytes(void **state)
{
    static const struct match_case cases[] = {
        {"[abc]", "b", true},
        {"[abc]", "d", false},
        {"[abc]", "", false},
        {"[a-c]x", "bx", true},
        {"[a-c]", "B", false},
        {"[a-cx-z]", "y", true},
        {"[a-cx-z]", "m", false},
        {"[!a-c]", "d", true},
        {"[!a-c]", "a", false},
        {"[^a-c]", "d", true},
        {"[^a-c]", "b", false},
        {"[!a]", "", false},
        {"[]a]", "]", true},
        {"[]a]", "a", true},
        {"[!]a]", "]", false},
        {"[!]a]", "b", true},
        {"[a-]", "-", true},
        {"[a-]", "b", false},
        {"[-a]", "-", true},
        {"[a^]", "^", true},
        {"[a!]", "!", true},
        {"[*?]", "*", true},
        {"[*?]", "x", false},
        {"[[]", "[", true},
        {"*[0-9]", "kernel_7", true},
        {"*[0-9]", "kernel_", false},
        {"[\200-\377]", "\351", true},
        {"[\200-\377]", "a", false},
        {"k[0-9]*[0-9]", "k1x2", true},
        {"[[:alpha:]]", "a]", true},
        {"[[:alpha:]]", "z]", false},
    };
    (void)state;
    CHECK(cases);
}

static void backslash_makes_a_byte_plain(void **state)
{
    static const struct match_case cases[] = {
        {"operator\\[\\]", "operator[]", true},
        {"operator\\[]", "operator[]", true},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"\\?", "?", true},
        {"\\?", "a", false},
        {"\\\\", "\\", true},
        {"\\a", "a", true},
        {"[\\]a]", "]", true},
        {"[\\]a]", "\\", false},
        {"[a\\-c]", "b", false},
        {"[a\\-c]", "-", true},
        {"[\\!a]", "!", true},
        {"[\\!a]", "b", false},
        {"*\\**", "a*b", true},
        {"*\\**", "ab", false},
        {"[a-\\]]", "b", false},
    };
    (void)state;
    CHECK(cases);
}

static void bytes_compare_alike_in_every_locale(void **state)
{
    static const char *const locales[] = {"C", "C.UTF-8"};

    (void)state;
    for (size_t i = 0; i < sizeof locales / sizeof locales[0]; i++) {
        if (setlocale(LC_ALL, locales[i]) == NULL) {
            continue; /* not on this machine */
        }
        assert_false(glob_matches("?", "\303\251"));
        assert_true(glob_matches("[\303]\251", "\303\251"));
        assert_true(glob_matches("k*", "k\377"));
        assert_false(glob_matches("[a-z]", "B"));
    }
    setlocale(LC_ALL, "C");
}

static void malformed_pattern_matches_nothing_from_the_mistake_on(void **state)
{
    static const struct match_case cases[] = {
        {"a[", "a[", false},    {"a[", "a", false},
        {"[", "[", false},      {"[]", "[]", false},
        {"[!]", "!", false},    {"[a", "a", false},
        {"[a-", "a", false},    {"[\\", "\\", false},
        {"a\\", "a\\", false},  {"a\\", "a", false},
        {"\\", "", false},      {"*[", "x[", false},
        {"*\\", "x", false},    {"[z-a]", "m", false},
        {"[!z-a]", "m", false}, {"operator[]", "operator[]", false},
    };
    (void)state;
    CHECK(cases);
}

static void error_names_the_mistake_and_its_column(void **state)
{
    static const struct {
        const char *pattern;
        const char *part; /* of the message; NULL: well formed */
        size_t column;
    } cases[] = {
        {"", NULL, 0},
        {"a*?b", NULL, 0},
        {"[a-z]*[!0-9]", NULL, 0},
        {"operator\\[\\]", NULL, 0},
        {"[]]", NULL, 0},
        {"[a\\]]", NULL, 0},
        {"[", "closing ']'", 0},
        {"operator[]", "closing ']'", 8},
        {"ab[c", "closing ']'", 2},
        {"[a]x[!]", "closing ']'", 4},
        {"[a-", "closing ']'", 0},
        {"x[a\\", "closing ']'", 1},
        {"a\\", "escapes nothing", 1},
        {"\\\\\\", "escapes nothing", 2},
        {"k[0-9z-a]", "upwards", 5},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t column = 12345;
        const char *message = glob_error(cases[i].pattern, &column);

        if (cases[i].part == NULL) {
            assert_null(message);
            assert_int_equal(column, 12345);
            continue;
        }
        assert_non_null(message);
        assert_non_null(strstr(message, cases[i].part));
        assert_int_equal(column, cases[i].column);
        assert_ptr_equal(glob_error(cases[i].pattern, NULL), message);
    }
}

static void many_stars_on_a_long_text_end_without_a_match(void **state)
{
    /* Backtracking into every star would not end in the age of the universe. */
    size_t length = 20000;
    char *text = malloc(length + 1);
    char pattern[129];

    (void)state;
    assert_non_null(text);
    memset(text, 'a', length);
    text[length] = '\0';
    for (size_t i = 0; i < 64; i++) {
        memcpy(pattern + 2 * i, "*a", 2);
    }
    pattern[128] = '\0';
    assert_true(glob_matches(pattern, text));
    pattern[127] = 'b';
    assert_false(glob_matches(pattern, text));
    free(text);
}

/* The obvious definition, exponential and recursive: what glob_matches must agree with. */
static bool matches_by_definition(const char *pattern, const char *text)
{
    const char *end;

    if (*pattern == '\0') {
        return *text == '\0';
    }
    end = glob_element_end(pattern);
    if (end == NULL) {
        return false;
    }
    if (*pattern == '*') {
        return matches_by_definition(end, text) ||
               (*text != '\0' && matches_by_definition(pattern, text + 1));
    }
    return *text != '\0' && glob_element_matches(pattern, (unsigned char)*text) &&
           matches_by_definition(end, text + 1);
}

static void every_short_pattern_agrees_with_the_definition(void **state)
{
    static const char alphabet[] = "ab*?[]!\\";
    static const char *const texts[] = {"",    "a",   "b",   "ab",  "ba",   "aa",   "aab", "abab",
                                        "]",   "[",   "!",   "\\",  "a]",   "[a",   "*",   "?",
                                        "b]a", "!a]", "abb", "bab", "aabb", "a[b]", "a*b", "aaaa"};
    enum { LENGTH = 6 };
    unsigned long total = 1;

    (void)state;
    for (int i = 0; i < LENGTH; i++) {
        total *= sizeof alphabet; /* the terminating zero is one of them: shorter patterns */
    }
    for (unsigned long number = 0; number < total; number++) {
        char pattern[LENGTH + 1];
        unsigned long rest = number;

        for (int i = 0; i < LENGTH; i++) {
            pattern[i] = alphabet[rest % sizeof alphabet];
            rest /= sizeof alphabet;
        }
        pattern[LENGTH] = '\0';
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
            if (glob_matches(pattern, texts[i]) != matches_by_definition(pattern, texts[i])) {
                fail_msg("pattern \"%s\" on \"%s\"", pattern, texts[i]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_bytes_match_themselves_and_the_whole_text),
        cmocka_unit_test(star_takes_any_bytes_across_scopes_and_slashes),
        cmocka_unit_test(question_mark_takes_one_byte),
        cmocka_unit_test(set_takes_one_of_its_bytes),
        cmocka_unit_test(backslash_makes_a_byte_plain),
        cmocka_unit_test(bytes_compare_alike_in_every_locale),
        cmocka_unit_test(malformed_pattern_matches_nothing_from_the_mistake_on),
        cmocka_unit_test(error_names_the_mistake_and_its_column),
        cmocka_unit_test(many_stars_on_a_long_text_end_without_a_match),
        cmocka_unit_test(every_short_pattern_agrees_with_the_definition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
