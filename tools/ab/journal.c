/* SPDX-License-Identifier: Apache-2.0 */

/* The journal of an experiment, so that it can be continued whatever ends it. */

#include "execute.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "memory.h"
#include "run_options.h"

/* The journal that is being written. It stays open until the next one is begun, or the process
 * ends: its lock goes with any descriptor of the file that the process closes. */
static FILE *journal;
static char *journal_path;

static struct flock whole_file(short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET};
}

/* Two commands that write one journal would mix two orders of runs, on the same GPUs at that. */
static bool lock(int descriptor, const char *path)
{
    struct flock wanted = whole_file(F_WRLCK), holder = whole_file(F_WRLCK);

    if (fcntl(descriptor, F_SETLK, &wanted) == 0) {
        return true;
    }
    if (errno != EACCES && errno != EAGAIN) {
        /* A file system that knows no locks is no reason to lose an experiment. */
        command_error("warning: '%s' cannot be locked (%s): see that no other command goes on with "
                      "this experiment",
                      path, strerror(errno));
        return true;
    }
    if (fcntl(descriptor, F_GETLK, &holder) == 0 && holder.l_type != F_UNLCK && holder.l_pid > 0) {
        command_error("'%s' is in use: process %d makes the runs of this experiment; wait for its "
                      "end, or end it",
                      path, (int)holder.l_pid);
    } else {
        command_error("'%s' is in use: another process, perhaps on another host, makes the runs of "
                      "this experiment; wait for its end, or end it",
                      path);
    }
    return false;
}

/* Ours from here on; flags: of open. */
static bool open_journal(const char *path, int flags)
{
    int descriptor;

    if (journal != NULL) {
        fclose(journal);
        journal = NULL;
    }
    free(journal_path);
    journal_path = memory_copy(path);
    descriptor = open(path, O_RDWR | O_APPEND | O_CLOEXEC | flags, 0666);
    if (descriptor < 0) {
        command_error("cannot open '%s': %s", path, strerror(errno));
        return false;
    }
    if (lock(descriptor, path)) {
        journal = fdopen(descriptor, "a+e");
    }
    if (journal == NULL) {
        close(descriptor);
    }
    return journal != NULL;
}

/* Appends the document as one line. */
static bool append_line(const char *path, json_t *document)
{
    bool open_now = journal != NULL && strcmp(journal_path, path) == 0, written;

    if (!open_now && !open_journal(path, 0)) {
        json_decref(document);
        return false;
    }
    written = json_dumpf(document, journal, JSON_COMPACT) == 0;
    written = written && fputc('\n', journal) != EOF && fflush(journal) == 0;
    /* Some file systems cannot: then it is as safe as they make it. */
    written = written && (fdatasync(fileno(journal)) == 0 || errno == EINVAL || errno == EROFS);
    if (!written) {
        command_error("cannot write '%s': %s", path, strerror(errno));
    }
    json_decref(document);
    return written;
}

bool ab_journal_begin(const struct ab_experiment *experiment, const char *path)
{
    if (access(path, F_OK) == 0) {
        command_error("'%s' is there already: continue that experiment with --resume, or give "
                      "another folder",
                      path);
        return false;
    }
    return open_journal(path, O_CREAT | O_EXCL) &&
           append_line(path, ab_experiment_json(experiment));
}

bool ab_journal_add(const struct ab_experiment *experiment, const struct ab_run *run,
                    const char *path)
{
    return append_line(path, ab_run_json(experiment, run));
}

bool ab_journal_add_line(json_t *document, const char *path)
{
    return append_line(path, document);
}

/* ---- Resume ---- */

struct reading {
    struct ab_experiment *experiment;
    const char *path;
    ab_journal_reader reader;
    void *context;
};

static bool refuse(const char *path, const char *what)
{
    command_error("'%s' cannot be continued: %s", path, what);
    return false;
}

/* A part of the first line, to be released. Where a policy lies does not matter, what it says does.
 */
static json_t *part_of(const json_t *document, const char *key)
{
    json_t *part = json_deep_copy(json_object_get(document, key)), *arm;
    size_t i;

    if (strcmp(key, "arms") == 0) {
        json_array_foreach(part, i, arm)
        {
            json_object_del(arm, "policy");
        }
    }
    return part;
}

/* The first arm, or metric, that is another: "time: definition (a; then: b)". Empty: their number
 * or order alone. To be freed. */
static char *first_difference(const json_t *wanted, const json_t *found)
{
    for (size_t i = 0; i < json_array_size(wanted) && i < json_array_size(found); i++) {
        const json_t *now = json_array_get(wanted, i), *then = json_array_get(found, i);
        char *names = run_options_text(json_object_get(now, "name"));
        char *keys = run_options_keys(now, then), *text;

        if (keys == NULL) {
            free(names);
            continue;
        }
        text = memory_format("%s: %s", names, keys);
        free(names);
        free(keys);
        return text;
    }
    return memory_format("%zu; then: %zu", json_array_size(wanted), json_array_size(found));
}

