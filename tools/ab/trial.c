/* SPDX-License-Identifier: Apache-2.0 */
#include "trial.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "memory.h"
#include "metric.h"
#include "process_group.h"
#include "results.h"
#include "summary.h"
#include "trial_parts.h"

enum {
    GPU_INTERVAL = 200, /* milliseconds */
};

void ab_trial_catch_signals(void)
{
    process_group_catch_signals();
}

bool ab_trial_interrupted(void)
{
    return process_group_interrupted();
}

/* ---- Names ---- */

char *ab_trial_run_name(const struct ab_run *run)
{
    return memory_format("%s%u-%u", run->warm_up ? "w" : "", run->block, run->position);
}

char *ab_trial_folder(const struct ab_experiment *experiment,
                      const struct ab_trial_options *options, const struct ab_run *run)
{
    char *name = ab_trial_run_name(run);
    char *path =
        memory_format("%s/runs/%s-%s", options->folder, name, experiment->arms[run->arm].name);

    free(name);
    return path;
}

/* What stands in place of the name in braces; NULL: nothing known. To be freed. */
static char *replacement(const char *name, size_t length, const struct ab_experiment *experiment,
                         const struct ab_run *run, const char *folder)
{
    static const char *const names[] = {"arm", "block", "position", "run", "folder"};
    size_t which = 0;

    while (which < 5 && (strlen(names[which]) != length || strncmp(name, names[which], length))) {
        which++;
    }
    switch (which) {
    case 0:
        return memory_copy(experiment->arms[run->arm].name);
    case 1:
        return memory_format("%u", run->block);
    case 2:
        return memory_format("%u", run->position);
    case 3:
        return ab_trial_run_name(run);
    case 4:
        return memory_copy(folder);
    default:
        return NULL;
    }
}

char *ab_trial_expand(const char *text, const struct ab_experiment *experiment,
                      const struct ab_run *run, const char *folder)
{
    char *expanded = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&expanded, &size);

    while (stream != NULL && *text != '\0') {
        bool doubled = strncmp(text, "{{", 2) == 0;
        const char *name = text + 1 + doubled;
        size_t length = *text == '{' ? strcspn(name, "{}") : 0;
        char *value = NULL;

        if (length > 0 && strncmp(name + length, doubled ? "}}" : "}", 1 + (size_t)doubled) == 0) {
            value = replacement(name, length, experiment, run, folder);
        }
        if (value == NULL) {
            fputc(*text++, stream);
        } else if (doubled) {
            fprintf(stream, "{%.*s}", (int)length, name);
            text = name + length + 2;
        } else {
            fputs(value, stream);
            text = name + length + 1;
        }
        free(value);
    }
    if (stream == NULL || fclose(stream) != 0) {
        command_error("out of memory");
        exit(memory_failure_status);
    }
    return expanded;
}

/* ---- Files ---- */

static void remove_files(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        /* "." and ".." cannot be unlinked, nor what the command itself put there as folders. */
        unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder != NULL) {
        closedir(folder);
    }
    rmdir(path);
}

static bool make_folder(const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST) {
        return true;
    }
    command_error("cannot make the folder '%s': %s", path, strerror(errno));
    return false;
}

bool ab_trial_make_folders(const struct ab_trial_options *options)
{
    static const char text[] = "[policy]\nversion = 1\nmode = observe\n";
    char *runs = memory_format("%s/runs", options->folder);
    char *observe = trial_observe_policy(options);
    bool made = make_folder(runs);

    if (made) {
        FILE *file = fopen(observe, "we");

        made = file != NULL && fputs(text, file) >= 0;
        made = file != NULL && fclose(file) == 0 && made;
        if (!made) {
            command_error("cannot write '%s': %s", observe, strerror(errno));
        }
    }
    free(observe);
    free(runs);
    return made;
}

/* A file that a run which was interrupted, or an earlier try of it, left is emptied. */
int trial_open_output(const char *path)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);

    if (descriptor < 0) {
        command_error("cannot write '%s': %s", path, strerror(errno));
    }
    return descriptor;
}

static bool begin(struct trial *trial)
{
    trial->folder = ab_trial_folder(trial->experiment, trial->options, trial->run);
    trial->output = memory_format("%s/stdout", trial->folder);
    trial->errors = memory_format("%s/stderr", trial->folder);
    trial->reports = memory_format("%s/reports", trial->folder);
    remove_files(trial->reports);
    return make_folder(trial->folder) && make_folder(trial->reports);
}

static void show_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char bytes[4096];
    size_t length;

    while (file != NULL && (length = fread(bytes, 1, sizeof bytes, file)) > 0) {
        fwrite(bytes, 1, length, stderr);
    }
    if (file != NULL) {
        fclose(file);
    }
}

