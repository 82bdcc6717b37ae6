/* SPDX-License-Identifier: Apache-2.0 */
/* The file as bytes: line ends, comments, quotes, indentation, sections, sizes, odd bytes. */
#include "test_policy_support.h"

#include <locale.h>
#include <pthread.h>

static void crlf_line_ends_are_line_ends(void **state)
{
    static const char text[] =
        "[policy]\r\nversion = 1\r\n[kernel k]\r\nname = abc\r\npriority = 1\r\n";
    struct policy *policy = expect_clean_text(text, strlen(text));

    (void)state;
    assert_string_equal(policy->rules[0].name, "k");
    assert_string_equal(policy->rules[0].selectors.name.patterns[0], "abc");
    policy_free(policy);
}

static void byte_order_mark_of_utf8_is_skipped(void **state)
{
    static const char text[] = "\xef\xbb\xbf[policy]\nversion = 1\n";

    (void)state;
    policy_free(expect_clean_text(text, strlen(text)));
}

static void columns_are_counted_after_the_byte_order_mark(void **state)
{
    static const char text[] = "\xef\xbb\xbf[polcy]\n";

    (void)state;
    struct policy_diagnostics diagnostics = {0};
    assert_null(policy_parse(text, strlen(text), "test.ini", &diagnostics));
    assert_int_equal(diagnostics.count, 1);
    assert_int_equal(diagnostics.items[0].place.line, 1);
    assert_int_equal(diagnostics.items[0].place.column, 2);
    policy_diagnostics_release(&diagnostics);
}

static void utf16_is_refused_with_one_error(void **state)
{
    static const char little[] = "\xff\xfe[\0p\0o\0l\0i\0c\0y\0]\0\n\0";
    static const char big[] = "\xfe\xff\0[\0p\0o\0l\0i\0c\0y\0]\0\n";

    (void)state;
    expect_in_text(little, sizeof little - 1, POLICY_ERROR, 1, 1,
                   "the file is UTF-16; save it as UTF-8");
    expect_in_text(big, sizeof big - 1, POLICY_ERROR, 1, 1, "the file is UTF-16; save it as UTF-8");
}

static void last_line_needs_no_line_end(void **state)
{
    struct policy *policy = expect_clean("[kernel k]\npriority = -3");

    (void)state;
    assert_int_equal(policy->rules[0].settings[POLICY_SETTING_PRIORITY].value.priority, -3);
    policy_free(policy);
}

static void indentation_means_nothing(void **state)
{
    struct policy *policy = expect_clean("  [kernel k]\n\tname = abc\n    priority = 5\n");

    (void)state;
    assert_int_equal(policy->rules[0].selectors.name.count, 1);
    assert_string_equal(policy->rules[0].selectors.name.patterns[0], "abc");
    assert_int_equal(policy->rules[0].settings[POLICY_SETTING_PRIORITY].value.priority, 5);
    policy_free(policy);
}

static void indented_line_does_not_continue_the_line_before(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority = 1\nname = abc\n  def\n", 4, 3,
                 "\"def\" is neither \"key = value\" nor a [section]");
}

static void comments_begin_at_the_start_of_a_line_or_after_white_space(void **state)
{
    struct policy *policy = expect_clean("; comment\n"
                                         "# comment\n"
                                         "   ; comment = 1\n"
                                         "[kernel k] ; comment\n"
                                         "priority = 1 # comment\n"
                                         "name = a;b#c\t; comment\n"
                                         "name = {lambda(int)#1}\n"
                                         "name = abc #\n");
    const struct policy_globs *names = &policy->rules[0].selectors.name;

    (void)state;
    assert_int_equal(names->count, 3);
    assert_string_equal(names->patterns[0], "a;b#c");
    assert_string_equal(names->patterns[1], "{lambda(int)#1}");
    assert_string_equal(names->patterns[2], "abc");
    policy_free(policy);
}

static void equals_sign_inside_a_comment_makes_no_key(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority = 1\nname ; = abc\n", 3, 1,
                 "\"name\" is neither \"key = value\" nor a [section]");
}

