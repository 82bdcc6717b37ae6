/* SPDX-License-Identifier: Apache-2.0 */
#include "place/split.h"

#include <errno.h>
#include <stdlib.h>

int place_fake_domains_parse(const char *text)
{
    unsigned long number;
    char *end;
    int saved = errno;

    if (text == NULL || text[0] == '\0')
        return 0;
    if (text[0] < '0' || text[0] > '9')
        return -1;
    number = strtoul(text, &end, 10); /* too large a number comes back as ULONG_MAX */
    errno = saved;
    if (*end != '\0' || number == 1 || number > PLACE_DOMAIN_LIMIT)
        return -1;
    return (int)number;
}
