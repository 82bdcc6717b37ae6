/* SPDX-License-Identifier: Apache-2.0 */

/* A policy in the canonical form of its language. */

#include "policy/print.h"

#include <inttypes.h>
#include <string.h>

#include "policy/expect.h"
#include "policy/line.h"
#include "policy/vocabulary.h"

/* Whether the value would be read differently without quotation marks around it. */
static bool needs_quotes(const char *text)
{
    size_t length = strlen(text);

    if (length == 0 || text[0] == '"' || policy_is_blank(text[0]) ||
        policy_is_blank(text[length - 1])) {
        return true;
    }
    for (size_t i = 0; i < length; i++) {
        if ((text[i] == ';' || text[i] == '#') && (i == 0 || policy_is_blank(text[i - 1]))) {
            return true;
        }
    }
    return false;
}

/* As it stands between quotation marks. */
static void print_quoted(FILE *stream, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            fputc('"', stream);
        }
        fputc(*text, stream);
    }
}

void policy_text_print(FILE *stream, const char *text)
{
    if (!needs_quotes(text)) {
        fputs(text, stream);
        return;
    }
    fputc('"', stream);
    print_quoted(stream, text);
    fputc('"', stream);
}

static void print_texts(FILE *stream, const char *key, const struct policy_globs *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        bool fits = strlen(key) + 3 + strlen(texts->patterns[i]) <= POLICY_LINE_LIMIT;

        /* A line that was just short enough without blanks has to stay so. */
        fprintf(stream, fits ? "%s = " : "%s=", key);
        policy_text_print(stream, texts->patterns[i]);
        fputc('\n', stream);
    }
}

static void print_range(FILE *stream, const struct policy_range *range)
{
    if (range->low == range->high) {
        fprintf(stream, "%" PRId64, range->low);
        return;
    }
    if (range->low != INT64_MIN) {
        fprintf(stream, "%" PRId64, range->low);
    }
    fputs("..", stream);
    if (range->high != INT64_MAX || range->low == INT64_MIN) {
        fprintf(stream, "%" PRId64, range->high);
    }
}

/* One line for each: a line has a limited length, a list has not. */
static void print_ranges(FILE *stream, const char *key, const struct policy_ranges *ranges)
{
    for (size_t i = 0; i < ranges->count; i++) {
        fprintf(stream, "%s = ", key);
        print_range(stream, &ranges->ranges[i]);
        fputc('\n', stream);
    }
}

static void print_device(FILE *stream, const struct policy_device *device)
{
    switch (device->form) {
    case POLICY_DEVICE_INDEX:
        print_range(stream, &device->index);
        break;
    case POLICY_DEVICE_UUID:
        fputs("GPU-", stream);
        for (unsigned i = 0; i < device->uuid.bytes_known; i++) {
            bool hyphen = i == 4 || i == 6 || i == 8 || i == 10;

            fprintf(stream, "%s%02x", hyphen ? "-" : "", device->uuid.bytes[i]);
        }
        break;
    case POLICY_DEVICE_PCI:
        fprintf(stream, "%04" PRIx32 ":%02x:%02x.0", device->pci.domain, device->pci.bus,
                device->pci.device);
        break;
    }
}

static void print_devices(FILE *stream, const char *key, const struct policy_devices *devices)
{
    for (size_t i = 0; i < devices->count; i++) {
        fprintf(stream, "%s = ", key);
        print_device(stream, &devices->devices[i]);
        fputc('\n', stream);
    }
}

/* Words that are the default are not printed: in each list but that of stream kinds it is 0. */
static void print_words(FILE *stream, const struct policy_key_entry *key, unsigned value)
{
    size_t count;
    const struct policy_word_entry *words = policy_vocabulary_words(&count);

    for (size_t i = 0; i < count; i++) {
        bool holds = key->kind == POLICY_VALUE_WORD_BITS ? (value & (unsigned)words[i].value) != 0
                                                         : value == (unsigned)words[i].value;

        if (words[i].list == key->words && holds) {
            fprintf(stream, "%s = %s\n", key->text, words[i].text);
        }
    }
}

