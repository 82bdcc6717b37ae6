/* SPDX-License-Identifier: Apache-2.0 */
#include "task.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/combine.h"
#include "preload_list.h"
#include "site.h"
#include "variables.h"

static const char *value_of(const struct slurm_task *task, const char *name)
{
    const char *value = task->get(task->environment, name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static int set(const struct slurm_task *task, const char *name, const char *value)
{
    if (value != NULL && task->set(task->environment, name, value) == 0) {
        return 0;
    }
    task->complain(value == NULL ? "out of memory" : "cannot set the task's environment");
    return -1;
}

/* A step inherits what its job got, so being without a policy takes more than adding none. */
static int remove_policy(const struct slurm_task *task)
{
    static const char *const variables[] = {"CUDAPOLICY_FILE", "CUDAPOLICY_MODE",
                                            "CUDAPOLICY_REPORT", "CUDAPOLICY_SITE"};
    const char *present = value_of(task, "LD_PRELOAD");
    char *ours = slurm_preload_find(present), *rest;
    int result = 0;

    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        task->unset(task->environment, variables[i]);
    }
    if (ours == NULL) {
        return 0;
    }
    free(ours);
    rest = slurm_preload_remove(present);
    if (rest != NULL && rest[0] == '\0') {
        task->unset(task->environment, "LD_PRELOAD");
    } else {
        result = set(task, "LD_PRELOAD", rest);
    }
    free(rest);
    return result;
}

/* policy: the task's; NULL: it has none that is known here. */
static int set_mode(const struct slurm_task *task, enum policy_mode ceiling, const char *asked,
                    const struct policy *policy)
{
    const char *name = asked != NULL ? asked : value_of(task, "CUDAPOLICY_MODE");
    enum policy_mode mode = POLICY_MODE_ENFORCE;

    if (asked == NULL && ceiling == POLICY_MODE_ENFORCE) {
        return 0;
    }
    /* The variable beats what the policy and the site's file say, which may be lower. */
    if ((name == NULL || !policy_mode_parse(name, &mode)) && policy != NULL) {
        mode = policy_mode_choose(NULL, policy).mode;
    }
    return set(task, "CUDAPOLICY_MODE", slurm_mode_name(policy_mode_lower(mode, ceiling)));
}

/* Reports of a folder: the step has its own in there. One that is inherited from the batch script
 * leads into the script's, on another node perhaps. */
static int set_report(const struct slurm_task *task, const char *report)
{
    char *path, *template, line[SLURM_MESSAGE_SIZE];
    int result = -1;

    if (!slurm_node_report_is_folder(report) || task->step == NULL) {
        return set(task, "CUDAPOLICY_REPORT", report);
    }
    path = slurm_node_report_path(report, task->step);
    if (path == NULL || slurm_node_report_make(path) != 0) {
        snprintf(line, sizeof line, "cannot make the folder '%s' for reports: %s",
                 path != NULL ? path : report, strerror(errno));
        task->complain(line);
        free(path);
        return -1;
    }
    template = slurm_node_report_template(path);
    result = set(task, "CUDAPOLICY_REPORT", template);
    free(template);
    free(path);
    return result;
}

/* Whether the site's place for reports holds for the task. */
static bool takes_site_reports(const struct slurm_task *task, const struct slurm_settings *settings)
{
    const char *present = value_of(task, "CUDAPOLICY_REPORT");

    return present == NULL ||
           (slurm_node_report_is_folder(settings->reports) && task->step != NULL &&
            slurm_node_report_leads_into(present, settings->reports, task->step));
}

static int set_variables(const struct slurm_task *task, const struct slurm_settings *settings,
                         const struct slurm_request *request, struct slurm_site *site,
                         const char *policy)
{
    const char *report = request->report;
    struct policy *loaded;
    int result;

    if ((policy != NULL && set(task, "CUDAPOLICY_FILE", policy) != 0) ||
        (site->variable != NULL && set(task, "CUDAPOLICY_SITE", site->variable) != 0)) {
        return -1;
    }
    if (report != NULL && set_report(task, report) != 0) {
        return -1;
    }
    /* What only the site wants and cannot be had ends no task. */
    if (report == NULL && settings->reports != NULL && takes_site_reports(task, settings) &&
        set_report(task, settings->reports) != 0) {
        task->unset(task->environment, "CUDAPOLICY_REPORT");
    }
    loaded = slurm_task_policy(task, site);
    result = set_mode(task, settings->mode_ceiling, request->mode, loaded);
    if (result == 0) {
        result = slurm_set_variables(task, loaded);
    }
    policy_free(loaded);
    return result;
}

static int preload(const struct slurm_task *task, const char *library)
{
    char *list = slurm_preload_add(value_of(task, "LD_PRELOAD"), library);
    int result = set(task, "LD_PRELOAD", list);

    free(list);
    return result;
}

/* The user asked for a policy, for a report, or for both. */
static int prepare_asked(const struct slurm_task *task, const struct slurm_settings *settings,
                         const struct slurm_request *request, struct slurm_site *site)
{
    const char *policy = request->policy;
    char *present = slurm_preload_find(value_of(task, "LD_PRELOAD"));
    const char *library = present != NULL ? present : settings->library;
    int result = 0;

    if (policy == NULL && value_of(task, "CUDAPOLICY_FILE") == NULL) {
        policy = settings->default_policy;
    }
    if (policy != NULL) {
        result = slurm_check_policy(policy, task->complain);
    }
    /* A bare name is looked for by the loader, in more places than are known here. */
    if (strchr(library, '/') != NULL && slurm_check_library(library, task->complain) != 0) {
        result = -1;
    }
    free(present);
    if (result != 0 || set_variables(task, settings, request, site, policy) != 0) {
        return -1;
    }
    return preload(task, settings->library);
}

/* The user did not ask; the site may want something all the same. */
static int prepare_unasked(const struct slurm_task *task, const struct slurm_settings *settings,
                           const struct slurm_request *request, struct slurm_site *site)
{
    const char *policy = settings->default_policy;
    const bool preloaded = slurm_preload_has(value_of(task, "LD_PRELOAD"));

    if (!preloaded && policy == NULL && !site->asks) {
        return 0;
    }
    if (!preloaded && slurm_check_library(settings->library, task->complain) != 0) {
        task->complain(policy != NULL ? "the site's default policy is not applied"
                                      : "the site's file is not applied");
        return 0;
    }
    if (policy != NULL && slurm_check_policy(policy, task->complain) != 0) {
        task->complain("the site's default policy is not applied");
        policy = NULL;
    }
    if (!preloaded && policy == NULL && !site->asks) {
        return 0;
    }
    if (set_variables(task, settings, request, site,
                      value_of(task, "CUDAPOLICY_FILE") == NULL ? policy : NULL) != 0) {
        return -1;
    }
    return preload(task, settings->library);
}

int slurm_task_prepare(const struct slurm_task *task, const struct slurm_settings *settings,
                       const struct slurm_request *request)
{
    struct slurm_site site;
    int result;

    if (request->no_policy) {
        return remove_policy(task);
    }
    slurm_site_read(&site, task->complain);
    if (request->policy != NULL || request->report != NULL) {
        result = prepare_asked(task, settings, request, &site);
    } else {
        result = prepare_unasked(task, settings, request, &site);
    }
    slurm_site_release(&site);
    return result;
}
