/* SPDX-License-Identifier: Apache-2.0 */
#include "option.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "memory.h"
#include "metric.h"
#include "sequential.h"
#include "trial.h"

enum {
    OPTION_BLOCKS = COMMAND_OPTION_LONG,
    OPTION_LOOKS,
    OPTION_WARM_UP,
    OPTION_SEED,
    OPTION_MARGIN,
    OPTION_ALPHA,
    OPTION_CLAIM,
    OPTION_NO_REPEAT,
    OPTION_METRIC_JSON,
    OPTION_PRIMARY,
    OPTION_SKIP,
    OPTION_ACROSS_RANKS,
    OPTION_STEP_KERNEL,
    OPTION_GRAPH_STEPS,
    OPTION_PREPARE,
    OPTION_CLEANUP,
    OPTION_CHECK,
    OPTION_SAME_OUTPUT,
    OPTION_TOLERANCE,
    OPTION_TIMEOUT,
    OPTION_ENV,
    OPTION_FOLDER,
    OPTION_RESUME,
    OPTION_KEEP_OUTPUT,
    OPTION_KEEP_REPORTS,
    OPTION_SHOW_OUTPUT,
    OPTION_ALLOW_UNATTACHED,
    OPTION_EXPORT,
    OPTION_LIBRARY,
    OPTION_JSON,
};

static const struct option long_options[] = {
    {"blocks", required_argument, NULL, OPTION_BLOCKS},
    {"looks", required_argument, NULL, OPTION_LOOKS},
    {"warm-up", required_argument, NULL, OPTION_WARM_UP},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"margin", required_argument, NULL, OPTION_MARGIN},
    {"alpha", required_argument, NULL, OPTION_ALPHA},
    {"claim", required_argument, NULL, OPTION_CLAIM},
    {"no-repeat", no_argument, NULL, OPTION_NO_REPEAT},
    {"metric", required_argument, NULL, 'm'},
    {"metric-json", required_argument, NULL, OPTION_METRIC_JSON},
    {"primary", required_argument, NULL, OPTION_PRIMARY},
    {"skip", required_argument, NULL, OPTION_SKIP},
    {"across-ranks", required_argument, NULL, OPTION_ACROSS_RANKS},
    {"step-kernel", required_argument, NULL, OPTION_STEP_KERNEL},
    {"graph-steps", no_argument, NULL, OPTION_GRAPH_STEPS},
    {"prepare", required_argument, NULL, OPTION_PREPARE},
    {"cleanup", required_argument, NULL, OPTION_CLEANUP},
    {"check", required_argument, NULL, OPTION_CHECK},
    {"same-output", required_argument, NULL, OPTION_SAME_OUTPUT},
    {"tolerance", required_argument, NULL, OPTION_TOLERANCE},
    {"timeout", required_argument, NULL, OPTION_TIMEOUT},
    {"env", required_argument, NULL, OPTION_ENV},
    {"folder", required_argument, NULL, OPTION_FOLDER},
    {"resume", required_argument, NULL, OPTION_RESUME},
    {"keep-output", no_argument, NULL, OPTION_KEEP_OUTPUT},
    {"keep-reports", no_argument, NULL, OPTION_KEEP_REPORTS},
    {"show-output", no_argument, NULL, OPTION_SHOW_OUTPUT},
    {"allow-unattached", no_argument, NULL, OPTION_ALLOW_UNATTACHED},
    {"export", required_argument, NULL, OPTION_EXPORT},
    {"force", no_argument, NULL, 'f'},
    {"library", required_argument, NULL, OPTION_LIBRARY},
    {"json", no_argument, NULL, OPTION_JSON},
    {"wide", no_argument, NULL, 'w'},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

enum {
    LEAST_BLOCKS = 10, /* below, no randomisation test over a few arms can show anything */
    MOST_BLOCKS = 100000,
};

struct parser {
    const struct command *command;
    struct ab_options *options;
    const char *primary;
    uint32_t blocks;
    bool looks, skip_given, across_given, tolerance;
    int skip;
    enum ab_across across;
};

static bool read_whole(const char *text, int64_t least, int64_t most, int64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *number >= least && *number <= most;
}

static bool read_real(const char *text, char until, double *number, const char **rest)
{
    char *end;

    *number = strtod(text, &end);
    *rest = end;
    return end != text && isfinite(*number) && (*end == '\0' || *end == until);
}

static bool complain(const struct parser *parser, const char *option, const char *wanted)
{
    command_usage_error(parser->command, "%s: '%s' is not %s", option, optarg, wanted);
    return false;
}

