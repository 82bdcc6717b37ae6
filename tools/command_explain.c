/* SPDX-License-Identifier: Apache-2.0 */

/* cudapolicy explain: what a policy does with a kernel, and why. */

#include "command.h"

#include <stdlib.h>
#include <string.h>

#include "effective.h"
#include "explain.h"
#include "explain_policy.h"
#include "facts.h"
#include "json_output.h"
#include "number.h"
#include "policy_input.h"
#include "readable_name.h"
#include "site_input.h"
#include "summary.h"

static int explain_main(const struct command *command, int argc, char **argv);

const struct command command_explain = {
    .name = "explain",
    .summary = "say which rules match a kernel, and which settings result",
    .usage = "-p FILE [OPTION]... (--kernel NAME | REPORT...) | --effective [OPTION]...",
    .help =
        "Says for a kernel which rules of a policy match, why the others do not (the first\n"
        "selector that fails), and which settings result, with the line each comes from. The\n"
        "kernel is given by its name in any form, as a profiler prints it or mangled, or the\n"
        "kernels are those of a report. What is not given counts as not known: a rule that asks\n"
        "for it matches 'perhaps'. Where this machine has a site's file, its rules stand around "
        "the\n"
        "policy's, as they do for programs.\n\n"
        "Options:\n"
        "  -p, --policy FILE      the policy\n"
        "  -k, --kernel NAME      the kernel\n"
        "      --library NAME     base name of the library or executable that launches it\n"
        "      --grid X[,Y[,Z]]   blocks in the grid\n"
        "      --block X[,Y[,Z]]  threads in a block\n"
        "      --shared-memory N  dynamic shared memory of a block, in bytes\n"
        "      --stream RULE      the [stream] rule that its stream matched; '' for none\n"
        "      --launch-stream N  the n-th stream on which the rule's kernels are launched, from "
        "0\n"
        "      --captured yes|no  whether the launch becomes a node of a graph\n"
        "      --device N         index of the device\n"
        "      --arm N            the arm, where the policy is that of a live comparison (0..15);\n"
        "                         with reports too\n"
        "      --rank N, --local-rank N, --world-size N, --host NAME\n"
        "                         the process's place in its job\n"
        "      --effective        print every value that would hold for a program that is started\n"
        "                         here, and where it comes from: environment, policy, site or "
        "built in;\n"
        "                         without -p, the policy of $CUDAPOLICY_FILE\n"
        "      --site FILE        use FILE as the site's file; --no-site: as if there were none\n"
        "      --json             print as JSON\n"
        "  -w, --wide             do not shorten to the terminal's width\n"
        "  -h, --help             print this help\n\n"
        "Exit status: 0; 1 when the policy is wrong or a report cannot be read; 64 when the\n"
        "command line is wrong.\n\n"
        "Examples:\n"
        "  cudapolicy explain -p policy.ini --kernel ncclDevKernel_AllReduce_Sum_f32_RING_LL \\\n"
        "      --library libnccl.so.2 --grid 4\n"
        "  cudapolicy explain -p policy.ini --kernel 'void ns::copy<float>(float*, int)'\n"
        "  cudapolicy explain -p policy.ini job.json\n"
        "  cudapolicy explain --effective -p policy.ini\n",
    .main = explain_main,
};

enum {
    OPTION_LIBRARY = COMMAND_OPTION_LONG,
    OPTION_GRID,
    OPTION_BLOCK,
    OPTION_SHARED_MEMORY,
    OPTION_STREAM,
    OPTION_LAUNCH_STREAM,
    OPTION_CAPTURED,
    OPTION_DEVICE,
    OPTION_ARM,
    OPTION_RANK,
    OPTION_LOCAL_RANK,
    OPTION_WORLD_SIZE,
    OPTION_HOST,
    OPTION_JSON,
    OPTION_EFFECTIVE,
    OPTION_SITE,
    OPTION_NO_SITE,
};

