/* SPDX-License-Identifier: Apache-2.0 */

/* cudapolicy check: is a policy right? */

#include "command.h"

#include <jansson.h>

#include "json_output.h"
#include "policy_environment.h"
#include "policy_input.h"
#include "site_input.h"

static int check_main(const struct command *command, int argc, char **argv);

const struct command command_check = {
    .name = "check",
    .summary = "check policy files, with the place of every mistake",
    .usage = "[OPTION]... FILE... | --site [OPTION]... [FILE...]",
    .help =
        "Reads each policy file and prints every error and warning in it on standard output,\n"
        "as FILE:LINE:COLUMN: error: MESSAGE. '-' is standard input.\n\n"
        "Options:\n"
        "      --site       the files are those of a site, which hold for every job; without a\n"
        "                   FILE, the one of this machine, and who may write to it\n"
        "  -q, --quiet      print errors only: no warnings, no verdict\n"
        "      --werror     a warning is a failure too\n"
        "      --json       print the diagnostics as one JSON document\n"
        "      --print-env  print, as lines NAME=VALUE, what [env] of the one FILE would set\n"
        "                   for a program that is started in this environment, and no more\n"
        "  -h, --help       print this help\n\n"
        "Exit status: 0 when every file is right, 1 when one is wrong or cannot be read,\n"
        "64 when the command line is wrong.\n\n"
        "Examples:\n"
        "  cudapolicy check policy.ini\n"
        "  cudapolicy check --werror site/*.ini\n"
        "  cudapolicy check --site site.ini\n"
        "  cudapolicy check --print-env policy.ini\n"
        "  cudapolicy check --json policy.ini | jq '.files[].diagnostics[].message'\n",
    .main = check_main,
};

enum {
    OPTION_WERROR = COMMAND_OPTION_LONG,
    OPTION_JSON,
    OPTION_PRINT_ENV,
    OPTION_SITE,
};

struct check_options {
    bool quiet, werror, json, print_env, site;
};

static json_t *diagnostic_json(const struct policy_diagnostic *diagnostic)
{
    return json_pack("{s:s, s:I, s:I, s:o}", "severity",
                     diagnostic->severity == POLICY_ERROR ? "error" : "warning", "line",
                     (json_int_t)diagnostic->place.line, "column",
                     (json_int_t)diagnostic->place.column, "message",
                     json_output_string(diagnostic->message));
}

static json_t *file_json(const char *file, struct policy_diagnostics *diagnostics,
                         const struct policy *policy)
{
    json_t *list = json_array();

    policy_diagnostics_sort(diagnostics);
    for (size_t i = 0; i < diagnostics->count; i++) {
        json_array_append_new(list, diagnostic_json(&diagnostics->items[i]));
    }
    return json_pack("{s:o, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "file",
                     json_output_string(file), "valid", policy != NULL, "rules",
                     (json_int_t)(policy != NULL ? policy->rule_count : 0), "partitions",
                     (json_int_t)(policy != NULL ? policy->partition_count : 0), "variables",
                     (json_int_t)(policy != NULL ? policy->variable_count : 0), "expectations",
                     (json_int_t)(policy != NULL ? policy->expectation_count : 0), "errors",
                     (json_int_t)diagnostics->error_count, "warnings",
                     (json_int_t)diagnostics->warning_count, "diagnostics", list);
}

static void print_some(size_t count, const char *what)
{
    if (count > 0) {
        printf("%zu %s%s, ", count, what, count == 1 ? "" : "s");
    }
}

static void print_verdict(const char *file, const struct policy *policy, size_t warnings)
{
    size_t kernel_rules = 0;

    for (size_t i = 0; i < policy->rule_count; i++) {
        kernel_rules += policy->rules[i].section == POLICY_SECTION_KERNEL;
    }
    printf("%s: ok: %zu kernel and %zu stream rules, ", file, kernel_rules,
           policy->rule_count - kernel_rules);
    print_some(policy->partition_count, "partition");
    print_some(policy->variable_count, "variable");
    print_some(policy->expectation_count, "expectation");
    printf("%zu warning%s\n", warnings, warnings == 1 ? "" : "s");
}

/* Checks one file; true when it is right. list: where its JSON goes, or NULL. */
static bool check_file(const char *file, const struct check_options *options, json_t *list)
{
    struct policy_diagnostics diagnostics;
    struct policy *policy;
    bool right;

    policy_diagnostics_init(&diagnostics);
    diagnostics.errors_only = options->quiet && !options->werror;
    policy = options->site ? site_input_check(file, &diagnostics)
                           : policy_input_load(file, &diagnostics);
    right = policy != NULL && !(options->werror && diagnostics.warning_count > 0);
    if (list != NULL) {
        json_array_append_new(list, file_json(file, &diagnostics, policy));
    } else {
        policy_diagnostics_print(&diagnostics, stdout);
        if (policy != NULL && !options->quiet) {
            print_verdict(file, policy, diagnostics.warning_count);
        }
    }
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
    return right;
}

static int check_files(const struct check_options *options, int count, const char *const *files)
{
    json_t *list = options->json ? json_array() : NULL;
    bool right = true;

    for (int i = 0; i < count; i++) {
        right = check_file(files[i], options, list) && right;
    }
    if (list != NULL) {
        json_output_print(json_pack("{s:b, s:o}", "valid", right, "files", list), stdout);
    }
    return command_finish(right ? COMMAND_SUCCESS : COMMAND_FAILURE);
}

static int print_env(const char *file)
{
    struct policy *policy = policy_input_require(file, false, NULL);

    if (policy != NULL) {
        policy = site_input_around(policy, false);
    }
    if (policy == NULL) {
        return COMMAND_FAILURE;
    }
    policy_environment_print(policy, stdout);
    policy_free(policy);
    return command_finish(COMMAND_SUCCESS);
}

static int check_main(const struct command *command, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"quiet", no_argument, NULL, 'q'},
        {"werror", no_argument, NULL, OPTION_WERROR},
        {"json", no_argument, NULL, OPTION_JSON},
        {"print-env", no_argument, NULL, OPTION_PRINT_ENV},
        {"site", no_argument, NULL, OPTION_SITE},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    const char *own[] = {site_input_path()};
    struct check_options options = {0};
    int option;

    while ((option = command_option(command, argc, argv, ":qh", long_options)) != -1) {
        switch (option) {
        case 'q':
            options.quiet = true;
            break;
        case OPTION_WERROR:
            options.werror = true;
            break;
        case OPTION_JSON:
            options.json = true;
            break;
        case OPTION_PRINT_ENV:
            options.print_env = true;
            break;
        case OPTION_SITE:
            options.site = true;
            break;
        case 'h':
            return command_help(command);
        default:
            return COMMAND_USAGE;
        }
    }
    if (optind == argc && options.site && !options.print_env && own[0][0] != '\0') {
        return check_files(&options, 1, own);
    }
    if (options.print_env && (options.quiet || options.werror || options.json || options.site)) {
        return command_usage_error(command, "--print-env takes no other option");
    }
    if (optind == argc) {
        return command_usage_error(command, "no policy file given");
    }
    if (options.print_env && argc - optind > 1) {
        return command_usage_error(command, "--print-env takes one policy file");
    }
    if (options.print_env) {
        return print_env(argv[optind]);
    }
    return check_files(&options, argc - optind, (const char *const *)argv + optind);
}
