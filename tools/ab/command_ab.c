/* SPDX-License-Identifier: Apache-2.0 */

/* cudapolicy ab: does a policy help? Runs a command under several arms, and says what they show. */

#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis.h"
#include "arm.h"
#include "arm_copy.h"
#include "execute.h"
#include "export.h"
#include "json_output.h"
#include "library_path.h"
#include "live.h"
#include "memory.h"
#include "option.h"
#include "output_file.h"
#include "print.h"
#include "run_options.h"
#include "schedule.h"

static int ab_main(const struct command *command, int argc, char **argv);

const struct command command_ab = {
    .name = "ab",
    .summary = "find out whether a policy helps: compare arms over many runs",
    .usage = "[OPTION]... ARM [ARM]... -- COMMAND [ARGUMENT]...",
    .help =
        "Runs COMMAND in blocks, in each block once under every ARM in random order, and says\n"
        "what the runs show. An ARM is a policy file, none (without the library), observe (with\n"
        "the library, nothing changed), or NAME=ARM. The first one is the baseline; it runs\n"
        "twice, to show how much it differs from itself. Beside none, observe runs too: the cost\n"
        "of the library is told apart from the policy's effect.\n\n"
        "With --live the arms alternate inside each run, by step: cudapolicy ab --live --help.\n\n"
        "Options: the plan\n"
        "      --looks N,N,...      look at the results after so many blocks, and stop when they\n"
        "                           decide; the last number is the end (default: 10,20,40)\n"
        "      --blocks N           one look, after N blocks; fewer than 10 decide nothing\n"
        "      --warm-up N          blocks before that do not count (default: 1)\n"
        "      --claim CLAIM        what is asked: better (default), no-difference, or none: make\n"
        "                           all blocks and end with status 0\n"
        "      --margin PERCENT     a difference that does not matter (default: 1)\n"
        "      --alpha A            chance of a false claim, over looks and arms (default: 0.05)\n"
        "      --seed N             of the order and all random draws (default: drawn, printed)\n"
        "      --no-repeat          run the baseline once a block\n\n"
        "Metrics (without one: wall time)\n"
        "  -m, --metric NAME=REGEX  numbers in what COMMAND prints; +NAME: more is better;\n"
        "                           NAME[UNIT]: its unit; groups (?<value>...) and (?<rank>...)\n"
        "      --metric-json NAME=[FILE:]PATH\n"
        "                           a number, or a list of them, in a JSON document\n"
        "      --step-kernel GLOB   time of a step, between launches of this kernel\n"
        "      --graph-steps        time of a step, between graph launches\n"
        "      --primary NAME       what decides (default: the first given); others only explore\n"
        "      --skip N             first values of a run that are warm-up (default: found)\n"
        "      --across-ranks HOW   max (default), mean, median, min or sum of ranks' values\n\n"
        "Runs\n"
        "      --env NAME=VALUE     a variable for COMMAND. In it and in COMMAND, {arm}, {block},\n"
        "                           {position}, {run} and {folder} are replaced\n"
        "      --prepare COMMAND    a shell command before each run\n"
        "      --cleanup COMMAND    one after each run\n"
        "      --check COMMAND      one after each run that went well; where it fails, the arm is\n"
        "                           broken\n"
        "      --same-output WHAT   a FILE that each run writes, or /REGEX/ for what matches in\n"
        "                           lines that it prints: has to be as with the baseline, or the\n"
        "                           arm is broken\n"
        "      --tolerance REL[,ABS]\n"
        "                           of numbers in that output (default: 0)\n"
        "      --timeout SECONDS    of a run; 0: none (default: 3 times the baseline's median, at\n"
        "                           least 10)\n"
        "      --allow-unattached   go on where the first run of an arm launched nothing that the\n"
        "                           library saw (default: end after the first block)\n"
        "      --library PATH       libcudapolicy.so, as for run\n\n"
        "Results\n"
        "      --folder DIR         keep the experiment there: its journal, output of runs that\n"
        "                           failed; for several hosts, a folder that all of them see\n"
        "      --resume DIR         go on with the experiment in DIR, with the same options\n"
        "      --keep-output        keep what every run printed\n"
        "      --keep-reports       keep the library's reports of every run\n"
        "      --show-output        show what each run printed, on standard error\n"
        "      --export FILE        write .json, .csv, .md or .html (with plots); repeatable\n"
        "  -f, --force              overwrite these files\n"
        "      --json               print the analysis as JSON\n"
        "  -w, --wide               do not shorten names\n"
        "  -q, --quiet              no progress, and the answer alone\n"
        "  -h, --help               print this help\n\n"
        "Exit status: 0 when it is shown that an arm is better (what --claim asks), 1 when the\n"
        "opposite is shown, 2 when there are not enough runs for either, 3 when an arm is broken\n"
        "(changes results, fails more often), 64 when the command line is wrong, 125 when the\n"
        "experiment could not be made.\n\n"
        "Examples:\n"
        "  cudapolicy ab none p.ini -- ./app\n"
        "  cudapolicy ab -m 'step[ms]=step time: ([0-9.]+)' none p.ini -- mpirun -n 4 ./app\n"
        "  cudapolicy ab --claim no-difference --margin 2 none p.ini -- ./app\n"
        "  cudapolicy ab --export r.html --env TRITON_CACHE_DIR=/tmp/c/{arm} none p.ini -- ./app\n",
    .main = ab_main,
};

