/* SPDX-License-Identifier: Apache-2.0 */
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

bool number_parse_product(const char *text, int dimensions, int64_t least, int64_t *product)
{
    int64_t limit = dimensions == 1 ? UINT32_MAX : INT32_MAX;

    *product = 1;
    for (int i = 0; i < dimensions; i++) {
        char *end;
        long long value;

        if (!isdigit((unsigned char)*text)) {
            return false;
        }
        errno = 0;
        value = strtoll(text, &end, 10);
        if (errno != 0 || value < least || value > limit ||
            __builtin_mul_overflow(*product, value, product)) {
            return false;
        }
        if (*end == '\0') {
            return true;
        }
        if (*end != ',' && *end != 'x') {
            return false;
        }
        text = end + 1;
    }
    return false;
}
