/* SPDX-License-Identifier: Apache-2.0 */

/* cudapolicy report: reports of processes, merged into tables or JSON. */

#include "command.h"

#include <stdlib.h>
#include <string.h>

#include "job_group.h"
#include "json_output.h"
#include "policy_input.h"
#include "printable.h"
#include "recorded_policy.h"
#include "report_merge.h"
#include "summary.h"

static int report_main(const struct command *command, int argc, char **argv);

const struct command command_report = {
    .name = "report",
    .summary = "print reports of processes as tables or JSON",
    .usage = "[OPTION]... FILE|FOLDER...",
    .help =
        "Reads reports: the JSON of a process or of a job, or the counters (.counters) that a\n"
        "process left which was killed or still runs; of a folder, all that are in it and in its\n"
        "folders. Several reports are merged: counts of the same rule or kernel are added, and\n"
        "the ranks of a job compared: what differs among them, and ranks without a report.\n"
        "Several jobs, steps or launches are told apart.\n\n"
        "Options:\n"
        "  -p, --policy FILE  the policy of the run, to say why rules matched nothing (default: "
        "the\n"
        "                     file named in the report, if it is unchanged)\n"
        "      --kernels      list all kernels too; shapes are noted in observe mode only\n"
        "  -w, --wide         do not shorten names to the terminal's width\n"
        "      --json         print the merged summary as JSON; of several jobs, an array of them\n"
        "      --merge FILE   write all reports into FILE and print nothing; this command reads "
        "it\n"
        "                     again. Where FILE is there, FILE.1 and so on is taken\n"
        "      --remove       with --merge: remove the files that were merged, and then the "
        "folders\n"
        "                     that were given, if they are empty\n"
        "  -h, --help         print this help\n\n"
        "Exit status: 0; 1 when a report or the policy cannot be read; 64 when the command line\n"
        "is wrong.\n\n"
        "Examples:\n"
        "  cudapolicy report job.json\n"
        "  cudapolicy report --kernels --wide reports/\n"
        "  cudapolicy report --merge node7.json --remove reports/node7\n"
        "  cudapolicy report --json report.host-4711.json.counters | jq .launches\n",
    .main = report_main,
};

enum {
    OPTION_KERNELS = COMMAND_OPTION_LONG,
    OPTION_JSON,
    OPTION_MERGE,
    OPTION_REMOVE,
};

struct report_options {
    struct summary_options summary;
    const char *policy_file, *merge_file;
    bool json, remove;
};

static json_t *group_json(struct job_group *group, const struct policy *policy,
                          const struct rank_comparison *comparison)
{
    json_t *summary = summary_json(&group->results, policy);

    json_object_set_new(summary, "job", job_group_json(group));
    json_object_set_new(summary, "ranks",
                        comparison->reported.size > 0
                            ? rank_comparison_json(comparison, group->ranks.world_size)
                            : json_null());
    return summary;
}

static void print_group(struct job_group *group, const struct policy *policy,
                        const struct rank_comparison *comparison,
                        const struct summary_options *options)
{
    summary_print(&group->results, policy, options, stdout);
    rank_comparison_print(comparison, group->ranks.world_size, options->kernels, options->wide,
                          stdout);
}

static void print_heading(const struct job_group *group, bool first)
{
    char *text = job_group_text(group), *heading = printable_copy(text);

    printf("%s%s\n", first ? "" : "\n", heading);
    free(heading);
    free(text);
}

/* One job as ever; several under headings, or in an array. */
static void print_groups(struct job_groups *groups, const struct policy *given,
                         const struct report_options *options)
{
    json_t *array = options->json ? json_array() : NULL;

    for (size_t i = 0; i < groups->count; i++) {
        struct job_group *group = groups->groups[i];
        struct policy *recorded = given == NULL ? recorded_policy(&group->results) : NULL;
        const struct policy *policy = given != NULL ? given : recorded;
        struct rank_comparison comparison;

        ranks_compare(&group->ranks, &group->results, &comparison);
        if (options->json) {
            json_array_append_new(array, group_json(group, policy, &comparison));
        } else {
            if (groups->count > 1) {
                print_heading(group, i == 0);
            }
            print_group(group, policy, &comparison, &options->summary);
        }
        rank_comparison_release(&comparison);
        policy_free(recorded);
    }
    if (options->json && groups->count == 1) {
        json_output_print(json_incref(json_array_get(array, 0)), stdout);
        json_decref(array);
    } else if (options->json) {
        json_output_print(json_pack("{s:s, s:i, s:o}", "format", "cudapolicy summaries", "schema",
                                    SUMMARY_SCHEMA, "jobs", array),
                          stdout);
    }
}

static int print_results(struct job_groups *groups, const struct report_options *options)
{
    struct policy *policy = NULL;

    if (options->policy_file != NULL) {
        policy = policy_input_require(options->policy_file, false, NULL);
        if (policy == NULL) {
            return COMMAND_FAILURE;
        }
    }
    print_groups(groups, policy, options);
    policy_free(policy);
    return command_finish(COMMAND_SUCCESS);
}

static int report(int count, char **paths, const struct report_options *options)
{
    struct job_groups groups = {0};
    int status = COMMAND_SUCCESS;

    for (int i = 0; i < count; i++) {
        if (!job_groups_load(&groups, paths[i])) {
            status = COMMAND_FAILURE;
        }
    }
    job_groups_sort(&groups);
    if (groups.count > 0) {
        int printed = print_results(&groups, options);

        status = printed != COMMAND_SUCCESS ? printed : status;
    } else if (status == COMMAND_SUCCESS) {
        command_error("no report there");
        status = COMMAND_FAILURE;
    }
    job_groups_release(&groups);
    return status;
}

static int merge_files(int count, char **paths, const struct report_options *options)
{
    const struct report_merge merge = {.file = options->merge_file, .remove = options->remove};
    size_t reports;

    if (!report_merge(&merge, paths, (size_t)count, &reports)) {
        return COMMAND_FAILURE;
    }
    if (reports == 0) {
        command_error("no report there");
        return COMMAND_FAILURE;
    }
    return COMMAND_SUCCESS;
}

static int report_main(const struct command *command, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"policy", required_argument, NULL, 'p'},
        {"kernels", no_argument, NULL, OPTION_KERNELS},
        {"wide", no_argument, NULL, 'w'},
        {"json", no_argument, NULL, OPTION_JSON},
        {"merge", required_argument, NULL, OPTION_MERGE},
        {"remove", no_argument, NULL, OPTION_REMOVE},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct report_options options = {0};
    int option;

    while ((option = command_option(command, argc, argv, ":p:wh", long_options)) != -1) {
        switch (option) {
        case 'p':
            options.policy_file = optarg;
            break;
        case OPTION_KERNELS:
            options.summary.kernels = true;
            break;
        case 'w':
            options.summary.wide = true;
            break;
        case OPTION_JSON:
            options.json = true;
            break;
        case OPTION_MERGE:
            options.merge_file = optarg;
            break;
        case OPTION_REMOVE:
            options.remove = true;
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
    if (options.remove && options.merge_file == NULL) {
        return command_usage_error(command, "--remove goes with --merge");
    }
    if (options.merge_file != NULL) {
        return merge_files(argc - optind, argv + optind, &options);
    }
    return report(argc - optind, argv + optind, &options);
}
