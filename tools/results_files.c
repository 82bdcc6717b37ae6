/* SPDX-License-Identifier: Apache-2.0 */

/* Reports in files and folders. */

#include "results.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "job_text.h"
#include "memory.h"
#include "report/report.h"

enum {
    FOLDER_DEPTH_LIMIT = 16,
    FOLDER_TRIES = 4,
};

enum file_kind {
    FILE_UNREADABLE, /* with errno */
    FILE_JSON,
    FILE_JOB, /* JSON whose first member says that it is the document of a job */
    FILE_COUNTERS,
    FILE_OTHER,
};

/* A file that may hold reports, and what it held. */
struct candidate {
    char *path;
    bool strict;               /* the user named this very file, so it has to be a report */
    struct job_text_part part; /* the report's place in the file; length 0: the whole of it */
    bool incomplete;           /* holds reports of processes that did not end in good order */
    /* Of the reading, which may be another thread's. */
    json_t *document; /* of one process, or of a job; NULL: none, or not needed */
    char *error;      /* NULL: none */
    bool vanished;    /* was gone before it was read: its process just ended */
};

struct found {
    size_t count, capacity;
    struct candidate *candidates;
    bool vanished; /* one of them, or a folder's entry */
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
        return strstr(start, "\"cudapolicy job\"") != NULL ? FILE_JOB : FILE_JSON;
    }
    return strlen(start) < length ? FILE_COUNTERS : FILE_OTHER;
}

static size_t read_more(void *buffer, size_t size, void *data)
{
    FILE *file = data;
    size_t length = fread_unlocked(buffer, 1, size, file);

    return length == 0 && ferror(file) ? (size_t)-1 : length;
}

/* In blocks: character by character, as jansson reads files, it takes longer. */
static json_t *load_json(const char *path, json_error_t *error)
{
    FILE *file = fopen(path, "re");
    json_t *document = NULL;

    *error = (json_error_t){.line = -1, .column = -1};
    if (file == NULL) {
        snprintf(error->text, sizeof error->text, "%s", strerror(errno));
        return NULL;
    }
    document = json_load_callback(read_more, file, JSON_REJECT_DUPLICATES, error);
    fclose(file);
    return document;
}

static void read_json(struct candidate *candidate)
{
    json_error_t error;
    json_t *document = load_json(candidate->path, &error);
    const char *format = results_text(document, "format");

    if (document == NULL) {
        candidate->error =
            memory_format("%s:%d:%d: %s", candidate->path, error.line, error.column, error.text);
    } else if (candidate->strict || strcmp(format, "cudapolicy report") == 0 ||
               strcmp(format, "cudapolicy job") == 0) {
        candidate->document = document;
    } else {
        json_decref(document);
    }
}

/* One report of a job. */
static void read_part(struct candidate *candidate)
{
    char *text = job_text_read(candidate->path, &candidate->part);
    json_error_t error = {.line = -1, .column = -1};

    if (text == NULL) {
        candidate->error = memory_format("cannot read '%s': %s", candidate->path, strerror(errno));
        return;
    }
    candidate->document =
        json_loadb(text, (size_t)candidate->part.length, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (candidate->document == NULL) {
        candidate->error =
            memory_format("%s: byte %lld: %s", candidate->path,
                          (long long)candidate->part.offset + error.position, error.text);
    }
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

static void read_counters(struct candidate *candidate)
{
    char error[256] = "not understood";

    candidate->document = counters_document(candidate->path, error, sizeof error);
    if (candidate->document == NULL) {
        candidate->error = memory_format("%s: %s", candidate->path, error);
    }
}

/* In any thread. */
static void read_candidate(struct candidate *candidate)
{
    if (candidate->part.length > 0) {
        read_part(candidate);
        return;
    }
    switch (kind_of(candidate->path)) {
    case FILE_JSON:
    case FILE_JOB:
        read_json(candidate);
        return;
    case FILE_COUNTERS:
        if (candidate->strict || strstr(candidate->path, ".counters") != NULL) {
            read_counters(candidate);
        }
        return;
    case FILE_OTHER:
        if (candidate->strict) {
            candidate->error = memory_format("%s: not a report of cudapolicy", candidate->path);
        }
        return;
    case FILE_UNREADABLE:
        break;
    }
    if (!candidate->strict && errno == ENOENT) {
        candidate->vanished = true;
        return;
    }
    candidate->error = memory_format("cannot read '%s': %s", candidate->path, strerror(errno));
}

/* ---- Finding files ------------------------------------------------------------------------------
 */

static void find_part(struct found *found, const char *path, bool strict, struct job_text_part part)
{
    found->candidates =
        memory_grow(found->candidates, found->count, &found->capacity, sizeof *found->candidates);
    found->candidates[found->count++] =
        (struct candidate){.path = memory_copy(path), .strict = strict, .part = part};
}

/* Of a job's document, every report by itself. */
static void find_file(struct found *found, const char *path, bool strict)
{
    struct job_text text;

    if (kind_of(path) != FILE_JOB || !job_text_split(path, &text)) {
        find_part(found, path, strict, (struct job_text_part){0});
        return;
    }
    for (size_t i = 0; i < text.count; i++) {
        find_part(found, path, strict, text.parts[i]);
    }
    job_text_release(&text);
}

static bool find_in_path(struct found *found, const char *path, int depth);

/* Neither hidden files nor reports that are being written: their counters are still there. */
static int may_be_report(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && strstr(entry->d_name, ".json.part") == NULL;
}

static bool find_in_folder(struct found *found, const char *path, int depth)
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

        read = find_in_path(found, entry, depth + 1) && read;
        free(entry);
        free(entries[i]);
    }
    free(entries);
    return read;
}

