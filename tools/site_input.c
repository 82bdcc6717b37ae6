/* SPDX-License-Identifier: Apache-2.0 */
#include "site_input.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "memory.h"
#include "policy/combine.h"
#include "policy/site.h"
#include "policy_input.h"
#include "program_file.h"
#include "report/template.h"

const char *site_input_path(void)
{
    return policy_site_place().path;
}

struct policy *site_input_load(const char *given, bool *failed)
{
    const struct policy_site_place place = policy_site_place();
    struct policy_diagnostics diagnostics;
    struct policy *site;
    bool absent = false;

    policy_diagnostics_init(&diagnostics);
    diagnostics.errors_only = true;
    if (given != NULL) {
        site = policy_site_load_file(given, &diagnostics);
    } else {
        site = policy_site_load(&place, getenv("CUDAPOLICY_SITE"), &absent, &diagnostics);
    }
    policy_diagnostics_print(&diagnostics, stderr);
    policy_diagnostics_release(&diagnostics);
    if (failed != NULL) {
        *failed = site == NULL && !absent;
    }
    return site;
}

struct policy *site_input_combine(struct policy *site, struct policy *job, bool warnings)
{
    struct policy_diagnostics diagnostics;
    struct policy *combined;

    if (site == NULL || job == NULL) {
        policy_free(site);
        return job;
    }
    policy_diagnostics_init(&diagnostics);
    diagnostics.errors_only = !warnings;
    combined = policy_combine(site, job, &diagnostics);
    policy_diagnostics_print(&diagnostics, stderr);
    policy_diagnostics_release(&diagnostics);
    if (combined == NULL) {
        policy_free(site);
        policy_free(job);
    }
    return combined;
}

struct policy *site_input_around(struct policy *job, bool warnings)
{
    bool failed = false;
    struct policy *site = job != NULL ? site_input_load(NULL, &failed) : NULL;

    if (failed) {
        command_error("the site's file is not used");
    }
    return site_input_combine(site, job, warnings);
}

struct policy *site_input_load_quietly(void)
{
    const struct policy_site_place place = policy_site_place();
    struct policy_diagnostics diagnostics;
    struct policy *site;
    bool absent;

    policy_diagnostics_init(&diagnostics);
    diagnostics.errors_only = true;
    site = policy_site_load(&place, getenv("CUDAPOLICY_SITE"), &absent, &diagnostics);
    policy_diagnostics_release(&diagnostics);
    return site;
}

struct policy *site_input_around_quietly(struct policy *job)
{
    struct policy *site = job != NULL ? site_input_load_quietly() : NULL, *combined;
    struct policy_diagnostics diagnostics;

    if (site == NULL) {
        return job;
    }
    policy_diagnostics_init(&diagnostics);
    diagnostics.errors_only = true;
    combined = policy_combine(site, job, &diagnostics);
    policy_diagnostics_release(&diagnostics);
    if (combined == NULL) {
        policy_free(site);
        policy_free(job);
    }
    return combined;
}

/* ---- Checking ----------------------------------------------------------------------------------
 */

static void check_template(const struct policy_site *site, struct policy_diagnostics *diagnostics)
{
    const struct report_template_values values = {.host = "h", .pid = 1, .job = "1", .rank = "0"};
    char path[PATH_MAX], error[512];

    if (site->reports != NULL &&
        !report_expand_template(site->reports, &values, path, sizeof path, error, sizeof error)) {
        policy_diagnose(diagnostics, POLICY_ERROR, site->reports_place, "reports: %s", error);
    }
    if (site->reports != NULL && strstr(site->reports, "%p") == NULL) {
        policy_diagnose(diagnostics, POLICY_WARNING, site->reports_place,
                        "reports: without %%p the processes of a node compete for one name");
    }
}

/* As programs find it, if they do. */
static void check_place(const char *file, struct policy_diagnostics *diagnostics)
{
    const struct policy_site_place place = policy_site_place();
    size_t length;
    bool absent;

    if (strcmp(file, place.path) == 0) {
        free(policy_site_read(&place, &length, &absent, diagnostics));
    }
}

struct policy *site_input_check(const char *file, struct policy_diagnostics *diagnostics)
{
    struct policy *site;

    if (strcmp(file, site_input_path()) == 0 && access(file, F_OK) != 0 && errno == ENOENT) {
        diagnostics->file = strdup(file);
        policy_diagnose(diagnostics, POLICY_ERROR, (struct policy_place){0},
                        "this machine has no site's file: jobs are under their own policies alone");
        return NULL;
    }
    site = policy_site_load_file(file, diagnostics);
    if (site != NULL) {
        check_template(site->site, diagnostics);
        check_place(file, diagnostics);
    }
    if (site != NULL && diagnostics->error_count != 0) {
        policy_free(site);
        site = NULL;
    }
    return site;
}

/* ---- Programs that are left alone --------------------------------------------------------------
 */

char *site_input_excludes(const struct policy *policy, const char *program)
{
    char *found = policy->site != NULL ? program_file_find(program) : NULL, *reason = NULL;
    char *path = found != NULL ? realpath(found, NULL) : NULL;
    const char *slash = path != NULL ? strrchr(path, '/') : NULL, *pattern;
    struct policy_place place;

    if (slash != NULL &&
        (pattern = policy_site_excludes(policy->site, slash + 1, &place)) != NULL) {
        reason = place.line != 0
                     ? memory_format("this site leaves '%s' alone (exclude = %s, %s:%u)", slash + 1,
                                     pattern, policy->site->path, (unsigned)place.line)
                     : memory_format("this site leaves '%s' alone, as it does shells and common "
                                     "tools (exclude_defaults, %s)",
                                     slash + 1, policy->site->path);
    }
    free(found);
    free(path);
    return reason;
}

char *site_input_unseen(const char *program)
{
    struct policy *site = site_input_load(NULL, NULL);
    char *reason = NULL;

    if (site != NULL && site->site->mode_ceiling == POLICY_MODE_OFF) {
        reason = memory_format("this site allows no mode but off (%s:%u)", site->site->path,
                               (unsigned)site->site->mode_ceiling_place.line);
    } else if (site != NULL) {
        reason = site_input_excludes(site, program);
    }
    policy_free(site);
    return reason;
}
