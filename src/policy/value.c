/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/value.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "policy/hint.h"
#include "policy/line.h"

enum {
    WORD_LIMIT = 8, /* words of one list, leave and unset included */
};

void policy_value_error(struct policy_value_text *value, size_t offset, const char *format, ...)
{
    struct policy_place place = {value->place.line, value->place.column + (uint32_t)offset};
    char message[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    policy_diagnose(value->diagnostics, POLICY_ERROR, place, "%s: %s", value->key->text, message);
}

/* ---- words ---------------------------------------------------------------------------------- */

/* Words that people write for yes and no, so that the message can name the right one. */
static const char *yes_or_no(const char *text)
{
    static const char *const synonyms[][2] = {
        {"true", "yes"}, {"on", "yes"}, {"1", "yes"}, {"enable", "yes"}, {"enabled", "yes"},
        {"false", "no"}, {"off", "no"}, {"0", "no"},  {"disable", "no"}, {"disabled", "no"},
    };

    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++) {
        const char *candidate = synonyms[i][0];
        size_t position = 0;

        while (candidate[position] != '\0' &&
               (text[position] | 0x20) == (candidate[position] | 0x20)) {
            position++;
        }
        if (candidate[position] == '\0' && text[position] == '\0') {
            return synonyms[i][1];
        }
    }
    return NULL;
}

/* The words that the key takes, for the message: "default, remote, leave or unset". */
static size_t allowed_words(const struct policy_key_entry *key, const char *allowed[WORD_LIMIT])
{
    size_t word_count, count = 0;
    const struct policy_word_entry *words = policy_vocabulary_words(&word_count);

    for (size_t i = 0; i < word_count && count < WORD_LIMIT - 2; i++) {
        if (words[i].list == key->words) {
            allowed[count++] = words[i].text;
        }
    }
    if (key->role == POLICY_ROLE_SETTING) {
        allowed[count++] = "leave";
        if (key->unset_sections != 0) {
            allowed[count++] = "unset";
        }
    }
    return count;
}

static void join_words(char *text, size_t size, const char *const *words, size_t count)
{
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count && length < size; i++) {
        const char *separator = i == 0 ? "" : i + 1 == count ? " or " : ", ";

        length += (size_t)snprintf(text + length, size - length, "%s%s", separator, words[i]);
    }
}

bool policy_value_word(struct policy_value_text *value, int *word)
{
    const struct policy_word_entry *entry = policy_vocabulary_word(value->key->words, value->text);

    if (entry != NULL) {
        *word = entry->value;
        return true;
    }

    struct policy_quotation quotation;
    struct policy_hint hint;
    const char *allowed[WORD_LIMIT];
    char list[200];
    size_t count = allowed_words(value->key, allowed);
    const char *meant =
        policy_vocabulary_word(value->key->words, "yes") != NULL ? yes_or_no(value->text) : NULL;

    join_words(list, sizeof list, allowed, count);
    policy_quote(&quotation, value->text, strlen(value->text));
    if (value->key->key == POLICY_KEY_MODE && strcmp(value->text, "off") == 0) {
        policy_value_error(value, 0,
                           "\"off\" cannot stand in a policy, only in the environment "
                           "(CUDAPOLICY_MODE=off); here it is enforce or observe");
    } else if (meant != NULL) {
        policy_value_error(value, 0, "\"%s\" is not %s; did you mean \"%s\"?", quotation.text, list,
                           meant);
    } else {
        policy_value_error(value, 0, "\"%s\" is not %s%s", quotation.text, list,
                           policy_hint(&hint, value->text, allowed, count));
    }
    return false;
}

/* ---- numbers -------------------------------------------------------------------------------- */

enum number_result {
    NUMBER_READ,
    NUMBER_TOO_LARGE,
    NUMBER_MALFORMED,
};

/* Decimal digits, with a minus sign or not. Not strtol(): on new systems its symbol needs a newer
 * libc than the library may, and it takes blanks, plus signs and other bases. */
static enum number_result read_number(const char *text, size_t length, int64_t *number)
{
    bool negative = length > 0 && text[0] == '-';
    size_t position = negative ? 1 : 0;
    int64_t result = 0;
    bool overflow = false;

    if (position == length) {
        return NUMBER_MALFORMED;
    }
    for (; position < length; position++) {
        int digit = text[position] - '0';

        if (digit < 0 || digit > 9) {
            return NUMBER_MALFORMED;
        }
        overflow = overflow || __builtin_mul_overflow(result, 10, &result) ||
                   __builtin_sub_overflow(result, digit, &result);
    }
    /* Built as a negative number, of which there is one more. */
    if (!overflow && !negative) {
        overflow = __builtin_sub_overflow(0, result, &result);
    }
    *number = result;
    return overflow ? NUMBER_TOO_LARGE : NUMBER_READ;
}

