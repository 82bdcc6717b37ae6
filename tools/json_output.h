/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_JSON_OUTPUT_H
#define CUDAPOLICY_TOOLS_JSON_OUTPUT_H

/* JSON as the command prints it. */

#include <jansson.h>
#include <stdio.h>

/* A JSON string; where text is not UTF-8, which JSON requires, the bytes at fault stand as \xNN. */
json_t *json_output_string(const char *text);

/* Prints document, indented, with a final newline, and releases it. */
void json_output_print(json_t *document, FILE *stream);

#endif
