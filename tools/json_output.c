/* SPDX-License-Identifier: Apache-2.0 */
#include "json_output.h"

#include <stdlib.h>

#include "printable.h"

json_t *json_output_string(const char *text)
{
    json_t *string = json_string(text);
    char *copy;

    if (string != NULL) {
        return string;
    }
    copy = printable_copy(text);
    string = json_string(copy);
    free(copy);
    return string;
}

void json_output_print(json_t *document, FILE *stream)
{
    json_dumpf(document, stream, JSON_INDENT(2));
    fputc('\n', stream);
    json_decref(document);
}
