/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_TABLE_H
#define CUDAPOLICY_TOOLS_TABLE_H

/*
 * Tables for people: columns with headings, as wide as what stands in them. Where a table is wider
 * than the terminal, the columns that allow it are shortened in the middle.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum table_alignment {
    TABLE_LEFT,
    TABLE_RIGHT,
};

struct table;

struct table *table_new(void);

/* Columns first, then cells, row by row. flexible: may be shortened. */
void table_column(struct table *table, const char *heading, enum table_alignment alignment,
                  bool flexible);

/* The next cell; the text is made printable. */
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for a number, written with a comma before each three digits. */
void table_count(struct table *table, int64_t number);

size_t table_rows(const struct table *table);

/* wide: nothing is shortened. The width is that of the terminal behind stream, else COLUMNS of the
 * environment, else 120. Each line begins with indent. */
void table_print(const struct table *table, FILE *stream, bool wide, const char *indent);

void table_free(struct table *table);

/* The width that table_print uses for this stream. */
size_t table_terminal_width(FILE *stream);

#endif
