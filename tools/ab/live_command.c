/* SPDX-License-Identifier: Apache-2.0 */

/* ab --live: the command. */

#include "live_option.h"

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

struct session {
    struct ab_live_options options;
    struct ab_experiment experiment; /* its arms are those that alternate */
    struct ab_experiment trial;      /* one arm, the live policy: what is run */
    char *library, *folder, *policy;
    char *variable; /* CUDAPOLICY_LIVE */
    size_t run_count;
    struct ab_live_run *runs;
    struct output_file export;
};

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
    const struct arm_request request = {.words = session->options.arms,
                                        .count = session->options.arm_count,
                                        .no_repeat = session->options.no_repeat,
                                        .warnings = !session->options.quiet};
    char error[512] = "";

    switch (arm_add_all(&session->experiment, &request, error, sizeof error)) {
    case ARM_FINE:
        break;
    case ARM_MISUSED:
        return command_usage_error(session->options.command, "%s", error);
    case ARM_UNFIT:
    default:
        return COMMAND_RUN_FAILED;
    }
    drop_cost_arms(&session->experiment);
    if (session->experiment.arm_count < 2) {
        return command_usage_error(session->options.command, "--live: it takes at least two arms");
    }
    return -1;
}

static bool make_folder(struct session *session)
{
    const char *variable = getenv("TMPDIR");
    char *path = session->options.folder != NULL
                     ? memory_copy(session->options.folder)
                     : memory_format("%s/cudapolicy-ab-XXXXXX",
                                     variable != NULL && variable[0] == '/' ? variable : "/tmp");
    const bool made = session->options.folder != NULL ? mkdir(path, 0777) == 0 || errno == EEXIST
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
    char *value = ab_live_variable(&session->options.plan, session->experiment.arm_count);

    trial->command = session->options.argv;
    trial->arms = memory_allocate(1, sizeof *trial->arms);
    trial->arm_count = 1;
    trial->arms[0] = (struct ab_arm){.name = memory_copy("live"),
                                     .kind = AB_ARM_POLICY,
                                     .role = AB_ROLE_BASELINE,
                                     .policy = session->policy};
    trial->metrics = memory_allocate(1, sizeof *trial->metrics);
    trial->metric_count = 1;
    ab_metric_wall(&trial->metrics[0]);
    session->variable = memory_format("CUDAPOLICY_LIVE=%s", value);
    free(value);
    ab_live_options_add_variable(&session->options, session->variable);
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
    if (session->options.plan.seed == 0) {
        session->options.plan.seed = ab_schedule_seed();
    }
    session->library = library_path_find(session->options.library);
    ready = session->library != NULL && make_folder(session) && write_policy(session, text) &&
            (session->options.export == NULL ||
             output_file_open(&session->export, session->options.export, session->options.force));
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
    for (size_t i = 0; i < results->note_count && !session->options.quiet; i++) {
        const struct results_note *note = &results->notes[i];

        if (strncmp(note->text, "live: ", 6) == 0 && strcmp(note->severity, "info") != 0) {
            command_error("warning: %s (%lld times)", note->text + 6, (long long)note->count);
        }
    }
}

/* An arm that is named in no rule that matched does nothing; better known after the first run. */
static void say_unmatched(const struct session *session, const struct results *results)
{
    for (size_t i = 0; i < results->rule_count && !session->options.quiet; i++) {
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
                ab_live_read(&session->runs[session->run_count], &results, &session->options.plan,
                             session->experiment.arm_count, error, sizeof error);

    if (read) {
        const struct ab_live_run *run = &session->runs[session->run_count++];

        if (first) {
            say_notes(session, &results);
            say_unmatched(session, &results);
        }
        if (run->steps != run->steps_most && !session->options.quiet) {
            command_error("warning: ranks made from %lld to %lld steps: only slices that all of "
                          "them made count",
                          (long long)run->steps, (long long)run->steps_most);
        }
    } else {
        say_notes(session, &results);
        command_error("%s; the reports are in %s",
                      error[0] != '\0' ? error : "the reports of the run cannot be read", reports);
    }
    results_release(&results);
    return read;
}

static bool make_run(struct session *session, uint32_t number)
{
    const struct ab_trial_options options = {
        .library = session->library,
        .folder = session->folder,
        .time_limit = session->options.time_limit,
        .variables = session->options.variables,
        .variable_count = session->options.variable_count,
        .keep_output = session->options.folder != NULL,
        .keep_reports = true,
        .show_output = session->options.show_output,
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

    session->runs = memory_allocate((size_t)session->options.runs, sizeof *session->runs);
    ab_trial_catch_signals();
    for (uint32_t number = 0; going && number < session->options.runs; number++) {
        going = make_run(session, number);
        if (going && !session->options.quiet) {
            const struct ab_live_run *run = &session->runs[session->run_count - 1];

            command_error("run %u of %lld: %lld steps, %zu blocks, %zu rank%s", number + 1,
                          (long long)session->options.runs, (long long)run->steps, run->block_count,
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

    ab_live_compare(comparisons, experiment, session->runs, session->run_count,
                    &session->options.plan);
    if (session->options.json) {
        json_output_print(ab_live_json(comparisons, experiment, session->runs, session->run_count,
                                       &session->options.plan),
                          stdout);
    } else {
        ab_live_print(comparisons, experiment, session->runs, session->run_count,
                      &session->options.plan, session->options.wide, stdout);
    }
    status = ab_live_status(comparisons, experiment);
    if (session->options.export != NULL) {
        output_file_begin(&session->export);
        json_output_print(ab_live_json(comparisons, experiment, session->runs, session->run_count,
                                       &session->options.plan),
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
    if (session->export.stream != NULL) {
        output_file_abandon(&session->export);
    }
    if (session->trial.arm_count == 0) {
        free(session->policy); /* else its arm's */
    }
    if (session->folder != NULL && session->options.folder == NULL && remove_all) {
        nftw(session->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    for (size_t i = 0; i < session->run_count; i++) {
        ab_live_run_release(&session->runs[i]);
    }
    free(session->runs);
    free(session->variable);
    free(session->options.variables);
    session->trial.command = NULL;          /* of argv */
    ab_experiment_release(&session->trial); /* with the policy's path */
    ab_experiment_release(&session->experiment);
    free(session->library);
    free(session->folder);
}

int ab_live_main(const struct command *command, int argc, char **argv)
{
    struct session session = {0};
    bool made = true;
    int status = ab_live_options_parse(&session.options, command, argc, argv);

    if (status == -1) {
        memory_failure_status = COMMAND_RUN_FAILED;
        status = prepare(&session);
    }
    if (status == -1) {
        if (!session.options.quiet) {
            command_error("%zu arms, slices of %" PRIu32 " steps, seed %" PRIu64 ", in %s",
                          session.experiment.arm_count, session.options.plan.slice,
                          session.options.plan.seed, session.folder);
        }
        made = make_runs(&session);
        status = made ? finish(&session) : COMMAND_RUN_FAILED;
    }
    release(&session, made);
    return status;
}
