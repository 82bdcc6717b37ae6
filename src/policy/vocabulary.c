/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/vocabulary.h"

#include <string.h>

static const struct policy_section_entry sections[] = {
#define POLICY_SECTION_ENTRY(id, section_text, section_named, section_help)                        \
    {.section = POLICY_SECTION_##id,                                                               \
     .text = (section_text),                                                                       \
     .named = (section_named),                                                                     \
     .help = (section_help)},
#include "policy/vocabulary.def"
};

static const struct policy_word_entry words[] = {
#define POLICY_WORD(id, word_text, word_value, word_help)                                          \
    {.list = POLICY_WORDS_##id, .text = (word_text), .value = (word_value), .help = (word_help)},
#include "policy/vocabulary.def"
};

static const struct policy_quantity_entry quantities[] = {
#define POLICY_QUANTITY(id, quantity_text, quantity_sections, quantity_help)                       \
    {.quantity = POLICY_QUANTITY_##id,                                                             \
     .text = (quantity_text),                                                                      \
     .sections = (quantity_sections),                                                              \
     .help = (quantity_help)},
#include "policy/vocabulary.def"
};

static const struct policy_key_entry keys[] = {
#define POLICY_PROPERTY(id, key_text, value_kind, word_list, key_low, key_high, value_text,        \
                        key_help)                                                                  \
    {.key = POLICY_KEY_##id,                                                                       \
     .text = (key_text),                                                                           \
     .role = POLICY_ROLE_PROPERTY,                                                                 \
     .sections = POLICY_IN(POLICY),                                                                \
     .kind = POLICY_VALUE_##value_kind,                                                            \
     .words = POLICY_WORDS_##word_list,                                                            \
     .low = (key_low),                                                                             \
     .high = (key_high),                                                                           \
     .offset = POLICY_NO_OFFSET,                                                                   \
     .values = (value_text),                                                                       \
     .help = (key_help)},
#define POLICY_PARTITION_KEY(id, key_text, key_repeatable, value_kind, word_list, key_low,         \
                             key_high, field, value_text, key_help)                                \
    {.key = POLICY_KEY_##id,                                                                       \
     .text = (key_text),                                                                           \
     .role = POLICY_ROLE_PROPERTY,                                                                 \
     .sections = POLICY_IN(PARTITION),                                                             \
     .repeatable = (key_repeatable),                                                               \
     .kind = POLICY_VALUE_##value_kind,                                                            \
     .words = POLICY_WORDS_##word_list,                                                            \
     .low = (key_low),                                                                             \
     .high = (key_high),                                                                           \
     .offset = offsetof(struct policy_partition, field),                                           \
     .values = (value_text),                                                                       \
     .help = (key_help)},
#define POLICY_TUNE_KEY(id, key_text, value_kind, value_text, key_help)                            \
    {.key = POLICY_KEY_##id,                                                                       \
     .text = (key_text),                                                                           \
     .role = POLICY_ROLE_PROPERTY,                                                                 \
     .sections = POLICY_IN(TUNE),                                                                  \
     .repeatable = true,                                                                           \
     .kind = POLICY_VALUE_##value_kind,                                                            \
     .words = POLICY_WORDS_NONE,                                                                   \
     .offset = POLICY_NO_OFFSET,                                                                   \
     .values = (value_text),                                                                       \
     .help = (key_help)},
#define POLICY_SITE_KEY(id, key_text, key_repeatable, value_kind, word_list, field, value_text,    \
                        key_help)                                                                  \
    {.key = POLICY_KEY_##id,                                                                       \
     .text = (key_text),                                                                           \
     .role = POLICY_ROLE_PROPERTY,                                                                 \
     .sections = POLICY_IN(SITE),                                                                  \
     .repeatable = (key_repeatable),                                                               \
     .kind = POLICY_VALUE_##value_kind,                                                            \
     .words = POLICY_WORDS_##word_list,                                                            \
     .offset = offsetof(struct policy_site, field),                                                \
     .values = (value_text),                                                                       \
     .help = (key_help)},