static bool take_looks(struct parser *parser)
{
    struct ab_plan *plan = &parser->options->plan;
    const size_t most = sizeof plan->looks / sizeof plan->looks[0];
    char *copy = memory_copy(optarg), *rest = copy, *word;
    int64_t look = LEAST_BLOCKS - 1;
    bool good = true;

    plan->look_count = 0;
    while (good && (word = strsep(&rest, ",")) != NULL) {
        good = plan->look_count < most && read_whole(word, look + 1, MOST_BLOCKS, &look);
        if (good) {
            plan->looks[plan->look_count++] = (uint32_t)look;
        }
    }
    free(copy);
    parser->looks = true;
    return (good && plan->look_count > 0) ||
           complain(parser, "--looks",
                    "a list of up to 16 ascending numbers from 10 on, as "
                    "10,20,40");
}

static bool take_metric(struct parser *parser,
                        bool (*read)(struct ab_metric *metric, const char *text, char *error,
                                     size_t size))
{
    struct ab_options *options = parser->options;
    char error[512] = "";
    struct ab_metric metric = {0};

    if (!read(&metric, optarg, error, sizeof error)) {
        command_usage_error(parser->command, "%s", error);
        return false;
    }
    options->metrics = memory_grow(options->metrics, options->metric_count,
                                   &options->metric_capacity, sizeof metric);
    options->metrics[options->metric_count++] = metric;
    return true;
}

static bool take_claim(struct parser *parser)
{
    static const char *const names[] = {"better", "no-difference", "none"};

    for (int i = 0; i < 3; i++) {
        if (strcmp(names[i], optarg) == 0) {
            parser->options->plan.claim = (enum ab_claim)i;
            return true;
        }
    }
    return complain(parser, "--claim", "better, no-difference or none");
}

static bool take_tolerance(struct parser *parser)
{
    struct ab_options *options = parser->options;
    const char *rest;
    bool good = read_real(optarg, ',', &options->relative, &rest);

    if (good && *rest == ',') {
        good = read_real(rest + 1, '\0', &options->absolute, &rest);
    }
    parser->tolerance = true;
    return (good && options->relative >= 0 && options->absolute >= 0) ||
           complain(parser, "--tolerance", "RELATIVE or RELATIVE,ABSOLUTE, as 1e-5,1e-8");
}

static bool take_variable(struct parser *parser)
{
    struct ab_options *options = parser->options;

    if (strchr(optarg, '=') == NULL || optarg[0] == '=') {
        return complain(parser, "--env", "NAME=VALUE");
    }
    if (ab_variable_is_of_arm(optarg)) {
        return complain(parser, "--env", AB_VARIABLE_WANTED);
    }
    options->variables = memory_grow(options->variables, options->variable_count,
                                     &options->variable_capacity, sizeof *options->variables);
    options->variables[options->variable_count++] = optarg;
    return true;
}

static bool take_export(struct parser *parser)
{
    struct ab_options *options = parser->options;
    enum ab_format format;

    if (!ab_format_of(optarg, &format)) {
        return complain(parser, "--export", "a file that ends with .json, .csv, .md or .html");
    }
    options->exports = memory_grow(options->exports, options->export_count,
                                   &options->export_capacity, sizeof *options->exports);
    options->exports[options->export_count++] = optarg;
    return true;
}

static bool take_plan_option(struct parser *parser, int option)
{
    struct ab_plan *plan = &parser->options->plan;
    const char *rest;
    int64_t number;

    switch (option) {
    case OPTION_BLOCKS:
        if (!read_whole(optarg, 1, MOST_BLOCKS, &number)) {
            return complain(parser, "--blocks", "a number from 1 to 100000");
        }
        parser->blocks = (uint32_t)number;
        return true;
    case OPTION_LOOKS:
        return take_looks(parser);
    case OPTION_WARM_UP:
        if (!read_whole(optarg, 0, MOST_BLOCKS, &number)) {
            return complain(parser, "--warm-up", "a number from 0 to 100000");
        }
        plan->warm_up_blocks = (uint32_t)number;
        return true;
    case OPTION_SEED:
        if (!read_whole(optarg, 1, INT64_MAX, &number)) {
            return complain(parser, "--seed", "a number from 1 on");
        }
        plan->seed = (uint64_t)number;
        return true;
    case OPTION_MARGIN:
        if (!read_real(optarg, '%', &plan->margin, &rest) || strlen(rest) > 1 ||
            plan->margin <= 0 || plan->margin > 100) {
            return complain(parser, "--margin", "a percentage above 0, 100 at most");
        }
        plan->margin /= 100;
        return true;
    case OPTION_ALPHA:
        return (read_real(optarg, '\0', &plan->alpha, &rest) && plan->alpha >= 1e-6 &&
                plan->alpha < 0.5) ||
               complain(parser, "--alpha", "a number between 0 and 0.5");
    default:
        return take_claim(parser);
    }
}

