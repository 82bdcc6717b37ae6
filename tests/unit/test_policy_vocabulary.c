/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary's tables: complete, free of double entries, and described. */
#include "test_policy_support.h"

#include "policy/vocabulary.h"

static void keys_stand_in_the_order_of_their_numbers(void **state)
{
    size_t count;
    const struct policy_key_entry *keys = policy_vocabulary(&count);

    (void)state;
    assert_int_equal(count, POLICY_KEY_COUNT);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(keys[i].key, i);
    }
}

static void no_key_section_or_word_is_there_twice(void **state)
{
    size_t key_count, section_count, word_count;
    const struct policy_key_entry *keys = policy_vocabulary(&key_count);
    const struct policy_section_entry *sections = policy_vocabulary_sections(&section_count);
    const struct policy_word_entry *words = policy_vocabulary_words(&word_count);

    (void)state;
    for (size_t i = 0; i < key_count; i++) {
        /* A text may stand for different keys in different sections, for one in each. */
        for (size_t j = 0; j < section_count; j++) {
            unsigned section = 1u << sections[j].section;

            if ((keys[i].sections & section) != 0) {
                assert_ptr_equal(policy_vocabulary_key(keys[i].text, section), &keys[i]);
            }
        }
    }
    for (size_t i = 0; i < section_count; i++) {
        assert_ptr_equal(policy_vocabulary_section(sections[i].text), &sections[i]);
    }
    for (size_t i = 0; i < word_count; i++) {
        assert_ptr_equal(policy_vocabulary_word(words[i].list, words[i].text), &words[i]);
        assert_string_equal(policy_vocabulary_word_text(words[i].list, words[i].value),
                            words[i].text);
    }
}

static void quantities_stand_in_the_order_of_their_numbers(void **state)
{
    size_t count;
    const struct policy_quantity_entry *quantities = policy_vocabulary_quantities(&count);

    (void)state;
    assert_int_equal(count, POLICY_QUANTITY_COUNT);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(quantities[i].quantity, i);
        assert_true(strlen(quantities[i].help) > 5);
        assert_int_not_equal(quantities[i].sections, 0);
    }
}

static void what_is_not_in_the_vocabulary_is_not_found(void **state)
{
    (void)state;
    assert_null(policy_vocabulary_key("", POLICY_IN_ANY));
    assert_null(policy_vocabulary_key("Name", POLICY_IN_ANY));
    assert_null(policy_vocabulary_key("sm_count", POLICY_IN(STREAM) | POLICY_IN(KERNEL)));
    assert_null(policy_vocabulary_section("Partition"));
    assert_null(policy_vocabulary_word(POLICY_WORDS_DOMAIN, "spread"));
    assert_null(policy_vocabulary_word_text(POLICY_WORDS_DOMAIN, 2));
}

static void every_setting_has_a_key_and_a_group(void **state)
{
    (void)state;
    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        const char *text = policy_setting_key((enum policy_setting)setting);
        const struct policy_key_entry *key =
            policy_vocabulary_key(text, POLICY_IN(STREAM) | POLICY_IN(KERNEL));

        assert_non_null(key);
        assert_int_equal(key->role, POLICY_ROLE_SETTING);
        assert_int_equal(key->setting, setting);
        assert_true(policy_setting_group((enum policy_setting)setting) < POLICY_GROUP_COUNT);
    }
    assert_string_equal(policy_setting_key(POLICY_SETTING_MEM_SYNC_DOMAIN_MAP),
                        "mem_sync_domain_map");
    assert_string_equal(policy_setting_key(POLICY_SETTING_PARTITION), "partition");
    assert_int_equal(policy_setting_group(POLICY_SETTING_MEM_SYNC_DOMAIN),
                     policy_setting_group(POLICY_SETTING_MEM_SYNC_DOMAIN_MAP));
    assert_int_equal(policy_setting_group(POLICY_SETTING_CLUSTER_DIM),
                     policy_setting_group(POLICY_SETTING_CLUSTER_SCHEDULING));
    assert_int_equal(policy_setting_group(POLICY_SETTING_CLUSTER_DIM),
                     policy_setting_group(POLICY_SETTING_PREFERRED_CLUSTER_DIM));
}

