/* SPDX-License-Identifier: Apache-2.0 */

/* cudapolicy report: reports of processes, merged into tables or JSON. */

#include "command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json_output.h"
#include "policy_input.h"
#include "summary.h"

static int report_main(const struct command *command, int argc, char **argv);

const struct command command_report = {
    .name = "report",
    .summary = "print reports of processes as tables or JSON",
    .usage = "[OPTION]... FILE|FOLDER...",
    .help =
        "Reads reports: the JSON of a process or of a job, or the counters (.counters) that a\n"
        "process left which was killed or still runs; of a folder, all that are in it and in its\n"
        "folders. Several reports are merged: counts of the same rule or kernel are added.\n\n"
        "Options:\n"
        "  -p, --policy FILE  the policy of the run, to say why rules matched nothing (default: "
        "the\n"
        "                     file named in the report, if it is unchanged)\n"
        "      --kernels      list all kernels too; shapes are noted in observe mode only\n"
        "  -w, --wide         do not shorten names to the terminal's width\n"
        "      --json         print the merged summary as JSON\n"
        "  -h, --help         print this help\n\n"
        "Exit status: 0; 1 when a report or the policy cannot be read; 64 when the command line\n"
        "is wrong.\n\n"
        "Examples:\n"
        "  cudapolicy report job.json\n"
        "  cudapolicy report --kernels --wide reports/\n"
        "  cudapolicy report --json report.host-4711.json.counters | jq .launches\n",
    .main = report_main,
};

enum {
    OPTION_KERNELS = COMMAND_OPTION_LONG,
    OPTION_JSON,
};

static void hexadecimal(const uint8_t *bytes, size_t count, char *text)
{
    for (size_t i = 0; i < count; i++) {
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
}

/* The policy that all processes ran under, when its file is where it was and as it was. */
static struct policy *recorded_policy(const struct results *results)
{
    const struct results_process *first = &results->processes[0];
    struct policy_diagnostics diagnostics;
    struct policy *policy;
    char sha256[65];

    for (size_t i = 0; i < results->process_count; i++) {
        if (strcmp(results->processes[i].policy_sha256, first->policy_sha256) != 0) {
            return NULL;
        }
    }
    if (first->policy_path[0] != '/' || access(first->policy_path, R_OK) != 0) {
        return NULL;
    }
    policy_diagnostics_init(&diagnostics);
    policy = policy_load(first->policy_path, &diagnostics);
    policy_diagnostics_release(&diagnostics);
    if (policy == NULL) {
        return NULL;
    }
    hexadecimal(policy->sha256, sizeof policy->sha256, sha256);
    if (strcmp(sha256, first->policy_sha256) != 0) {
        policy_free(policy);
        return NULL;
    }
    return policy;
}

static int print_results(const struct results *results, const char *policy_file,
                         const struct summary_options *options, bool json)
{
    struct policy *policy = NULL;

    if (policy_file != NULL) {
        policy = policy_input_require(policy_file, false, NULL);
        if (policy == NULL) {
            return COMMAND_FAILURE;
        }
    } else {
        policy = recorded_policy(results);
    }
    if (json) {
        json_output_print(summary_json(results, policy), stdout);
    } else {
        summary_print(results, policy, options, stdout);
    }
    policy_free(policy);
    return command_finish(COMMAND_SUCCESS);
}

static int report(int count, char **paths, const char *policy_file,
                  const struct summary_options *options, bool json)
{
    struct results results = {0};
    int status = COMMAND_SUCCESS;

    for (int i = 0; i < count; i++) {
        if (!results_load(&results, paths[i])) {
            status = COMMAND_FAILURE;
        }
    }
    if (results.process_count > 0) {
        int printed = print_results(&results, policy_file, options, json);

        status = printed != COMMAND_SUCCESS ? printed : status;
    } else if (status == COMMAND_SUCCESS) {
        command_error("no report there");
        status = COMMAND_FAILURE;
    }
    results_release(&results);
    return status;
}

static int report_main(const struct command *command, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"policy", required_argument, NULL, 'p'}, {"kernels", no_argument, NULL, OPTION_KERNELS},
        {"wide", no_argument, NULL, 'w'},         {"json", no_argument, NULL, OPTION_JSON},
        {"help", no_argument, NULL, 'h'},         {0},
    };
    struct summary_options options = {0};
    const char *policy_file = NULL;
    bool json = false;
    int option;

    while ((option = command_option(command, argc, argv, ":p:wh", long_options)) != -1) {
        switch (option) {
        case 'p':
            policy_file = optarg;
            break;
        case OPTION_KERNELS:
            options.kernels = true;
            break;
        case 'w':
            options.wide = true;
            break;
        case OPTION_JSON:
            json = true;
            break;
        case 'h':
            return command_help(command);
        default:
            return COMMAND_USAGE;
        }
    }
    if (optind == argc) {
        return command_usage_error(command, "no report given");
    }
    return report(argc - optind, argv + optind, policy_file, &options, json);
}
