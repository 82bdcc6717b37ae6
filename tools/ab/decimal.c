/* SPDX-License-Identifier: Apache-2.0 */
#include "decimal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DECIMAL_LENGTH = 500, /* what is longer is none */
};

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static size_t digits(const char *text, size_t length)
{
    size_t count = 0;

    while (count < length && is_digit(text[count])) {
        count++;
    }
    return count;
}

static size_t is_sign(const char *text, size_t length)
{
    return length > 0 && (text[0] == '+' || text[0] == '-');
}

static size_t exponent(const char *text, size_t length)
{
    size_t sign, count;

    if (length < 2 || (text[0] != 'e' && text[0] != 'E')) {
        return 0;
    }
    sign = is_sign(text + 1, length - 1);
    count = digits(text + 1 + sign, length - 1 - sign);
    return count == 0 ? 0 : 1 + sign + count;
}

static size_t form(const char *text, size_t length)
{
    size_t end = is_sign(text, length);
    size_t whole = digits(text + end, length - end), fraction = 0;

    end += whole;
    if (end < length && text[end] == '.') {
        fraction = digits(text + end + 1, length - end - 1);
        end += whole + fraction > 0 ? 1 + fraction : 0;
    }
    return whole + fraction == 0 ? 0 : end + exponent(text + end, length - end);
}

size_t ab_decimal_scan(const char *text, size_t length, double *value)
{
    char copy[DECIMAL_LENGTH + 1];
    size_t end = form(text, length > DECIMAL_LENGTH + 1 ? DECIMAL_LENGTH + 1 : length);

    if (end == 0 || end > DECIMAL_LENGTH) {
        return 0;
    }
    memcpy(copy, text, end);
    copy[end] = '\0';
    /* The command never calls setlocale: the decimal point is one. */
    *value = strtod(copy, NULL);
    return end;
}

/* Copies text without its thousands separators; 0 when a comma stands elsewhere. */
static size_t without_commas(const char *text, size_t length, char *copy)
{
    size_t end = 0, group, i = 0;

    if (is_sign(text, length)) {
        copy[end++] = text[i++];
    }
    group = digits(text + i, length - i);
    if (group == 0 || group > 3) {
        return 0;
    }
    while (true) {
        memcpy(copy + end, text + i, group);
        end += group;
        i += group;
        if (i == length || text[i] != ',') {
            break;
        }
        i++;
        group = digits(text + i, length - i);
        if (group != 3) {
            return 0;
        }
    }
    memcpy(copy + end, text + i, length - i);
    return end + length - i;
}

bool ab_decimal_read(const char *text, size_t length, double *value)
{
    static const char blanks[] = " \t";
    char copy[DECIMAL_LENGTH];

    while (length > 0 && strchr(blanks, text[0]) != NULL) {
        text++;
        length--;
    }
    while (length > 0 && strchr(blanks, text[length - 1]) != NULL) {
        length--;
    }
    if (length == 0 || length > sizeof copy) {
        return false;
    }
    if (memchr(text, ',', length) != NULL) {
        length = without_commas(text, length, copy);
        text = copy;
    }
    return length > 0 && ab_decimal_scan(text, length, value) == length && isfinite(*value);
}