static void quotes_keep_white_space_and_comment_characters(void **state)
{
    struct policy *policy = expect_clean_kernel("name = \"  a ; b # c \" ; comment\n"
                                                "name = \"operator\"\"\"\" _km\"\n"
                                                "name = operator\"\" _km\n"
                                                "name = a\"b\n"
                                                "name = \"[x]=:y\"");
    const struct policy_globs *names = &policy->rules[0].selectors.name;

    (void)state;
    assert_int_equal(names->count, 5);
    assert_string_equal(names->patterns[0], "  a ; b # c ");
    assert_string_equal(names->patterns[1], "operator\"\" _km");
    assert_string_equal(names->patterns[2], "operator\"\" _km");
    assert_string_equal(names->patterns[3], "a\"b");
    assert_string_equal(names->patterns[4], "[x]=:y");
    policy_free(policy);
}

static void quotes_may_stand_around_any_value(void **state)
{
    struct policy *policy = expect_clean_kernel("captured = \"yes\"\ngrid_blocks = \"1..4\"");

    (void)state;
    assert_int_equal(policy->rules[0].selectors.captured, POLICY_CHOICE_YES);
    assert_int_equal(policy->rules[0].selectors.grid_blocks.ranges[0].high, 4);
    policy_free(policy);
}

static void quote_without_its_end_is_an_error(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority = 1\nname = \"abc ; def\n", 3, 8,
                 "quoted value \"abc ; def has no closing quotation mark");
    expect_error("[kernel k]\npriority = 1\nname = \"abc\"\"\n", 3, 8,
                 "quoted value \"abc\"\" has no closing quotation mark");
}

static void text_after_a_quote_is_an_error(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority = 1\nname = \"abc\" def\n", 3, 14,
                 "text after the closing quotation mark: \"def\"");
    expect_error("[kernel k]\npriority = 1\nname = \"abc\";def\n", 3, 13,
                 "text after the closing quotation mark: \";def\"");
}

static void value_may_hold_what_inih_would_split_at(void **state)
{
    struct policy *policy = expect_clean_kernel("name = at::native::*=[:]\nname=a=b:c;d");
    const struct policy_globs *names = &policy->rules[0].selectors.name;

    (void)state;
    assert_string_equal(names->patterns[0], "at::native::*=[:]");
    assert_string_equal(names->patterns[1], "a=b:c;d");
    policy_free(policy);
}

static void colon_is_no_equals_sign(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority: 1\n", 2, 1,
                 "\"priority: 1\" is neither \"key = value\" nor a [section]");
    expect_error("[kernel k]\npriority = 1\nname:x = 1\n", 3, 1,
                 "\"name:x\" is not a key: keys have letters, digits and _ only");
}

static void key_of_odd_characters_is_an_error(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority = 1\nna me = 1\n", 3, 1,
                 "\"na me\" is not a key: keys have letters, digits and _ only");
    expect_error("[kernel k]\npriority = 1\n = 1\n", 3, 2, "no key before =");
}

/* inih would keep 49 characters of a name. */
static void long_key_is_reported_whole(void **state)
{
    (void)state;
    expect_error(
        "[kernel k]\npriority = 1\n"
        "name_that_goes_on_and_on_and_on_and_on_and_on_and_on = 1\n",
        3, 1, "unknown key \"name_that_goes_on_and_on_and_on_and_on_and_on_and_on\" in [kernel]");
}

static void names_that_differ_after_many_characters_are_two_rules(void **state)
{
#define FIFTY "a234567890123456789012345678901234567890123456789"
    struct policy *policy = expect_clean("[kernel " FIFTY "-first]\nname = a\npriority = 1\n"
                                         "[kernel " FIFTY "-second]\nname = b\npriority = 2\n");

    (void)state;
    assert_int_equal(policy->rule_count, 2);
    assert_string_equal(policy->rules[1].name, FIFTY "-second");
    policy_free(policy);
}

static void rule_name_has_at_most_100_bytes(void **state)
{
    char name[102], body[300], message[300];

    (void)state;
    memset(name, 'n', 101);
    name[100] = '\0';
    snprintf(body, sizeof body, "[kernel %s]\npriority = 1\n", name);
    policy_free(expect_clean(body));

    name[100] = 'n';
    name[101] = '\0';
    snprintf(body, sizeof body, "[kernel %s]\npriority = 1\n", name);
    snprintf(message, sizeof message,
             "the rule's name \"%.73s...\" has 101 bytes; at most 100 are allowed", name);
    expect_error(body, 1, 9, message);
}

