/* SPDX-License-Identifier: Apache-2.0 */
#include "live_option.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "memory.h"
#include "metric.h"
#include "policy/glob.h"
#include "trial.h"

static const char live_help[] =
    "Runs COMMAND with arms that alternate inside it, by step: in each block of slices every ARM\n"
    "has one slice, in an order drawn from the seed, the same on every rank. The first steps of a\n"
    "slice do not count. For settings of launches and of graph nodes; streams and partitions get\n"
    "theirs when they are made, so policies with such settings need ab without --live. An ARM is "
    "a\n"
    "policy file, none or observe (both: no rule), or NAME=ARM; the first one is the baseline, "
    "and\n"
    "has two slices a block, to show how much it differs from itself.\n\n"
    "Options: the plan\n"
    "      --step-kernel GLOB   a step begins at each launch of this kernel\n"
    "      --graph-steps        a step begins at each launch of a graph (default)\n"
    "      --slice N            steps of a slice (default: 20)\n"
    "      --drop N             first steps of a slice that do not count (default: 5)\n"
    "      --warm-up N          steps before the first slice (default: 40)\n"
    "      --runs N             runs of COMMAND (default: 5); with fewer than 5 the result is "
    "about\n"
    "                           the processes of these runs only\n"
    "      --claim CLAIM        what is asked: better (default), no-difference, or none: end with\n"
    "                           status 0\n"
    "      --margin PERCENT     a difference that does not matter (default: 1)\n"
    "      --alpha A            chance of a false claim, over the arms (default: 0.05)\n"
    "      --seed N             of the order (default: drawn, printed)\n"
    "      --no-repeat          the baseline has one slice a block\n"
    "  -m, --metric NAME=REGEX  compare numbers in what COMMAND prints, one for each step, in "
    "place\n"
    "                           of the time from step to step; +NAME, NAME[UNIT] as without "
    "--live\n"
    "      --metric-json NAME=[FILE:]PATH\n"
    "                           the same, a list of them in a JSON document\n"
    "      --across-ranks HOW   max (default), mean, median, min or sum of the ranks' values\n\n"
    "Runs\n"
    "      --env NAME=VALUE     a variable for COMMAND\n"
    "      --prepare COMMAND    a shell command before each run\n"
    "      --cleanup COMMAND    one after each run\n"
    "      --check COMMAND      one after each run that went well; where it fails, an arm is "
    "broken\n"
    "      --same-output WHAT   a FILE that each run writes, or /REGEX/ for what matches in lines\n"
    "                           that it prints: has to be as in a run of the baseline alone, "
    "which\n"
    "                           is made first, or an arm is broken\n"
    "      --tolerance REL[,ABS]\n"
    "                           of numbers in that output (default: 0)\n"
    "      --timeout SECONDS    of a run; 0: none (default: 3 times the longest run so far, at\n"
    "                           least 10)\n"
    "      --library PATH       libcudapolicy.so, as for run\n\n"
    "Results\n"
    "      --folder DIR         keep the experiment there: journal, policy, output and reports\n"
    "      --resume DIR         go on with the experiment in DIR, with the same options\n"
    "      --keep-output        keep what every run printed\n"
    "      --keep-reports       keep the library's reports of every run\n"
    "      --show-output        show what each run printed, on standard error\n"
    "      --export FILE        write .json, .csv, .md or .html (with plots); repeatable\n"
    "  -f, --force              overwrite these files\n"
    "      --json               print the comparison as JSON\n"
    "  -w, --wide               do not shorten names\n"
    "  -q, --quiet              no progress, and only the answer\n"
    "  -h, --help               print this help\n\n"
    "Exit status: 0 when an arm is shown to be better (or what --claim asks), 1 when the opposite\n"
    "is shown, 2 when there are not enough steps for either, 3 when a run's check failed or its\n"
    "output differed, 64 when the command line is wrong, 125 when a run failed.\n\n"
    "Examples:\n"
    "  cudapolicy ab --live none p.ini -- ./app\n"
    "  cudapolicy ab --live --step-kernel 'adam*' a.ini b.ini -- torchrun --nproc-per-node 8 "
    "t.py\n";

enum {
    OPTION_LIVE = COMMAND_OPTION_LONG,
    OPTION_STEP_KERNEL,
    OPTION_GRAPH_STEPS,
    OPTION_SLICE,
    OPTION_DROP,
    OPTION_WARM_UP,
    OPTION_SEED,
    OPTION_ACROSS_RANKS,
    OPTION_MARGIN,
    OPTION_ALPHA,
    OPTION_CLAIM, /* the last one about the plan */
    OPTION_METRIC_JSON,
    OPTION_RUNS,
    OPTION_NO_REPEAT,
    OPTION_ENV,
    OPTION_PREPARE,
    OPTION_CLEANUP,
    OPTION_CHECK,
    OPTION_SAME_OUTPUT,
    OPTION_TOLERANCE,
    OPTION_TIMEOUT,
    OPTION_FOLDER,
    OPTION_RESUME,
    OPTION_KEEP_OUTPUT,
    OPTION_KEEP_REPORTS,
    OPTION_SHOW_OUTPUT,
    OPTION_LIBRARY,
    OPTION_EXPORT,
    OPTION_JSON,
    OPTION_REFUSED, /* and those after it: place in refusals */
};

