/* SPDX-License-Identifier: Apache-2.0 */
#include "effective.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "effective_variables.h"
#include "json_output.h"
#include "memory.h"
#include "policy/combine.h"
#include "policy/print.h"
#include "policy/site.h"
#include "policy_input.h"
#include "report/log.h"
#include "site_input.h"
#include "table.h"

enum {
    LINE_SIZE = 160, /* a setting: a name has 100 bytes at most */
};

static const char built_in[] = "built in";

struct effective {
    const struct effective_options *options;
    const char *policy_source; /* "-p", "CUDAPOLICY_FILE" or built_in */
    struct policy *policy;     /* the job's, if any, with the site's, if any */
    bool has_job, failed;
    struct table *table; /* or */
    json_t *values;
};

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* ---- Reading -----------------------------------------------------------------------------------
 */

static struct policy *without_rules(void)
{
    static const char text[] = "[policy]\nversion = 1\n";
    struct policy_diagnostics diagnostics;
    struct policy *policy;

    policy_diagnostics_init(&diagnostics);
    policy = policy_parse(text, sizeof text - 1, "(no policy)", &diagnostics);
    policy_diagnostics_release(&diagnostics);
    return policy;
}

static struct policy *read_job(struct effective *effective)
{
    const char *path = effective->options->policy;
    struct policy *job = NULL;

    effective->policy_source = path != NULL ? "-p" : "CUDAPOLICY_FILE";
    if (path == NULL) {
        path = variable("CUDAPOLICY_FILE");
    }
    if (path == NULL) {
        effective->policy_source = built_in;
        return without_rules();
    }
    job = policy_input_require(path, false, NULL);
    effective->has_job = job != NULL;
    effective->failed = job == NULL;
    return job != NULL ? job : without_rules();
}

/* What the library does with mistakes is done here too: a site's file that is refused is not used,
 * a job's policy with mistakes, or that does not fit the site's, leaves the site's alone. */
static void read_files(struct effective *effective)
{
    struct policy *job = read_job(effective), *site = NULL;
    bool failed = false;

    if (!effective->options->no_site) {
        site = site_input_load(effective->options->site, &failed);
    }
    effective->failed |= failed;
    if (site == NULL) {
        effective->policy = job;
        return;
    }
    effective->policy = site_input_combine(site, job, false);
    if (effective->policy == NULL) {
        effective->failed = true;
        effective->has_job = false;
        effective->policy = site_input_combine(site_input_load(effective->options->site, NULL),
                                               without_rules(), false);
    }
}

/* ---- Values ------------------------------------------------------------------------------------
 */

static void __attribute__((format(printf, 4, 5)))
add(struct effective *effective, const char *name, const char *value, const char *from, ...)
{
    char text[4096];
    va_list arguments;

    va_start(arguments, from);
    vsnprintf(text, sizeof text, from, arguments);
    va_end(arguments);
    if (effective->values != NULL) {
        json_array_append_new(effective->values,
                              json_pack("{s:s, s:o, s:o}", "value", name, "is",
                                        value != NULL ? json_output_string(value) : json_null(),
                                        "from", json_output_string(text)));
        return;
    }
    table_cell(effective->table, "%s", name);
    table_cell(effective->table, "%s", value != NULL ? value : "-");
    table_cell(effective->table, "%s", text);
}

/* The value of a variable, or what holds without it. */
static void add_variable(struct effective *effective, const char *name, const char *of,
                         const char *otherwise)
{
    const char *value = variable(of);

    if (value != NULL) {
        add(effective, name, value, "%s", of);
    } else {
        add(effective, name, otherwise, "%s", built_in);
    }
}

static void add_mode(struct effective *effective)
{
    const struct policy *policy = effective->policy;
    const struct policy_site *site = policy->site;
    const char *asked = variable("CUDAPOLICY_MODE");
    enum policy_mode environment;
    bool known = asked != NULL && policy_mode_parse(asked, &environment);
    struct policy_mode_choice choice = policy_mode_choose(known ? &environment : NULL, policy);
    char source[2048];

    switch (choice.source) {
    case POLICY_MODE_FROM_ENVIRONMENT:
        snprintf(source, sizeof source, "CUDAPOLICY_MODE");
        break;
    case POLICY_MODE_FROM_JOB:
        snprintf(source, sizeof source, "job %s:%u", policy->path,
                 (unsigned)policy->mode_place.line);
        break;
    case POLICY_MODE_FROM_SITE:
        snprintf(source, sizeof source, "site %s:%u", site->path, (unsigned)site->mode_place.line);
        break;
    case POLICY_MODE_BUILT_IN:
        snprintf(source, sizeof source, "%s", built_in);
        break;
    }
    if (asked != NULL && !known) {
        command_error("CUDAPOLICY_MODE: '%s' is no mode: it counts as not set", asked);
        effective->failed = true;
    }
    if (choice.mode != choice.wanted) {
        add(effective, "mode", policy_mode_name(choice.mode),
            "site %s:%u: mode_ceiling, below %s (%s)", site->path,
            (unsigned)site->mode_ceiling_place.line, policy_mode_name(choice.wanted), source);
    } else {
        add(effective, "mode", policy_mode_name(choice.mode), "%s", source);
    }
}

