/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "report/json.h"

/* Length of the UTF-8 sequence at text, as RFC 3629 allows them; 0 when there is none. */
static size_t sequence_length(const unsigned char *text)
{
    static const struct {
        unsigned char first, last, second_least, second_most;
        size_t length;
    } forms[] = {
        {0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (text[0] < forms[i].first || text[0] > forms[i].last)
            continue;
        if (forms[i].length == 1)
            return 1;
        if (text[1] < forms[i].second_least || text[1] > forms[i].second_most)
            return 0;
        for (size_t next = 2; next < forms[i].length; next++) {
            if ((text[next] & 0xc0) != 0x80)
                return 0;
        }
        return forms[i].length;
    }
    return 0;
}

json_t *report_json_text(const char *text)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = (const unsigned char *)text;
    json_t *string = json_string(text);
    if (string != NULL)
        return string;
    char *escaped = malloc(4 * strlen(text) + 1);
    if (escaped == NULL)
        return NULL;
    char *to = escaped;
    while (*from != '\0') {
        size_t length = sequence_length(from);
        if (length > 0) {
            memcpy(to, from, length);
            to += length;
            from += length;
            continue;
        }
        *to++ = '\\';
        *to++ = 'x';
        *to++ = digits[*from >> 4];
        *to++ = digits[*from++ & 15];
    }
    *to = '\0';
    string = json_string(escaped);
    free(escaped);
    return string;
}

json_t *report_json_count(uint64_t count)
{
    return json_integer(count > INT64_MAX ? INT64_MAX : (json_int_t)count);
}

json_t *report_json_view_text(struct report_view *view, uint32_t offset)
{
    return report_json_text(report_view_text(view, offset));
}

json_t *report_json_append(json_t *array, json_t *element)
{
    if (json_array_append_new(array, element) == 0)
        return array;
    json_decref(array);
    return NULL;
}