static void every_key_has_one_line_of_help(void **state)
{
    size_t key_count, section_count;
    const struct policy_key_entry *keys = policy_vocabulary(&key_count);
    const struct policy_section_entry *sections = policy_vocabulary_sections(&section_count);

    (void)state;
    for (size_t i = 0; i < key_count; i++) {
        assert_true(strlen(keys[i].help) > 5);
        assert_null(strchr(keys[i].help, '\n'));
        assert_int_not_equal(keys[i].sections, 0);
    }
    for (size_t i = 0; i < section_count; i++) {
        assert_true(strlen(sections[i].help) > 5);
    }
}

static void a_key_with_words_names_them_in_its_help(void **state)
{
    size_t key_count, word_count;
    const struct policy_key_entry *keys = policy_vocabulary(&key_count);
    const struct policy_word_entry *words = policy_vocabulary_words(&word_count);

    (void)state;
    for (size_t i = 0; i < key_count; i++) {
        for (size_t j = 0; j < word_count; j++) {
            if (words[j].list == keys[i].words && strstr(keys[i].values, words[j].text) == NULL) {
                fail_msg("%s: \"%s\" lacks %s", keys[i].text, keys[i].values, words[j].text);
            }
        }
    }
}

/* The file that this test was built from lies in the same tree as the reference. */
static FILE *open_reference(void)
{
    static const char here[] = "tests/unit/test_policy_vocabulary.c";
    static const char reference[] = "docs/policy-language.md";
    char path[4096] = __FILE__;
    size_t length = strlen(path);

    assert_true(length >= strlen(here) && length + sizeof reference < sizeof path);
    length -= strlen(here);
    assert_string_equal(path + length, here);
    snprintf(path + length, sizeof path - length, "%s", reference);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fail_msg("cannot open %s: run the test where it was built", path);
    }
    return file;
}

/* The reference for users is written by hand, so it can forget a word. */
static void reference_names_every_key_and_word(void **state)
{
    static char text[200000];
    FILE *file = open_reference();
    size_t key_count, section_count, word_count;
    const struct policy_key_entry *keys = policy_vocabulary(&key_count);
    const struct policy_section_entry *sections = policy_vocabulary_sections(&section_count);
    const struct policy_word_entry *words = policy_vocabulary_words(&word_count);
    size_t quantity_count;
    const struct policy_quantity_entry *quantities = policy_vocabulary_quantities(&quantity_count);
    char quoted[100];

    (void)state;
    size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    fclose(file);
    for (size_t i = 0; i < key_count; i++) {
        snprintf(quoted, sizeof quoted, "`%s`", keys[i].text);
        if (strstr(text, quoted) == NULL) {
            fail_msg("the reference lacks the key %s", keys[i].text);
        }
    }
    for (size_t i = 0; i < section_count; i++) {
        snprintf(quoted, sizeof quoted, "`[%s", sections[i].text);
        assert_non_null(strstr(text, quoted));
    }
    for (size_t i = 0; i < quantity_count; i++) {
        snprintf(quoted, sizeof quoted, "`%s`", quantities[i].text);
        if (strstr(text, quoted) == NULL) {
            fail_msg("the reference lacks the quantity %s", quantities[i].text);
        }
    }
    for (size_t i = 0; i < word_count; i++) {
        snprintf(quoted, sizeof quoted, "`%s`", words[i].text);
        if (strstr(text, quoted) == NULL) {
            fail_msg("the reference lacks the word %s", words[i].text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_stand_in_the_order_of_their_numbers),
        cmocka_unit_test(no_key_section_or_word_is_there_twice),
        cmocka_unit_test(quantities_stand_in_the_order_of_their_numbers),
        cmocka_unit_test(what_is_not_in_the_vocabulary_is_not_found),
        cmocka_unit_test(every_setting_has_a_key_and_a_group),
        cmocka_unit_test(every_key_has_one_line_of_help),
        cmocka_unit_test(a_key_with_words_names_them_in_its_help),
        cmocka_unit_test(reference_names_every_key_and_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