/* A number within the key's bounds; what names the form that the key expects. */
static bool bounded_number(struct policy_value_text *value, size_t offset, size_t length,
                           const char *what, int64_t *number)
{
    const struct policy_key_entry *key = value->key;
    struct policy_quotation quotation;
    enum number_result result = read_number(value->text + offset, length, number);

    policy_quote(&quotation, value->text + offset, length);
    if (result == NUMBER_MALFORMED) {
        policy_value_error(value, offset, "\"%s\" is not %s", quotation.text, what);
        return false;
    }
    if (result == NUMBER_TOO_LARGE || *number < key->low || *number > key->high) {
        policy_value_error(value, offset, "%s is out of range (%" PRId64 " to %" PRId64 ")",
                           quotation.text, key->low, key->high);
        return false;
    }
    return true;
}

bool policy_value_integer(struct policy_value_text *value, int64_t *number)
{
    return bounded_number(value, 0, strlen(value->text), "a whole number", number);
}

/* ---- lists ---------------------------------------------------------------------------------- */

struct policy_value_item policy_trimmed(const char *text, size_t begin, size_t end)
{
    while (begin < end && policy_is_blank(text[begin])) {
        begin++;
    }
    while (end > begin && policy_is_blank(text[end - 1])) {
        end--;
    }
    return (struct policy_value_item){begin, end - begin};
}

bool policy_value_next(const struct policy_value_text *value, size_t *next,
                       struct policy_value_item *item)
{
    const char *text = value->text;

    if (*next == SIZE_MAX) {
        return false;
    }
    size_t begin = *next;
    const char *comma = strchr(text + begin, ',');
    size_t end = comma != NULL ? (size_t)(comma - text) : strlen(text);

    *next = comma != NULL ? end + 1 : SIZE_MAX;
    *item = policy_trimmed(text, begin, end);
    return true;
}

bool policy_value_range(struct policy_value_text *value, size_t offset, size_t length,
                        struct policy_range *range)
{
    static const char form[] = "a number or a range (3, 1..4, ..4 or 4..)";
    const char *text = value->text + offset;
    const char *dots = memmem(text, length, "..", 2);

    if (dots == NULL) {
        if (!bounded_number(value, offset, length, form, &range->low)) {
            return false;
        }
        range->high = range->low;
        return true;
    }
    size_t low_length = (size_t)(dots - text), high_length = length - low_length - 2;
    struct policy_quotation quotation;

    if (low_length == 0 && high_length == 0) {
        policy_value_error(value, offset, "\"..\" is not %s", form);
        return false;
    }
    *range = (struct policy_range){INT64_MIN, INT64_MAX};
    if (low_length != 0 && !bounded_number(value, offset, low_length, form, &range->low)) {
        return false;
    }
    if (high_length != 0 &&
        !bounded_number(value, offset + low_length + 2, high_length, form, &range->high)) {
        return false;
    }
    if (range->low > range->high) {
        policy_value_error(value, offset,
                           "the range %s holds nothing: its first number is the larger",
                           policy_quote(&quotation, text, length));
        return false;
    }
    return true;
}

bool policy_value_ranges(struct policy_value_text *value, struct policy_ranges *ranges)
{
    struct policy_value_item item;
    size_t next = 0;
    bool good = true;

    while (policy_value_next(value, &next, &item)) {
        struct policy_range range;

        if (!policy_value_range(value, item.offset, item.length, &range)) {
            good = false;
            continue;
        }
        struct policy_range *items =
            policy_arena_grow(value->arena, ranges->ranges, ranges->count, sizeof *items);
        if (items == NULL) {
            value->out_of_memory = true;
            return false;
        }
        items[ranges->count++] = range;
        ranges->ranges = items;
    }
    return good;
}

bool policy_value_text(struct policy_value_text *value, struct policy_globs *list)
{
    const char *copy = policy_arena_copy(value->arena, value->text, strlen(value->text));
    const char **items =
        policy_arena_grow(value->arena, list->patterns, list->count, sizeof *items);

    if (copy == NULL || items == NULL) {
        value->out_of_memory = true;
        return false;
    }
    items[list->count++] = copy;
    list->patterns = items;
    return true;
}

/* ---- values of several numbers -------------------------------------------------------------- */

/* Up to limit numbers with blanks, or one comma each, between them. The count, or 0 after an error.
 * form names what the key expects. */
