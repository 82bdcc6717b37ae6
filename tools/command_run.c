/* SPDX-License-Identifier: Apache-2.0 */

/* cudapolicy run: a program under a policy, then what became of it. */

#include "command.h"

#include <stdlib.h>
#include <string.h>

#include "expectations.h"
#include "job.h"
#include "job_group.h"
#include "json_output.h"
#include "memory.h"
#include "output_file.h"
#include "policy/combine.h"
#include "policy_input.h"
#include "reach.h"
#include "report/log.h"
#include "report_merge.h"
#include "site_input.h"
#include "summary.h"

static int run_main(const struct command *command, int argc, char **argv);

const struct command command_run = {
    .name = "run",
    .summary = "run a program under a policy and say what was applied",
    .usage = "[OPTION]... [--] PROGRAM [ARGUMENT]...",
    .help =
        "Checks the policy, runs PROGRAM with libcudapolicy.so preloaded into it and its "
        "children,\n"
        "and prints on standard error what became of each rule. Standard output, signals and the\n"
        "exit status are the program's own. A policy with a mistake is not run.\n\n"
        "Options:\n"
        "  -p, --policy FILE        the policy (default: $CUDAPOLICY_FILE)\n"
        "  -m, --mode MODE          enforce, observe (decide and report, change nothing) or off;\n"
        "                           beats the policy and $CUDAPOLICY_MODE\n"
        "  -r, --report FILE        write the report of the job, all its processes, as JSON\n"
        "  -f, --force              overwrite FILE if it is there\n"
        "      --report-folder DIR  keep each process's own report, in a new folder in DIR; for\n"
        "                           jobs of several hosts, a folder that all of them see\n"
        "      --merge              with --report-folder: in the end, one file for each host\n"
        "                           instead of one for each process\n"
        "      --strict             a process to which the policy cannot be attached ends with\n"
        "                           status 78 before its first CUDA call\n"
        "      --strict-expect      end with status 3 where the program ended well, but something\n"
        "                           was not as [expect] of the policy says, or cannot be judged\n"
        "      --log LEVEL          error, warn, info or debug\n"
        "      --library PATH       libcudapolicy.so (default: $CUDAPOLICY_LIBRARY, else the one\n"
        "                           that belongs to this command)\n"
        "      --kernels            list all kernels too; shapes are noted in observe mode only\n"
        "  -w, --wide               do not shorten names to the terminal's width\n"
        "  -q, --quiet              print no summary\n"
        "      --json               print the summary as JSON, on standard error\n"
        "  -h, --help               print this help\n\n"
        "Exit status: the program's; 128+N when signal N ended it; 125 when cudapolicy itself\n"
        "failed or the policy is wrong, 126 when the program cannot be executed, 127 when it is\n"
        "not found; 3 where --strict-expect says so; 64 when the command line is wrong.\n\n"
        "Examples:\n"
        "  cudapolicy run -p policy.ini -- ./app --size 4096\n"
        "  cudapolicy run -p policy.ini --mode observe -- python train.py\n"
        "  cudapolicy run -p policy.ini --report job.json -- mpirun -n 4 ./app\n",
    .main = run_main,
};

enum {
    OPTION_REPORT_FOLDER = COMMAND_OPTION_LONG,
    OPTION_MERGE,
    OPTION_STRICT,
    OPTION_STRICT_EXPECT,
    OPTION_LOG,
    OPTION_LIBRARY,
    OPTION_KERNELS,
    OPTION_JSON,
};

struct run_options {
    struct job job;
    struct summary_options summary;
    const char *report;
    bool force, quiet, json, merge, strict_expect;
    bool excluded; /* the site leaves the program alone, and no process of it left a report */
};

/* Takes one option; false after a mistake, with its message printed. */
static bool take_option(const struct command *command, int option, struct run_options *options)
{
    enum policy_mode mode;
    enum report_log_level level;

    switch (option) {
    case 'p':
        options->job.policy = optarg;
        return true;
    case 'm':
        options->job.mode = optarg;
        if (!policy_mode_parse(optarg, &mode)) {
            command_usage_error(command, "'%s' is no mode: enforce, observe or off", optarg);
            return false;
        }
        return true;
    case 'r':
        options->report = optarg;
        return true;
    case 'f':
        options->force = true;
        return true;
    case OPTION_REPORT_FOLDER:
        options->job.folder_given = optarg;
        return true;
    case OPTION_MERGE:
        options->merge = true;
        return true;
    case OPTION_STRICT:
        options->job.strict = true;
        return true;
    case OPTION_STRICT_EXPECT:
        options->strict_expect = true;
        return true;
    case OPTION_LOG:
        options->job.log = optarg;
        if (!report_log_level_parse(optarg, &level)) {
            command_usage_error(command, "'%s' is no level: error, warn, info or debug", optarg);
            return false;
        }
        return true;
    case OPTION_LIBRARY:
        options->job.library = optarg;
        return true;
    case OPTION_KERNELS:
        options->summary.kernels = true;
        return true;
    case 'w':
        options->summary.wide = true;
        return true;
    case 'q':
        options->quiet = true;
        return true;
    case OPTION_JSON:
        options->json = true;
        return true;
    default:
        return false;
    }
}

