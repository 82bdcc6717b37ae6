/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Slurm plugin: what Slurm calls, and when.
 *
 *   srun, sbatch, salloc    slurm_spank_init registers the options; their callback keeps what they
 *                           say; slurm_spank_init_post_opt checks it, and writes it into the
 *                           client's environment (submit.c)
 *   slurmstepd              slurm_spank_task_init, in each task's process and as its user, reads it
 *                           in the task's environment and changes that (task.c);
 * slurm_spank_task_exit has the reports of all tasks made one (node_merge.c)
 *
 * A job is failed in slurm_spank_task_init alone: elsewhere on the node Slurm reports success for
 * what never ran, and drains the node.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)
#include <slurm/slurm.h>
#include <slurm/spank.h>
SPANK_PLUGIN(cudapolicy, 1)
#pragma GCC visibility pop

#include "check_file.h"
#include "node_report.h"
#include "request.h"
#include "settings.h"
#include "submit.h"
#include "task.h"

enum {
    OPTION_POLICY,
    OPTION_NO_POLICY,
    OPTION_MODE,
    OPTION_REPORT,
};

/* What the options of this command line say; its strings are kept until the process ends. */
static struct slurm_request options;

static int take_option(int option, const char *argument, int remote);

/* Slurm's structure has no const, so these are arrays that could be written to. */
static struct spank_option spank_option_table[] = {
    {
        .name = (char[]){"cuda-policy"},
        .arginfo = (char[]){"FILE"},
        .usage = (char[]){"[cudapolicy] apply the policy in FILE to the CUDA kernel launches and "
                          "streams of all tasks; a relative path is seen from the present folder"},
        .has_arg = 1,
        .val = OPTION_POLICY,
        .cb = take_option,
    },
    {
        .name = (char[]){"no-cuda-policy"},
        .usage = (char[]){"[cudapolicy] no policy: neither the job's nor the site's"},
        .val = OPTION_NO_POLICY,
        .cb = take_option,
    },
    {
        .name = (char[]){"cuda-policy-mode"},
        .arginfo = (char[]){"MODE"},
        .usage = (char[]){"[cudapolicy] enforce, observe (decide and report, change nothing) or "
                          "off"},
        .has_arg = 1,
        .val = OPTION_MODE,
        .cb = take_option,
    },
    {
        .name = (char[]){"cuda-policy-report"},
        .arginfo = (char[]){"TEMPLATE"},
        .usage = (char[]){"[cudapolicy] where each process writes its report: a path with %h "
                          "(host), %p (process), %j (job), %r (rank); a folder, which ends "
                          "with /, gets one file for each step and node"},
        .has_arg = 1,
        .val = OPTION_REPORT,
        .cb = take_option,
    },
};
enum {
    OPTION_COUNT = sizeof spank_option_table / sizeof spank_option_table[0],
};

/* In which Slurm keeps an option that was given, as it was given: for the steps of a job. */
static const char *const slurm_variables[] = {
    "_SLURM_SPANK_OPTION_cudapolicy_cuda_policy",
    "_SLURM_SPANK_OPTION_cudapolicy_no_cuda_policy",
    "_SLURM_SPANK_OPTION_cudapolicy_cuda_policy_mode",
    "_SLURM_SPANK_OPTION_cudapolicy_cuda_policy_report",
};

static void complain(const char *line)
{
    slurm_error("cudapolicy: %s", line);
}

static void complain_in_silence(const char *line)
{
    (void)line;
}

static void note(const char *line)
{
    slurm_spank_log("cudapolicy: %s", line);
}

static bool in_client(void)
{
    return spank_context() == S_CTX_LOCAL || spank_context() == S_CTX_ALLOCATOR;
}

/* sbatch gives the directives of the script first, then the command line, which is to win; for srun
 * there is one source, and two values are a mistake. */
static bool conflicts(void)
{
    if (spank_context() != S_CTX_LOCAL) {
        return false;
    }
    if (options.no_policy) {
        slurm_error("cudapolicy: --cuda-policy and --no-cuda-policy together");
        return true;
    }
    return false;
}

static int keep(const char **place, const char *name, const char *value)
{
    char *copy;

    if (value == NULL || value[0] == '\0') {
        slurm_error("cudapolicy: %s: no value given", name);
        return -1;
    }
    if (*place != NULL && strcmp(*place, value) != 0 && spank_context() == S_CTX_LOCAL) {
        slurm_error("cudapolicy: %s given twice: '%s' and '%s'", name, *place, value);
        return -1;
    }
    copy = strdup(value);
    if (copy == NULL) {
        slurm_error("cudapolicy: out of memory");
        return -1;
    }
    *place = copy;
    return 0;
}

