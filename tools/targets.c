/* SPDX-License-Identifier: Apache-2.0 */
#include "targets.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "memory.h"
#include "report/process.h"
#include "report/view.h"
#include "targets_look.h"

enum {
    FOLDER_DEPTH_LIMIT = 16,
};

static struct target *add(struct targets *targets, long pid)
{
    targets->items =
        memory_grow(targets->items, targets->count, &targets->capacity, sizeof *targets->items);
    targets->items[targets->count] = (struct target){.pid = pid};
    return &targets->items[targets->count++];
}

static bool is_there(const struct targets *targets, long pid)
{
    for (size_t i = 0; i < targets->count; i++) {
        if (targets->items[i].pid == pid) {
            return true;
        }
    }
    return false;
}

void targets_release(struct targets *targets)
{
    for (size_t i = 0; i < targets->count; i++) {
        free(targets->items[i].counters);
        free(targets->items[i].problem);
    }
    free(targets->items);
    *targets = (struct targets){0};
}

/* ---- Processes ---------------------------------------------------------------------------------
 */

static long parent_of(long pid)
{
    char *name = memory_format("/proc/%ld/stat", pid), text[1024] = "";
    FILE *file = fopen(name, "re");
    const char *end;
    long parent = 0;

    free(name);
    if (file != NULL) {
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
    }
    end = strrchr(text, ')'); /* of the name, which may hold anything */
    if (end == NULL || sscanf(end, ") %*c %ld", &parent) != 1) {
        return 0;
    }
    return parent;
}

struct pids {
    size_t count, capacity;
    long *items;
};

static struct pids all_pids(void)
{
    DIR *folder = opendir("/proc");
    struct pids pids = {0};
    struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);

        if (*end == '\0' && pid > 0) {
            pids.items = memory_grow(pids.items, pids.count, &pids.capacity, sizeof *pids.items);
            pids.items[pids.count++] = pid;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return pids;
}

static bool is_below(long pid, long ancestor)
{
    for (int steps = 0; pid > 1 && steps < 1000; steps++) {
        pid = parent_of(pid);
        if (pid == ancestor) {
            return true;
        }
    }
    return false;
}

/* A process below that runs under the preload and has no counters; 0: none. */
static long add_below(struct targets *targets, long ancestor)
{
    struct pids pids = all_pids();
    long without = 0;

    for (size_t i = 0; i < pids.count; i++) {
        struct target_look look = {0};

        if (is_below(pids.items[i], ancestor) && !is_there(targets, pids.items[i])) {
            look = target_look_at(pids.items[i]);
        }
        if (look.counters != NULL) {
            add(targets, pids.items[i])->counters = look.counters;
        } else if (look.unusable) {
            add(targets, pids.items[i])->problem = target_explain_missing(pids.items[i], &look);
        } else if (look.preloaded && without == 0) {
            without = pids.items[i];
        }
    }
    free(pids.items);
    return without;
}

static bool find_process(struct targets *targets, long pid, bool children)
{
    struct target_look look = target_look_at(pid);
    size_t before = targets->count;
    long without = 0;

    if (is_there(targets, pid)) {
        free(look.counters);
        return true;
    }
    if (look.counters != NULL) {
        add(targets, pid)->counters = look.counters;
    }
    if (look.counters == NULL || children) {
        without = add_below(targets, pid);
    }
    if (targets->count == before && !look.preloaded && without != 0) {
        /* A launcher, or cudapolicy run: it is the process below that lacks something. */
        look = target_look_at(without);
        pid = without;
        free(look.counters); /* it has them by now: then the next try will do */
    }
    if (targets->count == before) {
        add(targets, pid)->problem = target_explain_missing(pid, &look);
    }
    return true;
}

/* ---- Jobs --------------------------------------------------------------------------------------
 */

static bool is_of_job(const char *counters, const char *job)
{
    struct report_view view;
    char error[256];
    bool found = false;

    if (!report_view_file(&view, counters, error, sizeof error)) {
        return false;
    }
    for (uint32_t i = 0; i < view.header.counts.facts && !found; i++) {
        const struct report_fact_row *row = &view.facts[i];

        found = strcmp(report_view_text(&view, row->section), "job") == 0 &&
                strcmp(report_view_text(&view, row->key), "id") == 0 &&
                strcmp(report_view_text(&view, row->value), job) == 0;
    }
    report_view_free(&view);
    return found;
}