/* Options of ab without --live that mean nothing here. */
static const struct {
    const char *option, *reason;
} refusals[] = {
    {"--blocks", "how many blocks a run has follows from its steps; --runs says how many runs"},
    {"--looks", "there is one look, after all runs: --runs says how many"},
    {"--primary", "there is one metric"},
    {"--skip", "the steps that are warm-up are those of --warm-up, and of --drop in each slice"},
    {"--allow-unattached", "where the library is not reached there are no steps to compare"},
};

static const struct option long_options[] = {
    {"live", no_argument, NULL, OPTION_LIVE},
    {"step-kernel", required_argument, NULL, OPTION_STEP_KERNEL},
    {"graph-steps", no_argument, NULL, OPTION_GRAPH_STEPS},
    {"slice", required_argument, NULL, OPTION_SLICE},
    {"drop", required_argument, NULL, OPTION_DROP},
    {"warm-up", required_argument, NULL, OPTION_WARM_UP},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"across-ranks", required_argument, NULL, OPTION_ACROSS_RANKS},
    {"margin", required_argument, NULL, OPTION_MARGIN},
    {"alpha", required_argument, NULL, OPTION_ALPHA},
    {"claim", required_argument, NULL, OPTION_CLAIM},
    {"metric", required_argument, NULL, 'm'},
    {"metric-json", required_argument, NULL, OPTION_METRIC_JSON},
    {"runs", required_argument, NULL, OPTION_RUNS},
    {"no-repeat", no_argument, NULL, OPTION_NO_REPEAT},
    {"env", required_argument, NULL, OPTION_ENV},
    {"prepare", required_argument, NULL, OPTION_PREPARE},
    {"cleanup", required_argument, NULL, OPTION_CLEANUP},
    {"check", required_argument, NULL, OPTION_CHECK},
    {"same-output", required_argument, NULL, OPTION_SAME_OUTPUT},
    {"tolerance", required_argument, NULL, OPTION_TOLERANCE},
    {"timeout", required_argument, NULL, OPTION_TIMEOUT},
    {"folder", required_argument, NULL, OPTION_FOLDER},
    {"resume", required_argument, NULL, OPTION_RESUME},
    {"keep-output", no_argument, NULL, OPTION_KEEP_OUTPUT},
    {"keep-reports", no_argument, NULL, OPTION_KEEP_REPORTS},
    {"show-output", no_argument, NULL, OPTION_SHOW_OUTPUT},
    {"library", required_argument, NULL, OPTION_LIBRARY},
    {"export", required_argument, NULL, OPTION_EXPORT},
    {"force", no_argument, NULL, 'f'},
    {"json", no_argument, NULL, OPTION_JSON},
    {"wide", no_argument, NULL, 'w'},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {"blocks", required_argument, NULL, OPTION_REFUSED},
    {"looks", required_argument, NULL, OPTION_REFUSED + 1},
    {"primary", required_argument, NULL, OPTION_REFUSED + 2},
    {"skip", required_argument, NULL, OPTION_REFUSED + 3},
    {"allow-unattached", no_argument, NULL, OPTION_REFUSED + 4},
    {0},
};

static bool refuse(const struct ab_live_options *options, size_t which)
{
    command_usage_error(options->command, "--live takes no %s: %s", refusals[which].option,
                        refusals[which].reason);
    return false;
}

static bool complain(const struct ab_live_options *options, const char *option, const char *wanted)
{
    command_usage_error(options->command, "%s: '%s' is not %s", option, optarg, wanted);
    return false;
}

static bool read_whole(int64_t least, int64_t most, int64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoll(optarg, &end, 10);
    return errno == 0 && end != optarg && *end == '\0' && *number >= least && *number <= most;
}

static bool take_steps(const struct ab_live_options *options, const char *option, int64_t least,
                       uint32_t *steps)
{
    int64_t number;

    if (!read_whole(least, INT32_MAX, &number)) {
        return complain(options, option, "a number of steps");
    }
    *steps = (uint32_t)number;
    return true;
}

static bool read_real(double least, double most, double *number)
{
    char *end;

    *number = strtod(optarg, &end);
    if (*end == '%' && end[1] == '\0') {
        end++;
    }
    return end != optarg && *end == '\0' && *number > least && *number <= most;
}