static bool take_metric_option(struct parser *parser, int option)
{
    int64_t number;

    switch (option) {
    case 'm':
        return take_metric(parser, ab_metric_pattern);
    case OPTION_METRIC_JSON:
        return take_metric(parser, ab_metric_json);
    case OPTION_PRIMARY:
        parser->primary = optarg;
        return true;
    case OPTION_SKIP:
        if (!read_whole(optarg, 0, INT32_MAX, &number)) {
            return complain(parser, "--skip", "a number from 0 on");
        }
        parser->skip = (int)number;
        parser->skip_given = true;
        return true;
    case OPTION_ACROSS_RANKS:
        parser->across_given = true;
        return ab_across_parse(optarg, &parser->across) ||
               complain(parser, "--across-ranks", "max, mean, median, min or sum");
    case OPTION_STEP_KERNEL:
        if (parser->options->step_kernel != NULL) {
            command_usage_error(parser->command,
                                "--step-kernel: given twice, '%s' and '%s'; one pattern has to "
                                "match every kernel that begins a step",
                                parser->options->step_kernel, optarg);
            return false;
        }
        parser->options->step_kernel = optarg;
        parser->options->watch_steps = true;
        return true;
    default:
        parser->options->watch_steps = true;
        return true;
    }
}

static bool take_run_option(struct parser *parser, int option)
{
    struct ab_options *options = parser->options;
    const char *rest;

    switch (option) {
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
        return take_tolerance(parser);
    case OPTION_TIMEOUT:
        if (!read_real(optarg, '\0', &options->time_limit, &rest) || options->time_limit < 0) {
            return complain(parser, "--timeout", "a number of seconds");
        }
        options->no_time_limit = options->time_limit == 0;
        return true;
    case OPTION_ENV:
        return take_variable(parser);
    case OPTION_FOLDER:
        options->folder = optarg;
        return true;
    case OPTION_RESUME:
        options->resume = optarg;
        return true;
    default:
        options->library = optarg;
        return true;
    }
}

static bool take_option(struct parser *parser, int option)
{
    struct ab_options *options = parser->options;

    switch (option) {
    case OPTION_NO_REPEAT:
        return options->no_repeat = true;
    case OPTION_KEEP_OUTPUT:
        return options->keep_output = true;
    case OPTION_KEEP_REPORTS:
        return options->keep_reports = true;
    case OPTION_SHOW_OUTPUT:
        return options->show_output = true;
    case OPTION_ALLOW_UNATTACHED:
        return options->allow_unattached = true;
    case OPTION_EXPORT:
        return take_export(parser);
    case 'f':
        return options->force = true;
    case OPTION_JSON:
        return options->json = true;
    case 'w':
        return options->wide = true;
    case 'q':
        return options->quiet = true;
    case '?':
        return false;
    default:
        break;
    }
    if (option >= OPTION_BLOCKS && option <= OPTION_CLAIM) {
        return take_plan_option(parser, option);
    }
    if (option == 'm' || (option >= OPTION_METRIC_JSON && option <= OPTION_GRAPH_STEPS)) {
        return take_metric_option(parser, option);
    }
    return take_run_option(parser, option);
}

/* ---- When all options are known ---- */

static void add_metric(struct ab_options *options, const struct ab_metric *metric)
{
    options->metrics = memory_grow(options->metrics, options->metric_count,
                                   &options->metric_capacity, sizeof *metric);
    options->metrics[options->metric_count++] = *metric;
}

static char *metric_names(const struct ab_options *options)
{
    char *names = memory_copy("");

    for (size_t i = 0; i < options->metric_count; i++) {
        char *longer = memory_format("%s%s%s", names, i > 0 ? ", " : "", options->metrics[i].name);

        free(names);
        names = longer;
    }
    return names;
}