static void rule_name_is_one_plain_word(void **state)
{
    (void)state;
    policy_free(expect_clean("[kernel A-z_0.9:a+b@c/d]\npriority = 1\n"));
    expect_error(
        "[kernel two words]\npriority = 1\n", 1, 12,
        "the rule's name \"two words\" has something other than letters, digits and _ - . : "
        "+ @ /");
    expect_error(
        "[kernel a[b]\npriority = 1\n", 1, 10,
        "the rule's name \"a[b\" has something other than letters, digits and _ - . : + @ /");
}

static void rule_section_needs_a_name(void **state)
{
    (void)state;
    expect_error("[kernel]\npriority = 1\n", 1, 2, "[kernel] needs a name, as in [kernel example]");
    expect_error("[stream ]\npriority = 1\n", 1, 2,
                 "[stream] needs a name, as in [stream example]");
}

static void first_bracket_ends_the_section_and_text_after_it_is_an_error(void **state)
{
    (void)state;
    expect_error("[kernel a]b]\npriority = 1\n", 1, 11, "text after ]: \"b]\"");
    expect_error("[kernel a];comment\npriority = 1\n", 1, 11, "text after ]: \";comment\"");
}

static void section_without_its_end_is_an_error_and_its_keys_are_nobodys(void **state)
{
    (void)state;
    expect_error("[kernel a]\npriority = 1\n[kernel b\npriority = 2\nnonsense = 1\n", 3, 1,
                 "section header \"[kernel b\" has no closing ]");
}

static void empty_section_header_is_an_error(void **state)
{
    (void)state;
    expect_error("[]\n", 1, 2, "empty section header");
    expect_error("[  ]\n", 1, 4, "empty section header");
}

static void white_space_in_a_section_header_means_nothing(void **state)
{
    struct policy *policy = expect_clean("[ \tkernel \t k  ]  \npriority = 1\n");

    (void)state;
    assert_string_equal(policy->rules[0].name, "k");
    policy_free(policy);
}

static void adjacent_sections_are_rules_of_their_own(void **state)
{
    struct policy *policy =
        expect_clean("[stream a]\n[stream b]\n[kernel k]\nstream = a\nstream = b\n"
                     "priority = 1\n[kernel l]\nname = x\nfinal = yes\n");

    (void)state;
    assert_int_equal(policy->rule_count, 4);
    assert_string_equal(policy->rules[0].name, "a");
    assert_string_equal(policy->rules[1].name, "b");
    assert_int_equal(policy->rules[1].index, 1);
    assert_int_equal(policy->rules[1].place.line, 4);
    policy_free(policy);
}

static void section_without_keys_is_a_warning(void **state)
{
    (void)state;
    expect_warning("[kernel k]\n[kernel l]\nname = x\npriority = 1\n", 1, 1,
                   "[kernel k] has no setting, so it changes nothing");
    expect_warning("[stream s]\n", 1, 1,
                   "[stream s] has no setting and no kernel rule names it, so it changes nothing");
}

static void empty_value_is_an_error(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority = 1\nname =\n", 3, 7, "name: the value is missing");
    expect_error("[kernel k]\npriority = 1\nname = ; comment\n", 3, 8,
                 "name: the value is missing");
    expect_error("[kernel k]\npriority = 1\nname = \"\"\n", 3, 9, "name: the value is missing");
}

static void nul_byte_is_an_error_at_its_column(void **state)
{
    static const char text[] = POLICY_HEADER "[kernel k]\npriority = 1\nname = a\0b\nname = c\n";
    static const char comment[] = POLICY_HEADER "; a\0b\n";

    (void)state;
    expect_in_text(text, sizeof text - 1, POLICY_ERROR, 5, 9,
                   "NUL byte in the line: a policy is a text file");
    expect_in_text(comment, sizeof comment - 1, POLICY_ERROR, 3, 4,
                   "NUL byte in the line: a policy is a text file");
}

