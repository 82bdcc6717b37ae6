/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"
#include "command.h"
#include "environment.h"
#include "job_group.h"
#include "library_path.h"
#include "memory.h"
#include "nested.h"
#include "policy_environment.h"

/* Of record: no rule, and nothing changed whatever happens. */
static const char empty_policy[] = "[policy]\nversion = 1\nmode = observe\n";
static const char empty_policy_name[] = "empty-policy.ini";

/* A new folder, so that what it holds in the end is this job's alone. */
static bool make_folder(struct job *job)
{
    const char *variable = getenv("TMPDIR");
    const char *base = variable != NULL && variable[0] == '/' ? variable : "/tmp";
    char *path;

    if (job->folder_given != NULL) {
        base = job->folder_given;
        job->keep = true;
        if (mkdir(base, 0777) != 0 && errno != EEXIST) {
            command_error("cannot make the folder '%s': %s", base, strerror(errno));
            return false;
        }
    }
    path = memory_format("%s/cudapolicy-XXXXXX", base);
    job->folder = mkdtemp(path) != NULL ? realpath(path, NULL) : NULL;
    if (job->folder == NULL) {
        command_error("cannot make a folder for reports in '%s': %s", base, strerror(errno));
    }
    free(path);
    return job->folder != NULL;
}

static char *write_empty_policy(const struct job *job)
{
    char *path = memory_format("%s/%s", job->folder, empty_policy_name);
    FILE *file = fopen(path, "we");
    bool written = file != NULL && fputs(empty_policy, file) >= 0;

    if (file != NULL && fclose(file) != 0) {
        written = false;
    }
    if (written) {
        return path;
    }
    command_error("cannot write '%s': %s", path, strerror(errno));
    free(path);
    return NULL;
}

static char *policy_path(const struct job *job)
{
    char *path;

    if (job->policy == NULL) {
        return write_empty_policy(job);
    }
    path = realpath(job->policy, NULL);
    if (path == NULL) {
        command_error("cannot find '%s': %s", job->policy, strerror(errno));
    }
    return path;
}

char *job_report_template(const char *folder)
{
    char *template = memory_allocate(strlen(folder) * 2 + sizeof "/%h-%p.json", 1);
    char *end = template;

    for (; *folder != '\0'; folder++) {
        *end++ = *folder;
        if (*folder == '%') {
            *end++ = '%';
        }
    }
    strcpy(end, "/%h-%p.json");
    return template;
}

static void fill_environment(const struct job *job, const char *library, const char *policy,
                             struct environment *environment)
{
    char *preload = library_path_preload(library, getenv("LD_PRELOAD"));
    char *report = job_report_template(job->folder);

    environment_copy(environment);
    environment_set(environment, "LD_PRELOAD", preload);
    environment_set(environment, "CUDAPOLICY_FILE", policy);
    environment_set(environment, "CUDAPOLICY_REPORT", report);
    if (job->mode != NULL) {
        environment_set(environment, "CUDAPOLICY_MODE", job->mode);
    }
    if (job->log != NULL) {
        environment_set(environment, "CUDAPOLICY_LOG", job->log);
    }
    if (job->strict) {
        environment_set(environment, "CUDAPOLICY_STRICT", "1");
    }
    if (job->loaded != NULL) {
        policy_environment_apply(job->loaded, environment);
    }
    free(preload);
    free(report);
}

int job_run(struct job *job, char **argv)
{
    char *library = library_path_find(job->library);
    char *policy = NULL;
    int status = COMMAND_RUN_FAILED, started = 0;

    job->started = false;
    if (library != NULL && make_folder(job)) {
        policy = policy_path(job);
    }
    if (policy != NULL) {
        struct environment environment;

        fill_environment(job, library, policy, &environment);
        nested_tell();
        opened_begin(&job->opened, library, policy);
        status = child_run(argv, environment.variables, &started);
        opened_end(&job->opened);
        job->opened.inner_run = nested_was_told(job->folder);
        environment_release(&environment);
    }
    free(policy);
    free(library);
    job->started = started != 0;
    return status;
}

static void keep_if_running(struct job *job, const struct results *results)
{
    for (size_t i = 0; i < results->process_count && !job->keep; i++) {
        if (results->processes[i].running &&
            !results_was_replaced(results, &results->processes[i])) {
            job->keep = true;
            command_error("reports stay in '%s', since a process of the job still runs",
                          job->folder);
        }
    }
}

void job_collect(struct job *job, struct results *results)
{
    job->unread = !results_load(results, job->folder);
    keep_if_running(job, results);
}

void job_collect_groups(struct job *job, struct results *results, struct job_groups *groups)
{
    struct job_groups_and_results both = {.groups = groups, .results = results};

    job->unread = !job_groups_load_both(&both, job->folder);
    keep_if_running(job, results);
}

static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        /* The private folder holds only files; the two that are folders cannot be unlinked. */
        unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder != NULL) {
        closedir(folder);
    }
    rmdir(path);
}

void job_release(struct job *job)
{
    if (job->folder != NULL && !job->keep) {
        remove_folder(job->folder);
    }
    free(job->folder);
    job->folder = NULL;
}