static int take_option(int option, const char *argument, int remote)
{
    enum policy_mode mode;

    (void)remote;
    switch (option) {
    case OPTION_POLICY:
        if (conflicts()) {
            return -1;
        }
        options.no_policy = false;
        return keep(&options.policy, "--cuda-policy", argument);
    case OPTION_NO_POLICY:
        options.no_policy = true;
        if (options.policy != NULL && conflicts()) {
            return -1;
        }
        options.policy = NULL;
        return 0;
    case OPTION_MODE:
        if (argument != NULL && !policy_mode_parse(argument, &mode)) {
            slurm_error("cudapolicy: --cuda-policy-mode=%s: the modes are enforce, observe and off",
                        argument);
            return -1;
        }
        return keep(&options.mode, "--cuda-policy-mode", argument);
    default:
        return keep(&options.report, "--cuda-policy-report", argument);
    }
}

int slurm_spank_init(spank_t spank, int count, char *arguments[])
{
    struct slurm_settings settings;
    char message[SLURM_MESSAGE_SIZE];

    if (spank_context() == S_CTX_SLURMD || spank_context() == S_CTX_JOB_SCRIPT) {
        /* For the admin, in the log of the node's daemon. */
        if (spank_context() == S_CTX_SLURMD &&
            slurm_settings_read(&settings, count, arguments, message) != 0) {
            slurm_error("cudapolicy: plugstack.conf: %s", message);
        }
        return 0;
    }
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (spank_option_register(spank, &spank_option_table[i]) != ESPANK_SUCCESS) {
            slurm_error("cudapolicy: cannot register --%s", spank_option_table[i].name);
        }
    }
    return 0;
}

/* What Slurm keeps is not resolved, so a step in another folder would see another file. */
static void forget_slurm_variables(spank_t spank)
{
    for (size_t i = 0; i < sizeof slurm_variables / sizeof slurm_variables[0]; i++) {
        unsetenv(slurm_variables[i]);
        spank_job_control_unsetenv(spank, slurm_variables[i]);
    }
}

int slurm_spank_init_post_opt(spank_t spank, int count, char *arguments[])
{
    struct slurm_settings settings;
    char message[SLURM_MESSAGE_SIZE];

    if (!in_client()) {
        return 0;
    }
    forget_slurm_variables(spank);
    if (slurm_settings_read(&settings, count, arguments, message) != 0) {
        slurm_error("cudapolicy: plugstack.conf: %s", message);
        if (slurm_submit_is_asked(&options)) {
            return -1;
        }
    }
    return slurm_submit(&settings, &options, complain, note);
}

static const char *task_variable(void *environment, const char *name)
{
    size_t length = strlen(name);
    char **variables = NULL;

    /* Asked for anew each time: setting a variable moves them. */
    if (spank_get_item(environment, S_JOB_ENV, &variables) != ESPANK_SUCCESS) {
        return NULL;
    }
    for (; variables != NULL && *variables != NULL; variables++) {
        if (strncmp(*variables, name, length) == 0 && (*variables)[length] == '=') {
            return *variables + length + 1;
        }
    }
    return NULL;
}

static int set_task_variable(void *environment, const char *name, const char *value)
{
    return spank_setenv(environment, name, value, 1) == ESPANK_SUCCESS ? 0 : -1;
}

static void unset_task_variable(void *environment, const char *name)
{
    spank_unsetenv(environment, name);
}

/*
 * The environment carries the request. Should it have been lost on the way, the option as it was
 * given, which Slurm sends besides, is better than running as if nothing had been asked.
 */
static int add_lost_options(struct slurm_request *request, slurm_complain *say)
{
    if (request->policy != NULL || request->no_policy || request->report != NULL) {
        return 0;
    }
    slurm_request_override(request, &options);
    if ((request->policy != NULL && request->policy[0] != '/') ||
        (request->report != NULL && request->report[0] != '/')) {
        say("the environment that carries --cuda-policy did not reach the task");
        return -1;
    }
    return 0;
}

/* The request's strings are the environment's, which changes while the task is prepared. */
static int copy_request(struct slurm_request *request)
{
    const char **const strings[] = {&request->policy, &request->mode, &request->report};

    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        if (*strings[i] != NULL && (*strings[i] = strdup(*strings[i])) == NULL) {
            return -1;
        }
    }
    return 0;
}

