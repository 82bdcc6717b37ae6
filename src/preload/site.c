/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/site.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/combine.h"
#include "policy/site.h"
#include "report/log.h"
#include "report/report.h"

/* Where there is no job's policy, so that all the rest has one. */
static const char no_policy[] = "(no policy)";

/* Errors, which the log says of each; the first one is copied to first[size]. */
static void print_diagnostics(struct policy_diagnostics *diagnostics, char *first,
                              size_t first_size)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    if (stream == NULL)
        return;
    policy_diagnostics_print_bare(diagnostics, stream);
    fclose(stream);
    for (char *line = text, *end; line != NULL && *line != '\0'; line = end) {
        end = strchr(line, '\n');
        if (end != NULL)
            *end++ = '\0';
        if (first != NULL && first[0] == '\0')
            snprintf(first, first_size, "%s", line);
        report_log(REPORT_LOG_ERROR, "%s", line);
    }
    free(text);
}

/* ---- The site's file ---------------------------------------------------------------------------
 */

struct policy *preload_site_read(void (*before_log)(void), char *error, size_t size)
{
    const struct policy_site_place place = policy_site_place();
    struct policy_diagnostics diagnostics;
    struct policy *site;
    bool absent;

    policy_diagnostics_init(&diagnostics);
    diagnostics.errors_only = true;
    site = policy_site_load(&place, secure_getenv("CUDAPOLICY_SITE"), &absent, &diagnostics);
    if (diagnostics.count != 0)
        before_log();
    print_diagnostics(&diagnostics, error, size);
    policy_diagnostics_release(&diagnostics);
    return site;
}

/* Where the program was started by way of the loader, the executable is the loader itself. */
static const char *executable(char path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    const char *slash;

    path[length > 0 ? length : 0] = '\0';
    slash = strrchr(path, '/');
    if (slash == NULL || strncmp(slash + 1, "ld-linux", 8) == 0)
        return program_invocation_short_name;
    return slash + 1;
}

bool preload_site_leaves_alone(const struct policy *site, void (*before_log)(void))
{
    char path[PATH_MAX];
    const char *name = executable(path), *pattern;
    struct policy_place place = {0};

    pattern = policy_site_excludes(site->site, name, &place);
    if (pattern == NULL)
        return false;
    before_log();
    if (place.line != 0)
        report_log(REPORT_LOG_INFO, "%s is left alone: exclude = %s in %s:%u", name, pattern,
                   site->site->path, (unsigned)place.line);
    else
        report_log(REPORT_LOG_INFO,
                   "%s is left alone, like shells and common tools: %s has "
                   "exclude_defaults = yes",
                   name, site->site->path);
    return true;
}

/* ---- Both together -----------------------------------------------------------------------------
 */

static struct policy *without_rules(struct policy_diagnostics *diagnostics)
{
    static const char text[] = "[policy]\nversion = 1\n";

    return policy_parse(text, sizeof text - 1, no_policy, diagnostics);
}

/* Both belong to the result; both are freed where there is none. */
static struct policy *combine(struct policy *site, struct policy *job,
                              struct policy_diagnostics *diagnostics)
{
    struct policy *combined;

    if (site == NULL || job == NULL) {
        policy_free(job == NULL ? site : NULL);
        return job;
    }
    combined = policy_combine(site, job, diagnostics);
    if (combined == NULL) {
        policy_free(site);
        policy_free(job);
    }
    return combined;
}

/* Warnings are what `check` and `run` are for: here, once for each process of a job, they would
 * drown what else is said, and looking for them takes long. */
static struct policy *load_job(const char *path, struct policy_diagnostics *diagnostics)
{
    policy_diagnostics_init(diagnostics);
    diagnostics->errors_only = true;
    return path != NULL ? policy_load(path, diagnostics) : without_rules(diagnostics);
}

struct policy *preload_policy_start(const struct preload_configuration *configuration,
                                    struct policy *site, char *error, size_t size)
{
    struct policy_diagnostics diagnostics;
    struct policy *job = load_job(configuration->policy_path, &diagnostics), *policy = NULL;

    if (job != NULL && site != NULL)
        policy = policy_combine(site, job, &diagnostics);
    else
        policy = job;
    print_diagnostics(&diagnostics, error, size);
    policy_diagnostics_release(&diagnostics);
    if (policy != NULL)
        return policy;
    policy_free(job);
    if (site == NULL || !policy_site_asks(site)) {
        policy_free(site);
        return NULL;
    }
    policy_diagnostics_init(&diagnostics);
    policy = combine(site, without_rules(&diagnostics), &diagnostics);
    policy_diagnostics_release(&diagnostics);
    return policy;
}

static void log_has_started(void)
{
}

struct policy *preload_policy_again(const struct preload_configuration *configuration, char *error,
                                    size_t size)
{
    const char *path = configuration->reload_path[0] != '\0' ? configuration->reload_path : NULL;
    struct policy_diagnostics diagnostics;
    struct policy *site = preload_site_read(log_has_started, error, size), *policy;

    if (error[0] != '\0')
        return NULL;
    policy = combine(site, load_job(path, &diagnostics), &diagnostics);
    print_diagnostics(&diagnostics, error, size);
    policy_diagnostics_release(&diagnostics);
    return policy;
}

void preload_site_facts(const struct policy *policy)
{
    const struct policy_site *site = policy->site;
    char digest[2 * sizeof site->sha256 + 1];

    if (site == NULL)
        return;
    for (size_t i = 0; i < sizeof site->sha256; i++)
        snprintf(digest + 2 * i, 3, "%02x", site->sha256[i]);
    report_fact("site", "path", "%s", site->path);
    report_fact("site", "sha256", "%s", digest);
    report_fact("site", "mode_ceiling", "%s", policy_mode_name(site->mode_ceiling));
    if (site->reports != NULL)
        report_fact("site", "reports", "%s", site->reports);
}