static const struct option long_options[] = {
    {"policy", required_argument, NULL, 'p'},
    {"kernel", required_argument, NULL, 'k'},
    {"library", required_argument, NULL, OPTION_LIBRARY},
    {"grid", required_argument, NULL, OPTION_GRID},
    {"block", required_argument, NULL, OPTION_BLOCK},
    {"shared-memory", required_argument, NULL, OPTION_SHARED_MEMORY},
    {"stream", required_argument, NULL, OPTION_STREAM},
    {"launch-stream", required_argument, NULL, OPTION_LAUNCH_STREAM},
    {"captured", required_argument, NULL, OPTION_CAPTURED},
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"arm", required_argument, NULL, OPTION_ARM},
    {"rank", required_argument, NULL, OPTION_RANK},
    {"local-rank", required_argument, NULL, OPTION_LOCAL_RANK},
    {"world-size", required_argument, NULL, OPTION_WORLD_SIZE},
    {"host", required_argument, NULL, OPTION_HOST},
    {"json", no_argument, NULL, OPTION_JSON},
    {"effective", no_argument, NULL, OPTION_EFFECTIVE},
    {"site", required_argument, NULL, OPTION_SITE},
    {"no-site", no_argument, NULL, OPTION_NO_SITE},
    {"wide", no_argument, NULL, 'w'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

struct explain_options {
    const char *policy, *kernel;
    const char *site; /* in place of this machine's */
    bool json, wide, facts_given, effective, no_site;
    struct match_facts facts;
};

/* One number, or the product of up to three: what the selectors count. */
static bool take_extent(const struct command *command, const char *name, const char *text,
                        int dimensions, int64_t least, struct match_extent *extent)
{
    int64_t value;

    if (!number_parse_product(text, dimensions, least, &value)) {
        command_usage_error(command, "'%s' is not a value for %s", text, name);
        return false;
    }
    *extent = (struct match_extent){.known = true, .least = value, .most = value};
    return true;
}

static bool take_captured(const struct command *command, const char *text,
                          enum policy_choice *captured)
{
    if (strcmp(text, "yes") == 0) {
        *captured = POLICY_CHOICE_YES;
    } else if (strcmp(text, "no") == 0) {
        *captured = POLICY_CHOICE_NO;
    } else {
        command_usage_error(command, "'%s' is not a value for --captured: yes or no", text);
        return false;
    }
    return true;
}

/* The arm of a live comparison: a report is about all of them, so that it says nothing here. */
static bool take_arm(const struct command *command, const char *text, struct match_extent *arm)
{
    if (!take_extent(command, "--arm", text, 1, 0, arm)) {
        return false;
    }
    if (arm->most >= POLICY_ARM_LIMIT) {
        command_usage_error(command, "'%s' is not a value for --arm: 0 to %d", text,
                            (int)POLICY_ARM_LIMIT - 1);
        return false;
    }
    return true;
}

/* An option that says something about the launch. */
static bool take_fact(const struct command *command, int option, struct match_facts *facts)
{
    switch (option) {
    case OPTION_LIBRARY:
        facts->library = optarg;
        return true;
    case OPTION_GRID:
        return take_extent(command, "--grid", optarg, 3, 1, &facts->grid_blocks);
    case OPTION_BLOCK:
        return take_extent(command, "--block", optarg, 3, 1, &facts->block_threads);
    case OPTION_SHARED_MEMORY:
        return take_extent(command, "--shared-memory", optarg, 1, 0, &facts->shared_memory);
    case OPTION_STREAM:
        facts->stream_known = true;
        facts->stream_rule = optarg[0] != '\0' ? optarg : NULL;
        return true;
    case OPTION_LAUNCH_STREAM:
        return take_extent(command, "--launch-stream", optarg, 1, 0, &facts->launch_stream);
    case OPTION_CAPTURED:
        return take_captured(command, optarg, &facts->captured);
    case OPTION_DEVICE:
        return take_extent(command, "--device", optarg, 1, 0, &facts->device);
    case OPTION_RANK:
        return take_extent(command, "--rank", optarg, 1, 0, &facts->rank);
    case OPTION_LOCAL_RANK:
        return take_extent(command, "--local-rank", optarg, 1, 0, &facts->local_rank);
    case OPTION_WORLD_SIZE:
        return take_extent(command, "--world-size", optarg, 1, 1, &facts->world_size);
    case OPTION_HOST:
        facts->host = optarg;
        return true;
    default:
        return false;
    }
}

static bool take_option(const struct command *command, int option, struct explain_options *options)
{
    switch (option) {
    case 'p':
        options->policy = optarg;
        return true;
    case 'k':
        options->kernel = optarg;
        return true;
    case OPTION_JSON:
        options->json = true;
        return true;
    case OPTION_EFFECTIVE:
        options->effective = true;
        return true;
    case OPTION_SITE:
        options->site = optarg;
        return true;
    case OPTION_NO_SITE:
        options->no_site = true;
        return true;
    case 'w':
        options->wide = true;
        return true;
    case OPTION_ARM:
        return take_arm(command, optarg, &options->facts.arm);
    default:
        options->facts_given = true;
        return take_fact(command, option, &options->facts);
    }
}

/* The stream rule of this name; the job's comes before one of the site's. */
static const struct policy_rule *find_stream_rule(const struct policy *policy, const char *name)
{
    const struct policy_rule *found = NULL;

    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct policy_rule *rule = &policy->rules[i];

        if (rule->section == POLICY_SECTION_STREAM && strcmp(rule->name, name) == 0 &&
            (found == NULL || rule->layer == POLICY_LAYER_JOB)) {
            found = rule;
        }
    }
    return found;
}

