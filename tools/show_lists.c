/* SPDX-License-Identifier: Apache-2.0 */
#include "show_lists.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "installed.h"
#include "json_output.h"
#include "library_version.h"
#include "memory.h"
#include "printable.h"
#include "table.h"

enum reader {
    LIBRARY,
    COMMAND,
    SLURM,
    SHELL,
    INTERNAL,
};

static const char *const reader_names[] = {
    [LIBRARY] = "library", [COMMAND] = "command",   [SLURM] = "Slurm",
    [SHELL] = "shell",     [INTERNAL] = "internal",
};

static const struct {
    const char *name, *values, *meaning;
    enum reader reader;
} variables[] = {
#define VARIABLE(name, reader, values, meaning) {name, values, meaning, reader},
#include "variables.def"
};
enum {
    VARIABLE_COUNT = sizeof variables / sizeof variables[0],
};

json_t *variables_json(void)
{
    json_t *array = json_array();

    for (int i = 0; i < VARIABLE_COUNT; i++) {
        json_array_append_new(array,
                              json_pack("{s:s, s:s, s:s, s:s}", "variable", variables[i].name,
                                        "read_by", reader_names[variables[i].reader], "values",
                                        variables[i].values, "meaning", variables[i].meaning));
    }
    return array;
}

void variables_print(bool wide)
{
    struct table *table = table_new();

    table_column(table, "variable", TABLE_LEFT, false);
    table_column(table, "read by", TABLE_LEFT, false);
    table_column(table, "value", TABLE_LEFT, false);
    table_column(table, "meaning", TABLE_LEFT, false);
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        if (variables[i].reader == INTERNAL) {
            continue;
        }
        table_cell(table, "%s", variables[i].name);
        table_cell(table, "%s", reader_names[variables[i].reader]);
        table_cell(table, "%s", variables[i].values);
        table_cell(table, "%s", variables[i].meaning);
    }
    table_print(table, stdout, wide, "");
    puts("A TEMPLATE is a path in which %h stands for the host, %p for the process, %j for the "
         "job,\n"
         "%r for the rank and %% for %. No file is overwritten.");
    table_free(table);
}

/* The first paragraph of the comment with which a policy begins, to be freed: what the policy does.
 */
static char *title_of(const char *path)
{
    FILE *file = fopen(path, "re");
    char *title = memory_copy("");
    char line[400];

    while (file != NULL && fgets(line, sizeof line, file) != NULL && line[0] == '#') {
        const char *text = line + strspn(line, "# ");
        char *longer;

        line[strcspn(line, "\n")] = '\0';
        if (text[0] == '\0') {
            break;
        }
        longer = memory_format("%s%s%s", title, title[0] != '\0' ? " " : "", text);
        free(title);
        title = longer;
    }
    if (file != NULL) {
        fclose(file);
    }
    return title;
}

/* The paths of the policies; false where there are none. */
static bool find_policies(glob_t *found)
{
    char *folder = installed_policies();
    char *pattern;
    int status;

    if (folder == NULL) {
        return false;
    }
    pattern = memory_format("%s/*.ini", folder);
    status = glob(pattern, 0, NULL, found);
    free(pattern);
    free(folder);
    return status == 0;
}

json_t *policies_json(void)
{
    json_t *array = json_array();
    glob_t found;

    if (!find_policies(&found)) {
        return array;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *title = title_of(found.gl_pathv[i]);

        json_array_append_new(array,
                              json_pack("{s:o, s:o}", "path", json_output_string(found.gl_pathv[i]),
                                        "title", json_output_string(title)));
        free(title);
    }
    globfree(&found);
    return array;
}

void policies_print(bool wide)
{
    struct table *table;
    glob_t found;

    if (!find_policies(&found)) {
        puts("the policies that come with cudapolicy are not installed");
        return;
    }
    table = table_new();
    table_column(table, "policy", TABLE_LEFT, false);
    table_column(table, "what it does", TABLE_LEFT, false);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *title = title_of(found.gl_pathv[i]);

        table_cell(table, "%s", found.gl_pathv[i]);
        table_cell(table, "%s", title);
        free(title);
    }
    table_print(table, stdout, wide, "");
    table_free(table);
    globfree(&found);
}

/* CUDAPOLICY_LIBRARY, or the one that belongs to the command; to be freed, NULL: none. */
static char *library_in_use(void)
{
    const char *variable = getenv("CUDAPOLICY_LIBRARY");

    return variable != NULL && variable[0] != '\0' ? memory_copy(variable) : installed_library();
}

void library_print(void)
{
    char *path = library_in_use();
    char *printable = path != NULL ? printable_copy(path) : NULL;
    char *version = path != NULL ? library_version_read(path) : NULL;

    if (path == NULL) {
        puts("library: not found");
    } else {
        printf("library: %s: %s\n", printable, version != NULL ? version : "not one of cudapolicy");
    }
    free(version);
    free(printable);
    free(path);
}

json_t *library_json(void)
{
    char *path = library_in_use();
    char *version = path != NULL ? library_version_read(path) : NULL;
    json_t *library = json_null();

    if (path != NULL) {
        library = json_pack("{s:o, s:o}", "path", json_output_string(path), "version",
                            version != NULL ? json_output_string(version) : json_null());
    }
    free(version);
    free(path);
    return library;
}
