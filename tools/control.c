/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "memory.h"
#include "policy_input.h"
#include "report/process.h"
#include "report/view.h"
#include "results.h"

static __attribute__((format(printf, 3, 4))) void
end_with(struct control_process *process, enum control_outcome outcome, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    free(process->message);
    process->message = memory_copy(text);
    process->outcome = outcome;
}

const char *control_outcome_name(enum control_outcome outcome)
{
    static const char *const names[] = {
        [CONTROL_DONE] = "done",
        [CONTROL_SENT] = "sent",
        [CONTROL_REFUSED] = "refused",
        [CONTROL_FAILED] = "failed",
    };

    return names[outcome];
}

void control_release(struct control_process *process)
{
    free(process->program);
    free(process->host);
    free(process->mode);
    free(process->policy_path);
    free(process->policy_sha256);
    free(process->last_reload);
    free(process->started);
    free(process->message);
    json_decref(process->report);
    *process = (struct control_process){0};
}

/* ---- What is known of it -----------------------------------------------------------------------
 */

static json_t *read_report(const char *counters, char *error, size_t size)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    json_t *report = NULL;
    bool made = stream != NULL && report_counters_to_json(counters, stream, error, size);

    if (stream != NULL) {
        fclose(stream);
    }
    if (made) {
        report = json_loadb(text, length, 0, NULL);
    }
    free(text);
    return report;
}

static void take_text(char **to, const json_t *object, const char *key)
{
    free(*to);
    *to = memory_copy(results_text(object, key));
}

static void take_facts(struct control_process *process)
{
    const json_t *facts = json_object_get(process->report, "facts");
    const json_t *about = json_object_get(process->report, "process");
    const json_t *policy = json_object_get(facts, "policy");

    take_text(&process->program, about, "argv0");
    take_text(&process->host, about, "host");
    take_text(&process->started, about, "start");
    take_text(&process->mode, process->report, "mode");
    take_text(&process->policy_path, policy, "file");
    if (process->policy_path[0] == '\0') {
        take_text(&process->policy_path, policy, "path");
    }
    take_text(&process->policy_sha256, policy, "sha256");
    take_text(&process->last_reload, policy, "last_reload");
    if (process->target->pid == 0) {
        process->pid = (long)results_number(about, "pid");
    }
    process->launches = results_number(process->report, "launches");
}

/* Whether the process is still the program whose counters these are. */
static bool may_run(const struct report_view *view, const char *counters)
{
    bool known, running = report_process_running(&view->header.process, &known);

    return view->header.process.end_time == 0 &&
           (running ? targets_may_use((long)view->header.process.pid, counters) : !known);
}

static bool runs_still(const char *counters)
{
    struct report_view view;
    char error[256];
    bool runs = report_view_file(&view, counters, error, sizeof error);

    if (runs) {
        runs = may_run(&view, counters);
        report_view_free(&view);
    }
    return runs;
}

static void read_again(struct control_process *process)
{
    char error[512] = "its counters cannot be understood";
    struct report_view view;
    json_t *report;

    if (!report_view_file(&view, process->target->counters, error, sizeof error)) {
        /* A process takes its counters away when it ends. */
        end_with(process, CONTROL_FAILED, "%s",
                 access(process->target->counters, F_OK) != 0 && errno == ENOENT
                     ? "it is no longer running"
                     : error);
        return;
    }
    process->generation = view.header.control.part.generation;
    process->acted = (uint16_t)view.header.exchange.generation;
    if (view.truncated) {
        end_with(process, CONTROL_FAILED, "%s: the file is damaged", process->target->counters);
    } else if (!may_run(&view, process->target->counters)) {
        end_with(process, CONTROL_FAILED, "it is no longer running");
    }
    report_view_free(&view);
    report = read_report(process->target->counters, error, sizeof error);
    if (report == NULL) {
        end_with(process, CONTROL_FAILED, "%s", error);
        return;
    }
    json_decref(process->report);
    process->report = report;
    take_facts(process);
}

void control_look(struct control_process *process, const struct target *target)
{
    *process = (struct control_process){.target = target, .pid = target->pid};
    if (target->counters == NULL) {
        end_with(process, CONTROL_FAILED, "%s", target->problem);
        return;
    }
    read_again(process);
}

/* ---- Mode --------------------------------------------------------------------------------------
 */

/* Also the process itself goes no higher; here its user hears why. */
static bool is_above_ceiling(const struct control_process *process, enum policy_mode mode)
{
    const json_t *site = json_object_get(json_object_get(process->report, "facts"), "site");
    enum policy_mode ceiling;

    return policy_mode_parse(results_text(site, "mode_ceiling"), &ceiling) &&
           policy_mode_lower(mode, ceiling) != mode;
}