static bool find_job(struct targets *targets, const char *job)
{
    struct pids pids = all_pids();
    bool found = false;

    for (size_t i = 0; i < pids.count; i++) {
        struct target_look look = target_look_at(pids.items[i]);

        if (look.counters != NULL && is_of_job(look.counters, job)) {
            found = true;
            if (!is_there(targets, pids.items[i])) {
                add(targets, pids.items[i])->counters = look.counters;
                continue;
            }
        }
        free(look.counters);
    }
    free(pids.items);
    return found;
}

/* ---- Files -------------------------------------------------------------------------------------
 */

enum file_state {
    FILE_RUNNING,
    FILE_ENDED,
    FILE_WRONG, /* with a message */
};

static enum file_state state_of(const char *path, long *pid, char *error, size_t size)
{
    struct report_view view;
    bool known, running, ended;

    if (!report_view_file(&view, path, error, size)) {
        return FILE_WRONG;
    }
    running = report_process_running(&view.header.process, &known) &&
              targets_may_use((long)view.header.process.pid, path);
    ended = view.header.process.end_time != 0 || (known && !running);
    *pid = running ? (long)view.header.process.pid : 0;
    report_view_free(&view);
    return ended ? FILE_ENDED : FILE_RUNNING;
}

static void find_in_folder(struct targets *targets, const char *path, int depth)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        char *entry = memory_format("%s/%s", path, entries[i]->d_name), error[256];
        struct stat status;
        long pid = 0;

        if (entries[i]->d_name[0] == '.' || lstat(entry, &status) != 0) {
            free(entry);
            entry = NULL;
        } else if (S_ISDIR(status.st_mode) && depth < FOLDER_DEPTH_LIMIT) {
            find_in_folder(targets, entry, depth + 1);
        } else if (S_ISREG(status.st_mode) && strstr(entries[i]->d_name, ".counters") != NULL &&
                   state_of(entry, &pid, error, sizeof error) == FILE_RUNNING &&
                   (pid == 0 || !is_there(targets, pid))) {
            add(targets, pid)->counters = memory_copy(entry);
        }
        free(entry);
        free(entries[i]);
    }
    if (count >= 0) {
        free(entries);
    }
}

static bool find_file(struct targets *targets, const char *path)
{
    char error[512];
    long pid = 0;

    switch (state_of(path, &pid, error, sizeof error)) {
    case FILE_RUNNING:
        add(targets, pid)->counters = memory_copy(path);
        return true;
    case FILE_ENDED:
        command_error("%s: its process is no longer running", path);
        return false;
    case FILE_WRONG:
        break;
    }
    command_error("%s", error);
    return false;
}

static bool find_path(struct targets *targets, const char *path)
{
    struct stat status;
    size_t before = targets->count;

    if (stat(path, &status) != 0) {
        command_error("cannot read '%s': %s", path, strerror(errno));
        return false;
    }
    if (!S_ISDIR(status.st_mode)) {
        return find_file(targets, path);
    }
    find_in_folder(targets, path, 0);
    if (targets->count > before) {
        return true;
    }
    command_error("%s: no counters of a running process in this folder", path);
    return false;
}

/* ---- All ---------------------------------------------------------------------------------------
 */

static bool is_process(const char *text, long *pid)
{
    char *end, *name;
    bool there;

    errno = 0;
    *pid = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || *pid <= 0) {
        return false;
    }
    name = memory_format("/proc/%ld", *pid);
    /* Others' processes may be hidden. */
    there = access(name, F_OK) == 0 || (kill((pid_t)*pid, 0) != 0 && errno == EPERM);
    free(name);
    return there;
}

bool targets_find(struct targets *targets, const char *text, bool children)
{
    const bool is_pid = strncmp(text, "pid:", 4) == 0, is_job = strncmp(text, "job:", 4) == 0;
    struct stat status;
    long pid;

    if (!is_job && is_process(is_pid ? text + 4 : text, &pid)) {
        return find_process(targets, pid, children);
    }
    if (is_pid) {
        command_error("there is no process %s", text + 4);
        return false;
    }
    if (!is_job && (strchr(text, '/') != NULL || stat(text, &status) == 0)) {
        return find_path(targets, text);
    }
    if (find_job(targets, is_job ? text + 4 : text)) {
        return true;
    }
    command_error(is_job ? "%s: no process of that job here, or none that may be looked at"
                         : "%s: neither a process nor a file, nor the job of a process here that "
                           "may be looked at",
                  is_job ? text + 4 : text);
    return false;
}