/* The mode in which the job ran. */
static enum policy_mode effective_mode(const struct job *job, const struct policy *policy)
{
    const char *asked = job->mode != NULL ? job->mode : getenv("CUDAPOLICY_MODE");
    enum policy_mode mode;
    bool known = asked != NULL && policy_mode_parse(asked, &mode);

    return policy_mode_choose(known ? &mode : NULL, policy).mode;
}

/* One line instead of the tables when no process left a report. */
static void print_nothing_seen(const struct run_options *options, const struct policy *policy,
                               const char *program)
{
    char *reason;

    if (effective_mode(&options->job, policy) == POLICY_MODE_OFF) {
        command_error("the mode is off: nothing was seen or changed");
        return;
    }
    reason = site_input_excludes(policy, program);
    if (reason == NULL) {
        reason = reach_explain(program, &options->job.opened);
    }
    command_error("no kernel launch of '%s' was seen: %s", program, reason);
    free(reason);
}

/* Of the ranks on this host, if there are several: what is not the same on all. Others may be
 * elsewhere, so none is missing. */
static void print_ranks(struct job_groups *groups, bool wide)
{
    job_groups_sort(groups);
    for (size_t i = 0; i < groups->count; i++) {
        struct job_group *group = groups->groups[i];
        struct rank_comparison comparison;

        ranks_compare(&group->ranks, &group->results, &comparison);
        rank_comparison_print_findings(&comparison, wide, stderr);
        rank_comparison_release(&comparison);
    }
}

/* Where what was expected cannot be known: why. NULL: it can. */
static const char *not_judged(const struct run_options *options, const struct policy *policy,
                              const struct expectations *expectations)
{
    if (expectations->count == 0) {
        return NULL;
    }
    if (effective_mode(&options->job, policy) == POLICY_MODE_OFF) {
        return "the mode is off, so nothing was counted";
    }
    if (options->job.unread) {
        return "a report cannot be read";
    }
    if (options->excluded) {
        return "the site leaves the program alone, so nothing was counted";
    }
    return expectations->unsure > 0 ? "some counts are lost, or still go on" : NULL;
}

/* What was expected stands beside the numbers that it is judged by. */
static json_t *with_expectations(json_t *summary, const struct run_options *options,
                                 const struct policy *policy,
                                 const struct expectations *expectations)
{
    const char *reason = not_judged(options, policy, expectations);

    json_object_set_new(summary, "expectations", expectations_json(expectations));
    json_object_set_new(summary, "expectations_not_judged",
                        reason != NULL ? json_string(reason) : json_null());
    return summary;
}

static void print_summary(const struct run_options *options, const struct results *results,
                          struct job_groups *groups, const struct policy *policy,
                          const struct expectations *expectations, const char *program)
{
    if (options->quiet) {
        return;
    }
    if (options->json) {
        json_output_print(
            with_expectations(summary_json(results, policy), options, policy, expectations),
            stderr);
    } else if (results->process_count == 0) {
        print_nothing_seen(options, policy, program);
    } else {
        summary_print(results, policy, &options->summary, stderr);
        print_ranks(groups, options->summary.wide);
    }
}

static bool write_report(const struct run_options *options, const struct results *results,
                         const struct policy *policy, const struct expectations *expectations,
                         struct output_file *report)
{
    json_t *document = summary_job_json(results, policy);

    with_expectations(json_object_get(document, "summary"), options, policy, expectations);
    output_file_begin(report);
    json_output_print(document, report->stream);
    return output_file_close(report);
}

/* Says what was not as expected; the status to end with after a program that ended well. */
static int end_with_expectations(const struct run_options *options, const struct policy *policy,
                                 const struct expectations *expectations)
{
    const char *reason = not_judged(options, policy, expectations);
    /* As JSON it is all in the summary. */
    bool speaks = options->quiet ? options->strict_expect : !options->json;

    if (speaks && effective_mode(&options->job, policy) != POLICY_MODE_OFF) {
        expectations_print(expectations, options->quiet || reason != NULL, options->summary.wide,
                           stderr);
    }
    if (speaks && reason != NULL) {
        command_error("what the policy expects cannot be judged: %s", reason);
    }
    return options->strict_expect && (expectations->broken > 0 || reason != NULL)
               ? COMMAND_EXPECTATION
               : COMMAND_SUCCESS;
}

/* Of a folder that several hosts write to, one file for each of them. */
static bool merge_reports(const struct job *job)
{
    const struct report_merge merge = {.folder = job->folder, .remove = true};
    char *const paths[] = {job->folder};
    size_t reports;

    return report_merge(&merge, paths, 1, &reports);
}