static void explain_one(const struct explain_options *options, const struct policy *policy,
                        const struct match_facts *facts, json_t *list)
{
    if (list != NULL) {
        json_array_append_new(list, explain_json(policy, facts));
    } else {
        explain_print(policy, facts, options->wide, stdout);
    }
}

static int explain_named(struct explain_options *options, const struct policy *policy, json_t *list)
{
    const char *stream = options->facts.stream_rule;
    const struct policy_rule *rule = stream != NULL ? find_stream_rule(policy, stream) : NULL;

    if (stream != NULL && rule == NULL) {
        command_error("the policy has no [stream %s]", stream);
        return COMMAND_FAILURE;
    }
    if (rule != NULL) {
        options->facts.stream_layer = rule->layer;
    }
    if (!readable_name_fill(options->kernel, &options->facts)) {
        command_error("out of memory");
        return COMMAND_FAILURE;
    }
    explain_one(options, policy, &options->facts, list);
    kernel_name_release(&options->facts.name);
    return COMMAND_SUCCESS;
}

static int explain_reports(const struct explain_options *options, const struct policy *policy,
                           int count, char **paths, json_t *list)
{
    struct results results = {0};
    const struct results_kernel **kernels;
    int status = COMMAND_SUCCESS;

    for (int i = 0; i < count; i++) {
        if (!results_load(&results, paths[i])) {
            status = COMMAND_FAILURE;
        }
    }
    kernels = summary_sorted_kernels(&results);
    for (size_t i = 0; i < results.kernel_count; i++) {
        struct match_facts facts;

        facts_of_kernel(kernels[i], &facts);
        facts.arm = options->facts.arm;
        explain_one(options, policy, &facts, list);
    }
    if (results.kernel_count == 0 && status == COMMAND_SUCCESS) {
        command_error("no kernel in the report");
        status = COMMAND_FAILURE;
    }
    free(kernels);
    results_release(&results);
    return status;
}

/* The policy of the options with the site's around it; NULL after errors. */
static struct policy *load_policy(const struct explain_options *options)
{
    struct policy *job = policy_input_require(options->policy, false, NULL);
    bool failed = false;
    struct policy *site =
        job != NULL && !options->no_site ? site_input_load(options->site, &failed) : NULL;

    if (failed && options->site != NULL) {
        policy_free(job);
        return NULL;
    }
    if (failed) {
        command_error("the site's file is not used");
    }
    return site_input_combine(site, job, false);
}

static int explain_effective(const struct explain_options *options)
{
    const struct effective_options wanted = {.policy = options->policy,
                                             .site = options->site,
                                             .no_site = options->no_site,
                                             .wide = options->wide,
                                             .json = options->json};

    return command_finish(effective_print(&wanted) ? COMMAND_SUCCESS : COMMAND_FAILURE);
}

static int explain(struct explain_options *options, int count, char **paths)
{
    struct policy *policy = load_policy(options);
    json_t *list = options->json ? json_array() : NULL;
    int status;

    if (policy == NULL) {
        json_decref(list);
        return COMMAND_FAILURE;
    }
    if (options->kernel != NULL) {
        status = explain_named(options, policy, list);
    } else {
        status = explain_reports(options, policy, count, paths, list);
    }
    if (list != NULL) {
        json_output_print(json_pack("{s:o, s:o, s:o, s:o}", "policy",
                                    json_output_string(options->policy), "kernels", list,
                                    "environment", explain_environment_json(policy), "expectations",
                                    explain_expectations_json(policy)),
                          stdout);
    } else {
        explain_policy_print(policy, stdout);
    }
    policy_free(policy);
    return command_finish(status);
}

static int explain_main(const struct command *command, int argc, char **argv)
{
    struct explain_options options = {0};
    int option;

    while ((option = command_option(command, argc, argv, ":p:k:wh", long_options)) != -1) {
        if (option == 'h') {
            return command_help(command);
        }
        if (option == '?' || !take_option(command, option, &options)) {
            return COMMAND_USAGE;
        }
    }
    if (options.site != NULL && options.no_site) {
        return command_usage_error(command, "--site and --no-site together");
    }
    if (options.effective) {
        return options.kernel == NULL && !options.facts_given && optind == argc
                   ? explain_effective(&options)
                   : command_usage_error(command, "--effective is not about a kernel or a report");
    }
    if (options.policy == NULL) {
        return command_usage_error(command, "no policy: give one with -p");
    }
    if ((options.kernel != NULL) == (optind < argc)) {
        return command_usage_error(command, "give either --kernel or reports");
    }
    if (options.kernel == NULL && options.facts_given) {
        return command_usage_error(command, "a report says itself how its kernels were launched");
    }
    if (options.kernel != NULL && options.kernel[0] == '\0') {
        return command_usage_error(command, "the kernel's name is empty");
    }
    return explain(&options, argc - optind, argv + optind);
}
