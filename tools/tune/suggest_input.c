/* SPDX-License-Identifier: Apache-2.0 */

/* Records as files: reports, or the inventory that cudapolicy record printed. */

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "suggest_rules.h"

/* A kernel of an inventory as a report has it. */
static json_t *kernel_of_inventory(json_t *kernel)
{
    static const char *const extents[] = {"grid_blocks", "block_threads", "shared_memory"};
    json_t *copy = json_copy(kernel), *shapes = json_object();

    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++) {
        json_t *extent = json_object_get(kernel, extents[i]);

        json_object_set(shapes, extents[i], extent != NULL ? extent : json_null());
    }
    if (json_is_null(json_object_get(shapes, "grid_blocks"))) {
        json_decref(shapes);
        shapes = json_null();
    }
    json_object_set_new(copy, "shapes", shapes);
    json_object_set_new(
        copy, "demangled",
        json_boolean(strcmp(results_text(kernel, "name"), results_text(kernel, "mangled")) != 0));
    return copy;
}

/* The inventory as the report of one process; to be released. */
static json_t *report_of_inventory(const json_t *inventory)
{
    json_t *kernels = json_array(), *streams = json_object_get(inventory, "streams"), *kernel;
    size_t i;

    json_array_foreach(json_object_get(inventory, "kernels"), i, kernel)
    {
        json_array_append_new(kernels, kernel_of_inventory(kernel));
    }
    return json_pack("{s:s, s:i, s:b, s:s, s:{s:s, s:i}, s:o, s:O}", "format", "cudapolicy report",
                     "schema", 1, "complete", true, "mode", "observe", "process", "host", "", "pid",
                     0, "kernels", kernels, "streams", streams);
}

static bool load_inventory(struct results *results, const char *path, const json_t *inventory,
                           int64_t *processes)
{
    const char *error = "it has no list of kernels or of streams";
    json_t *report = NULL;
    bool loaded = false;

    if (json_is_array(json_object_get(inventory, "kernels")) &&
        json_is_array(json_object_get(inventory, "streams"))) {
        report = report_of_inventory(inventory);
        loaded = results_add(results, report, &error);
        json_decref(report);
    }
    if (!loaded) {
        command_error("'%s' is not an inventory of cudapolicy record: %s", path, error);
        return false;
    }
    *processes = results_number(inventory, "processes");
    if (*processes < 1) {
        *processes = 1; /* an older inventory, which does not say */
    }
    return true;
}

bool suggest_rules_load(struct results *results, const char *path, int64_t *processes)
{
    json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    bool loaded;

    if (strcmp(results_text(document, "format"), "cudapolicy inventory") == 0) {
        loaded = load_inventory(results, path, document, processes);
    } else {
        loaded = results_load(results, path);
        *processes = (int64_t)results->number_count;
    }
    json_decref(document);
    return loaded;
}
