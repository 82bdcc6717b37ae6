/* SPDX-License-Identifier: Apache-2.0 */
#include "compare_text.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "decimal.h"

enum {
    /* So many digits a double keeps apart. */
    EXACT_DIGITS = 15,
};

/* A text, and how far it is compared. */
struct cursor {
    const char *text;
    size_t length, at;
};

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* Bytes of words, those of other than ASCII characters among them. */
static bool is_word(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '_' || ((unsigned char)byte & 0x80) != 0;
}

static bool skip_blanks(struct cursor *cursor)
{
    size_t start = cursor->at;

    while (cursor->at < cursor->length && is_blank(cursor->text[cursor->at])) {
        cursor->at++;
    }
    return cursor->at > start;
}

/* "nan", "-inf", "Infinity": programs print these where a number is due. */
static size_t scan_word(const char *text, size_t length, double *value)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"infinity", INFINITY}, {"inf", INFINITY}, {"nan", NAN}};
    size_t sign = length > 0 && (text[0] == '+' || text[0] == '-');

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t end = sign + strlen(words[i].word);

        if (end <= length && strncasecmp(text + sign, words[i].word, end - sign) == 0 &&
            (end == length || !is_word(text[end]))) {
            *value = sign > 0 && text[0] == '-' ? -words[i].value : words[i].value;
            return end;
        }
    }
    return 0;
}

/* The length of the number at the cursor; 0: there is none. */
static size_t scan(const struct cursor *cursor, double *value)
{
    const char *text = cursor->text + cursor->at;
    size_t length = cursor->length - cursor->at, scanned;

    if (cursor->at > 0 && is_word(cursor->text[cursor->at - 1])) {
        return 0;
    }
    scanned = ab_decimal_scan(text, length, value);
    return scanned > 0 ? scanned : scan_word(text, length, value);
}

static bool near(double reference, double value, const struct ab_tolerance *tolerance)
{
    if (isnan(reference) || isnan(value)) {
        return isnan(reference) && isnan(value);
    }
    if (isinf(reference) || isinf(value)) {
        return reference == value;
    }
    return fabs(reference - value) <= tolerance->absolute + tolerance->relative * fabs(reference);
}

static bool same_number(const struct cursor *first, size_t first_size, double first_value,
                        const struct cursor *second, size_t second_size, double second_value,
                        const struct ab_tolerance *tolerance)
{
    bool equal = first_size == second_size &&
                 memcmp(first->text + first->at, second->text + second->at, first_size) == 0;
    bool exact = tolerance->relative == 0 && tolerance->absolute == 0;

    if (equal || (exact && (first_size > EXACT_DIGITS || second_size > EXACT_DIGITS))) {
        return equal;
    }
    return near(first_value, second_value, tolerance);
}

/* One element of both: a number, or a byte. False where they differ. */
static bool step(struct cursor *first, struct cursor *second, const struct ab_tolerance *tolerance,
                 struct ab_text_difference *difference)
{
    size_t before[2] = {first->at, second->at};
    bool blanks = skip_blanks(first), other_blanks = skip_blanks(second);
    double first_value, second_value;
    size_t first_size = scan(first, &first_value), second_size = scan(second, &second_value);
    bool same;

    *difference = (struct ab_text_difference){.first = first->at, .second = second->at};
    if (first_size > 0 && second_size > 0) {
        same = same_number(first, first_size, first_value, second, second_size, second_value,
                           tolerance);
        difference->numbers = !same;
        difference->first_number = first_value;
        difference->second_number = second_value;
        first->at += first_size;
        second->at += second_size;
        return same;
    }
    if (first->at == first->length && second->at == second->length) {
        return true; /* blanks at the end tell nothing */
    }
    if (blanks != other_blanks) {
        difference->first = before[0];
        difference->second = before[1];
        return false;
    }
    return first->at < first->length && second->at < second->length &&
           first->text[first->at++] == second->text[second->at++];
}

bool ab_text_same(const char *first, size_t first_length, const char *second, size_t second_length,
                  const struct ab_tolerance *tolerance, struct ab_text_difference *difference)
{
    struct cursor one = {first, first_length, 0}, other = {second, second_length, 0};

    while (one.at < one.length || other.at < other.length) {
        if (!step(&one, &other, tolerance, difference)) {
            return false;
        }
    }
    return true;
}
