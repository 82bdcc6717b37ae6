/* SPDX-License-Identifier: Apache-2.0 */
#include "inventory.h"

#include <stdlib.h>
#include <string.h>

#include "json_output.h"
#include "memory.h"
#include "printable.h"
#include "summary.h"
#include "table.h"

/* Flags of a stream, as the driver numbers them: CU_STREAM_NON_BLOCKING is 1. */
enum {
    STREAM_NON_BLOCKING = 1,
};

struct library {
    const char *name;
    int64_t launches;
    size_t kernels;
};

static int most_launches_first(const void *one_library, const void *other_library)
{
    const struct library *one = one_library, *other = other_library;

    if (one->launches != other->launches) {
        return one->launches < other->launches ? 1 : -1;
    }
    return strcmp(one->name, other->name);
}

/* The libraries that launched kernels, most launches first; to be freed. */
static struct library *libraries_of(const struct results *results, size_t *count)
{
    struct library *libraries = NULL;
    size_t capacity = 0;

    *count = 0;
    for (size_t i = 0; i < results->kernel_count; i++) {
        const struct results_kernel *kernel = &results->kernels[i];
        size_t place = 0;

        while (place < *count && strcmp(libraries[place].name, kernel->library) != 0) {
            place++;
        }
        if (place == *count) {
            libraries = memory_grow(libraries, *count, &capacity, sizeof *libraries);
            libraries[(*count)++] = (struct library){.name = kernel->library};
        }
        libraries[place].launches += kernel->launches.total;
        libraries[place].kernels++;
    }
    if (*count > 0) {
        qsort(libraries, *count, sizeof *libraries, most_launches_first);
    }
    return libraries;
}

static void print_libraries(const struct results *results, bool wide, FILE *stream)
{
    size_t count;
    struct library *libraries = libraries_of(results, &count);
    struct table *table = table_new();

    table_column(table, "library", TABLE_LEFT, true);
    table_column(table, "kernels", TABLE_RIGHT, false);
    table_column(table, "launches", TABLE_RIGHT, false);
    for (size_t i = 0; i < count; i++) {
        table_cell(table, "%s", libraries[i].name[0] != '\0' ? libraries[i].name : "?");
        table_count(table, (int64_t)libraries[i].kernels);
        table_count(table, libraries[i].launches);
    }
    table_print(table, stream, wide, "");
    table_free(table);
    free(libraries);
}

static void print_streams(const struct results *results, bool wide, FILE *stream)
{
    struct table *table = table_new();

    table_column(table, "streams", TABLE_RIGHT, false);
    table_column(table, "created by", TABLE_LEFT, true);
    table_column(table, "kind", TABLE_LEFT, false);
    table_column(table, "device", TABLE_RIGHT, false);
    table_column(table, "priority", TABLE_RIGHT, false);
    table_column(table, "flags", TABLE_LEFT, false);
    for (size_t i = 0; i < results->stream_count; i++) {
        const struct results_stream *row = &results->streams[i];

        table_count(table, row->count);
        table_cell(table, "%s", row->library[0] != '\0' ? row->library : "?");
        table_cell(table, "%s", row->kind);
        if (row->device >= 0) {
            table_count(table, row->device);
        } else {
            table_cell(table, "?");
        }
        table_count(table, row->priority);
        table_cell(table, "%s",
                   (row->flags & STREAM_NON_BLOCKING) != 0 ? "non_blocking" : "blocking");
    }
    if (table_rows(table) > 0) {
        table_print(table, stream, wide, "");
    }
    table_free(table);
}

void inventory_print(const struct results *results, bool wide, FILE *stream)
{
    const struct summary_options options = {.wide = wide};

    summary_print_head(results, stream);
    summary_print_kernels(results, &options, stream);
    fputc('\n', stream);
    print_libraries(results, wide, stream);
    if (results->stream_count > 0) {
        fputc('\n', stream);
        print_streams(results, wide, stream);
    }
}

json_t *inventory_json(const struct results *results)
{
    size_t count;
    struct library *libraries = libraries_of(results, &count);
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array, json_pack("{s:s, s:I, s:I}", "library", libraries[i].name,
                                               "kernels", (json_int_t)libraries[i].kernels,
                                               "launches", (json_int_t)libraries[i].launches));
    }
    free(libraries);
    return json_pack("{s:s, s:i, s:I, s:I, s:o, s:o, s:o}", "format", "cudapolicy inventory",
                     "schema", 1, "processes", (json_int_t)results->number_count, "launches",
                     (json_int_t)results->launches.total, "kernels", summary_kernels_json(results),
                     "libraries", array, "streams", summary_streams_json(results));
}
