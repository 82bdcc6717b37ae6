/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/configuration.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "place/split.h"
#include "preload/site.h"
#include "report/files.h"
#include "report/process.h"
#include "report/report.h"
#include "report/template.h"

extern char **environ;

static char *environment(const char *name)
{
    return secure_getenv(name);
}

static const char *value_of(const char *name)
{
    const char *value = environment(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static __attribute__((format(printf, 2, 3))) void
complain(struct preload_configuration *configuration, const char *format, ...)
{
    const unsigned limit = sizeof configuration->complaints / sizeof configuration->complaints[0];
    va_list arguments;

    configuration->has_errors = true;
    if (configuration->complaint_count == limit)
        return;
    va_start(arguments, format);
    vsnprintf(configuration->complaints[configuration->complaint_count++],
              sizeof configuration->complaints[0], format, arguments);
    va_end(arguments);
}

/* text: a template, or NULL. name: where it stands. */
static void expand(struct preload_configuration *configuration, const char *name, const char *text,
                   char *path, size_t size)
{
    char error[256], rank[24] = "";
    const struct report_template_values values = {
        .host = configuration->host,
        .pid = getpid(),
        .job = configuration->rank.job,
        .rank = rank,
    };

    path[0] = '\0';
    if (configuration->rank.source != NULL)
        snprintf(rank, sizeof rank, "%lld", (long long)configuration->rank.rank);
    if (text != NULL && !report_expand_template(text, &values, path, size, error, sizeof error)) {
        path[0] = '\0';
        complain(configuration, "%s: %s", name, error);
    }
}

/* A mistake of the site's is none of the job's, which strict would end. */
static void expand_site_report(struct preload_configuration *configuration)
{
    const bool had_errors = configuration->has_errors;

    expand(configuration, "reports in the site's file", configuration->site_reports,
           configuration->site_report_path, sizeof configuration->site_report_path);
    configuration->has_errors = had_errors;
}

static void read_place(struct preload_configuration *configuration)
{
    if (gethostname(configuration->host, sizeof configuration->host) != 0)
        configuration->host[0] = '\0';
    configuration->host[sizeof configuration->host - 1] = '\0';
    configuration->rank = preload_rank_read(environment);
    expand(configuration, "CUDAPOLICY_LOG_FILE", value_of("CUDAPOLICY_LOG_FILE"),
           configuration->log_path, sizeof configuration->log_path);
    expand(configuration, "CUDAPOLICY_REPORT", value_of("CUDAPOLICY_REPORT"),
           configuration->report_path, sizeof configuration->report_path);
    expand_site_report(configuration);
}

void preload_configuration_use_site(struct preload_configuration *configuration,
                                    const struct policy_site *site)
{
    configuration->site_reports = site->reports;
    expand_site_report(configuration);
}

static void read_fake_domains(struct preload_configuration *configuration)
{
    const char *text = value_of("CUDAPOLICY_FAKE_LOCALITY_DOMAINS");
    int domains = place_fake_domains_parse(text);

    if (domains < 0)
        complain(configuration,
                 "CUDAPOLICY_FAKE_LOCALITY_DOMAINS=%s: it is a number of domains, from 2 to %d",
                 text, (int)PLACE_DOMAIN_LIMIT);
    else
        configuration->fake_domains = (unsigned)domains;
}

/* Written by `cudapolicy ab --live`, not by people. */
static void read_live(struct preload_configuration *configuration)
{
    const char *text = value_of("CUDAPOLICY_LIVE");
    char error[256];

    if (text != NULL && !decide_live_parse(text, &configuration->live, error, sizeof error)) {
        configuration->live = (struct decide_live_options){0};
        complain(configuration, "CUDAPOLICY_LIVE: %s; arms do not alternate", error);
    }
}

void preload_configuration_read(struct preload_configuration *configuration)
{
    const char *mode = value_of("CUDAPOLICY_MODE");
    const char *level = value_of("CUDAPOLICY_LOG");
    const char *strict = value_of("CUDAPOLICY_STRICT");
    const char *path = value_of("CUDAPOLICY_FILE");

    *configuration = (struct preload_configuration){.log_level = REPORT_LOG_WARN};
    if (path != NULL) {
        configuration->policy_path = strdup(path);
        if (!report_path_absolute(path, configuration->reload_path,
                                  sizeof configuration->reload_path))
            configuration->reload_path[0] = '\0';
    }
    if (mode != NULL) {
        configuration->mode_given = policy_mode_parse(mode, &configuration->asked_mode);
        if (!configuration->mode_given)
            complain(configuration, "CUDAPOLICY_MODE=%s: the modes are enforce, observe and off",
                     mode);
    }
    if (level != NULL && !report_log_level_parse(level, &configuration->log_level))
        complain(configuration, "CUDAPOLICY_LOG=%s: the levels are error, warn, info and debug",
                 level);
    if (strict != NULL && strcmp(strict, "0") != 0) {
        configuration->strict = true;
        if (strcmp(strict, "1") != 0)
            complain(configuration, "CUDAPOLICY_STRICT=%s: 0 or 1", strict);
    }
    read_fake_domains(configuration);
    read_live(configuration);
    read_place(configuration);
}

void preload_configuration_complain(const struct preload_configuration *configuration)
{
    for (unsigned i = 0; i < configuration->complaint_count; i++)
        report_log(REPORT_LOG_ERROR, "%s", configuration->complaints[i]);
}

void preload_configuration_in_child(struct preload_configuration *configuration)
{
    read_place(configuration);
}

static bool tells_of_cuda(const char *variable)
{
    static const char *const prefixes[] = {"NCCL_", "CUDA_", "CUDAPOLICY_"};

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static void environment_facts(void)
{
    for (char **variable = environ; variable != NULL && *variable != NULL; variable++) {
        const char *equals = strchr(*variable, '=');
        char name[128];

        /* The site's file has its own facts. */
        if (equals == NULL || !tells_of_cuda(*variable) ||
            strncmp(*variable, "CUDAPOLICY_SITE=", sizeof "CUDAPOLICY_SITE") == 0 ||
            (size_t)(equals - *variable) >= sizeof name)
            continue;
        memcpy(name, *variable, (size_t)(equals - *variable));
        name[equals - *variable] = '\0';
        report_fact("environment", name, "%s", equals + 1);
    }
}

void preload_configuration_policy_facts(const struct preload_configuration *configuration,
                                        const struct policy *policy)
{
    char digest[2 * sizeof policy->sha256 + 1];

    for (size_t i = 0; i < sizeof policy->sha256; i++)
        snprintf(digest + 2 * i, 3, "%02x", policy->sha256[i]);
    /* The policy's own path may have been made absolute since. */
    report_fact("policy", "path", "%s",
                configuration->policy_path != NULL && policy->path[0] != '('
                    ? configuration->policy_path
                    : policy->path);
    if (configuration->reload_path[0] != '\0')
        report_fact("policy", "file", "%s", configuration->reload_path);
    report_fact("policy", "sha256", "%s", digest);
    preload_site_facts(policy);
}

/* Children of a rank have its rank, too; by this they can be told from a second process that was
 * given the same one. */
static void ancestor_facts(void)
{
    char text[512];

    report_process_ancestors(text, sizeof text);
    report_fact("process", "ancestors", "%s", text);
}

void preload_configuration_facts(const struct preload_configuration *configuration,
                                 const struct policy *policy)
{
    const struct preload_rank *rank = &configuration->rank;

    preload_configuration_policy_facts(configuration, policy);
    report_fact("cudapolicy", "version", "%s", CUDAPOLICY_VERSION);
    report_fact("job", "host", "%s", configuration->host);
    for (int text = 0; text < PRELOAD_JOB_TEXTS; text++)
        if (rank->texts[text] != NULL)
            report_fact("job", preload_job_keys[text], "%s", rank->texts[text]);
    if (rank->job != NULL)
        report_fact("job", "id_source", "%s", rank->sources[PRELOAD_JOB_ID]);
    if (rank->source != NULL) {
        report_fact("job", "rank", "%lld", (long long)rank->rank);
        report_fact("job", "rank_source", "%s", rank->source);
        if (rank->local_rank >= 0)
            report_fact("job", "local_rank", "%lld", (long long)rank->local_rank);
        if (rank->world_size >= 0)
            report_fact("job", "world_size", "%lld", (long long)rank->world_size);
        ancestor_facts();
    }
    environment_facts();
}