static void add_variable(struct ab_live_options *options, char *variable)
{
    options->variables = memory_grow(options->variables, options->variable_count,
                                     &options->variable_capacity, sizeof *options->variables);
    options->variables[options->variable_count++] = variable;
}

static bool take_claim(struct ab_live_options *options)
{
    static const char *const names[] = {"better", "no-difference", "none"};

    for (int i = 0; i < 3; i++) {
        if (strcmp(names[i], optarg) == 0) {
            options->claim = (enum ab_claim)i;
            return true;
        }
    }
    return complain(options, "--claim", "better, no-difference or none");
}

static bool take_tolerance(struct ab_live_options *options)
{
    char *end;

    options->relative = strtod(optarg, &end);
    options->absolute = *end == ',' && end != optarg ? strtod(end + 1, &end) : 0;
    options->tolerance = true;
    return (end != optarg && *end == '\0' && options->relative >= 0 && options->absolute >= 0 &&
            isfinite(options->relative) && isfinite(options->absolute)) ||
           complain(options, "--tolerance", "RELATIVE or RELATIVE,ABSOLUTE, as 1e-5,1e-8");
}

static bool take_export(struct ab_live_options *options)
{
    enum ab_format format;

    if (!ab_format_of(optarg, &format)) {
        return complain(options, "--export", "a file that ends with .json, .csv, .md or .html");
    }
    options->exports = memory_grow(options->exports, options->export_count,
                                   &options->export_capacity, sizeof *options->exports);
    options->exports[options->export_count++] = optarg;
    return true;
}

static bool take_step_kernel(struct ab_live_options *options)
{
    const char **kernel = &options->plan.step_kernel, *fault = glob_error(optarg, NULL);

    if (*kernel != NULL) {
        command_usage_error(options->command,
                            "--step-kernel: given twice, '%s' and '%s'; one pattern has to match "
                            "every kernel that begins a step",
                            *kernel, optarg);
        return false;
    }
    if (fault != NULL) {
        command_usage_error(options->command, "--step-kernel: '%s': %s", optarg, fault);
        return false;
    }
    *kernel = optarg;
    /* What the library's variable has room for. */
    return (optarg[0] != '\0' && strlen(optarg) < 256) ||
           complain(options, "--step-kernel", "a pattern of up to 255 bytes");
}

static bool take_plan(struct ab_live_options *options, int option)
{
    struct ab_live_plan *plan = &options->plan;
    int64_t number;

    switch (option) {
    case OPTION_STEP_KERNEL:
        return take_step_kernel(options);
    case OPTION_GRAPH_STEPS:
        return options->graph_steps = true;
    case OPTION_SLICE:
        return take_steps(options, "--slice", 2, &plan->slice);
    case OPTION_DROP:
        return take_steps(options, "--drop", 0, &plan->drop);
    case OPTION_WARM_UP:
        return take_steps(options, "--warm-up", 0, &plan->warm_up);
    case OPTION_SEED:
        if (!read_whole(1, INT64_MAX, &number)) {
            return complain(options, "--seed", "a number from 1 on");
        }
        plan->seed = (uint64_t)number;
        return true;
    case OPTION_ACROSS_RANKS:
        return ab_across_parse(optarg, &plan->across) ||
               complain(options, "--across-ranks", "max, mean, median, min or sum");
    case OPTION_MARGIN:
        if (!read_real(0, 100, &plan->margin)) {
            return complain(options, "--margin", "a percentage above 0, 100 at most");
        }
        plan->margin /= 100;
        return true;
    case OPTION_ALPHA:
        return read_real(0, 0.5, &plan->alpha) ||
               complain(options, "--alpha", "a number between 0 and 0.5");
    default:
        return take_claim(options);
    }
}

static bool take_metric(struct ab_live_options *options,
                        bool (*read)(struct ab_metric *metric, const char *text, char *error,
                                     size_t size))
{
    char error[512] = "";

    if (options->metric_given) {
        command_usage_error(options->command, "--live takes one metric: '%s' is another one",
                            optarg);
        return false;
    }
    if (!read(&options->metric, optarg, error, sizeof error)) {
        command_usage_error(options->command, "%s", error);
        return false;
    }
    options->metric_given = true;
    options->plan.metric = &options->metric;
    return true;
}

