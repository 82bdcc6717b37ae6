/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls every row of the table of entry points through one route.
 *
 * usage: matrix ROUTE enforced|untouched
 *
 * For each row one line: the symbol, a tab, and "ok", "elsewhere" when this route cannot lead to
 * the row, "absent" when the driver is too old for it, "missing" when nobody has written an
 * exercise of it, or what went wrong.
 */
#include "matrix.h"
#include "plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

bool enforced;

#define PLAIN false
#define PTSZ true
#define ROW(symbol, base, version, variant, wrapper, category)                                     \
    {#symbol, base, version, variant, CATEGORY_##category, exercise_##wrapper},

#define DRIVER(symbol, base, version, variant, wrapper, parameters, arguments)                     \
    __attribute__((weak)) exercise_function exercise_##wrapper;
#include "preload/entries.def"

#define LAUNCH(symbol, base, version, variant, handle, wrapper, parameters, arguments)             \
    ROW(symbol, base, version, variant, wrapper, LAUNCH)
#define START(symbol, base, version, variant, wrapper, parameters, arguments)                      \
    ROW(symbol, base, version, variant, wrapper, START)
#define STREAM(symbol, base, version, variant, wrapper, parameters, arguments)                     \
    ROW(symbol, base, version, variant, wrapper, STREAM)
#define QUERY(symbol, base, version, variant, wrapper, parameters, arguments)                      \
    ROW(symbol, base, version, variant, wrapper, QUERY)
#define CAPTURE(symbol, base, version, variant, wrapper, parameters, arguments)                    \
    ROW(symbol, base, version, variant, wrapper, CAPTURE)
#define NODE(symbol, base, version, variant, wrapper, parameters, arguments)                       \
    ROW(symbol, base, version, variant, wrapper, NODE)
#define EXECUTABLE(symbol, base, version, variant, wrapper, parameters, arguments)                 \
    ROW(symbol, base, version, variant, wrapper, EXECUTABLE)
#define NAME(symbol, base, version, variant, wrapper, parameters, arguments)                       \
    ROW(symbol, base, version, variant, wrapper, NAME)
#define LIFETIME(symbol, base, version, variant, wrapper, parameters, arguments)                   \
    ROW(symbol, base, version, variant, wrapper, LIFETIME)
#define ATTRIBUTE(symbol, base, version, variant, wrapper, parameters, arguments)                  \
    ROW(symbol, base, version, variant, wrapper, ATTRIBUTE)
#define RESOLVER(symbol, base, version, variant, wrapper, parameters, arguments)                   \
    ROW(symbol, base, version, variant, wrapper, RESOLVER)

const struct row rows[] = {
#include "preload/entries.def"
};
const size_t row_count = sizeof rows / sizeof rows[0];

/* ---- what the driver must have been asked -----------------------------------------------------
 */

static const struct recording_call *only_launch(size_t *count)
{
    const struct recording_call *found = NULL;

    *count = 0;
    for (size_t i = 0; i < recording.call_count(NULL); i++) {
        const struct recording_call *call = recording.call(i);

        if (strncmp(call->name, "cuLaunch", strlen("cuLaunch")) == 0) {
            found = call;
            ++*count;
        }
    }
    return found;
}

static const char *launch_problem(const struct row *row)
{
    size_t count;
    const struct recording_call *call = only_launch(&count);
    const char *name = row->symbol;
    const CUlaunchAttributeValue *domain;

    if (enforced)
        name = row->per_thread ? "cuLaunchKernelEx_ptsz" : "cuLaunchKernelEx";
    if (count != 1)
        return problem("%zu launches reached the driver", count);
    if (strcmp(call->name, name) != 0)
        return problem("%s was called, not %s", call->name, name);
    if (call->result != CUDA_SUCCESS)
        return problem("the driver answered %d", (int)call->result);
    if (strcmp(call->stream_name, row->per_thread ? "per_thread" : "legacy") != 0)
        return problem("NULL meant the stream %s", call->stream_name);
    domain = effective_attribute(&call->effective, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN);
    if (enforced && (domain == NULL || domain->memSyncDomain != CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE))
        return "the launch is not in the remote domain";
    if (!enforced && domain != NULL)
        return "the launch got a domain";
    if (strcmp(call->kernel, "exercised") != 0 || call->grid[0] != 2 || call->block[0] != 64 ||
        call->shared != 16)
        return problem("another launch than was made: %s", call->text);
    return NULL;
}

/* What the library itself sets besides the program's call. */
static size_t calls_of_our_own(const struct row *row)
{
    const bool sets = strcmp(row->symbol, "cuStreamSetAttribute") == 0 ||
                      strcmp(row->symbol, "cuGraphKernelNodeSetAttribute") == 0;

    return enforced && sets ? 1 : 0;
}

static const char *call_problem(const struct row *row)
{
    const char *name = row->symbol;
    size_t count;

    if (row->category == CATEGORY_LAUNCH)
        return launch_problem(row);
    /* A rule's priority is given at creation. */
    if (enforced && strcmp(name, "cuStreamCreate") == 0)
        name = "cuStreamCreateWithPriority";
    count = recording.call_count(name) - calls_of_our_own(row);
    if (count != 1)
        return problem("%s was called %zu times", name, count);
    return NULL;
}

static const char *exercise(const struct row *row, const struct route *route)
{
    void *function;
    const char *wrong;

    if (route->leads_to != NULL && !route->leads_to(row))
        return "elsewhere";
    if (row->exercise == NULL)
        return "missing";
    if (raw_dlsym(driver_handle, row->symbol) == NULL)
        return "absent";
    function = route->find(row);
    if (function == NULL)
        return "the route gives no function";
    fixture_make();
    recording.forget();
    wrong = row->exercise(row, function);
    if (wrong == NULL)
        wrong = call_problem(row);
    return wrong != NULL ? wrong : "ok";
}

static const struct route *find_route(const char *name)
{
    const struct route *const lists[] = {routes_by_symbol, routes_linked, routes_by_runtime};

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (const struct route *route = lists[i]; route != NULL && route->name != NULL; route++)
            if (strcmp(route->name, name) == 0)
                return route;
    return NULL;
}

int plugin_main(int argc, char **argv)
{
    const struct route *route = argc == 3 ? find_route(argv[1]) : NULL;

    if (route == NULL) {
        fprintf(stderr, "usage: matrix ROUTE enforced|untouched\n");
        return 64;
    }
    enforced = strcmp(argv[2], "enforced") == 0;
    driver_start(route->dlopen_flags);
    for (size_t i = 0; i < row_count; i++) {
        printf("%s\t%s\n", rows[i].symbol, exercise(&rows[i], route));
        fflush(stdout);
    }
    return 0;
}
