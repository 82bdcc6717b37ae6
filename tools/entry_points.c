/* SPDX-License-Identifier: Apache-2.0 */
#include "entry_points.h"

#include <stdio.h>
#include <string.h>

#include "table.h"

/* The columns of entries.def that are shown; its parameters are never expanded. */
static const struct {
    const char *symbol, *base, *variant;
    int version;
} entry_points[] = {
#define DRIVER(symbol, base, version, variant, wrapper, parameters, arguments)                     \
    {#symbol, base, #variant, version},
#define RUNTIME(symbol, launches, wrapper, parameters, arguments) {#symbol, NULL, "runtime", 0},
#include "preload/entries.def"
};
enum {
    ENTRY_POINT_COUNT = sizeof entry_points / sizeof entry_points[0],
};

static const char *variant_text(const char *variant)
{
    if (strcmp(variant, "PLAIN") == 0) {
        return "driver";
    }
    return strcmp(variant, "PTSZ") == 0 ? "driver, per-thread default stream" : variant;
}

json_t *entry_points_json(void)
{
    json_t *array = json_array();

    for (int i = 0; i < ENTRY_POINT_COUNT; i++) {
        json_array_append_new(array, json_pack("{s:s, s:s?, s:s, s:i}", "symbol",
                                               entry_points[i].symbol, "base", entry_points[i].base,
                                               "layer", variant_text(entry_points[i].variant),
                                               "version", entry_points[i].version));
    }
    return array;
}

void entry_points_print(bool wide)
{
    struct table *table = table_new();

    table_column(table, "symbol", TABLE_LEFT, true);
    table_column(table, "asked for as", TABLE_LEFT, true);
    table_column(table, "since", TABLE_RIGHT, false);
    table_column(table, "layer", TABLE_LEFT, false);
    for (int i = 0; i < ENTRY_POINT_COUNT; i++) {
        table_cell(table, "%s", entry_points[i].symbol);
        table_cell(table, "%s", entry_points[i].base != NULL ? entry_points[i].base : "-");
        if (entry_points[i].version != 0) {
            table_cell(table, "%d.%d", entry_points[i].version / 1000,
                       entry_points[i].version % 1000 / 10);
        } else {
            table_cell(table, "-");
        }
        table_cell(table, "%s", variant_text(entry_points[i].variant));
    }
    table_print(table, stdout, wide, "");
    table_free(table);
}

static const struct {
    const char *function, *layer, *reason;
} exceptions[] = {
#define DRIVER_EXCEPTION(base, reason) {#base, "driver", reason},
#define RUNTIME_EXCEPTION(name, reason) {#name, "runtime", reason},
#include "preload/exceptions.def"
};
enum {
    EXCEPTION_COUNT = sizeof exceptions / sizeof exceptions[0],
};

json_t *exceptions_json(void)
{
    json_t *array = json_array();

    for (int i = 0; i < EXCEPTION_COUNT; i++) {
        json_array_append_new(array, json_pack("{s:s, s:s, s:s}", "function",
                                               exceptions[i].function, "layer", exceptions[i].layer,
                                               "reason", exceptions[i].reason));
    }
    return array;
}

void exceptions_print(bool wide)
{
    struct table *table = table_new();

    table_column(table, "function", TABLE_LEFT, false);
    table_column(table, "layer", TABLE_LEFT, false);
    table_column(table, "why it is not wrapped", TABLE_LEFT, true);
    for (int i = 0; i < EXCEPTION_COUNT; i++) {
        table_cell(table, "%s", exceptions[i].function);
        table_cell(table, "%s", exceptions[i].layer);
        table_cell(table, "%s", exceptions[i].reason);
    }
    table_print(table, stdout, wide, "");
    table_free(table);
}