static struct slurm_step step_of(spank_t spank, char *name, size_t size)
{
    uint32_t job = 0, node = 0, step = 0;

    spank_get_item(spank, S_JOB_ID, &job);
    spank_get_item(spank, S_JOB_NODEID, &node);
    spank_get_item(spank, S_JOB_STEPID, &step);
    switch (step) {
    case SLURM_BATCH_SCRIPT:
        snprintf(name, size, "batch");
        break;
    case SLURM_INTERACTIVE_STEP:
        snprintf(name, size, "interactive");
        break;
    default:
        snprintf(name, size, "%u", (unsigned)step);
    }
    return (struct slurm_step){.job = job, .node = node, .name = name};
}

static bool is_first_of_node(spank_t spank)
{
    int task = 0;

    return spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS || task == 0;
}

int slurm_spank_task_init(spank_t spank, int count, char *arguments[])
{
    /* One of the node's tasks speaks for all: the others would say the same. */
    slurm_complain *say = is_first_of_node(spank) ? complain : complain_in_silence;
    char name[16];
    const struct slurm_step step = step_of(spank, name, sizeof name);
    const struct slurm_task task = {
        .get = task_variable,
        .set = set_task_variable,
        .unset = unset_task_variable,
        .environment = spank,
        .complain = say,
        .step = &step,
    };
    struct slurm_settings settings;
    struct slurm_request request;
    char message[SLURM_MESSAGE_SIZE];

    if (slurm_request_read(&request, task_variable, spank, message) != 0) {
        say(message);
        return -1;
    }
    if (add_lost_options(&request, say) != 0) {
        return -1;
    }
    if (copy_request(&request) != 0) {
        say("out of memory");
        return -1;
    }
    if (slurm_settings_read(&settings, count, arguments, message) != 0 &&
        (request.policy != NULL || request.report != NULL)) {
        say(message);
        return -1;
    }
    return slurm_task_prepare(&task, &settings, &request);
}

/* Where the step's processes wrote their reports, if it was into a folder; else NULL. */
static const char *folder_of(spank_t spank, const struct slurm_settings *settings)
{
    struct slurm_request request;
    char message[SLURM_MESSAGE_SIZE];
    const char *folder;

    if (slurm_request_read(&request, task_variable, spank, message) != 0) {
        return NULL;
    }
    folder = request.report != NULL ? request.report : settings->reports;
    return slurm_node_report_is_folder(folder) ? folder : NULL;
}

static bool read_user(spank_t spank, struct slurm_user *user)
{
    gid_t *groups = NULL;
    int count = 0;

    if (spank_get_item(spank, S_JOB_UID, &user->user) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_GID, &user->group) != ESPANK_SUCCESS) {
        return false;
    }
    if (spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &groups, &count) == ESPANK_SUCCESS &&
        count > 0) {
        user->groups = groups;
        user->group_count = (size_t)count;
    }
    return true;
}

static void merge_reports(spank_t spank, int count, char *arguments[])
{
    struct slurm_settings settings;
    struct slurm_user user = {0};
    char message[SLURM_MESSAGE_SIZE], name[16], *path;
    const char *folder;
    struct slurm_step step;

    slurm_settings_read(&settings, count, arguments, message);
    folder = folder_of(spank, &settings);
    if (folder == NULL || !read_user(spank, &user)) {
        return;
    }
    step = step_of(spank, name, sizeof name);
    path = slurm_node_report_path(folder, &step);
    if (path != NULL) {
        slurm_node_report_merge(settings.command, path, &user, complain);
    }
    free(path);
}

/*
 * When the last task of the node has ended, and before the client is told: once that is over, Slurm
 * kills what is left of the step, and that would be the merge. Whatever happens here, the step ends
 * as it has.
 */
int slurm_spank_task_exit(spank_t spank, int count, char *arguments[])
{
    static uint32_t ended;
    uint32_t tasks = 0;

    if (spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks) == ESPANK_SUCCESS &&
        ++ended == tasks) {
        merge_reports(spank, count, arguments);
    }
    return 0;
}

/* The last call of a step on its node: a second try, where a job was killed together with the
 * first. There is nothing left to do after one that succeeded. */
int slurm_spank_exit(spank_t spank, int count, char *arguments[])
{
    if (spank_context() == S_CTX_REMOTE) {
        merge_reports(spank, count, arguments);
    }
    return 0;
}
