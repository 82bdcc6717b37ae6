/* SPDX-License-Identifier: Apache-2.0 */

/* ab --live: the command. */

#include "live.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arm.h"
#include "json_output.h"
#include "library_path.h"
#include "memory.h"
#include "metric.h"
#include "output_file.h"
#include "results.h"
#include "schedule.h"
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

struct session {
    const struct command *command;
    struct ab_live_plan plan;
    int64_t runs_wanted;
    bool no_repeat, show_output, json, wide, quiet, force, help;
    double time_limit;
    const char *folder_given, *library_given, *export_path;
    char **variables; /* the last one is CUDAPOLICY_LIVE, ours */
    size_t variable_count, variable_capacity;
    char *const *arms;
    size_t arm_count;
    char **argv; /* of the command */

    struct ab_experiment experiment; /* its arms are those that alternate */
    struct ab_experiment trial;      /* one arm, the live policy: what is run */
    char *library, *folder, *policy;
    size_t run_count;
    struct ab_live_run *runs;
    struct output_file export;
};

/* ---- The command line --------------------------------------------------------------------------
 */

static bool complain(const struct session *session, const char *option, const char *wanted)
{
    command_usage_error(session->command, "%s: '%s' is not %s", option, optarg, wanted);
    return false;
}

static bool read_whole(int64_t least, int64_t most, int64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoll(optarg, &end, 10);
    return errno == 0 && end != optarg && *end == '\0' && *number >= least && *number <= most;
}

