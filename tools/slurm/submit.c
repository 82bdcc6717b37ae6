/* SPDX-License-Identifier: Apache-2.0 */
#include "submit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node_report.h"
#include "preload_list.h"
#include "report/template.h"

static const char *own_variable(void *environment, const char *name)
{
    (void)environment;
    return getenv(name);
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0';
}

bool slurm_submit_is_asked(const struct slurm_request *options)
{
    return options->policy != NULL || options->report != NULL || is_set(SLURM_REQUEST_POLICY) ||
           is_set(SLURM_REQUEST_REPORT);
}

static void forget(void)
{
    unsetenv(SLURM_REQUEST_POLICY);
    unsetenv(SLURM_REQUEST_NO_POLICY);
    unsetenv(SLURM_REQUEST_MODE);
    unsetenv(SLURM_REQUEST_REPORT);
}

/* Variables that an option beats need not be right, nor agree with it. */
static void forget_beaten(const struct slurm_request *options)
{
    if (options->policy != NULL || options->no_policy) {
        unsetenv(SLURM_REQUEST_POLICY);
        unsetenv(SLURM_REQUEST_NO_POLICY);
    }
    if (options->mode != NULL) {
        unsetenv(SLURM_REQUEST_MODE);
    }
    if (options->report != NULL) {
        unsetenv(SLURM_REQUEST_REPORT);
    }
}

static int check_template(const char *report, slurm_complain *complain)
{
    const struct report_template_values values = {.host = "h", .pid = 1, .job = "1", .rank = "0"};
    char path[PATH_MAX], message[SLURM_MESSAGE_SIZE];

    if (report_expand_template(report, &values, path, sizeof path, message, sizeof message) &&
        (!slurm_node_report_is_folder(report) || slurm_node_report_check(report, message) == 0)) {
        return 0;
    }
    complain(message);
    return -1;
}

/* Options that would have no effect are mistakes; variables and what is inherited may stay idle. */
static int check_effect(const struct slurm_settings *settings, const struct slurm_request *options,
                        const struct slurm_request *request, slurm_complain *complain)
{
    const char *idle = options->report != NULL ? "--cuda-policy-report"
                       : options->mode != NULL ? "--cuda-policy-mode"
                                               : NULL;
    bool effect = request->policy != NULL || request->report != NULL ||
                  settings->default_policy != NULL || slurm_preload_has(getenv("LD_PRELOAD"));
    char line[SLURM_MESSAGE_SIZE];

    if (idle == NULL || (effect && !request->no_policy)) {
        return 0;
    }
    snprintf(line, sizeof line, "%s has no effect without a policy%s", idle,
             request->no_policy ? ", and there is to be none" : ": give one with --cuda-policy");
    complain(line);
    return -1;
}

static int set(const char *name, const char *value, slurm_complain *complain)
{
    if (setenv(name, value, 1) == 0) {
        return 0;
    }
    complain("out of memory");
    return -1;
}

/* Writes the path as one that any folder understands. */
static int set_path(const char *name, const char *value, bool of_template, slurm_complain *complain)
{
    char *path = slurm_request_absolute(value, of_template);
    char line[SLURM_MESSAGE_SIZE];
    int result;

    if (path == NULL) {
        snprintf(line, sizeof line, "cannot make '%s' an absolute path: %s", value,
                 strerror(errno));
        complain(line);
        return -1;
    }
    result = set(name, path, complain);
    free(path);
    return result;
}

static int write_request(const struct slurm_request *request, slurm_complain *complain)
{
    if (request->no_policy && set(SLURM_REQUEST_NO_POLICY, "1", complain) != 0) {
        return -1;
    }
    if (request->policy != NULL &&
        set_path(SLURM_REQUEST_POLICY, request->policy, false, complain) != 0) {
        return -1;
    }
    if (request->report != NULL &&
        set_path(SLURM_REQUEST_REPORT, request->report, true, complain) != 0) {
        return -1;
    }
    return request->mode != NULL ? set(SLURM_REQUEST_MODE, request->mode, complain) : 0;
}

static void note_ceiling(const struct slurm_settings *settings, const char *name,
                         slurm_complain *note)
{
    enum policy_mode mode, lower;
    char line[SLURM_MESSAGE_SIZE];

    if (name == NULL || !policy_mode_parse(name, &mode)) {
        return;
    }
    lower = policy_mode_lower(mode, settings->mode_ceiling);
    if (lower != mode) {
        snprintf(line, sizeof line, "the mode will be %s instead of %s: this site allows no more",
                 slurm_mode_name(lower), name);
        note(line);
    }
}

static int submit(const struct slurm_settings *settings, const struct slurm_request *options,
                  slurm_complain *complain, slurm_complain *note)
{
    struct slurm_request request;
    char message[SLURM_MESSAGE_SIZE];

    forget_beaten(options);
    if (slurm_request_read(&request, own_variable, NULL, message) != 0) {
        complain(message);
        return -1;
    }
    slurm_request_override(&request, options);
    if (check_effect(settings, options, &request, complain) != 0 ||
        (request.report != NULL && check_template(request.report, complain) != 0) ||
        (request.policy != NULL && slurm_check_policy(request.policy, complain) != 0) ||
        write_request(&request, complain) != 0) {
        return -1;
    }
    note_ceiling(settings, options->mode, note);
    return 0;
}

int slurm_submit(const struct slurm_settings *settings, const struct slurm_request *options,
                 slurm_complain *complain, slurm_complain *note)
{
    int result = submit(settings, options, complain, note);

    if (result != 0) {
        forget();
    }
    return result;
}