/* The place of a metric; SIZE_MAX: none is called so. */
static size_t find_metric(const struct ab_options *options, const char *name, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(options->metrics[i].name, name) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

static bool make_primary(struct parser *parser)
{
    struct ab_options *options = parser->options;
    size_t place = 0;
    struct ab_metric metric;

    if (parser->primary != NULL) {
        place = find_metric(options, parser->primary, options->metric_count);
    }
    if (place == SIZE_MAX) {
        char *names = metric_names(options);

        command_usage_error(parser->command, "--primary: there is no metric '%s'; there are: %s",
                            parser->primary, names);
        free(names);
        return false;
    }
    metric = options->metrics[place];
    memmove(options->metrics + 1, options->metrics, place * sizeof metric);
    options->metrics[0] = metric;
    for (size_t i = 0; i < options->metric_count; i++) {
        options->metrics[i].primary = i == 0;
    }
    return true;
}

/* Those given, then step time, then wall time, which is always there. */
static bool finish_metrics(struct parser *parser)
{
    struct ab_options *options = parser->options;
    struct ab_metric metric;

    if (options->watch_steps) {
        metric = (struct ab_metric){0};
        ab_metric_step(&metric, options->step_kernel);
        add_metric(options, &metric);
    }
    metric = (struct ab_metric){0};
    ab_metric_wall(&metric);
    add_metric(options, &metric);
    for (size_t i = 0; i < options->metric_count; i++) {
        if (find_metric(options, options->metrics[i].name, i) != SIZE_MAX) {
            command_usage_error(parser->command, "two metrics are called '%s'",
                                options->metrics[i].name);
            return false;
        }
        if (parser->skip_given) {
            options->metrics[i].skip = parser->skip;
        }
        if (parser->across_given) {
            options->metrics[i].across = parser->across;
        }
    }
    return make_primary(parser);
}

static const char *contradiction(const struct parser *parser, bool graph_steps)
{
    const struct ab_options *options = parser->options;

    if (parser->blocks > 0 && parser->looks) {
        return "--blocks and --looks: give one of them";
    }
    if (graph_steps && options->step_kernel != NULL) {
        return "--step-kernel and --graph-steps: give one of them";
    }
    if (options->folder != NULL && options->resume != NULL) {
        return "--folder and --resume: give one of them";
    }
    if (parser->tolerance && options->same_output == NULL) {
        return "--tolerance is of --same-output, which is not given";
    }
    return NULL;
}

/* Everything up to the first "--" is options and arms, the rest the command. */
static int split(char **argv, int argc)
{
    int place = 1;

    while (place < argc && strcmp(argv[place], "--") != 0) {
        place++;
    }
    return place;
}

static int finish(struct parser *parser, bool graph_steps)
{
    struct ab_options *options = parser->options;
    const char *fault = contradiction(parser, graph_steps);
    char error[256];

    if (fault != NULL) {
        return command_usage_error(parser->command, "%s", fault);
    }
    if (parser->blocks > 0) {
        options->plan.look_count = 1;
        options->plan.looks[0] = parser->blocks;
        options->few_blocks = parser->blocks < LEAST_BLOCKS;
    }
    /* Few blocks are allowed on request: they decide nothing. */
    if (!options->few_blocks && !ab_plan_check(&options->plan, error, sizeof error)) {
        return command_usage_error(parser->command, "%s", error);
    }
    return finish_metrics(parser) ? -1 : COMMAND_USAGE;
}

int ab_options_parse(const struct command *command, int argc, char **argv,
                     struct ab_options *options)
{
    struct parser parser = {.command = command, .options = options};
    int count = split(argv, argc), option;
    bool graph_steps = false;

    *options = (struct ab_options){
        .plan = {.warm_up_blocks = 1,
                 .look_count = 3,
                 .looks = {10, 20, 40},
                 .claim = AB_CLAIM_BETTER,
                 .alpha = 0.05,
                 .margin = 0.01},
    };
    while ((option = command_option(command, count, argv, ":m:fwqh", long_options)) != -1) {
        if (option == 'h') {
            return command_help(command);
        }
        graph_steps = graph_steps || option == OPTION_GRAPH_STEPS;
        if (!take_option(&parser, option)) {
            return COMMAND_USAGE;
        }
    }
    options->arms = argv + optind;
    options->arm_count = (size_t)(count - optind);
    options->command = argv + count + 1;
    if (options->arm_count == 0) {
        return command_usage_error(command, "no arm given: none, observe, or a policy file");
    }
    if (count + 1 >= argc) {
        return command_usage_error(command, "no command given: it stands behind '--'");
    }
    return finish(&parser, graph_steps);
}

void ab_options_release(struct ab_options *options)
{
    for (size_t i = 0; i < options->metric_count; i++) {
        ab_metric_release(&options->metrics[i]);
    }
    free(options->metrics);
    free(options->variables);
    free(options->exports);
    *options = (struct ab_options){0};
}