static void finish(struct trial *trial)
{
    static const char *const hooks[] = {"prepare", "check", "cleanup"};
    /* Also where a metric that does not decide is missing. */
    bool failed = trial->run->outcome != AB_INTERRUPTED && trial->run->message != NULL;

    if (trial->options->show_output) {
        show_file(trial->output);
        show_file(trial->errors);
    }
    if (!trial->options->keep_reports) {
        remove_files(trial->reports);
    }
    if (!trial->options->keep_output && !failed) {
        unlink(trial->output);
        unlink(trial->errors);
        for (size_t i = 0; i < sizeof hooks / sizeof hooks[0]; i++) {
            char *path = memory_format("%s/%s", trial->folder, hooks[i]);

            unlink(path);
            free(path);
        }
    }
    rmdir(trial->folder); /* where nothing is kept */
    free(trial->folder);
    free(trial->output);
    free(trial->errors);
    free(trial->reports);
}

/* ---- The command ---- */

char *trial_wait_status_text(int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        return memory_format("ended by signal %d (%s)", WTERMSIG(wait_status),
                             strsignal(WTERMSIG(wait_status)));
    }
    return memory_format("exit status %d", WEXITSTATUS(wait_status));
}

static void on_start(void *context, pid_t group)
{
    struct trial *trial = context;

    if (trial->options->gpu != NULL) {
        gpu_state_begin(trial->options->gpu, group);
    }
}

static void on_tick(void *context)
{
    struct trial *trial = context;
    int64_t every = trial->options->watch_steps ? GPU_INTERVAL / AB_STEPS_INTERVAL : 1;

    if (trial->options->watch_steps) {
        ab_steps_sample(&trial->steps);
    }
    if (trial->options->gpu != NULL && trial->next_gpu_sample-- <= 0) {
        gpu_state_sample(trial->options->gpu);
        trial->next_gpu_sample = every - 1;
    }
}

static int interval(const struct ab_trial_options *options)
{
    if (options->watch_steps) {
        return AB_STEPS_INTERVAL;
    }
    /* Only reading counters and GPUs wakes us while the command runs. */
    return options->gpu != NULL ? GPU_INTERVAL : 0;
}

static void fail(struct trial *trial, enum ab_outcome outcome, char *message)
{
    trial->run->outcome = outcome;
    free(trial->run->message);
    trial->run->message = message;
}

static void take_end(struct trial *trial, const struct process_group_end *end)
{
    struct ab_run *run = trial->run;

    run->start_time = end->start_time;
    run->seconds = end->seconds;
    if (end->interrupted || end->suspended) {
        run->outcome = AB_INTERRUPTED;
    } else if (end->error != 0) {
        run->status = end->error == ENOENT ? COMMAND_RUN_NOT_FOUND : COMMAND_RUN_CANNOT_EXECUTE;
        fail(trial, AB_EXITED, memory_format("cannot be executed: %s", strerror(end->error)));
    } else if (end->timed_out) {
        fail(trial, AB_TIMED_OUT, memory_format("no end after %.4g s", trial->options->time_limit));
    } else if (WIFSIGNALED(end->wait_status)) {
        run->status = WTERMSIG(end->wait_status);
        fail(trial, AB_SIGNALLED, trial_wait_status_text(end->wait_status));
    } else if (WEXITSTATUS(end->wait_status) != 0) {
        run->status = WEXITSTATUS(end->wait_status);
        fail(trial, AB_EXITED, trial_wait_status_text(end->wait_status));
    }
}

static char **expand_command(const struct trial *trial)
{
    size_t count = 0;
    char **argv;

    while (trial->experiment->command[count] != NULL) {
        count++;
    }
    argv = memory_allocate(count + 1, sizeof *argv);
    for (size_t i = 0; i < count; i++) {
        argv[i] = ab_trial_expand(trial->experiment->command[i], trial->experiment, trial->run,
                                  trial->folder);
    }
    return argv;
}

static bool run_command(struct trial *trial)
{
    struct environment environment;
    char **argv = expand_command(trial);
    struct process_group_end end;
    struct process_group group = {.argv = argv,
                                  .output = trial_open_output(trial->output),
                                  .errors = trial_open_output(trial->errors),
                                  .time_limit = trial->options->time_limit,
                                  .interval = interval(trial->options),
                                  .start = on_start,
                                  .tick = on_tick,
                                  .context = trial,
                                  .timed = true};
    bool ran = group.output >= 0 && group.errors >= 0;

    trial_run_environment(trial, &environment);
    group.environment = environment.variables;
    if (trial->options->watch_steps) {
        ab_steps_start(&trial->steps, trial->reports, trial->options->step_kernel);
    }
    ran = ran && process_group_run(&group, &end);
    if (ran) {
        if (trial->options->gpu != NULL && end.error == 0) {
            gpu_state_end(trial->options->gpu, &trial->run->gpu);
        }
        take_end(trial, &end);
    }
    for (int i = 0; i < 2; i++) {
        int descriptor = i == 0 ? group.output : group.errors;

        if (descriptor >= 0) {
            close(descriptor);
        }
    }
    environment_release(&environment);
    for (size_t i = 0; argv[i] != NULL; i++) {
        free(argv[i]);
    }
    free(argv);
    return ran;
}

/* ---- Afterwards ---- */

