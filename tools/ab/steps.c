/* SPDX-License-Identifier: Apache-2.0 */
#include "steps.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "decide/kernel_name.h"
#include "memory.h"
#include "report/watch.h"

enum {
    /* New files are looked for at every so many readings. */
    SCAN_EVERY = 4,
    /* Samples of a process that are kept; then every other one is dropped. */
    SAMPLE_LIMIT = 16384, /* even */
    PROCESS_LIMIT = 4096,
    PROBLEM_SIZE = sizeof((struct ab_steps *)0)->problem,
};

/* Graph launches, on the default stream of the process and of the thread. */
static const char *const graph_launches[] = {"cuGraphLaunch", "cuGraphLaunch_ptsz", NULL};

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

void ab_steps_start(struct ab_steps *steps, const char *folder, const char *kernel)
{
    *steps = (struct ab_steps){.folder = memory_copy(folder),
                               .kernel = kernel == NULL ? NULL : memory_copy(kernel)};
}

/* As a policy's `name` does; what begins like a mangled name is matched with that. */
static bool is_step_kernel(const char *mangled, void *context)
{
    const char *glob = context;
    struct kernel_name name;
    bool matches;

    if (!kernel_name_make(mangled, &name)) {
        return false;
    }
    matches = kernel_name_matches(
        &name, strncmp(glob, "_Z", 2) == 0 ? POLICY_NAME_FORM_MANGLED : POLICY_NAME_FORM_NAME,
        glob);
    kernel_name_release(&name);
    return matches;
}

/* ---- Files ---------------------------------------------------------------------------------- */

static bool is_known(const struct ab_steps *steps, const struct stat *status)
{
    for (size_t i = 0; i < steps->process_count; i++) {
        const struct ab_step_process *process = &steps->processes[i];

        if (process->device == status->st_dev && process->inode == status->st_ino &&
            !process->removed) {
            return true;
        }
    }
    return false;
}

static void open_process(struct ab_steps *steps, const char *path, const struct stat *status)
{
    struct report_watch_wanted wanted = {0};
    struct ab_step_process process = {.device = status->st_dev, .inode = status->st_ino};
    char problem[PROBLEM_SIZE] = "";
    enum report_watch_state state;

    if (steps->kernel == NULL) {
        wanted.entries = graph_launches;
    } else {
        wanted.kernel = is_step_kernel;
        wanted.context = steps->kernel;
    }
    state = report_watch_open(&process.watch, path, &wanted, problem, sizeof problem);
    if (state == REPORT_WATCH_EARLY) {
        return;
    }
    if (state == REPORT_WATCH_NEVER) {
        memcpy(steps->problem, problem, sizeof problem);
    } else {
        process.pid = report_watch_pid(process.watch);
        process.device = report_watch_device(process.watch);
        process.inode = report_watch_inode(process.watch);
    }
    process.counters = memory_copy(path);
    process.stride = 1;
    steps->processes = memory_grow(steps->processes, steps->process_count, &steps->process_capacity,
                                   sizeof *steps->processes);
    steps->processes[steps->process_count++] = process;
}

/* Files that are new. The name alone tells counters from reports: ".counters", or ".counters.1" and
 * so on where that was taken. */
static void scan(struct ab_steps *steps)
{
    DIR *folder = opendir(steps->folder);
    const struct dirent *entry;

    while (folder != NULL && steps->process_count < PROCESS_LIMIT &&
           (entry = readdir(folder)) != NULL) {
        struct stat status;
        char *path;

        if (strstr(entry->d_name, ".counters") == NULL ||
            fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode) || is_known(steps, &status)) {
            continue;
        }
        path = memory_format("%s/%s", steps->folder, entry->d_name);
        open_process(steps, path, &status);
        free(path);
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

/* ---- Samples -------------------------------------------------------------------------------- */

/* The last one stays too, to be replaced: see add_sample. */
static void drop_every_other(struct ab_step_process *process)
{
    size_t kept = 0;

    for (size_t i = 0; i < process->sample_count; i += 2) {
        process->samples[kept++] = process->samples[i];
    }
    process->samples[kept++] = process->samples[process->sample_count - 1];
    process->sample_count = kept;
    process->age = process->stride;
    process->stride *= 2;
}

/* With a stride, the last sample is replaced until it is so many changes away from the one before:
 * the newest count is always there. */
static void add_sample(struct ab_step_process *process, int64_t time, int64_t count)
{
    if (process->sample_count == SAMPLE_LIMIT && process->age >= process->stride) {
        drop_every_other(process);
    }
    if (process->age >= process->stride || process->sample_count == 0) {
        process->samples = memory_grow(process->samples, process->sample_count,
                                       &process->sample_capacity, sizeof *process->samples);
        process->sample_count++;
        process->age = 0;
    }
    process->samples[process->sample_count - 1] = (struct ab_step_sample){time, count};
    process->age++;
}

static void read_process(struct ab_step_process *process)
{
    int64_t time = now(), before = 0;
    uint64_t count;

    if (process->sample_count > 0) {
        before = process->samples[process->sample_count - 1].count;
    }
    /* One that was cut short, or in which counts went down, tells nothing more. */
    if (report_watch_read(process->watch, &count) && count <= INT64_MAX &&
        (int64_t)count > before) {
        add_sample(process, time, (int64_t)count);
    }
}

static void close_process(struct ab_step_process *process)
{
    report_watch_close(process->watch);
    process->watch = NULL;
    process->removed = true;
}

void ab_steps_sample(struct ab_steps *steps)
{
    bool look = steps->readings++ % SCAN_EVERY == 0;

    if (look) {
        scan(steps);
    }
    for (size_t i = 0; i < steps->process_count; i++) {
        struct ab_step_process *process = &steps->processes[i];
        /* Asked before the last reading: nothing is counted any more after it. */
        bool last = look && process->watch != NULL && report_watch_removed(process->watch);

        if (process->watch != NULL) {
            read_process(process);
        }
        if (last) {
            close_process(process);
        }
    }
}

double *ab_steps_values(const struct ab_step_process *process, size_t *count, int64_t **weights)
{
    double *values;

    *count = process->sample_count < 2 ? 0 : process->sample_count - 1;
    *weights = NULL;
    if (*count == 0) {
        return NULL;
    }
    values = memory_allocate(*count, sizeof *values);
    *weights = memory_allocate(*count, sizeof **weights);
    for (size_t i = 0; i < *count; i++) {
        const struct ab_step_sample *from = &process->samples[i], *to = from + 1;

        (*weights)[i] = to->count - from->count;
        values[i] = (double)(to->time - from->time) / 1e9 / (double)(*weights)[i];
    }
    return values;
}

void ab_steps_release(struct ab_steps *steps)
{
    for (size_t i = 0; i < steps->process_count; i++) {
        struct ab_step_process *process = &steps->processes[i];

        if (process->watch != NULL) {
            report_watch_close(process->watch);
        }
        free(process->counters);
        free(process->samples);
    }
    free(steps->processes);
    free(steps->folder);
    free(steps->kernel);
    *steps = (struct ab_steps){0};
}