static void add_log(struct effective *effective)
{
    const char *level = variable("CUDAPOLICY_LOG");
    enum report_log_level parsed;

    if (level != NULL && !report_log_level_parse(level, &parsed)) {
        command_error("CUDAPOLICY_LOG: '%s' is no level: it counts as not set", level);
        effective->failed = true;
        add(effective, "log", "warn", "%s", built_in);
    } else {
        add_variable(effective, "log", "CUDAPOLICY_LOG", "warn");
    }
    add_variable(effective, "log file", "CUDAPOLICY_LOG_FILE", "standard error");
}

static void add_site(struct effective *effective)
{
    const struct policy_site *site = effective->policy->site;

    if (site->reports != NULL) {
        add(effective, "report, the site's", site->reports, "site %s:%u", site->path,
            (unsigned)site->reports_place.line);
    } else {
        add(effective, "report, the site's", NULL, "%s", built_in);
    }
    add(effective, "mode_ceiling", policy_mode_name(site->mode_ceiling),
        site->mode_ceiling_place.line != 0 ? "site %s:%u" : "built in", site->path,
        (unsigned)site->mode_ceiling_place.line);
    for (size_t i = 0; i < site->exclude.count; i++) {
        add(effective, "exclude", site->exclude.patterns[i], "site %s:%u", site->path,
            (unsigned)site->exclude_places[i].line);
    }
    add(effective, "exclude_defaults", site->exclude_defaults ? "yes" : "no",
        site->exclude_defaults_place.line != 0 ? "site %s:%u" : "built in", site->path,
        (unsigned)site->exclude_defaults_place.line);
}

static void add_values(struct effective *effective)
{
    const struct policy_site *site = effective->policy->site;

    add(effective, "policy", effective->has_job ? effective->policy->path : NULL, "%s",
        effective->policy_source);
    add(effective, "site's file", site != NULL ? site->path : NULL, "%s",
        effective->options->no_site                                  ? "--no-site"
        : effective->options->site != NULL                           ? "--site"
        : site != NULL && strcmp(site->path, site_input_path()) != 0 ? "CUDAPOLICY_SITE"
        : site_input_path()[0] != '\0' ? "fixed when cudapolicy was built"
                                       : "built without");
    add_mode(effective);
    add_log(effective);
    add_variable(effective, "report", "CUDAPOLICY_REPORT", NULL);
    if (site != NULL) {
        add_site(effective);
    }
    add_variable(effective, "strict", "CUDAPOLICY_STRICT", "0");
    add_variable(effective, "fake_locality_domains", "CUDAPOLICY_FAKE_LOCALITY_DOMAINS", NULL);
}

/* ---- Rules -------------------------------------------------------------------------------------
 */

/* What the rule sets, at its line; a rule without settings has one row, too. */
static void add_rule(struct table *table, const struct policy *policy,
                     const struct policy_rule *rule)
{
    const char *path = policy_layer_path(policy, rule->layer);
    char line[LINE_SIZE];
    bool first = true;

    for (int i = 0; i < POLICY_SETTING_COUNT; i++) {
        const struct policy_setting_value *value = &rule->settings[i];

        if (value->action == POLICY_ACTION_ABSENT && (i + 1 < POLICY_SETTING_COUNT || !first)) {
            continue;
        }
        table_cell(table, "%s", first ? policy_layer_name(rule->layer) : "");
        table_cell(table, "%s%s%s%s", first ? policy_section_text(rule->section) : "",
                   first ? " " : "", first ? rule->name : "",
                   first && rule->final ? ", final" : "");
        table_cell(table, "%s",
                   value->action != POLICY_ACTION_ABSENT
                       ? policy_setting_line((enum policy_setting)i, value, line, sizeof line)
                       : "-");
        table_cell(table, "%s:%u", path,
                   (unsigned)(value->action != POLICY_ACTION_ABSENT ? value->place.line
                                                                    : rule->place.line));
        first = false;
    }
}

