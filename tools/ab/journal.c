/* SPDX-License-Identifier: Apache-2.0 */

/* The journal of an experiment, so that it can be continued whatever ends it. */

#include "execute.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "memory.h"

/* Appends the document as one line; flags: of open. */
static bool append_line(const char *path, json_t *document, int flags)
{
    int descriptor = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | flags, 0666);
    FILE *stream = descriptor >= 0 ? fdopen(descriptor, "a") : NULL;
    bool written = stream != NULL && json_dumpf(document, stream, JSON_COMPACT) == 0;

    written = written && fputc('\n', stream) != EOF && fflush(stream) == 0;
    /* Some file systems cannot: then it is as safe as they make it. */
    written = written && (fdatasync(descriptor) == 0 || errno == EINVAL || errno == EROFS);
    if (!written) {
        command_error("cannot write '%s': %s", path, strerror(errno));
    }
    if (stream != NULL) {
        fclose(stream);
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
    return append_line(path, ab_experiment_json(experiment), O_CREAT | O_EXCL);
}

bool ab_journal_add(const struct ab_experiment *experiment, const struct ab_run *run,
                    const char *path)
{
    return append_line(path, ab_run_json(experiment, run), 0);
}

bool ab_journal_add_line(json_t *document, const char *path)
{
    return append_line(path, document, 0);
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

/* What two journals' arms have to agree in: where a file lies does not matter, what it says does.
 */
static bool same_arms(const json_t *first, const json_t *second)
{
    static const char *const keys[] = {"name", "kind", "role", "policy_sha256"};

    if (json_array_size(first) != json_array_size(second)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(first); i++) {
        for (size_t key = 0; key < sizeof keys / sizeof keys[0]; key++) {
            if (!json_equal(json_object_get(json_array_get(first, i), keys[key]),
                            json_object_get(json_array_get(second, i), keys[key]))) {
                return false;
            }
        }
    }
    return true;
}

static const char *difference(const json_t *wanted, const json_t *found)
{
    const json_t *live = json_object_get(wanted, "live");
    const json_t *found_live = json_object_get(found, "live");

    if (!json_equal(json_object_get(wanted, "command"), json_object_get(found, "command"))) {
        return "it is about another command";
    }
    if (live == NULL || found_live == NULL) {
        if (live != found_live) {
            return live == NULL ? "it was made with --live" : "it was made without --live";
        }
    } else if (!json_equal(live, found_live)) {
        return "it has other steps, slices or runs (--step-kernel, --slice, --drop, --warm-up, "
               "--runs)";
    }
    if (!same_arms(json_object_get(wanted, "arms"), json_object_get(found, "arms"))) {
        return "it has other arms, or a policy was changed since";
    }
    if (!json_equal(json_object_get(wanted, "metrics"), json_object_get(found, "metrics"))) {
        return "it has other metrics";
    }
    if (!json_equal(json_object_get(json_object_get(wanted, "plan"), "seed"),
                    json_object_get(json_object_get(found, "plan"), "seed"))) {
        return "it has another seed";
    }
    if (!json_equal(json_object_get(wanted, "plan"), json_object_get(found, "plan"))) {
        return "it has another plan (blocks or looks, warm-up, claim, alpha, margin): a plan that "
               "is changed with results at hand proves nothing";
    }
    return NULL;
}

static bool read_head(struct ab_experiment *experiment, const char *line, const char *path)
{
    char error[256];
    struct ab_experiment found;
    json_t *document = json_loads(line, 0, NULL), *wanted;
    const char *fault;

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
    json_decref(wanted);
    json_decref(document);
    return fault == NULL || refuse(path, fault);
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
    FILE *file = fopen(path, "re");
    long good = 0;
    bool read;

    if (file == NULL) {
        command_error("cannot read '%s': %s", path, strerror(errno));
        return false;
    }
    read = read_journal(&reading, file, &good);
    fclose(file);
    if (read && truncate(path, good) != 0) {
        command_error("cannot write '%s': %s", path, strerror(errno));
        return false;
    }
    return read;
}

static bool read_into(void *context, const json_t *document, char *error, size_t size)
{
    return ab_run_from_json(context, document, error, size);
}

bool ab_journal_resume(struct ab_experiment *experiment, const char *path)
{
    return ab_journal_resume_by(experiment, path, read_into, experiment);
}