static void control_character_in_a_value_is_an_error(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority = 1\nname = a\x1b[31mb\n", 3, 9,
                 "control character (byte 0x1b) in the value");
    expect_error("[kernel k]\npriority = 1\nname = \"a\rb\"\n", 3, 10,
                 "control character (byte 0x0d) in the value");
    expect_error("[kernel k]\npriority = 1\nname = a\x7f\n", 3, 9,
                 "control character (byte 0x7f) in the value");
}

static void message_escapes_what_a_terminal_would_obey(void **state)
{
    (void)state;
    expect_error(
        "[kernel k]\npriority = 1\nna\x1b\xc2\x9b\xffme\xc3\xa9 = 1\n", 3, 1,
        "\"na\\x1b\\xc2\\x9b\\xffme\xc3\xa9\" is not a key: keys have letters, digits and _ "
        "only");
}

static void message_escapes_what_would_turn_text_around(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority = 1\nna\xe2\x80\xaeme\xd8\x9c\xe2\x80\x93 = 1\n", 3, 1,
                 "\"na\\xe2\\x80\\xaeme\\xd8\\x9c\xe2\x80\x93\" is not a key: keys have letters, "
                 "digits and _ only");
}

static void bytes_of_any_encoding_are_kept_in_patterns(void **state)
{
    struct policy *policy = expect_clean_kernel("name = \xe9\xa0\x85*\nname = caf\xc3\xa9\xc2\xa0");
    const struct policy_globs *names = &policy->rules[0].selectors.name;

    (void)state;
    assert_string_equal(names->patterns[0], "\xe9\xa0\x85*");
    assert_string_equal(names->patterns[1], "caf\xc3\xa9\xc2\xa0");
    policy_free(policy);
}

/* A text with one line of this many bytes, "name = aaa…". The caller frees it. */
static char *text_with_long_line(size_t line_length, size_t *length)
{
    static const char before[] = POLICY_HEADER "[kernel k]\npriority = 1\nname = ";
    static const char after[] = "\nname = after\n";
    size_t pattern = line_length - strlen("name = ");
    char *text = malloc(sizeof before + pattern + sizeof after);

    assert_non_null(text);
    memcpy(text, before, sizeof before - 1);
    memset(text + sizeof before - 1, 'a', pattern);
    memcpy(text + sizeof before - 1 + pattern, after, sizeof after);
    *length = strlen(text);
    return text;
}

static void line_of_64_kib_is_read_whole(void **state)
{
    static const size_t lengths[] = {198, 199, 200, 201, 510, 511, 512, 1023, 1024, 65535, 65536};

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        size_t length;
        char *text = text_with_long_line(lengths[i], &length);
        struct policy *policy = expect_clean_text(text, length);
        const struct policy_globs *names = &policy->rules[0].selectors.name;

        assert_int_equal(names->count, 2);
        assert_int_equal(strlen(names->patterns[0]), lengths[i] - strlen("name = "));
        assert_string_equal(names->patterns[1], "after");
        policy_free(policy);
        free(text);
    }
}

static void line_of_64_kib_without_blanks_is_read_whole(void **state)
{
    size_t pattern = 65536 - strlen("name=");
    char *text = malloc(70000);

    (void)state;
    assert_non_null(text);
    size_t length = (size_t)snprintf(text, 70000, "%s[kernel k]\npriority=1\nname=", POLICY_HEADER);
    memset(text + length, 'a', pattern);
    struct policy *policy = expect_clean_text(text, length + pattern);
    assert_int_equal(strlen(policy->rules[0].selectors.name.patterns[0]), pattern);
    policy_free(policy);
    free(text);
}

static void longer_line_is_an_error_and_the_next_line_is_read(void **state)
{
    size_t length;
    char *text = text_with_long_line(65537, &length);

    (void)state;
    expect_in_text(text, length, POLICY_ERROR, 5, 65537,
                   "the line has 65537 bytes; at most 65536 are allowed");
    free(text);
}

static void text_beyond_the_limit_is_refused(void **state)
{
    size_t length = (size_t)POLICY_FILE_LIMIT + 1;
    char *text = malloc(length);

    (void)state;
    assert_non_null(text);
    memset(text, '\n', length);
    expect_in_text(text, length, POLICY_ERROR, 0, 0,
                   "a policy has at most 16777216 bytes, this one has 16777217");
    memcpy(text, POLICY_HEADER, strlen(POLICY_HEADER));
    policy_free(expect_clean_text(text, length - 1));
    free(text);
}