static bool find_in_path(struct found *found, const char *path, int depth)
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
        return depth >= FOLDER_DEPTH_LIMIT || find_in_folder(found, path, depth);
    }
    if (depth > 0 && !S_ISREG(status.st_mode)) {
        return true;
    }
    find_file(found, path, depth == 0);
    return true;
}

/* ---- Reading them -------------------------------------------------------------------------------
 */

/* Documents are large, and made several times as large by parsing: so many are held at once. */
enum {
    BATCH = 32,
    THREADS = 8,
};

struct batch {
    struct candidate *candidates;
    size_t count;
    atomic_size_t next;
};

static void *read_batch(void *data)
{
    struct batch *batch = data;
    size_t i;

    while ((i = atomic_fetch_add(&batch->next, 1)) < batch->count) {
        read_candidate(&batch->candidates[i]);
    }
    return NULL;
}

static void read_in_threads(struct candidate *candidates, size_t count)
{
    struct batch batch = {.candidates = candidates, .count = count};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t threads[THREADS];
    size_t started = 0;

    json_object_seed(0); /* before there are several */
    while (started < THREADS && started + 1 < count && (long)started + 1 < processors &&
           pthread_create(&threads[started], NULL, read_batch, &batch) == 0) {
        started++;
    }
    read_batch(&batch);
    while (started > 0) {
        pthread_join(threads[--started], NULL);
    }
}

static bool add_document(const struct results_sink *sink, struct candidate *candidate,
                         json_t *document, bool complete)
{
    const char *error;

    if (json_is_true(json_object_get(document, "complete")) != complete) {
        candidate->incomplete = true;
        return true;
    }
    if (sink->add(sink->data, document, &error)) {
        if (sink->added != NULL) {
            sink->added(sink->data, document, candidate->path);
        }
        return true;
    }
    command_error("%s: %s", candidate->path, error);
    return false;
}

/* Adds what was read of a file, and lets go of it. */
static bool add_candidate(const struct results_sink *sink, struct candidate *candidate,
                          bool complete)
{
    bool added = candidate->error == NULL, job = false;
    json_t *process;
    size_t i;

    if (candidate->error != NULL) {
        command_error("%s", candidate->error);
    }
    if (candidate->document != NULL) {
        job = strcmp(results_text(candidate->document, "format"), "cudapolicy job") == 0;
        if (!job) {
            added = add_document(sink, candidate, candidate->document, complete);
        }
    }
    json_array_foreach(job ? json_object_get(candidate->document, "processes") : NULL, i, process)
    {
        added = add_document(sink, candidate, process, complete) && added;
    }
    free(candidate->error);
    candidate->error = NULL;
    json_decref(candidate->document);
    candidate->document = NULL;
    return added;
}

static bool add_files(const struct results_sink *sink, struct found *found, bool complete)
{
    bool added = true;

    for (size_t first = 0; first < found->count; first += BATCH) {
        size_t count = found->count - first < BATCH ? found->count - first : BATCH;
        struct candidate *batch = &found->candidates[first];

        read_in_threads(batch, count);
        for (size_t i = 0; i < count; i++) {
            found->vanished = found->vanished || batch[i].vanished;
            added = add_candidate(sink, &batch[i], complete) && added;
        }
    }
    return added;
}

/* Leaves those that hold a report of a process that did not end in good order. */
static void keep_incomplete(struct found *found)
{
    size_t kept = 0;

    for (size_t i = 0; i < found->count; i++) {
        if (found->candidates[i].incomplete) {
            found->candidates[kept++] = found->candidates[i];
        } else {
            free(found->candidates[i].path);
        }
    }
    found->count = kept;
}

static void forget_found(struct found *found)
{
    for (size_t i = 0; i < found->count; i++) {
        free(found->candidates[i].path);
    }
    free(found->candidates);
    *found = (struct found){0};
}

/* Reports of processes that ended in good order come first, since the counters of such a process,
 * if still there, say less. */
bool results_load_into(const struct results_sink *sink, const char *path)
{
    struct found found = {0};
    bool loaded = find_in_path(&found, path, 0);

    loaded = add_files(sink, &found, true) && loaded;
    /* Where a process put its report in the place of its counters meanwhile, it is there now; what
     * was read before is not added again. */
    for (int tries = 0; found.vanished && tries < FOLDER_TRIES; tries++) {
        forget_found(&found);
        loaded = find_in_path(&found, path, 0);
        loaded = add_files(sink, &found, true) && loaded;
    }
    keep_incomplete(&found);
    loaded = add_files(sink, &found, false) && loaded;
    forget_found(&found);
    return loaded;
}

static bool add_to_results(void *data, json_t *document, const char **error)
{
    return results_add(data, document, error);
}

bool results_load(struct results *results, const char *path)
{
    const struct results_sink sink = {.add = add_to_results, .data = results};

    return results_load_into(&sink, path);
}
