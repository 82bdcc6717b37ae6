/* SPDX-License-Identifier: Apache-2.0 */

/* cudapolicy diff: what changed from one run to another. */

#include "command.h"

#include "json_output.h"
#include "policy_input.h"
#include "recorded_policy.h"
#include "report_diff.h"

static int diff_main(const struct command *command, int argc, char **argv);

const struct command command_diff = {
    .name = "diff",
    .summary = "compare the reports of two runs",
    .usage = "[OPTION]... OLD NEW",
    .help =
        "Reads two reports, each a file or a folder as of the report command, and prints what\n"
        "changed: kernels that are gone (-) or new (+), with the names nearest to those that are\n"
        "gone; rules that no longer match, or began to; other outcomes and reasons; and for a "
        "rule\n"
        "that lost kernels, the rule with the nearest names added, to paste into the policy. How\n"
        "often something was launched is no difference, and neither is another driver, library or\n"
        "policy file: these are printed first.\n\n"
        "Options:\n"
        "  -p, --policy FILE  the policy, for the text of rules (default: the file that the new\n"
        "                     report names, or else the old one, if it is unchanged)\n"
        "  -w, --wide         shorten no names, and list all kernels\n"
        "      --json         print the differences as JSON\n"
        "  -h, --help         print this help\n\n"
        "Exit status: 0 when there is no difference, 1 when there is one, 2 when a report or the\n"
        "policy cannot be read; 64 when the command line is wrong.\n\n"
        "Examples:\n"
        "  cudapolicy diff before.json after.json\n"
        "  cudapolicy diff -p policy.ini reports/4711 reports/4712\n"
        "  cudapolicy diff --json before.json after.json | jq '.rules[].suggestion'\n",
    .main = diff_main,
};

enum {
    OPTION_JSON = COMMAND_OPTION_LONG,

    /* As diff's own. */
    DIFF_NONE = 0,
    DIFF_FOUND = 1,
    DIFF_TROUBLE = 2,
};

struct diff_options {
    const char *policy_file;
    bool wide, json;
};

static bool load(struct diff_side *side, const char *path)
{
    if (!report_diff_load(side, path)) {
        return false;
    }
    if (side->results.process_count == 0) {
        command_error("no report in '%s'", path);
        return false;
    }
    return true;
}

static int compare(const struct diff_side *old, const struct diff_side *new,
                   const struct diff_options *options)
{
    struct policy *policy = NULL;
    struct report_diff diff;
    int status;

    if (options->policy_file != NULL) {
        policy = policy_input_require(options->policy_file, false, NULL);
        if (policy == NULL) {
            return DIFF_TROUBLE;
        }
    } else {
        policy = recorded_policy(&new->results);
        policy = policy != NULL ? policy : recorded_policy(&old->results);
    }
    report_diff_make(old, new, policy, &diff);
    if (options->json) {
        json_output_print(report_diff_json(&diff), stdout);
    } else {
        report_diff_print(&diff, options->wide, stdout);
    }
    status = diff.same ? DIFF_NONE : DIFF_FOUND;
    report_diff_release(&diff);
    policy_free(policy);
    return command_finish(COMMAND_SUCCESS) == COMMAND_SUCCESS ? status : DIFF_TROUBLE;
}

static int diff(const char *old_path, const char *new_path, const struct diff_options *options)
{
    struct diff_side old = {0}, new = {0};
    int status = DIFF_TROUBLE;

    /* Both are read, so that one call names the mistakes of both. */
    bool old_loaded = load(&old, old_path), new_loaded = load(&new, new_path);

    if (old_loaded && new_loaded) {
        status = compare(&old, &new, options);
    }
    report_diff_release_side(&old);
    report_diff_release_side(&new);
    return status;
}

static int diff_main(const struct command *command, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"policy", required_argument, NULL, 'p'},
        {"wide", no_argument, NULL, 'w'},
        {"json", no_argument, NULL, OPTION_JSON},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct diff_options options = {0};
    int option;

    while ((option = command_option(command, argc, argv, ":p:wh", long_options)) != -1) {
        switch (option) {
        case 'p':
            options.policy_file = optarg;
            break;
        case 'w':
            options.wide = true;
            break;
        case OPTION_JSON:
            options.json = true;
            break;
        case 'h':
            return command_help(command);
        default:
            return COMMAND_USAGE;
        }
    }
    if (argc - optind != 2) {
        return command_usage_error(command, "two reports are needed, the old one and the new one");
    }
    return diff(argv[optind], argv[optind + 1], &options);
}