#define POLICY_SELECTOR(id, key_text, key_sections, key_repeatable, value_kind, word_list,         \
                        key_low, key_high, field, value_text, key_help)                            \
    {.key = POLICY_KEY_##id,                                                                       \
     .text = (key_text),                                                                           \
     .role = POLICY_ROLE_SELECTOR,                                                                 \
     .sections = (key_sections),                                                                   \
     .repeatable = (key_repeatable),                                                               \
     .kind = POLICY_VALUE_##value_kind,                                                            \
     .words = POLICY_WORDS_##word_list,                                                            \
     .low = (key_low),                                                                             \
     .high = (key_high),                                                                           \
     .offset = offsetof(struct policy_rule, selectors.field),                                      \
     .values = (value_text),                                                                       \
     .help = (key_help)},
#define POLICY_SETTING_ENTRY(id, key_text, key_sections, key_unset, value_kind, word_list,         \
                             key_low, key_high, key_setting, key_when_set, value_text, key_help)   \
    {.key = POLICY_KEY_##id,                                                                       \
     .text = (key_text),                                                                           \
     .role = POLICY_ROLE_SETTING,                                                                  \
     .sections = (key_sections),                                                                   \
     .kind = POLICY_VALUE_##value_kind,                                                            \
     .words = POLICY_WORDS_##word_list,                                                            \
     .low = (key_low),                                                                             \
     .high = (key_high),                                                                           \
     .offset = POLICY_NO_OFFSET,                                                                   \
     .values = (value_text),                                                                       \
     .help = (key_help),                                                                           \
     .setting = POLICY_SETTING_##key_setting,                                                      \
     .when_set = POLICY_WHEN_SET_##key_when_set,                                                   \
     .unset_sections = (key_unset)},
#define POLICY_MODIFIER(id, key_text, key_sections, value_kind, word_list, key_offset, value_text, \
                        key_help)                                                                  \
    {.key = POLICY_KEY_##id,                                                                       \
     .text = (key_text),                                                                           \
     .role = POLICY_ROLE_MODIFIER,                                                                 \
     .sections = (key_sections),                                                                   \
     .kind = POLICY_VALUE_##value_kind,                                                            \
     .words = POLICY_WORDS_##word_list,                                                            \
     .offset = (key_offset),                                                                       \
     .values = (value_text),                                                                       \
     .help = (key_help)},
#include "policy/vocabulary.def"
};

const struct policy_key_entry *policy_vocabulary(size_t *count)
{
    *count = sizeof keys / sizeof keys[0];
    return keys;
}

const struct policy_section_entry *policy_vocabulary_sections(size_t *count)
{
    *count = sizeof sections / sizeof sections[0];
    return sections;
}

const struct policy_word_entry *policy_vocabulary_words(size_t *count)
{
    *count = sizeof words / sizeof words[0];
    return words;
}

const struct policy_quantity_entry *policy_vocabulary_quantities(size_t *count)
{
    *count = sizeof quantities / sizeof quantities[0];
    return quantities;
}

const struct policy_key_entry *policy_vocabulary_key(const char *text, unsigned in)
{
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if ((keys[i].sections & in) != 0 && strcmp(keys[i].text, text) == 0) {
            return &keys[i];
        }
    }
    return NULL;
}

const struct policy_section_entry *policy_vocabulary_section(const char *text)
{
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (strcmp(sections[i].text, text) == 0) {
            return &sections[i];
        }
    }
    return NULL;
}

const struct policy_word_entry *policy_vocabulary_word(enum policy_word_list list, const char *text)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (words[i].list == list && strcmp(words[i].text, text) == 0) {
            return &words[i];
        }
    }
    return NULL;
}

const char *policy_vocabulary_word_text(enum policy_word_list list, int value)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (words[i].list == list && words[i].value == value) {
            return words[i].text;
        }
    }
    return NULL;
}
