/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_HTML_TEXT_H
#define CUDAPOLICY_TOOLS_AB_HTML_TEXT_H

/* Text on a page. Names, messages and commands come from anywhere: none of it becomes markup. */

#include <stdio.h>

/* Printable, and escaped for content and for attributes in either kind of quotes. */
void html_text(FILE *stream, const char *text);

/* The same for a message that may be long: at most so many bytes, its lines kept. */
void html_message(FILE *stream, const char *text, size_t most);
void html_format(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Markup as it is, with arguments that need no escaping. */
void html_markup(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