struct session {
    struct ab_options options;
    struct ab_experiment experiment;
    struct ab_execution execution;
    char *library, *folder, *journal;
    bool folder_is_ours; /* made for this experiment alone, to be removed when all went well */
    struct output_file *exports;
    size_t exports_open;
};

/* ---- Before anything runs ---- */

/* The metrics go over to the experiment. */
static void fill_experiment(struct session *session)
{
    struct ab_experiment *experiment = &session->experiment;
    struct ab_options *options = &session->options;

    ab_experiment_begin(experiment, options->command);
    experiment->plan = options->plan;
    experiment->metrics = options->metrics;
    experiment->metric_count = options->metric_count;
    options->metrics = NULL;
    options->metric_count = 0;
}

static bool is_program(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static bool is_in_path(const char *name)
{
    const char *variable = getenv("PATH");
    char *copy = memory_copy(variable != NULL ? variable : "/usr/local/bin:/bin:/usr/bin");
    bool found = false;

    for (char *folder = copy, *end; folder != NULL && !found; folder = end) {
        char *path;

        end = strchr(folder, ':');
        if (end != NULL) {
            *end++ = '\0';
        }
        path = memory_format("%s/%s", folder[0] != '\0' ? folder : ".", name);
        found = is_program(path);
        free(path);
    }
    free(copy);
    return found;
}

/* A name that is not the same for every run is left for the runs to find. */
static bool program_is_there(const char *name)
{
    if (strchr(name, '{') != NULL ||
        (strchr(name, '/') != NULL ? is_program(name) : is_in_path(name))) {
        return true;
    }
    command_error("cannot run '%s': %s; nothing was run", name,
                  strchr(name, '/') != NULL && access(name, F_OK) == 0
                      ? "not an executable file"
                      : "there is no such program");
    return false;
}

static bool make_folder(struct session *session)
{
    const struct ab_options *options = &session->options;
    const char *variable = getenv("TMPDIR");
    const char *given = options->resume != NULL ? options->resume : options->folder;
    char *path;

    if (given != NULL) {
        if (options->resume == NULL && mkdir(given, 0777) != 0 && errno != EEXIST) {
            command_error("cannot make the folder '%s': %s", given, strerror(errno));
            return false;
        }
        session->folder = realpath(given, NULL);
        if (session->folder == NULL) {
            command_error("cannot find the folder '%s': %s", given, strerror(errno));
        }
        return session->folder != NULL;
    }
    path = memory_format("%s/cudapolicy-ab-XXXXXX",
                         variable != NULL && variable[0] == '/' ? variable : "/tmp");
    session->folder = mkdtemp(path) != NULL ? realpath(path, NULL) : NULL;
    session->folder_is_ours = session->folder != NULL;
    if (session->folder == NULL) {
        command_error("cannot make the folder '%s': %s", path, strerror(errno));
    }
    free(path);
    return session->folder != NULL;
}

static bool begin_journal(struct session *session)
{
    struct ab_experiment *experiment = &session->experiment;

    session->journal = memory_format("%s/journal.jsonl", session->folder);
    if (session->options.resume != NULL) {
        return ab_journal_resume(experiment, session->journal);
    }
    if (experiment->plan.seed == 0) {
        experiment->plan.seed = ab_schedule_seed();
    }
    return ab_journal_begin(experiment, session->journal);
}

/* Claimed before anything runs: a mistyped name must not cost hours. */
static bool open_exports(struct session *session)
{
    const struct ab_options *options = &session->options;

    session->exports = memory_allocate(options->export_count, sizeof *session->exports);
    for (size_t i = 0; i < options->export_count; i++) {
        if (!output_file_open(&session->exports[i], options->exports[i], options->force)) {
            return false;
        }
        session->exports_open++;
    }
    return true;
}

static bool has_role(const struct ab_experiment *experiment, enum ab_arm_role role)
{
    for (size_t i = 0; i < experiment->arm_count; i++) {
        if (experiment->arms[i].role == role) {
            return true;
        }
    }
    return false;
}

/* Step time comes from the library's counters, which an arm without it does not have. */
static const char *unfit_metric(const struct ab_experiment *experiment)
{
    for (size_t i = 0; i < experiment->arm_count; i++) {
        if (experiment->metrics[0].source == AB_METRIC_STEP &&
            experiment->arms[i].kind == AB_ARM_NONE) {
            return "step time is counted by the library, which 'none' is without: take 'observe' "
                   "in its place, or another --primary";
        }
    }
    return NULL;
}

/* -1: all is well so far. */
static int add_arms(struct session *session, const struct command *command)
{
    const struct arm_request request = {.words = session->options.arms,
                                        .count = session->options.arm_count,
                                        .no_repeat = session->options.no_repeat,
                                        .warnings = !session->options.quiet};
    const char *fault;
    char error[512] = "";

    switch (arm_add_all(&session->experiment, &request, error, sizeof error)) {
    case ARM_FINE:
        break;
    case ARM_MISUSED:
        return command_usage_error(command, "%s", error);
    case ARM_UNFIT:
        return COMMAND_RUN_FAILED;
    }
    fault = unfit_metric(&session->experiment);
    if (fault != NULL) {
        return command_usage_error(command, "%s", fault);
    }
    if (!has_role(&session->experiment, AB_ROLE_CANDIDATE)) {
        /* One arm: how much it differs from itself is all there is to see. */
        session->experiment.plan.claim = AB_CLAIM_NONE;
    }
    return -1;
}

static bool make_same_output(struct session *session, const struct command *command)
{
    const struct ab_options *options = &session->options;
    char error[512] = "";

    if (options->same_output == NULL) {
        return true;
    }
    session->execution.trial.same_output = ab_same_output_new(
        options->same_output, options->relative, options->absolute, error, sizeof error);
    if (session->execution.trial.same_output == NULL) {
        command_usage_error(command, "--same-output: %s", error);
    }
    return session->execution.trial.same_output != NULL;
}

static void open_gpus(struct session *session)
{
    char error[256] = "";

    session->execution.trial.gpu = gpu_state_open(error, sizeof error);
    if (session->execution.trial.gpu != NULL) {
        session->experiment.gpus = gpu_state_describe(session->execution.trial.gpu);
    }
}

static void fill_execution(struct session *session)
{
    const struct ab_options *options = &session->options;
    struct ab_trial_options *trial = &session->execution.trial;

    trial->library = session->library;
    trial->folder = session->folder;
    trial->time_limit = options->time_limit;
    trial->hook_time_limit = options->time_limit;
    trial->prepare = options->prepare;
    trial->cleanup = options->cleanup;
    trial->check = options->check;
    trial->step_kernel = options->step_kernel;
    trial->watch_steps = options->watch_steps;
    trial->variables = options->variables;
    trial->variable_count = options->variable_count;
    trial->keep_output = options->keep_output;
    trial->keep_reports = options->keep_reports;
    trial->show_output = options->show_output;
    session->execution.time_limit_factor = options->no_time_limit ? 0 : 3;
    session->execution.journal = session->journal;
    session->execution.allow_unattached = options->allow_unattached;
    session->execution.quiet = options->quiet;
    session->execution.label = "";
}

/* -1: the runs can begin. */
static int prepare(struct session *session, const struct command *command)
{
    int status;

    fill_experiment(session);
    status = add_arms(session, command);
    if (status != -1) {
        return status;
    }
    if (!make_same_output(session, command)) {
        return COMMAND_USAGE;
    }
    session->library = library_path_find(session->options.library);
    if (session->library == NULL || !program_is_there(session->experiment.command[0]) ||
        !make_folder(session)) {
        return COMMAND_RUN_FAILED;
    }
    open_gpus(session); /* the journal's first line names them */
    session->experiment.options = run_options_json(&session->options, session->library);
    if (!begin_journal(session) || !open_exports(session)) {
        return COMMAND_RUN_FAILED;
    }
    fill_execution(session);
    return arm_copy_make(&session->experiment, session->folder) ? -1 : COMMAND_RUN_FAILED;
}

/* ---- Afterwards ---- */

static void print_start(const struct session *session)
{
    const struct ab_experiment *experiment = &session->experiment;
    const struct ab_plan *plan = &experiment->plan;
    uint32_t blocks = plan->looks[plan->look_count - 1];

    if (session->options.few_blocks) {
        command_error("%" PRIu32 " block%s: not enough runs for an interval, nothing can be "
                      "decided; 10 blocks are the least",
                      blocks, blocks == 1 ? "" : "s");
    }
    if (session->options.quiet) {
        return;
    }
    if (experiment->gpus != NULL) {
        fprintf(stderr, "%s\n", experiment->gpus);
    }
    command_error("%zu arms, %s%" PRIu32 " block%s, seed %" PRIu64 ", in %s", experiment->arm_count,
                  plan->look_count > 1 ? "at most " : "", blocks, blocks == 1 ? "" : "s",
                  plan->seed, session->folder);
    if (session->options.resume != NULL) {
        command_error("%zu runs are there already", experiment->run_count);
    }
}

static bool any_counts(const struct ab_experiment *experiment)
{
    for (size_t i = 0; i < experiment->run_count; i++) {
        if (!experiment->runs[i].warm_up) {
            return true;
        }
    }
    return false;
}

static bool write_exports(struct session *session, const struct ab_analysis *analysis)
{
    bool written = true;

    for (size_t i = 0; i < session->exports_open; i++) {
        struct output_file *file = &session->exports[i];
        enum ab_format format;

        ab_format_of(file->path, &format);
        output_file_begin(file);
        ab_export(&session->experiment, analysis, format, file->stream);
        written = output_file_close(file) && written;
    }
    session->exports_open = 0;
    return written;
}

static void print_result(const struct session *session, const struct ab_analysis *analysis)
{
    if (session->options.json) {
        json_t *document = ab_analysis_json(&session->experiment, analysis);

        json_object_set_new(document, "format", json_string("cudapolicy comparison"));
        json_object_set_new(document, "schema", json_integer(1));
        json_output_print(document, stdout);
    } else if (session->options.quiet) {
        char *answer = ab_answer(&session->experiment, analysis);

        puts(answer);
        free(answer);
    } else {
        ab_print(&session->experiment, analysis, session->options.wide, stdout);
    }
}

/* The status to end with. */
static int conclude(struct session *session, bool executed)
{
    struct ab_analysis analysis;
    int status;
    bool written;

    if (!any_counts(&session->experiment)) {
        command_error(executed ? "ended before the first run that counts" : "nothing was measured");
        return executed ? (int)AB_RESULT_INCONCLUSIVE : COMMAND_RUN_FAILED;
    }
    ab_analyse(&session->experiment, &analysis);
    print_result(session, &analysis);
    arm_copy_tell_changes(&session->experiment);
    status = executed ? (int)analysis.result : COMMAND_RUN_FAILED;
    written = write_exports(session, &analysis);
    ab_analysis_release(&analysis);
    if (!written) {
        return COMMAND_RUN_FAILED;
    }
    return command_finish(status) == status ? status : COMMAND_RUN_FAILED;
}

static bool any_failed(const struct ab_experiment *experiment)
{
    for (size_t i = 0; i < experiment->run_count; i++) {
        if (experiment->runs[i].outcome != AB_OK) {
            return true;
        }
    }
    return false;
}

/* What was made for this experiment alone goes, unless somebody may want to look at it. */
static void leave_folder(struct session *session, bool executed)
{
    const struct ab_options *options = &session->options;
    const char *const names[] = {"journal.jsonl", "observe.ini", "runs", ""};

    if (!session->folder_is_ours) {
        return;
    }
    if (session->experiment.interrupted) {
        command_error("--resume %s goes on with this experiment", session->folder);
    } else if (session->experiment.run_count > 0 &&
               (!executed || any_failed(&session->experiment) || options->keep_output ||
                options->keep_reports)) {
        command_error("the runs are in %s", session->folder);
    } else {
        arm_copy_remove(&session->experiment, session->folder);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            char *path = memory_format("%s/%s", session->folder, names[i]);

            remove(path);
            free(path);
        }
    }
}

static void release(struct session *session)
{
    for (size_t i = 0; i < session->exports_open; i++) {
        output_file_abandon(&session->exports[i]);
    }
    if (session->execution.trial.gpu != NULL) {
        gpu_state_close(session->execution.trial.gpu);
    }
    if (session->execution.trial.same_output != NULL) {
        ab_same_output_free(session->execution.trial.same_output);
    }
    free(session->exports);
    free(session->library);
    free(session->folder);
    free(session->journal);
    ab_experiment_release(&session->experiment);
    ab_options_release(&session->options);
}

static int ab_main(const struct command *command, int argc, char **argv)
{
    struct session session = {0};
    bool executed = false;
    int status;

    command_hold_descriptors();
    if (ab_live_asked(argc, argv)) {
        return ab_live_main(command, argc, argv);
    }
    status = ab_options_parse(command, argc, argv, &session.options);
    if (status == -1) {
        memory_failure_status = COMMAND_RUN_FAILED;
        status = prepare(&session, command);
        if (status == -1) {
            print_start(&session);
            ab_trial_catch_signals();
            executed = ab_execute(&session.experiment, &session.execution);
            status = conclude(&session, executed);
        }
        leave_folder(&session, executed);
    }
    release(&session);
    return status;
}