static void print_selector(FILE *stream, const struct policy_rule *rule,
                           const struct policy_key_entry *key)
{
    const void *field = (const char *)rule + key->offset;
    unsigned value;

    switch (key->kind) {
    case POLICY_VALUE_GLOB:
    case POLICY_VALUE_RULE_NAME:
        print_texts(stream, key->text, field);
        break;
    case POLICY_VALUE_RANGES:
        print_ranges(stream, key->text, field);
        break;
    case POLICY_VALUE_DEVICES:
        print_devices(stream, key->text, field);
        break;
    default:
        memcpy(&value, field, sizeof value);
        if (value != 0) {
            print_words(stream, key, value);
        }
        break;
    }
}

void policy_selectors_print(FILE *stream, const struct policy_rule *rule)
{
    size_t count;
    const struct policy_key_entry *keys = policy_vocabulary(&count);

    for (size_t i = 0; i < count; i++) {
        if (keys[i].role == POLICY_ROLE_SELECTOR && (keys[i].sections & 1u << rule->section) != 0) {
            print_selector(stream, rule, &keys[i]);
        }
    }
}

/* when_set where the rule has its own: some setting has another than the vocabulary gives it. */
static void print_when_set(FILE *stream, const struct policy_rule *rule)
{
    size_t count;
    const struct policy_key_entry *keys = policy_vocabulary(&count);

    for (size_t i = 0; i < count; i++) {
        const struct policy_setting_value *setting = &rule->settings[keys[i].setting];

        if (keys[i].role == POLICY_ROLE_SETTING && setting->action != POLICY_ACTION_ABSENT &&
            setting->when_set != keys[i].when_set) {
            fprintf(stream, "%s = %s\n", keys[POLICY_KEY_WHEN_SET].text,
                    policy_vocabulary_word_text(POLICY_WORDS_WHEN_SET, (int)setting->when_set));
            return;
        }
    }
}

void policy_settings_print(FILE *stream, const struct policy_rule *rule)
{
    size_t count;
    const struct policy_key_entry *keys = policy_vocabulary(&count);
    char text[160];

    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        if (rule->settings[setting].action != POLICY_ACTION_ABSENT) {
            fprintf(stream, "%s\n",
                    policy_setting_line((enum policy_setting)setting, &rule->settings[setting],
                                        text, sizeof text));
        }
    }
    print_when_set(stream, rule);
    for (size_t i = 0; i < count; i++) {
        if (keys[i].role == POLICY_ROLE_MODIFIER && keys[i].offset != POLICY_NO_OFFSET &&
            *(const bool *)((const char *)rule + keys[i].offset)) {
            fprintf(stream, "%s = yes\n", keys[i].text);
        }
    }
}

const char *policy_section_text(enum policy_section section)
{
    size_t count;
    const struct policy_section_entry *sections = policy_vocabulary_sections(&count);

    for (size_t i = 0; i < count; i++) {
        if (sections[i].section == section) {
            return sections[i].text;
        }
    }
    return "";
}

static void print_header(FILE *stream, enum policy_section section, const char *name)
{
    fprintf(stream, "[%s %s]\n", policy_section_text(section), name);
}

void policy_rule_print(FILE *stream, const struct policy_rule *rule)
{
    print_header(stream, rule->section, rule->name);
    policy_selectors_print(stream, rule);
    policy_settings_print(stream, rule);
}