static bool is_excluded(const struct policy *policy, const char *program)
{
    char *reason = site_input_excludes(policy, program);

    free(reason);
    return reason != NULL;
}

static int run(struct run_options *options, const struct policy *policy, char **argv)
{
    struct results results = {.keep_documents =
                                  options->report != NULL || policy->expectation_count > 0};
    struct expectations expectations = {0};
    struct job_groups groups = {0};
    struct output_file report = {0};
    int status, expected = COMMAND_SUCCESS;

    if (options->report != NULL && !output_file_open(&report, options->report, options->force)) {
        return COMMAND_RUN_FAILED;
    }
    status = job_run(&options->job, argv);
    if (options->job.started) {
        job_collect_groups(&options->job, &results, &groups);
        options->excluded = results.process_count == 0 && is_excluded(policy, argv[0]);
        expectations_judge(&expectations, policy, &results);
        print_summary(options, &results, &groups, policy, &expectations, argv[0]);
        expected = end_with_expectations(options, policy, &expectations);
    }
    if (options->merge && options->job.started && !merge_reports(&options->job) && status == 0) {
        status = COMMAND_RUN_FAILED;
    }
    if (report.stream != NULL && !options->job.started) {
        output_file_abandon(&report);
    } else if (report.stream != NULL &&
               !write_report(options, &results, policy, &expectations, &report) && status == 0) {
        /* A lost report must not pass for success; the status of a program that failed says more.
         */
        status = COMMAND_RUN_FAILED;
    }
    job_release(&options->job);
    expectations_release(&expectations);
    job_groups_release(&groups);
    results_release(&results);
    return status == 0 ? expected : status;
}

/* Unless --mode beats it, a mode that the library would not understand is better refused here. */
static bool mode_is_known(void)
{
    const char *variable = getenv("CUDAPOLICY_MODE");
    enum policy_mode mode;

    if (variable == NULL || variable[0] == '\0' || policy_mode_parse(variable, &mode)) {
        return true;
    }
    command_error("CUDAPOLICY_MODE: '%s' is no mode: enforce, observe or off", variable);
    return false;
}

static int run_main(const struct command *command, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"policy", required_argument, NULL, 'p'},
        {"mode", required_argument, NULL, 'm'},
        {"report", required_argument, NULL, 'r'},
        {"force", no_argument, NULL, 'f'},
        {"report-folder", required_argument, NULL, OPTION_REPORT_FOLDER},
        {"merge", no_argument, NULL, OPTION_MERGE},
        {"strict", no_argument, NULL, OPTION_STRICT},
        {"strict-expect", no_argument, NULL, OPTION_STRICT_EXPECT},
        {"log", required_argument, NULL, OPTION_LOG},
        {"library", required_argument, NULL, OPTION_LIBRARY},
        {"kernels", no_argument, NULL, OPTION_KERNELS},
        {"wide", no_argument, NULL, 'w'},
        {"quiet", no_argument, NULL, 'q'},
        {"json", no_argument, NULL, OPTION_JSON},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct run_options options = {0};
    struct policy *policy;
    bool unreadable;
    int option, status;

    while ((option = command_option(command, argc, argv, "+:p:m:r:fwqh", long_options)) != -1) {
        if (option == 'h') {
            return command_help(command);
        }
        if (!take_option(command, option, &options)) {
            return COMMAND_USAGE;
        }
    }
    if (optind == argc) {
        return command_usage_error(command, "no program given");
    }
    if (options.merge && options.job.folder_given == NULL) {
        return command_usage_error(command, "--merge goes with --report-folder");
    }
    if (options.job.policy == NULL) {
        options.job.policy = getenv("CUDAPOLICY_FILE");
    }
    if (options.job.policy == NULL || options.job.policy[0] == '\0') {
        return command_usage_error(command, "no policy: give one with -p, or in CUDAPOLICY_FILE");
    }
    if (strcmp(options.job.policy, "-") == 0) {
        return command_usage_error(command, "the program needs the policy in a file, not on its "
                                            "standard input");
    }
    memory_failure_status = COMMAND_RUN_FAILED;
    if (options.job.mode == NULL && !mode_is_known()) {
        return COMMAND_RUN_FAILED;
    }
    policy = policy_input_require(options.job.policy, !options.quiet, &unreadable);
    if (policy == NULL) {
        command_error("the policy %s; '%s' was not started",
                      unreadable ? "cannot be read" : "is wrong", argv[optind]);
        return COMMAND_RUN_FAILED;
    }
    policy = site_input_around(policy, !options.quiet);
    if (policy == NULL) {
        command_error("the policy does not fit the site's; '%s' was not started", argv[optind]);
        return COMMAND_RUN_FAILED;
    }
    options.job.loaded = policy;
    status = reach_check(argv[optind], options.quiet) ? run(&options, policy, argv + optind)
                                                      : COMMAND_RUN_CANNOT_EXECUTE;
    policy_free(policy);
    return status;
}