static void print_rules(const struct policy *policy, bool wide)
{
    struct table *table = table_new();

    table_column(table, "layer", TABLE_LEFT, false);
    table_column(table, "rule", TABLE_LEFT, true);
    table_column(table, "setting", TABLE_LEFT, true);
    table_column(table, "from", TABLE_LEFT, true);
    for (size_t i = 0; i < policy->rule_count; i++) {
        add_rule(table, policy, &policy->rules[i]);
    }
    if (table_rows(table) > 0) {
        puts("\nrules, in the order in which they are read:");
        table_print(table, stdout, wide, "  ");
    }
    table_free(table);
}

static void print_partitions(const struct policy *policy, bool wide)
{
    struct table *table = table_new();
    char line[LINE_SIZE];

    table_column(table, "layer", TABLE_LEFT, false);
    table_column(table, "partition", TABLE_LEFT, true);
    table_column(table, "asks for", TABLE_LEFT, false);
    table_column(table, "from", TABLE_LEFT, true);
    for (size_t i = 0; i < policy->partition_count; i++) {
        const struct policy_partition *partition = &policy->partitions[i];

        table_cell(table, "%s", policy_layer_name(partition->layer));
        table_cell(table, "%s", partition->name);
        table_cell(table, "%s", policy_partition_line(partition, line, sizeof line));
        table_cell(table, "%s:%u", policy_layer_path(policy, partition->layer),
                   (unsigned)partition->place.line);
    }
    if (table_rows(table) > 0) {
        puts("\npartitions:");
        table_print(table, stdout, wide, "  ");
    }
    table_free(table);
}

/* ---- JSON --------------------------------------------------------------------------------------
 */

static json_t *settings_json(const struct policy_rule *rule)
{
    json_t *array = json_array();
    char text[LINE_SIZE];

    for (int i = 0; i < POLICY_SETTING_COUNT; i++) {
        const struct policy_setting_value *value = &rule->settings[i];

        if (value->action != POLICY_ACTION_ABSENT) {
            json_array_append_new(
                array,
                json_pack("{s:s, s:s, s:I}", "setting", policy_setting_key((enum policy_setting)i),
                          "value",
                          policy_setting_text((enum policy_setting)i, value, text, sizeof text),
                          "line", (json_int_t)value->place.line));
        }
    }
    return array;
}

static json_t *rules_json(const struct policy *policy)
{
    json_t *array = json_array();

    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct policy_rule *rule = &policy->rules[i];

        json_array_append_new(
            array, json_pack("{s:s, s:s, s:s, s:o, s:I, s:b, s:o}", "layer",
                             policy_layer_name(rule->layer), "section",
                             policy_section_text(rule->section), "rule", rule->name, "file",
                             json_output_string(policy_layer_path(policy, rule->layer)), "line",
                             (json_int_t)rule->place.line, "final", rule->final, "settings",
                             settings_json(rule)));
    }
    return array;
}

static json_t *partitions_json(const struct policy *policy)
{
    json_t *array = json_array();
    char line[LINE_SIZE];

    for (size_t i = 0; i < policy->partition_count; i++) {
        const struct policy_partition *partition = &policy->partitions[i];

        json_array_append_new(
            array,
            json_pack("{s:s, s:s, s:s, s:o, s:I}", "layer", policy_layer_name(partition->layer),
                      "partition", partition->name, "asks_for",
                      policy_partition_line(partition, line, sizeof line), "file",
                      json_output_string(policy_layer_path(policy, partition->layer)), "line",
                      (json_int_t)partition->place.line));
    }
    return array;
}

/* ---- All of it ---------------------------------------------------------------------------------
 */

static void print_text(struct effective *effective)
{
    bool wide = effective->options->wide;

    effective->table = table_new();
    table_column(effective->table, "value", TABLE_LEFT, false);
    table_column(effective->table, "is", TABLE_LEFT, true);
    table_column(effective->table, "from", TABLE_LEFT, false);
    add_values(effective);
    table_print(effective->table, stdout, wide, "");
    table_free(effective->table);
    print_rules(effective->policy, wide);
    print_partitions(effective->policy, wide);
    effective_variables_print(effective->policy, wide);
}

static void print_json(struct effective *effective)
{
    json_t *object;

    effective->values = json_array();
    add_values(effective);
    object =
        json_pack("{s:o, s:o, s:o}", "values", effective->values, "rules",
                  rules_json(effective->policy), "partitions", partitions_json(effective->policy));
    effective_variables_json(effective->policy, object);
    json_output_print(object, stdout);
}

bool effective_print(const struct effective_options *options)
{
    struct effective effective = {.options = options};

    read_files(&effective);
    if (effective.policy == NULL) {
        command_error("out of memory");
        return false;
    }
    if (options->json) {
        print_json(&effective);
    } else {
        print_text(&effective);
    }
    policy_free(effective.policy);
    return !effective.failed;
}