static void print_property(FILE *stream, const struct policy_partition *partition,
                           const struct policy_key_entry *key)
{
    bool domain = partition->kind == POLICY_PARTITION_LOCALITY_DOMAIN;
    char line[64];

    switch (key->kind) {
    case POLICY_VALUE_SM_COUNT:
    case POLICY_VALUE_LOCALITY_DOMAIN:
        if (domain == (key->kind == POLICY_VALUE_LOCALITY_DOMAIN)) {
            fprintf(stream, "%s\n", policy_partition_line(partition, line, sizeof line));
        }
        break;
    case POLICY_VALUE_EVEN:
        if (partition->coscheduled_sm_count != 0) {
            fprintf(stream, "%s = %" PRIu32 "\n", key->text, partition->coscheduled_sm_count);
        }
        break;
    case POLICY_VALUE_YES_NO:
        if (partition->backfill) {
            fprintf(stream, "%s = yes\n", key->text);
        }
        break;
    default:
        print_devices(stream, key->text, &partition->device);
        break;
    }
}

void policy_partition_print(FILE *stream, const struct policy_partition *partition)
{
    size_t count;
    const struct policy_key_entry *keys = policy_vocabulary(&count);

    print_header(stream, POLICY_SECTION_PARTITION, partition->name);
    for (size_t i = 0; i < count; i++) {
        if ((keys[i].sections & POLICY_IN(PARTITION)) != 0) {
            print_property(stream, partition, &keys[i]);
        }
    }
}

/* Whether a value has what would begin a comment: it stands after a blank. */
static bool has_comment(const struct policy_variation *variation)
{
    for (size_t i = 0; i < variation->value_count; i++) {
        for (const char *at = variation->values[i]; *at != '\0'; at++) {
            if ((*at == ';' || *at == '#') &&
                (at == variation->values[i] || policy_is_blank(at[-1]))) {
                return true;
            }
        }
    }
    return false;
}

/* The kind of section stands there always: the name alone may be that of several. */
static void print_variation(FILE *stream, const struct policy_variation *variation)
{
    bool quoted = has_comment(variation);

    fprintf(stream, "vary = %s%s %s.%s = ", quoted ? "\"" : "",
            policy_section_text(variation->section), variation->name, variation->key);
    for (size_t i = 0; i < variation->value_count; i++) {
        fputs(i > 0 ? ", " : "", stream);
        if (quoted) {
            print_quoted(stream, variation->values[i]);
        } else {
            fputs(variation->values[i], stream);
        }
    }
    fputs(quoted ? "\"\n" : "\n", stream);
}

static void print_variables(FILE *stream, const struct policy *policy, bool replace)
{
    bool any = false;

    for (size_t i = 0; i < policy->variable_count; i++) {
        if (policy->variables[i].replace == replace) {
            fputs(any ? "" : replace ? "\n[env replace]\n" : "\n[env]\n", stream);
            fprintf(stream, "%s = ", policy->variables[i].name);
            policy_text_print(stream, policy->variables[i].value);
            fputc('\n', stream);
            any = true;
        }
    }
}

void policy_variables_print(FILE *stream, const struct policy *policy)
{
    print_variables(stream, policy, false);
    print_variables(stream, policy, true);
}

void policy_expectations_print(FILE *stream, const struct policy *policy)
{
    char text[POLICY_EXPECTATION_TEXT_SIZE];

    for (size_t i = 0; i < policy->expectation_count; i++) {
        fprintf(stream, "%s%s\n", i == 0 ? "\n[expect]\n" : "",
                policy_expectation_text(policy, &policy->expectations[i], text, sizeof text));
    }
}

void policy_print(FILE *stream, const struct policy *policy)
{
    fprintf(stream, "[policy]\nversion = %d\nmode = %s\n", policy->version,
            policy_mode_name(policy->mode));
    for (size_t i = 0; i < policy->partition_count && policy->partitions[i].named; i++) {
        fputc('\n', stream);
        policy_partition_print(stream, &policy->partitions[i]);
    }
    for (size_t i = 0; i < policy->rule_count; i++) {
        fputc('\n', stream);
        policy_rule_print(stream, &policy->rules[i]);
    }
    for (size_t i = 0; i < policy->variation_count; i++) {
        fputs(i == 0 ? "\n[tune]\n" : "", stream);
        print_variation(stream, &policy->variations[i]);
    }
    policy_variables_print(stream, policy);
    policy_expectations_print(stream, policy);
}
