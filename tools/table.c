/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "memory.h"
#include "printable.h"

enum {
    TABLE_COLUMN_LIMIT = 16,
    TABLE_GAP = 2,        /* between columns */
    TABLE_NARROWEST = 16, /* no column is made narrower than this */
    TABLE_WIDTH_DEFAULT = 120,
};

struct table_column_data {
    char *heading;
    enum table_alignment alignment;
    bool flexible;
    size_t width; /* of the widest cell */
};

struct table {
    size_t column_count;
    struct table_column_data columns[TABLE_COLUMN_LIMIT];
    char **cells;
    size_t cell_count, cell_capacity;
};

struct table *table_new(void)
{
    return memory_allocate(1, sizeof(struct table));
}

void table_column(struct table *table, const char *heading, enum table_alignment alignment,
                  bool flexible)
{
    if (table->column_count == TABLE_COLUMN_LIMIT) {
        abort();
    }
    table->columns[table->column_count++] = (struct table_column_data){
        .heading = memory_copy(heading),
        .alignment = alignment,
        .flexible = flexible,
        .width = printable_width(heading),
    };
}

void table_cell(struct table *table, const char *format, ...)
{
    struct table_column_data *column = &table->columns[table->cell_count % table->column_count];
    va_list arguments;
    char *text, *cell;
    size_t width;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) {
        text = memory_copy("");
    }
    va_end(arguments);
    cell = printable_copy(text);
    free(text);

    table->cells =
        memory_grow(table->cells, table->cell_count, &table->cell_capacity, sizeof(char *));
    table->cells[table->cell_count++] = cell;
    width = printable_width(cell);
    if (width > column->width) {
        column->width = width;
    }
}

void table_count(struct table *table, int64_t number)
{
    struct printable_count count;

    table_cell(table, "%s", printable_count(&count, number));
}

size_t table_rows(const struct table *table)
{
    return table->column_count == 0 ? 0 : table->cell_count / table->column_count;
}

size_t table_terminal_width(FILE *stream)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    long width;

    if (columns != NULL) {
        width = strtol(columns, NULL, 10);
        if (width > 0 && width < 100000) {
            return (size_t)width;
        }
    }
    if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return TABLE_WIDTH_DEFAULT;
}

/* Takes the excess from the widest flexible column, one character at a time, so that a short name
 * beside a long one stays whole. */
static void narrow_columns(const struct table *table, size_t *widths, size_t available)
{
    size_t total = 0;

    for (size_t i = 0; i < table->column_count; i++) {
        total += widths[i] + (i > 0 ? TABLE_GAP : 0);
    }
    while (total > available) {
        size_t widest = table->column_count;

        for (size_t i = 0; i < table->column_count; i++) {
            if (table->columns[i].flexible && widths[i] > TABLE_NARROWEST &&
                (widest == table->column_count || widths[i] > widths[widest])) {
                widest = i;
            }
        }
        if (widest == table->column_count) {
            return;
        }
        widths[widest]--;
        total--;
    }
}

/* One row of cells, as one line without blanks at its end. */
static void print_line(const struct table *table, const size_t *widths, char *const *cells,
                       FILE *stream)
{
    size_t blanks = 0; /* not printed yet */

    for (size_t i = 0; i < table->column_count; i++) {
        char *shown = printable_shorten(cells[i], widths[i]);
        size_t padding = widths[i] - printable_width(shown);
        bool right = table->columns[i].alignment == TABLE_RIGHT;

        if (shown[0] != '\0') {
            fprintf(stream, "%*s%s", (int)(blanks + (right ? padding : 0)), "", shown);
            blanks = right ? TABLE_GAP : padding + TABLE_GAP;
        } else {
            blanks += widths[i] + TABLE_GAP;
        }
        free(shown);
    }
    fputc('\n', stream);
}

void table_print(const struct table *table, FILE *stream, bool wide, const char *indent)
{
    size_t widths[TABLE_COLUMN_LIMIT], available = table_terminal_width(stream);
    char *headings[TABLE_COLUMN_LIMIT];

    for (size_t i = 0; i < table->column_count; i++) {
        widths[i] = table->columns[i].width;
        headings[i] = table->columns[i].heading;
    }
    if (!wide) {
        size_t margin = strlen(indent);

        narrow_columns(table, widths, available > margin ? available - margin : 0);
    }
    fputs(indent, stream);
    print_line(table, widths, headings, stream);
    for (size_t i = 0; i + table->column_count <= table->cell_count; i += table->column_count) {
        fputs(indent, stream);
        print_line(table, widths, &table->cells[i], stream);
    }
}

void table_free(struct table *table)
{
    for (size_t i = 0; i < table->column_count; i++) {
        free(table->columns[i].heading);
    }
    for (size_t i = 0; i < table->cell_count; i++) {
        free(table->cells[i]);
    }
    free(table->cells);
    free(table);
}