void ab_trial_add_outcomes(struct ab_run_policy *policy, const struct results_outcomes *outcomes)
{
    policy->applied += outcomes->applied;
    policy->already_so += outcomes->already_so;
    policy->kept += outcomes->kept;
    for (size_t i = 0; i < outcomes->refused.count; i++) {
        policy->refused += outcomes->refused.items[i].times;
    }
}

static void read_reports(struct trial *trial)
{
    struct ab_run_policy *policy = &trial->run->policy;
    struct results results = {0};

    if (trial->arm->kind == AB_ARM_NONE) {
        return;
    }
    results_load(&results, trial->reports);
    policy->known = results.process_count > 0;
    policy->processes = (int64_t)results.number_count;
    policy->launches = results.launches.total;
    policy->rules = (int64_t)results.rule_count;
    for (size_t i = 0; i < results.rule_count; i++) {
        ab_trial_add_outcomes(policy, &results.rules[i].launch_outcomes);
        ab_trial_add_outcomes(policy, &results.rules[i].stream_outcomes);
        policy->rules_matched += summary_has_matched(&results.rules[i]);
    }
    results_release(&results);
    if (!policy->known && trial->run->outcome == AB_OK) {
        fail(trial, AB_NOT_ATTACHED,
             memory_copy("the preload saw no kernel launch in any process, or its reports did not "
                         "reach the experiment's folder"));
    }
}

static void check(struct trial *trial)
{
    char *message = NULL;

    switch (trial_run_hook(trial, "check", trial->options->check, &message)) {
    case HOOK_FINE:
        break;
    case HOOK_SAYS_NO:
        fail(trial, AB_CHECK_FAILED, memory_copy(message));
        break;
    case HOOK_INTERRUPTED:
        trial->run->outcome = AB_INTERRUPTED;
        break;
    case HOOK_NOT_RUN:
        fail(trial, AB_CHECK_FAILED, memory_copy("--check could not be run"));
        break;
    }
    free(message);
}

/* Whether an earlier run of this process is the reference: the first of the baseline that went
 * well. */
static void compare_output(struct trial *trial)
{
    char error[512] = "";
    bool reference = !trial->options->reference_taken && trial->run->arm == 0;

    if (!trial->options->reference_taken && !reference) {
        return;
    }
    switch (ab_same_output_check(trial->options->same_output, trial->output, ".", trial->arm->name,
                                 reference, error, sizeof error)) {
    case AB_SAME:
        break;
    case AB_DIFFERENT:
        fail(trial, AB_OUTPUT_DIFFERS, memory_format("--same-output: %s", error));
        break;
    case AB_SAME_NO_OUTPUT:
        fail(trial, AB_OUTPUT_DIFFERS, memory_format("--same-output: %s", error));
        break;
    }
}

static void read_metrics(struct trial *trial)
{
    const struct ab_experiment *experiment = trial->experiment;
    struct ab_run_files files = {.seconds = trial->run->seconds,
                                 .output = trial->output,
                                 .errors = trial->errors,
                                 .folder = ".",
                                 .arm = trial->arm->name,
                                 .block = trial->run->block,
                                 .position = trial->run->position,
                                 .steps = trial->options->watch_steps ? &trial->steps : NULL};

    for (size_t i = 0; i < experiment->metric_count; i++) {
        struct ab_run_value *value = &trial->run->values[i];
        char error[512] = "no value";

        if (ab_metric_read(&experiment->metrics[i], &files, value, error, sizeof error)) {
            continue;
        }
        *value = (struct ab_run_value){.value = NAN, .autocorrelation = NAN};
        if (i == 0) {
            fail(trial, AB_METRIC_MISSING,
                 memory_format("%s: %s", experiment->metrics[i].name, error));
        } else if (trial->run->message == NULL) {
            trial->run->message = memory_format("%s: %s", experiment->metrics[i].name, error);
        }
    }
}

static void look_at(struct trial *trial)
{
    if (trial->run->outcome == AB_INTERRUPTED) {
        return;
    }
    read_reports(trial);
    if (trial->run->outcome == AB_OK && trial->options->check != NULL) {
        check(trial);
    }
    if (trial->run->outcome == AB_OK && trial->options->same_output != NULL) {
        compare_output(trial);
    }
    if (trial->run->outcome == AB_OK) {
        read_metrics(trial);
    }
}

bool ab_trial_run(const struct ab_experiment *experiment, const struct ab_trial_options *options,
                  struct ab_run *run)
{
    struct trial trial = {.experiment = experiment,
                          .options = options,
                          .run = run,
                          .arm = &experiment->arms[run->arm]};
    bool made;

    if (options->same_output != NULL) {
        ab_same_output_before(options->same_output, ".", trial.arm->name);
    }
    made = begin(&trial) && trial_run_required_hook(&trial, "prepare", options->prepare);
    if (made && run->outcome == AB_OK) {
        made = run_command(&trial);
        if (made) {
            look_at(&trial);
        }
        /* Also after a run that was interrupted. */
        made = trial_run_required_hook(&trial, "cleanup", options->cleanup) && made;
    }
    if (options->watch_steps) {
        ab_steps_release(&trial.steps);
    }
    finish(&trial);
    return made;
}