static void more_rules_than_can_be_numbered_are_an_error(void **state)
{
    size_t size = (POLICY_RULE_LIMIT + 2u) * 32u, length;
    char *text = malloc(size);

    (void)state;
    assert_non_null(text);
    length = (size_t)snprintf(text, size, "%s", POLICY_HEADER);
    for (unsigned i = 0; i < POLICY_RULE_LIMIT; i++) {
        length += (size_t)snprintf(text + length, size - length, "[stream s%u]\nfinal=no\n", i);
    }
    struct policy_diagnostics diagnostics = {0};
    struct policy *policy = policy_parse(text, length, "test.ini", &diagnostics);
    assert_non_null(policy);
    assert_int_equal(policy->rule_count, POLICY_RULE_LIMIT);
    assert_int_equal(policy->rules[POLICY_RULE_LIMIT - 1].index, POLICY_RULE_LIMIT - 1);
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);

    length += (size_t)snprintf(text + length, size - length, "[stream last]\n");
    expect_in_text(text, length, POLICY_ERROR, 2 * POLICY_RULE_LIMIT + 3, 1,
                   "a policy has at most 65534 rules");
    free(text);
}

static void file_of_nothing_but_errors_is_not_read_to_its_end(void **state)
{
    size_t length = 100000 * 4;
    char *text = malloc(length + 1);
    struct policy_diagnostics diagnostics = {0};

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < length; i += 4) {
        memcpy(text + i, "a=b\n", 4);
    }
    assert_null(policy_parse(text, length, "test.ini", &diagnostics));
    assert_int_equal(diagnostics.count, POLICY_DIAGNOSTIC_LIMIT);
    assert_string_equal(diagnostics.items[0].message,
                        "too many errors; the file was not read beyond line 999");
    policy_diagnostics_release(&diagnostics);
    free(text);
}

static void many_warnings_hide_no_error(void **state)
{
    size_t size = 2000 * 32, length;
    char *text = malloc(size);
    struct policy_diagnostics diagnostics = {0};

    (void)state;
    assert_non_null(text);
    length = (size_t)snprintf(text, size, "%s", POLICY_HEADER);
    for (int i = 0; i < 1500; i++) {
        length += (size_t)snprintf(text + length, size - length, "[kernel k%d]\n", i);
    }
    length += (size_t)snprintf(text + length, size - length, "mystery = 1\n");
    assert_null(policy_parse(text, length, "test.ini", &diagnostics));
    assert_int_equal(diagnostics.warning_count, 1499);
    assert_int_equal(diagnostics.error_count, 1);
    assert_non_null(strstr(diagnostics.items[diagnostics.count - 1].message, "mystery"));
    policy_diagnostics_release(&diagnostics);
    free(text);
}

static void empty_text_lacks_its_version(void **state)
{
    static const char message[] = "the policy does not begin with [policy] and \"version = 1\"";

    (void)state;
    expect_in_text("", 0, POLICY_ERROR, 0, 0, message);
    expect_in_text("\n; nothing\n", 11, POLICY_ERROR, 0, 0, message);
    expect_in_text("[kernel k]\npriority=1\n", 22, POLICY_ERROR, 0, 0, message);
}

static void locale_of_the_program_changes_nothing(void **state)
{
    static const char *const locales[] = {"C.UTF-8", "en_US.ISO-8859-1", "tr_TR.UTF-8",
                                          "de_DE.UTF-8"};

    (void)state;
    for (size_t i = 0; i < sizeof locales / sizeof locales[0]; i++) {
        setlocale(LC_ALL, locales[i]); /* those that are not installed stay what they are */
        bytes_of_any_encoding_are_kept_in_patterns(state);
    }
    setlocale(LC_ALL, "C");
}