static bool take_steps(const struct session *session, const char *option, int64_t least,
                       uint32_t *steps)
{
    int64_t number;

    if (!read_whole(least, INT32_MAX, &number)) {
        return complain(session, option, "a number of steps");
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

static void add_variable(struct session *session, char *variable)
{
    session->variables = memory_grow(session->variables, session->variable_count,
                                     &session->variable_capacity, sizeof *session->variables);
    session->variables[session->variable_count++] = variable;
}

static bool take_plan(struct session *session, int option)
{
    struct ab_live_plan *plan = &session->plan;
    int64_t number;

    switch (option) {
    case OPTION_STEP_KERNEL:
        plan->step_kernel = optarg;
        /* What the library's variable has room for. */
        return (optarg[0] != '\0' && strlen(optarg) < 256) ||
               complain(session, "--step-kernel", "a pattern of up to 255 bytes");
    case OPTION_GRAPH_STEPS:
        plan->step_kernel = NULL;
        return true;
    case OPTION_SLICE:
        return take_steps(session, "--slice", 2, &plan->slice);
    case OPTION_DROP:
        return take_steps(session, "--drop", 0, &plan->drop);
    case OPTION_WARM_UP:
        return take_steps(session, "--warm-up", 0, &plan->warm_up);
    case OPTION_SEED:
        if (!read_whole(1, INT64_MAX, &number)) {
            return complain(session, "--seed", "a number from 1 on");
        }
        plan->seed = (uint64_t)number;
        return true;
    case OPTION_ACROSS_RANKS:
        return ab_across_parse(optarg, &plan->across) ||
               complain(session, "--across-ranks", "max, mean, median, min or sum");
    case OPTION_MARGIN:
        if (!read_real(0, 100, &plan->margin)) {
            return complain(session, "--margin", "a percentage above 0");
        }
        plan->margin /= 100;
        return true;
    default:
        return read_real(0, 0.5, &plan->alpha) ||
               complain(session, "--alpha", "a number between 0 and 0.5");
    }
}

static bool take_option(struct session *session, int option)
{
    switch (option) {
    case OPTION_LIVE:
        return true;
    case OPTION_RUNS:
        return read_whole(1, 10000, &session->runs_wanted) ||
               complain(session, "--runs", "a number from 1 on");
    case OPTION_NO_REPEAT:
        session->no_repeat = true;
        return true;
    case OPTION_ENV:
        add_variable(session, optarg);
        return (strchr(optarg, '=') != NULL && optarg[0] != '=') ||
               complain(session, "--env", "NAME=VALUE");
    case OPTION_TIMEOUT:
        return read_real(-1e-300, 1e9, &session->time_limit) ||
               complain(session, "--timeout", "a number of seconds");
    case OPTION_FOLDER:
        session->folder_given = optarg;
        return true;
    case OPTION_SHOW_OUTPUT:
        session->show_output = true;
        return true;
    case OPTION_LIBRARY:
        session->library_given = optarg;
        return true;
    case OPTION_EXPORT:
        session->export_path = optarg;
        return true;
    case OPTION_JSON:
        session->json = true;
        return true;
    case 'f':
        session->force = true;
        return true;
    case 'w':
        session->wide = true;
        return true;
    case 'q':
        session->quiet = true;
        return true;
    case 'h':
        session->help = true;
        return true;
    case '?':
        return false;
    default:
        return take_plan(session, option);
    }
}

/* The words up to "--" are arms. */
static int take_words(struct session *session, int argc, char **argv)
{
    int at = optind;

    while (at < argc && strcmp(argv[at], "--") != 0) {
        at++;
    }
    session->arms = &argv[optind];
    session->arm_count = (size_t)(at - optind);
    session->argv = &argv[at < argc ? at + 1 : at];
    if (at == optind) {
        return command_usage_error(session->command, "no arm is given");
    }
    if (session->argv[0] == NULL) {
        return command_usage_error(session->command, "no command is given after --");
    }
    if (session->plan.drop >= session->plan.slice) {
        return command_usage_error(
            session->command, "--drop %" PRIu32 " leaves nothing of a slice of %" PRIu32 " steps",
            session->plan.drop, session->plan.slice);
    }
    return -1;
}

/* -1: the command line is fine. */
static int parse(struct session *session, int argc, char **argv)
{
    int option;

    while (!session->help &&
           (option = command_option(session->command, argc, argv, "fwqh", long_options)) != -1) {
        if (!take_option(session, option)) {
            return COMMAND_USAGE;
        }
    }
    if (session->help) {
        printf(
            "usage: cudapolicy ab --live [OPTION]... ARM [ARM]... -- COMMAND [ARGUMENT]...\n\n%s",
            live_help);
        return command_finish(COMMAND_SUCCESS);
    }
    return take_words(session, argc, argv);
}

/* ---- Before anything runs ----------------------------------------------------------------------
 */

/* Under the library both are the same here; what it costs itself is not told live. */
static void drop_cost_arms(struct ab_experiment *experiment)
{
    size_t kept = 0;

    for (size_t i = 0; i < experiment->arm_count; i++) {
        if (experiment->arms[i].role == AB_ROLE_COST) {
            free(experiment->arms[i].name);
        } else {
            experiment->arms[kept++] = experiment->arms[i];
        }
    }
    experiment->arm_count = kept;
}

/* -1: fine. */
static int add_arms(struct session *session)
{
    const struct arm_request request = {.words = session->arms,
                                        .count = session->arm_count,
                                        .no_repeat = session->no_repeat,
                                        .warnings = !session->quiet};
    char error[512] = "";

    switch (arm_add_all(&session->experiment, &request, error, sizeof error)) {
    case ARM_FINE:
        break;
    case ARM_MISUSED:
        return command_usage_error(session->command, "%s", error);
    case ARM_UNFIT:
    default:
        return COMMAND_RUN_FAILED;
    }
    drop_cost_arms(&session->experiment);
    if (session->experiment.arm_count < 2) {
        return command_usage_error(session->command, "--live: it takes at least two arms");
    }
    return -1;
}

static bool make_folder(struct session *session)
{
    const char *variable = getenv("TMPDIR");
    char *path = session->folder_given != NULL
                     ? memory_copy(session->folder_given)
                     : memory_format("%s/cudapolicy-ab-XXXXXX",
                                     variable != NULL && variable[0] == '/' ? variable : "/tmp");
    const bool made = session->folder_given != NULL ? mkdir(path, 0777) == 0 || errno == EEXIST
                                                    : mkdtemp(path) != NULL;

    session->folder = made ? realpath(path, NULL) : NULL;
    if (session->folder == NULL) {
        command_error("cannot make the folder '%s': %s", path, strerror(errno));
    }
    free(path);
    return session->folder != NULL;
}

static bool write_policy(struct session *session, const char *text)
{
    FILE *file;
    bool written;

    session->policy = memory_format("%s/live.ini", session->folder);
    file = fopen(session->policy, "we");
    written = file != NULL && fputs(text, file) >= 0;
    written = file != NULL && fclose(file) == 0 && written;
    if (!written) {
        command_error("cannot write '%s': %s", session->policy, strerror(errno));
    }
    return written;
}

/* What is run: one arm, whose policy has the rules of all. */
static void fill_trial(struct session *session)
{
    struct ab_experiment *trial = &session->trial;

    trial->command = session->argv;
    trial->arms = memory_allocate(1, sizeof *trial->arms);
    trial->arm_count = 1;
    trial->arms[0] = (struct ab_arm){.name = memory_copy("live"),
                                     .kind = AB_ARM_POLICY,
                                     .role = AB_ROLE_BASELINE,
                                     .policy = session->policy};
    trial->metrics = memory_allocate(1, sizeof *trial->metrics);
    trial->metric_count = 1;
    ab_metric_wall(&trial->metrics[0]);
    add_variable(session, ab_live_variable(&session->plan, session->experiment.arm_count));
}

/* -1: the runs can begin. */
static int prepare(struct session *session)
{
    char error[1024] = "";
    char *text;
    int status = add_arms(session);
    bool ready;

    if (status != -1) {
        return status;
    }
    text = ab_live_policy(&session->experiment, error, sizeof error);
    if (text == NULL) {
        command_error("%s", error);
        return COMMAND_RUN_FAILED;
    }
    if (session->plan.seed == 0) {
        session->plan.seed = ab_schedule_seed();
    }
    session->library = library_path_find(session->library_given);
    ready = session->library != NULL && make_folder(session) && write_policy(session, text) &&
            (session->export_path == NULL ||
             output_file_open(&session->export, session->export_path, session->force));
    free(text);
    if (ready) {
        fill_trial(session);
    }
    return ready ? -1 : COMMAND_RUN_FAILED;
}

/* ---- Runs --------------------------------------------------------------------------------------
 */

static void say_notes(const struct session *session, const struct results *results)
{
    for (size_t i = 0; i < results->note_count && !session->quiet; i++) {
        const struct results_note *note = &results->notes[i];

        if (strncmp(note->text, "live: ", 6) == 0 && strcmp(note->severity, "info") != 0) {
            command_error("warning: %s (%lld times)", note->text + 6, (long long)note->count);
        }
    }
}

/* An arm that is named in no rule that matched does nothing; better known after the first run. */
static void say_unmatched(const struct session *session, const struct results *results)
{
    for (size_t i = 0; i < results->rule_count && !session->quiet; i++) {
        const struct results_rule *rule = &results->rules[i];

        if (rule->launches.total == 0 && strcmp(rule->section, "kernel") == 0) {
            command_error("warning: [kernel %s] matched no launch", rule->name);
        }
    }
}

static bool read_run(struct session *session, const char *reports, bool first)
{
    struct results results = {.keep_documents = true};
    char error[512] = "";
    bool read = results_load(&results, reports) &&
                ab_live_read(&session->runs[session->run_count], &results, &session->plan,
                             session->experiment.arm_count, error, sizeof error);

    if (read) {
        const struct ab_live_run *run = &session->runs[session->run_count++];

        if (first) {
            say_notes(session, &results);
            say_unmatched(session, &results);
        }
        if (run->steps != run->steps_most && !session->quiet) {
            command_error("warning: ranks made from %lld to %lld steps: only slices that all of "
                          "them made count",
                          (long long)run->steps, (long long)run->steps_most);
        }
    } else {
        command_error("%s", error[0] != '\0' ? error : "the reports of the run cannot be read");
    }
    results_release(&results);
    return read;
}

static bool make_run(struct session *session, uint32_t number)
{
    const struct ab_trial_options options = {
        .library = session->library,
        .folder = session->folder,
        .time_limit = session->time_limit,
        .variables = session->variables,
        .variable_count = session->variable_count,
        .keep_output = session->folder_given != NULL,
        .keep_reports = true,
        .show_output = session->show_output,
    };
    struct ab_run *run = ab_experiment_add_run(&session->trial);
    char *folder, *reports;
    bool made;

    run->block = number;
    made = ab_trial_run(&session->trial, &options, run) && run->outcome == AB_OK;
    folder = ab_trial_folder(&session->trial, &options, run);
    reports = memory_format("%s/reports", folder);
    if (made) {
        made = read_run(session, reports, session->run_count == 0);
    } else if (run->outcome != AB_INTERRUPTED) {
        command_error("run %u failed: %s; what it printed is in %s", number + 1,
                      run->message != NULL ? run->message : ab_outcome_names[run->outcome], folder);
    }
    free(reports);
    free(folder);
    return made;
}

/* True when there is something to analyse. */
static bool make_runs(struct session *session)
{
    const struct ab_trial_options options = {.folder = session->folder,
                                             .library = session->library};
    bool going = ab_trial_make_folders(&options);

    session->runs = memory_allocate((size_t)session->runs_wanted, sizeof *session->runs);
    ab_trial_catch_signals();
    for (uint32_t number = 0; going && number < session->runs_wanted; number++) {
        going = make_run(session, number);
        if (going && !session->quiet) {
            const struct ab_live_run *run = &session->runs[session->run_count - 1];

            command_error("run %u of %lld: %lld steps, %zu blocks, %zu rank%s", number + 1,
                          (long long)session->runs_wanted, (long long)run->steps, run->block_count,
                          run->ranks, run->ranks == 1 ? "" : "s");
        }
    }
    /* What the user ended is analysed as far as it went. */
    return going || (ab_trial_interrupted() && session->run_count > 0);
}

/* ---- Afterwards --------------------------------------------------------------------------------
 */

static int finish(struct session *session)
{
    const struct ab_experiment *experiment = &session->experiment;
    struct ab_live_comparison *comparisons =
        memory_allocate(experiment->arm_count, sizeof *comparisons);
    int status;

    ab_live_compare(comparisons, experiment, session->runs, session->run_count, &session->plan);
    if (session->json) {
        json_output_print(ab_live_json(comparisons, experiment, session->runs, session->run_count,
                                       &session->plan),
                          stdout);
    } else {
        ab_live_print(comparisons, experiment, session->runs, session->run_count, &session->plan,
                      session->wide, stdout);
    }
    status = ab_live_status(comparisons, experiment);
    if (session->export_path != NULL) {
        output_file_begin(&session->export);
        json_output_print(ab_live_json(comparisons, experiment, session->runs, session->run_count,
                                       &session->plan),
                          session->export.stream);
        if (!output_file_close(&session->export)) {
            status = COMMAND_RUN_FAILED;
        }
        session->export.stream = NULL;
    }
    free(comparisons);
    return command_finish(status);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    remove(path);
    return 0;
}

/* A folder that the user named stays, and so does what a run that failed printed. */
static void release(struct session *session, bool remove_all)
{
    output_file_abandon(&session->export);
    if (session->folder != NULL && session->folder_given == NULL && remove_all) {
        nftw(session->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    for (size_t i = 0; i < session->run_count; i++) {
        ab_live_run_release(&session->runs[i]);
    }
    free(session->runs);
    if (session->variable_count > 0 && session->trial.arm_count > 0) {
        free(session->variables[session->variable_count - 1]);
    }
    free(session->variables);
    session->trial.command = NULL;          /* of argv */
    ab_experiment_release(&session->trial); /* with the policy's path */
    ab_experiment_release(&session->experiment);
    free(session->library);
    free(session->folder);
}

int ab_live_main(const struct command *command, int argc, char **argv)
{
    struct session session = {
        .command = command,
        .plan = {.slice = 20, .drop = 5, .warm_up = 40, .alpha = 0.05, .margin = 0.01},
        .runs_wanted = AB_NESTED_RUNS,
    };
    bool made = true;
    int status = parse(&session, argc, argv);

    memory_failure_status = COMMAND_RUN_FAILED;
    if (status == -1) {
        status = prepare(&session);
    }
    if (status == -1) {
        if (!session.quiet) {
            command_error("%zu arms, slices of %" PRIu32 " steps, seed %" PRIu64 ", in %s",
                          session.experiment.arm_count, session.plan.slice, session.plan.seed,
                          session.folder);
        }
        made = make_runs(&session);
        status = made ? finish(&session) : COMMAND_RUN_FAILED;
    }
    release(&session, made);
    return status;
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