/* Why the journal is another experiment's; NULL: it is not. To be freed. */
static char *difference(const json_t *wanted, const json_t *found)
{
    static const struct {
        const char *key, *what;
    } parts[] = {
        {"command", "it is about another command"},
        {"live", "it has other steps, slices or runs"},
        {"arms", "it has other arms, or a policy was changed since"},
        {"metrics", "it has other metrics"},
        {"plan",
         "it has another plan, and one that is changed with results at hand proves nothing"},
    };

    const json_t *live = json_object_get(wanted, "live");
    const json_t *found_live = json_object_get(found, "live");
    char *text = NULL;

    if ((live == NULL) != (found_live == NULL)) {
        return memory_format("it was made with%s --live", live == NULL ? "" : "out");
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && text == NULL; i++) {
        json_t *now = part_of(wanted, parts[i].key), *then = part_of(found, parts[i].key);
        char *details = NULL;

        if (now != then && !json_equal(now, then)) {
            details = json_is_object(now)                    ? run_options_keys(now, then)
                      : strcmp(parts[i].key, "command") == 0 ? run_options_pair(now, then)
                                                             : first_difference(now, then);
            text = memory_format("%s: %s", parts[i].what, details);
        }
        free(details);
        json_decref(now);
        json_decref(then);
    }
    return text;
}

/* Of other circumstances it is told; they may be as good. */
static void warn_of_place(const json_t *wanted, const json_t *found)
{
    static const struct {
        const char *key, *what;
    } places[] = {{"host", "host"}, {"gpus", "GPUs"}, {"version", "version of cudapolicy"}};

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const json_t *now = json_object_get(wanted, places[i].key);
        const json_t *before = json_object_get(found, places[i].key);

        if (!json_equal(now, before)) {
            char *texts[] = {run_options_text(now), run_options_text(before)};

            command_error("warning: other %s than when the experiment began: %s, then %s",
                          places[i].what, texts[0], texts[1]);
            free(texts[0]);
            free(texts[1]);
        }
    }
}

/* Whether the runs that follow are made as those that are there. */
static bool options_agree(const json_t *wanted, const json_t *found, const char *path)
{
    const json_t *before = json_object_get(found, "options");
    char *different;

    warn_of_place(wanted, found);
    if (!json_is_object(before)) {
        command_error("warning: '%s' does not say with which options its runs were made", path);
        return true;
    }
    different = run_options_difference(json_object_get(wanted, "options"), before);
    if (different == NULL) {
        return true;
    }
    command_error("'%s' cannot be continued: its runs were made with other options: %s", path,
                  different);
    free(different);
    return false;
}

static bool read_head(struct ab_experiment *experiment, const char *line, const char *path)
{
    char error[256];
    struct ab_experiment found;
    json_t *document = json_loads(line, 0, NULL), *wanted;
    char *fault;
    bool fine;

    if (document == NULL || !ab_experiment_from_json(&found, document, error, sizeof error)) {
        json_decref(document);
        return refuse(path, document == NULL ? "its first line is no JSON" : error);
    }
    if (experiment->plan.seed == 0) {
        experiment->plan.seed = found.plan.seed;
    }
    free(experiment->started);
    experiment->started = found.started;
    found.started = NULL;
    ab_experiment_release(&found);
    wanted = ab_experiment_json(experiment);
    fault = difference(wanted, document);
    fine = fault == NULL ? options_agree(wanted, document, path) : refuse(path, fault);
    free(fault);
    json_decref(wanted);
    json_decref(document);
    return fine;
}

/* One run; false when the line is no run. */
static bool read_run(const struct reading *reading, const char *line, char *error, size_t size)
{
    json_t *document = json_loads(line, 0, NULL);
    bool read = document != NULL && reading->reader(reading->context, document, error, size);

    if (document == NULL) {
        snprintf(error, size, "no JSON");
    }
    json_decref(document);
    return read;
}

static bool read_journal(const struct reading *reading, FILE *file, long *good)
{
    char *line = NULL, error[256];
    size_t size = 0, number = 0;
    ssize_t length;
    bool read = true;

    while (read && (length = getline(&line, &size, file)) > 0) {
        if (line[length - 1] != '\n') {
            break; /* the last one, cut short */
        }
        number++;
        if (number == 1) {
            read = read_head(reading->experiment, line, reading->path);
        } else if (!read_run(reading, line, error, sizeof error)) {
            command_error("%s:%zu: %s", reading->path, number, error);
            read = false;
        }
        *good = ftell(file);
    }
    free(line);
    if (read && number == 0) {
        return refuse(reading->path, "there is nothing in it");
    }
    return read;
}

bool ab_journal_resume_by(struct ab_experiment *experiment, const char *path,
                          ab_journal_reader reader, void *context)
{
    const struct reading reading = {
        .experiment = experiment, .path = path, .reader = reader, .context = context};
    long good = 0;

    if (!open_journal(path, 0) || !read_journal(&reading, journal, &good)) {
        return false;
    }
    if (ftruncate(fileno(journal), good) != 0) {
        command_error("cannot write '%s': %s", path, strerror(errno));
        return false;
    }
    return true;
}

static bool read_into(void *context, const json_t *document, char *error, size_t size)
{
    return ab_run_from_json(context, document, error, size);
}

bool ab_journal_resume(struct ab_experiment *experiment, const char *path)
{
    return ab_journal_resume_by(experiment, path, read_into, experiment);
}