static void *parse_again_and_again(void *result)
{
    static const char text[] =
        POLICY_HEADER "[kernel k]\nname = a*\ncluster_dim = 2\nfinal = yes\n";
    bool *good = result;

    for (int i = 0; i < 200 && *good; i++) {
        struct policy_diagnostics diagnostics = {0};
        struct policy *policy = policy_parse(text, strlen(text), "test.ini", &diagnostics);

        *good = policy != NULL && policy->rule_count == 1 && diagnostics.warning_count == 0 &&
                policy->rules[0].settings[POLICY_SETTING_CLUSTER_DIM].value.cluster_dim.x == 2;
        policy_free(policy);
        policy_diagnostics_release(&diagnostics);
    }
    return NULL;
}

static void threads_may_read_policies_at_the_same_time(void **state)
{
    pthread_t threads[8];
    bool good[8];

    (void)state;
    for (int i = 0; i < 8; i++) {
        good[i] = true;
        assert_int_equal(pthread_create(&threads[i], NULL, parse_again_and_again, &good[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        assert_true(good[i]);
    }
}

static void a_stack_of_64_kib_is_enough(void **state)
{
    pthread_attr_t attributes;
    pthread_t thread;
    bool good = true;

    (void)state;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, 64 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attributes, parse_again_and_again, &good), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    assert_true(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crlf_line_ends_are_line_ends),
        cmocka_unit_test(byte_order_mark_of_utf8_is_skipped),
        cmocka_unit_test(columns_are_counted_after_the_byte_order_mark),
        cmocka_unit_test(utf16_is_refused_with_one_error),
        cmocka_unit_test(last_line_needs_no_line_end),
        cmocka_unit_test(indentation_means_nothing),
        cmocka_unit_test(indented_line_does_not_continue_the_line_before),
        cmocka_unit_test(comments_begin_at_the_start_of_a_line_or_after_white_space),
        cmocka_unit_test(equals_sign_inside_a_comment_makes_no_key),
        cmocka_unit_test(quotes_keep_white_space_and_comment_characters),
        cmocka_unit_test(quotes_may_stand_around_any_value),
        cmocka_unit_test(quote_without_its_end_is_an_error),
        cmocka_unit_test(text_after_a_quote_is_an_error),
        cmocka_unit_test(value_may_hold_what_inih_would_split_at),
        cmocka_unit_test(colon_is_no_equals_sign),
        cmocka_unit_test(key_of_odd_characters_is_an_error),
        cmocka_unit_test(long_key_is_reported_whole),
        cmocka_unit_test(names_that_differ_after_many_characters_are_two_rules),
        cmocka_unit_test(rule_name_has_at_most_100_bytes),
        cmocka_unit_test(rule_name_is_one_plain_word),
        cmocka_unit_test(rule_section_needs_a_name),
        cmocka_unit_test(first_bracket_ends_the_section_and_text_after_it_is_an_error),
        cmocka_unit_test(section_without_its_end_is_an_error_and_its_keys_are_nobodys),
        cmocka_unit_test(empty_section_header_is_an_error),
        cmocka_unit_test(white_space_in_a_section_header_means_nothing),
        cmocka_unit_test(adjacent_sections_are_rules_of_their_own),
        cmocka_unit_test(section_without_keys_is_a_warning),
        cmocka_unit_test(empty_value_is_an_error),
        cmocka_unit_test(nul_byte_is_an_error_at_its_column),
        cmocka_unit_test(control_character_in_a_value_is_an_error),
        cmocka_unit_test(message_escapes_what_a_terminal_would_obey),
        cmocka_unit_test(message_escapes_what_would_turn_text_around),
        cmocka_unit_test(bytes_of_any_encoding_are_kept_in_patterns),
        cmocka_unit_test(line_of_64_kib_is_read_whole),
        cmocka_unit_test(line_of_64_kib_without_blanks_is_read_whole),
        cmocka_unit_test(longer_line_is_an_error_and_the_next_line_is_read),
        cmocka_unit_test(text_beyond_the_limit_is_refused),
        cmocka_unit_test(more_rules_than_can_be_numbered_are_an_error),
        cmocka_unit_test(file_of_nothing_but_errors_is_not_read_to_its_end),
        cmocka_unit_test(many_warnings_hide_no_error),
        cmocka_unit_test(empty_text_lacks_its_version),
        cmocka_unit_test(locale_of_the_program_changes_nothing),
        cmocka_unit_test(threads_may_read_policies_at_the_same_time),
        cmocka_unit_test(a_stack_of_64_kib_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