static size_t read_numbers(struct policy_value_text *value, size_t limit, const char *form,
                           int64_t *numbers)
{
    const char *text = value->text;
    struct policy_quotation quotation;
    size_t position = 0, count = 0;

    for (;;) {
        position += strspn(text + position, " \t");
        size_t length = strcspn(text + position, " \t,");

        if (length == 0 || count == limit) {
            policy_value_error(value, 0, "\"%s\" is not %s",
                               policy_quote(&quotation, text, strlen(text)), form);
            return 0;
        }
        if (!bounded_number(value, position, length, form, &numbers[count])) {
            return 0;
        }
        count++;
        position += length;
        position += strspn(text + position, " \t");
        if (text[position] == '\0') {
            return count;
        }
        if (text[position] == ',') {
            position++;
        }
    }
}

bool policy_value_domain_map(struct policy_value_text *value, uint8_t *default_domain,
                             uint8_t *remote_domain)
{
    static const char form[] = "two physical domains (like 0 2: for default, for remote)";
    int64_t numbers[2];
    size_t count = read_numbers(value, 2, form, numbers);

    if (count == 1) {
        policy_value_error(value, 0, "\"%s\" is not %s; one for both is physical_domain = %s",
                           value->text, form, value->text);
    }
    if (count != 2) {
        return false;
    }
    *default_domain = (uint8_t)numbers[0];
    *remote_domain = (uint8_t)numbers[1];
    return true;
}

bool policy_value_cluster(struct policy_value_text *value, union policy_value *result)
{
    int64_t numbers[3] = {1, 1, 1};

    if (read_numbers(value, 3, "one to three dimensions (like 4 or 4,1,1)", numbers) == 0) {
        return false;
    }
    /* Each is below 2^31, so the first product cannot overflow. */
    int64_t blocks = numbers[0] * numbers[1];
    if (blocks > INT32_MAX || blocks * numbers[2] > INT32_MAX) {
        policy_value_error(value, 0, "a cluster of %s is too large", value->text);
        return false;
    }
    result->cluster_dim.x = (uint32_t)numbers[0];
    result->cluster_dim.y = (uint32_t)numbers[1];
    result->cluster_dim.z = (uint32_t)numbers[2];
    return true;
}

/* Without the % at its end, and blanks before that; true when there was one. */
static bool trim_percent_sign(const char *text, size_t *length)
{
    if (text[*length - 1] != '%') {
        return false;
    }
    --*length;
    while (*length > 0 && policy_is_blank(text[*length - 1])) {
        --*length;
    }
    return true;
}

bool policy_value_carveout(struct policy_value_text *value, int32_t *carveout)
{
    size_t length = strlen(value->text);
    int64_t percentage;
    int word = 0;

    if (value->text[0] != '-' && (value->text[0] < '0' || value->text[0] > '9')) {
        if (!policy_value_word(value, &word)) {
            return false;
        }
        *carveout = word;
        return true;
    }
    trim_percent_sign(value->text, &length);
    if (!bounded_number(value, 0, length, "a percentage, default, max_l1 or max_shared",
                        &percentage)) {
        return false;
    }
    *carveout = (int32_t)percentage;
    return true;
}

static void report_sm_count(struct policy_value_text *value)
{
    const char *words[WORD_LIMIT];
    struct policy_quotation quotation;
    struct policy_hint hint;

    policy_value_error(value, 0, "\"%s\" is not a number of SMs, a percentage or rest%s",
                       policy_quote(&quotation, value->text, strlen(value->text)),
                       policy_hint(&hint, value->text, words, allowed_words(value->key, words)));
}

bool policy_value_sm_count(struct policy_value_text *value, enum policy_partition_kind *kind,
                           uint32_t *number)
{
    const struct policy_word_entry *word = policy_vocabulary_word(value->key->words, value->text);
    size_t length = strlen(value->text);
    bool percent = trim_percent_sign(value->text, &length);
    int64_t count = 0;

    if (word != NULL) {
        *kind = (enum policy_partition_kind)word->value;
        return true;
    }
    enum number_result result = read_number(value->text, length, &count);
    if (result == NUMBER_MALFORMED) {
        report_sm_count(value);
        return false;
    }
    if (percent && (result == NUMBER_TOO_LARGE || count < 1 || count > 100)) {
        struct policy_quotation quotation;

        policy_value_error(value, 0, "%s is out of range (1%% to 100%%)",
                           policy_quote(&quotation, value->text, strlen(value->text)));
        return false;
    }
    if (!percent && !policy_value_integer(value, &count)) {
        return false;
    }
    *kind = percent ? POLICY_PARTITION_SM_PERCENT : POLICY_PARTITION_SM_COUNT;
    *number = (uint32_t)count;
    return true;
}

bool policy_value_even(struct policy_value_text *value, uint32_t *number)
{
    int64_t read;

    if (!policy_value_integer(value, &read)) {
        return false;
    }
    if (read % 2 != 0) {
        policy_value_error(value, 0, "%s is not an even number", value->text);
        return false;
    }
    *number = (uint32_t)read;
    return true;
}
