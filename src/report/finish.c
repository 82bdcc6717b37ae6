/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/counters.h"
#include "report/files.h"
#include "report/json.h"
#include "report/log.h"
#include "report/mapped.h"
#include "report/process.h"
#include "report/report.h"
#include "report/steps.h"
#include "report/tables.h"
#include "report/view.h"

static bool finished;
static char written_path[PATH_MAX];
static char copy_path[PATH_MAX];

static void (*completing)(struct json_t *report); /* atomic */

void report_completing(void (*complete)(struct json_t *report))
{
    __atomic_store_n(&completing, complete, __ATOMIC_RELEASE);
}

const char *report_written_path(void)
{
    return written_path[0] == '\0' ? NULL : written_path;
}

const char *report_counters_path(void)
{
    return report_image_file();
}

/* Under a temporary name beside the final one: a reader never sees half a report. made: the name
 * that it got. */
static bool write_text(const char *text, const char *path, char *made, size_t size)
{
    char temporary[PATH_MAX], wanted[PATH_MAX + sizeof ".part"];
    snprintf(wanted, sizeof wanted, "%s.part", path);
    int descriptor = report_file_create(wanted, temporary, sizeof temporary);
    if (descriptor < 0)
        return false;
    bool written =
        report_file_write(descriptor, text, strlen(text)) && report_file_write(descriptor, "\n", 1);
    written = close(descriptor) == 0 && written;
    if (written && report_file_publish(temporary, path, made, size))
        return true;
    int error_number = errno;
    made[0] = '\0';
    unlink(temporary);
    errno = error_number;
    return false;
}

static json_t *complete_json(struct report_view *view)
{
    void (*complete)(struct json_t *) = __atomic_load_n(&completing, __ATOMIC_ACQUIRE);
    json_t *report = report_json(view);
    if (report != NULL && complete != NULL)
        complete(report);
    return report;
}

static void write_copy(const char *text)
{
    char made[PATH_MAX];
    if (copy_path[0] == '\0')
        return;
    errno = ENOMEM;
    if (text == NULL || !write_text(text, copy_path, made, sizeof made))
        report_log(REPORT_LOG_INFO, "copy of the report %s cannot be written: %m", copy_path);
}

static bool write_view(struct report_view *view, const char *path)
{
    json_t *report = complete_json(view);
    char *text = report == NULL ? NULL : json_dumps(report, JSON_INDENT(1));
    bool written = false;
    if (text != NULL)
        written = write_text(text, path, written_path, sizeof written_path);
    else
        errno = ENOMEM;
    int error_number = errno;
    write_copy(text);
    free(text);
    json_decref(report);
    errno = error_number;
    return written;
}

static void say_unwritten(const char *path)
{
    if (report_image_file() == NULL)
        report_log(report_image_trouble, "report %s cannot be written: %m", path);
    else
        report_log(report_image_trouble,
                   "report %s cannot be written: %m; the counters stay in %s (cudapolicy report "
                   "reads them)",
                   path, report_image_file());
}

/* Nobody wants the report, but something may be said of it. */
static void finish_unwritten(void)
{
    struct report_view view;
    char error[256];
    if (__atomic_load_n(&completing, __ATOMIC_ACQUIRE) == NULL ||
        !report_view_image(&view, error, sizeof error))
        return;
    if (report_view_total(&view) != 0)
        json_decref(complete_json(&view));
    report_view_free(&view);
}

static void finish(const char *path)
{
    struct report_view view;
    char error[256];
    __atomic_store_n(&report_image_header()->process.end_time, report_time(), __ATOMIC_RELEASE);
    if (!report_view_image(&view, error, sizeof error)) {
        report_log(report_image_trouble, "report %s cannot be written: %s", path, error);
        return;
    }
    /* A process that made calls but launched nothing has nothing to tell. */
    if (report_view_total(&view) == 0 || write_view(&view, path))
        report_image_remove_file();
    else
        say_unwritten(path);
    report_view_free(&view);
}

void report_finish(void)
{
    struct report_quiet quiet;
    report_lock();
    bool first = !finished && report_image != NULL;
    finished = finished || first;
    if (first)
        report_image_detach();
    report_unlock();
    if (!first)
        return;
    report_quiet_begin(&quiet);
    if (report_image_json_path() != NULL)
        finish(report_image_json_path());
    else
        finish_unwritten();
    report_quiet_end(&quiet);
}

void report_copy(const char *path)
{
    if (path == NULL || !report_path_absolute(path, copy_path, sizeof copy_path))
        copy_path[0] = '\0';
}

void report_after_fork(const char *path)
{
    int error_number = errno;
    report_shard = NULL; /* the parent's goes */
    report_image_after_fork();
    report_tables_after_fork();
    report_counters_after_fork();
    report_steps_after_fork();
    report_image_path(path);
    finished = false;
    written_path[0] = '\0';
    errno = error_number;
}

bool report_counters_to_json(const char *counters_path, FILE *stream, char *error, size_t size)
{
    struct report_view view;
    if (!report_view_file(&view, counters_path, error, size))
        return false;
    json_t *report = report_json(&view);
    report_view_free(&view);
    if (report == NULL) {
        snprintf(error, size, "out of memory");
        return false;
    }
    bool written = json_dumpf(report, stream, JSON_INDENT(1)) == 0 && fputc('\n', stream) != EOF &&
                   fflush(stream) == 0;
    if (!written)
        snprintf(error, size, "%m");
    json_decref(report);
    return written;
}