void control_set_mode(struct control_process *process, enum policy_mode mode)
{
    char error[512];

    if (is_above_ceiling(process, mode)) {
        end_with(process, CONTROL_REFUSED,
                 "the mode %s is above the mode_ceiling of the site; it stays %s",
                 policy_mode_name(mode), process->mode);
        return;
    }
    if (!report_counters_set_mode(process->target->counters, (uint8_t)mode, error, sizeof error)) {
        end_with(process, CONTROL_FAILED, "%s", error);
        return;
    }
    end_with(process, CONTROL_DONE, "mode %s, which was %s, from its next launch on",
             policy_mode_name(mode), process->mode);
    free(process->mode);
    process->mode = memory_copy(policy_mode_name(mode));
    process->generation++;
}

/* ---- Reload ------------------------------------------------------------------------------------
 */

/* The policy's file as the process sees it, which may live in a container; under its plain name
 * where that is the same file. */
static char *policy_file(const struct control_process *process)
{
    char *seen = memory_format("/proc/%ld/root%s", process->target->pid, process->policy_path);
    struct stat ours, theirs;

    if (process->target->pid == 0 || stat(seen, &theirs) != 0 ||
        (stat(process->policy_path, &ours) == 0 && ours.st_dev == theirs.st_dev &&
         ours.st_ino == theirs.st_ino)) {
        free(seen);
        seen = memory_copy(process->policy_path);
    }
    return seen;
}

/* Names by which a process has what it had opened when it started: a pipe that a shell made, or its
 * standard input. What came through that is gone, and the name means another file to us. */
static bool is_descriptor(const char *path)
{
    static const char *const names[] = {"/dev/fd/", "/dev/stdin", "/proc/self/"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(path, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* False: it need not be asked, for the reason that the process ends with. A file that may not be
 * read from here may still be one for the process. */
static bool check_policy(struct control_process *process)
{
    char *file = policy_file(process);
    bool readable = access(file, R_OK) == 0, unreadable = false;
    struct policy *policy = readable ? policy_input_require(file, false, &unreadable) : NULL;

    free(file);
    if (readable && policy == NULL) {
        end_with(process, CONTROL_REFUSED, "the policy %s, so it was not asked to read it",
                 unreadable ? "cannot be read" : "has errors");
    }
    policy_free(policy);
    return !readable || policy != NULL;
}

static bool may_reload(struct control_process *process)
{
    if (is_descriptor(process->policy_path)) {
        end_with(process, CONTROL_REFUSED,
                 "its policy came through '%s', which cannot be read again: start it with a file",
                 process->policy_path);
        return false;
    }
    return process->policy_path[0] != '/' || check_policy(process);
}

void control_reload(struct control_process *process)
{
    char error[512];

    if (!may_reload(process)) {
        return;
    }
    if (!report_counters_reload(process->target->counters, &process->wanted, error, sizeof error)) {
        end_with(process, CONTROL_FAILED, "%s", error);
    } else {
        process->outcome = CONTROL_SENT;
    }
}

double control_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The process has the new rules, and cannot have the new variables. */
static bool needs_restart(const struct control_process *process)
{
    const json_t *policy = json_object_get(json_object_get(process->report, "facts"), "policy");

    return results_text(policy, "needs_restart")[0] != '\0';
}

static void take_answer(struct control_process *process, const struct report_exchange *exchange)
{
    read_again(process);
    if (process->outcome == CONTROL_FAILED) { /* it ended right after its answer */
        process->outcome = CONTROL_SENT;
    }
    if (exchange->reload_outcome == REPORT_RELOAD_DONE) {
        end_with(process, CONTROL_DONE, "policy read again: %s%s", process->policy_path,
                 needs_restart(process)
                     ? "; its [env] differs, and needs a new start of the program"
                     : "");
    } else {
        char *reason = memory_copy(process->last_reload);

        end_with(process, CONTROL_REFUSED, "the policy before stays: %s", reason);
        free(reason);
    }
}

void control_await(struct control_process *process, double deadline)
{
    const struct timespec pause = {0, 5000000};
    const int between_looks = 20; /* a tenth of a second */
    struct report_exchange exchange;
    bool ended = false;
    const double start = control_now();

    if (process->outcome != CONTROL_SENT) {
        return;
    }
    for (int reads = 1; report_counters_answer(process->target->counters, &exchange, &ended);
         reads++) {
        /* Later requests are answered together with this one. */
        if ((int32_t)(exchange.reload_answered - process->wanted) >= 0) {
            take_answer(process, &exchange);
            return;
        }
        if (control_now() >= deadline ||
            (reads % between_looks == 0 && !runs_still(process->target->counters))) {
            break;
        }
        nanosleep(&pause, NULL);
    }
    if (ended || !runs_still(process->target->counters)) {
        end_with(process, CONTROL_FAILED, "it ended before it read the policy again");
        return;
    }
    if (deadline <= start) {
        end_with(process, CONTROL_SENT, "sent: it reads the policy again at its next launch");
        return;
    }
    end_with(process, CONTROL_SENT,
             "not done after %.3g s: it launched nothing meanwhile, and reads the policy again at "
             "its next launch",
             control_now() - start);
}
