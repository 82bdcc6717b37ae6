/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_POLICY_VOCABULARY_H
#define CUDAPOLICY_POLICY_VOCABULARY_H

/*
 * The vocabulary of the policy language as tables, made from vocabulary.def. All of it is constant:
 * any thread, no memory, no errors. Used by the parser, by help texts, by the manual page and by
 * the shell completion; not needed on the launch path.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"
#include "policy/site.h"

/* A set of sections, as bits. */
#define POLICY_IN(section) (1u << POLICY_SECTION_##section)
#define POLICY_IN_ANY (~0u)

enum policy_role {
    POLICY_ROLE_PROPERTY, /* of the policy as a whole, of a partition, of [tune] or [site] */
    POLICY_ROLE_SELECTOR,
    POLICY_ROLE_SETTING,
    POLICY_ROLE_MODIFIER,
};

/* How the text of a value is read. */
enum policy_value_kind {
    POLICY_VALUE_VERSION,
    POLICY_VALUE_WORD,            /* one word of the key's list */
    POLICY_VALUE_WORD_BITS,       /* the same; the words' values are bits that add up */
    POLICY_VALUE_YES_NO,          /* a bool */
    POLICY_VALUE_GLOB,            /* a pattern */
    POLICY_VALUE_RULE_NAME,       /* the name of a stream rule */
    POLICY_VALUE_RANGES,          /* numbers and ranges */
    POLICY_VALUE_DEVICES,         /* device indices, UUIDs, PCI addresses */
    POLICY_VALUE_DOMAIN_MAP,      /* two physical domains */
    POLICY_VALUE_PHYSICAL_DOMAIN, /* one, for both */
    POLICY_VALUE_CLUSTER,         /* one to three dimensions */
    POLICY_VALUE_INTEGER,
    POLICY_VALUE_CARVEOUT, /* a word or a percentage */
    POLICY_VALUE_REMOVAL,  /* only unset and leave */
    POLICY_VALUE_SM_COUNT, /* a number, a percentage or a word */
    POLICY_VALUE_EVEN,     /* an even number */
    POLICY_VALUE_LOCALITY_DOMAIN,
    POLICY_VALUE_PARTITION_NAME,
    POLICY_VALUE_VARIATION, /* a key of a rule or partition, and values for it */
    POLICY_VALUE_TEMPLATE,  /* an absolute path with % */
};

enum policy_word_list {
    POLICY_WORDS_NONE,
#define POLICY_WORD_LIST(id) POLICY_WORDS_##id,
#include "policy/vocabulary.def"
};

enum policy_key {
#define POLICY_PROPERTY(id, ...) POLICY_KEY_##id,
#define POLICY_PARTITION_KEY(id, ...) POLICY_KEY_##id,
#define POLICY_TUNE_KEY(id, ...) POLICY_KEY_##id,
#define POLICY_SITE_KEY(id, ...) POLICY_KEY_##id,
#define POLICY_SELECTOR(id, ...) POLICY_KEY_##id,
#define POLICY_SETTING_ENTRY(id, ...) POLICY_KEY_##id,
#define POLICY_MODIFIER(id, ...) POLICY_KEY_##id,
#include "policy/vocabulary.def"
    POLICY_KEY_COUNT,
};

/* A key whose value has no place of its own in struct policy_rule, policy_partition or policy_site.
 */
#define POLICY_NO_OFFSET SIZE_MAX

struct policy_section_entry {
    enum policy_section section;
    const char *text; /* as written in a section's header */
    bool named;       /* the header carries a name */
    const char *help;
};

struct policy_word_entry {
    enum policy_word_list list;
    const char *text;
    int value;
    const char *help; /* may be empty */
};

struct policy_key_entry {
    enum policy_key key;
    const char *text; /* as written in a policy */
    enum policy_role role;
    unsigned sections; /* POLICY_IN bits: where the key may stand */
    bool repeatable;   /* several values are ORed */
    enum policy_value_kind kind;
    enum policy_word_list words;
    int64_t low, high; /* bounds of its numbers */
    /* selectors and modifiers: of the value in struct policy_rule; properties of a partition: in
     * struct policy_partition; of [site]: in struct policy_site */
    size_t offset;
    const char *values;
    const char *help; /* one line */
    /* settings only */
    enum policy_setting setting;
    enum policy_when_set when_set; /* where the rule does not say */
    unsigned unset_sections;       /* POLICY_IN bits: where the value `unset` is allowed */
};

struct policy_quantity_entry {
    enum policy_quantity quantity;
    const char *text;
    unsigned sections; /* POLICY_IN bits: of rules that have it */
    const char *help;
};

/* All keys, in the order of enum policy_key; the sections and the words in their own order. */
const struct policy_key_entry *policy_vocabulary(size_t *count);
const struct policy_section_entry *policy_vocabulary_sections(size_t *count);
const struct policy_word_entry *policy_vocabulary_words(size_t *count);

/* What [expect] counts, in the order of enum policy_quantity. */
const struct policy_quantity_entry *policy_vocabulary_quantities(size_t *count);

/* The first entry of this text, NULL when there is none; of keys, among those that may stand in one
 * of these sections (POLICY_IN bits). In one section a text stands for one key. */
const struct policy_key_entry *policy_vocabulary_key(const char *text, unsigned in);
const struct policy_section_entry *policy_vocabulary_section(const char *text);
const struct policy_word_entry *policy_vocabulary_word(enum policy_word_list list,
                                                       const char *text);

/* The word of a list that stands for value, NULL when none does. */
const char *policy_vocabulary_word_text(enum policy_word_list list, int value);

#endif