static bool take_run_option(struct ab_live_options *options, int option)
{
    switch (option) {
    case OPTION_RUNS:
        return read_whole(1, 10000, &options->runs) ||
               complain(options, "--runs", "a number from 1 to 10000");
    case OPTION_ENV:
        add_variable(options, optarg);
        if (strchr(optarg, '=') == NULL || optarg[0] == '=') {
            return complain(options, "--env", "NAME=VALUE");
        }
        return !ab_variable_is_of_arm(optarg) || complain(options, "--env", AB_VARIABLE_WANTED);
    case OPTION_PREPARE:
        options->prepare = optarg;
        return true;
    case OPTION_CLEANUP:
        options->cleanup = optarg;
        return true;
    case OPTION_CHECK:
        options->check = optarg;
        return true;
    case OPTION_SAME_OUTPUT:
        options->same_output = optarg;
        return true;
    case OPTION_TOLERANCE:
        return take_tolerance(options);
    case OPTION_TIMEOUT:
        if (!read_real(-1e-300, 1e9, &options->time_limit)) {
            return complain(options, "--timeout", "a number of seconds");
        }
        options->no_time_limit = options->time_limit == 0;
        return true;
    case OPTION_FOLDER:
        options->folder = optarg;
        return true;
    case OPTION_RESUME:
        options->resume = optarg;
        return true;
    case OPTION_LIBRARY:
        options->library = optarg;
        return true;
    default:
        return take_export(options);
    }
}

static bool take_option(struct ab_live_options *options, int option)
{
    switch (option) {
    case OPTION_LIVE:
        return true;
    case OPTION_NO_REPEAT:
        return options->no_repeat = true;
    case OPTION_KEEP_OUTPUT:
        return options->keep_output = true;
    case OPTION_KEEP_REPORTS:
        return options->keep_reports = true;
    case OPTION_SHOW_OUTPUT:
        return options->show_output = true;
    case OPTION_JSON:
        return options->json = true;
    case 'f':
        return options->force = true;
    case 'w':
        return options->wide = true;
    case 'q':
        return options->quiet = true;
    case 'm':
        return take_metric(options, ab_metric_pattern);
    case OPTION_METRIC_JSON:
        return take_metric(options, ab_metric_json);
    case '?':
        return false;
    default:
        break;
    }
    if (option >= OPTION_REFUSED) {
        return refuse(options, (size_t)(option - OPTION_REFUSED));
    }
    return option <= OPTION_CLAIM ? take_plan(options, option) : take_run_option(options, option);
}

static const char *contradiction(const struct ab_live_options *options)
{
    if (options->graph_steps && options->plan.step_kernel != NULL) {
        return "--step-kernel and --graph-steps: give one of them";
    }
    if (options->folder != NULL && options->resume != NULL) {
        return "--folder and --resume: give one of them";
    }
    if (options->tolerance && options->same_output == NULL) {
        return "--tolerance is of --same-output, which is not given";
    }
    return NULL;
}

/* -1: the command line is fine. argv has count words, then "--" and the command. */
static int check(struct ab_live_options *options, int argc, char **argv, int count)
{
    const char *fault = contradiction(options);

    options->arms = &argv[optind];
    options->arm_count = (size_t)(count - optind);
    options->argv = &argv[count < argc ? count + 1 : argc];
    if (fault != NULL) {
        return command_usage_error(options->command, "%s", fault);
    }
    if (options->arm_count == 0) {
        return command_usage_error(options->command, "no arm is given");
    }
    if (options->argv[0] == NULL) {
        return command_usage_error(options->command, "no command is given after --");
    }
    if (options->plan.drop >= options->plan.slice) {
        return command_usage_error(
            options->command, "--drop %" PRIu32 " leaves nothing of a slice of %" PRIu32 " steps",
            options->plan.drop, options->plan.slice);
    }
    return -1;
}

bool ab_live_asked(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--live") == 0) {
            return true;
        }
    }
    return false;
}

int ab_live_options_parse(struct ab_live_options *options, const struct command *command, int argc,
                          char **argv)
{
    int count = 1, option;

    *options = (struct ab_live_options){
        .command = command,
        .plan = {.slice = 20, .drop = 5, .warm_up = 40, .alpha = 0.05, .margin = 0.01},
        .runs = AB_NESTED_RUNS,
    };
    while (count < argc && strcmp(argv[count], "--") != 0) {
        count++;
    }
    while ((option = command_option(command, count, argv, ":m:fwqh", long_options)) != -1) {
        if (option == 'h') {
            printf("Usage: cudapolicy ab --live [OPTION]... ARM [ARM]... -- COMMAND "
                   "[ARGUMENT]...\n\n%s",
                   live_help);
            return command_finish(COMMAND_SUCCESS);
        }
        if (!take_option(options, option)) {
            return COMMAND_USAGE;
        }
    }
    return check(options, argc, argv, count);
}

void ab_live_options_add_variable(struct ab_live_options *options, char *variable)
{
    add_variable(options, variable);
}

void ab_live_options_release(struct ab_live_options *options)
{
    free(options->variables);
    free(options->exports);
    if (options->metric_given) {
        ab_metric_release(&options->metric);
    }
    *options = (struct ab_live_options){0};
}
