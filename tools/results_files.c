/* SPDX-License-Identifier: Apache-2.0 */

/* Reports in files and folders. */

#include "results.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "memory.h"
#include "report/report.h"

enum {
    FOLDER_DEPTH_LIMIT = 16,
    FOLDER_TRIES = 4,
};

enum file_kind {
    FILE_UNREADABLE, /* with errno */
    FILE_JSON,
    FILE_COUNTERS,
    FILE_OTHER,
};

/* Reports found in files, before they are added: those of processes that ended in good order come
 * first, since their counters, if still there, say less. */
struct found {
    size_t count, capacity;
    json_t **documents;
    bool vanished; /* a file of a folder was gone before it was read: its process just ended */
};

/* By the first bytes: counters begin with a binary header, JSON with a bracket after white space.
 */
static enum file_kind kind_of(const char *path)
{
    char start[64];
    size_t length, blanks;
    FILE *file = fopen(path, "re");
    bool failed;

    if (file == NULL) {
        return FILE_UNREADABLE;
    }
    length = fread(start, 1, sizeof start - 1, file);
    failed = ferror(file) != 0;
    fclose(file);
    if (failed) {
        return FILE_UNREADABLE;
    }
    start[length] = '\0';
    blanks = strspn(start, " \t\r\n");
    if (start[blanks] == '{') {
        return FILE_JSON;
    }
    return strlen(start) < length ? FILE_COUNTERS : FILE_OTHER;
}

static void find_document(struct found *found, json_t *document)
{
    found->documents =
        memory_grow(found->documents, found->count, &found->capacity, sizeof *found->documents);
    found->documents[found->count++] = document;
}

static bool read_json(struct found *found, const char *path, bool strict)
{
    json_error_t error;
    json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, &error), *process;
    const char *format = results_text(document, "format");
    size_t i;

    if (document == NULL) {
        command_error("%s:%d:%d: %s", path, error.line, error.column, error.text);
        return false;
    }
    if (strcmp(format, "cudapolicy job") != 0) {
        if (strict || strcmp(format, "cudapolicy report") == 0) {
            find_document(found, document);
        } else {
            json_decref(document);
        }
        return true;
    }
    json_array_foreach(json_object_get(document, "processes"), i, process)
    {
        find_document(found, json_incref(process));
    }
    json_decref(document);
    return true;
}

static json_t *counters_document(const char *path, char *error, size_t size)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    json_t *document = NULL;
    bool made;

    if (stream == NULL) {
        snprintf(error, size, "%s", strerror(errno));
        return NULL;
    }
    made = report_counters_to_json(path, stream, error, size);
    fclose(stream);
    if (made) {
        document = json_loadb(text, length, 0, NULL);
    }
    free(text);
    return document;
}

static bool read_counters(struct found *found, const char *path)
{
    char error[256] = "not understood";
    json_t *document = counters_document(path, error, sizeof error);

    if (document == NULL) {
        command_error("%s: %s", path, error);
        return false;
    }
    find_document(found, document);
    return true;
}

/* strict: the user named this very file, so it has to be a report. */
static bool read_file(struct found *found, const char *path, bool strict)
{
    switch (kind_of(path)) {
    case FILE_JSON:
        return read_json(found, path, strict);
    case FILE_COUNTERS:
        return (strict || strstr(path, ".counters") != NULL) ? read_counters(found, path) : true;
    case FILE_OTHER:
        if (strict) {
            command_error("%s: not a report of cudapolicy", path);
        }
        return !strict;
    case FILE_UNREADABLE:
        break;
    }
    if (!strict && errno == ENOENT) {
        found->vanished = true;
        return true;
    }
    command_error("cannot read '%s': %s", path, strerror(errno));
    return false;
}

static bool read_path(struct found *found, const char *path, int depth);

/* Neither hidden files nor reports that are being written: their counters are still there. */
static int may_be_report(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && strstr(entry->d_name, ".json.part") == NULL;
}

static bool read_folder(struct found *found, const char *path, int depth)
{
    struct dirent **entries;
    int count = scandir(path, &entries, may_be_report, alphasort);
    bool read = true;

    if (count < 0) {
        command_error("cannot read the folder '%s': %s", path, strerror(errno));
        return false;
    }
    for (int i = 0; i < count; i++) {
        char *entry = memory_format("%s/%s", path, entries[i]->d_name);

        read = read_path(found, entry, depth + 1) && read;
        free(entry);
        free(entries[i]);
    }
    free(entries);
    return read;
}

static bool read_path(struct found *found, const char *path, int depth)
{
    struct stat status;
    /* A link that the user names is followed; links in folders could lead anywhere. */
    int result = depth == 0 ? stat(path, &status) : lstat(path, &status);

    if (result != 0 && depth > 0 && errno == ENOENT) {
        found->vanished = true;
        return true;
    }
    if (result != 0) {
        command_error("cannot read '%s': %s", path, strerror(errno));
        return false;
    }
    if (S_ISDIR(status.st_mode)) {
        return depth >= FOLDER_DEPTH_LIMIT || read_folder(found, path, depth);
    }
    if (depth > 0 && !S_ISREG(status.st_mode)) {
        return true;
    }
    return read_file(found, path, depth == 0);
}

static bool add_found(struct results *results, const struct found *found, const char *path,
                      bool complete)
{
    bool added = true;

    for (size_t i = 0; i < found->count; i++) {
        json_t *document = found->documents[i];
        const char *error;

        if (json_is_true(json_object_get(document, "complete")) != complete) {
            continue;
        }
        if (!results_add(results, document, &error)) {
            command_error("%s: %s", path, error);
            added = false;
        }
    }
    return added;
}

static void forget_found(struct found *found)
{
    for (size_t i = 0; i < found->count; i++) {
        json_decref(found->documents[i]);
    }
    free(found->documents);
    *found = (struct found){0};
}

bool results_load(struct results *results, const char *path)
{
    struct found found = {0};
    bool loaded = read_path(&found, path, 0);

    /* Where a process put its report in the place of its counters meanwhile, it is there now. */
    for (int tries = 0; found.vanished && tries < FOLDER_TRIES; tries++) {
        forget_found(&found);
        loaded = read_path(&found, path, 0);
    }
    loaded = add_found(results, &found, path, true) && loaded;
    loaded = add_found(results, &found, path, false) && loaded;
    forget_found(&found);
    return loaded;
}
