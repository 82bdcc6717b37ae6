/* SPDX-License-Identifier: Apache-2.0 */
#include "live_option.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "metric.h"

static const char live_help[] =
    "Runs COMMAND with arms that alternate inside it, by step: in each block of slices every ARM\n"
    "has one slice, in an order drawn from the seed, the same on every rank. The first steps of a\n"
    "slice do not count. For settings of launches and of graph nodes; streams and partitions get\n"
    "theirs when they are made, so policies with such settings need ab without --live. An ARM is "
    "a\n"
    "policy file, none or observe (both: no rule), or NAME=ARM; the first one is the baseline, "
    "and\n"
    "has two slices a block, to show how much it differs from itself.\n\n"
    "Options\n"
    "      --step-kernel GLOB   a step begins at each launch of this kernel\n"
    "      --graph-steps        a step begins at each launch of a graph (default)\n"
    "      --slice N            steps of a slice (default: 20)\n"
    "      --drop N             first steps of a slice that do not count (default: 5)\n"
    "      --warm-up N          steps before the first slice (default: 40)\n"
    "      --runs N             runs of COMMAND (default: 5); with fewer than 5 the result is "
    "about\n"
    "                           the processes of these runs only\n"
    "      --seed N             of the order (default: drawn, printed)\n"
    "      --no-repeat          the baseline has one slice a block\n"
    "      --across-ranks HOW   max (default), mean, median, min or sum of the ranks' times\n"
    "      --margin PERCENT     a difference that does not matter (default: 1)\n"
    "      --alpha A            chance of a false claim, over the arms (default: 0.05)\n"
    "      --env NAME=VALUE     a variable for COMMAND\n"
    "      --timeout SECONDS    of a run (default: none)\n"
    "      --folder DIR         keep policy, output and reports there\n"
    "      --show-output        show what each run printed, on standard error\n"
    "      --library PATH       libcudapolicy.so, as for run\n"
    "      --export FILE        write the comparison as JSON\n"
    "  -f, --force              overwrite this file\n"
    "      --json               print it as JSON\n"
    "  -w, --wide               do not shorten names\n"
    "  -q, --quiet              no progress\n"
    "  -h, --help               print this help\n\n"
    "Exit status: 0 when an arm is shown to be better, 1 when the opposite is shown, 2 when there\n"
    "are not enough steps for either, 64 when the command line is wrong, 125 when a run failed.\n\n"
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
    OPTION_RUNS,
    OPTION_SEED,
    OPTION_NO_REPEAT,
    OPTION_ACROSS_RANKS,
    OPTION_MARGIN,
    OPTION_ALPHA,
    OPTION_ENV,
    OPTION_TIMEOUT,
    OPTION_FOLDER,
    OPTION_SHOW_OUTPUT,
    OPTION_LIBRARY,
    OPTION_EXPORT,
    OPTION_JSON,
};

static const struct option long_options[] = {
    {"live", no_argument, NULL, OPTION_LIVE},
    {"step-kernel", required_argument, NULL, OPTION_STEP_KERNEL},
    {"graph-steps", no_argument, NULL, OPTION_GRAPH_STEPS},
    {"slice", required_argument, NULL, OPTION_SLICE},
    {"drop", required_argument, NULL, OPTION_DROP},
    {"warm-up", required_argument, NULL, OPTION_WARM_UP},
    {"runs", required_argument, NULL, OPTION_RUNS},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"no-repeat", no_argument, NULL, OPTION_NO_REPEAT},
    {"across-ranks", required_argument, NULL, OPTION_ACROSS_RANKS},
    {"margin", required_argument, NULL, OPTION_MARGIN},
    {"alpha", required_argument, NULL, OPTION_ALPHA},
    {"env", required_argument, NULL, OPTION_ENV},
    {"timeout", required_argument, NULL, OPTION_TIMEOUT},
    {"folder", required_argument, NULL, OPTION_FOLDER},
    {"show-output", no_argument, NULL, OPTION_SHOW_OUTPUT},
    {"library", required_argument, NULL, OPTION_LIBRARY},
    {"export", required_argument, NULL, OPTION_EXPORT},
    {"force", no_argument, NULL, 'f'},
    {"json", no_argument, NULL, OPTION_JSON},
    {"wide", no_argument, NULL, 'w'},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

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

static bool take_plan(struct ab_live_options *options, int option)
{
    struct ab_live_plan *plan = &options->plan;
    int64_t number;

    switch (option) {
    case OPTION_STEP_KERNEL:
        plan->step_kernel = optarg;
        /* What the library's variable has room for. */
        return (optarg[0] != '\0' && strlen(optarg) < 256) ||
               complain(options, "--step-kernel", "a pattern of up to 255 bytes");
    case OPTION_GRAPH_STEPS:
        plan->step_kernel = NULL;
        return true;
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
            return complain(options, "--margin", "a percentage above 0");
        }
        plan->margin /= 100;
        return true;
    default:
        return read_real(0, 0.5, &plan->alpha) ||
               complain(options, "--alpha", "a number between 0 and 0.5");
    }
}

static bool take_option(struct ab_live_options *options, int option)
{
    switch (option) {
    case OPTION_LIVE:
        return true;
    case OPTION_RUNS:
        return read_whole(1, 10000, &options->runs) ||
               complain(options, "--runs", "a number from 1 on");
    case OPTION_NO_REPEAT:
        options->no_repeat = true;
        return true;
    case OPTION_ENV:
        add_variable(options, optarg);
        return (strchr(optarg, '=') != NULL && optarg[0] != '=') ||
               complain(options, "--env", "NAME=VALUE");
    case OPTION_TIMEOUT:
        return read_real(-1e-300, 1e9, &options->time_limit) ||
               complain(options, "--timeout", "a number of seconds");
    case OPTION_FOLDER:
        options->folder = optarg;
        return true;
    case OPTION_SHOW_OUTPUT:
        options->show_output = true;
        return true;
    case OPTION_LIBRARY:
        options->library = optarg;
        return true;
    case OPTION_EXPORT:
        options->export = optarg;
        return true;
    case OPTION_JSON:
        options->json = true;
        return true;
    case 'f':
        options->force = true;
        return true;
    case 'w':
        options->wide = true;
        return true;
    case 'q':
        options->quiet = true;
        return true;
    case '?':
        return false;
    default:
        return take_plan(options, option);
    }
}

/* -1: the command line is fine. argv has count words, then "--" and the command. */
static int check(struct ab_live_options *options, int argc, char **argv, int count)
{
    options->arms = &argv[optind];
    options->arm_count = (size_t)(count - optind);
    options->argv = &argv[count < argc ? count + 1 : argc];
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
    while ((option = command_option(command, count, argv, ":fwqh", long_options)) != -1) {
        if (option == 'h') {
            printf("usage: cudapolicy ab --live [OPTION]... ARM [ARM]... -- COMMAND "
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
