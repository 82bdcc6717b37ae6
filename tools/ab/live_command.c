/* SPDX-License-Identifier: Apache-2.0 */

/* ab --live: the command. */

#include "live_session.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arm.h"
#include "export.h"
#include "gpu_state.h"
#include "json_output.h"
#include "library_path.h"
#include "live_view.h"
#include "memory.h"
#include "metric.h"
#include "print.h"
#include "run_options.h"

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
static int add_arms(struct live_session *session)
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

static bool make_folder(struct live_session *session)
{
    const char *variable = getenv("TMPDIR"), *resume = session->options.resume;
    const char *given = resume != NULL ? resume : session->options.folder;
    char *path = given != NULL
                     ? memory_copy(given)
                     : memory_format("%s/cudapolicy-ab-XXXXXX",
                                     variable != NULL && variable[0] == '/' ? variable : "/tmp");
    bool made = true;

    if (given == NULL) {
        made = session->folder_is_ours = mkdtemp(path) != NULL;
    } else if (resume == NULL) {
        made = mkdir(path, 0777) == 0 || errno == EEXIST;
    }
    session->folder = made ? realpath(path, NULL) : NULL;
    if (session->folder == NULL) {
        command_error("cannot %s the folder '%s': %s", resume != NULL ? "find" : "make", path,
                      strerror(errno));
    }
    free(path);
    return session->folder != NULL;
}

static bool write_policy(const struct live_session *session, const char *text)
{
    FILE *file = fopen(session->policy, "we");
    bool written = file != NULL && fputs(text, file) >= 0;

    written = file != NULL && fclose(file) == 0 && written;
    if (!written) {
        command_error("cannot write '%s': %s", session->policy, strerror(errno));
    }
    return written;
}

static void fill_experiment(struct live_session *session)
{
    struct ab_experiment *experiment = &session->experiment;
    const struct ab_live_options *options = &session->options;

    ab_experiment_begin(experiment, options->argv);
    experiment->plan = (struct ab_plan){.seed = options->plan.seed,
                                        .look_count = 1,
                                        .looks = {(uint32_t)options->runs},
                                        .claim = options->claim,
                                        .alpha = options->plan.alpha,
                                        .margin = options->plan.margin};
    session->design = (struct ab_live_design){.slice = options->plan.slice,
                                              .drop = options->plan.drop,
                                              .warm_up = options->plan.warm_up,
                                              .runs = (uint32_t)options->runs,
                                              .step_kernel = options->plan.step_kernel};
    experiment->live = &session->design;
    experiment->metrics = memory_allocate(1, sizeof *experiment->metrics);
    experiment->metric_count = 1;
    if (options->plan.metric != NULL) {
        experiment->metrics[0] = ab_metric_copy(options->plan.metric);
    } else {
        ab_metric_step(&experiment->metrics[0], options->plan.step_kernel);
    }
    experiment->metrics[0].primary = true;
    experiment->metrics[0].across = options->plan.across;
}

/* What is run: the policy that has the rules of all arms, and the baseline alone. */
static void fill_trial(struct live_session *session)
{
    const struct ab_arm *baseline = &session->experiment.arms[0];
    struct ab_experiment *trial = &session->trial;

    trial->command = session->options.argv;
    trial->arms = memory_allocate(LIVE_TRIAL_COUNT, sizeof *trial->arms);
    trial->arm_count = LIVE_TRIAL_COUNT;
    trial->arms[LIVE_TRIAL_BASELINE] = (struct ab_arm){
        .name = memory_copy(strcmp(baseline->name, "live") == 0 ? "baseline" : baseline->name),
        .kind = baseline->kind,
        .policy = baseline->policy != NULL ? memory_copy(baseline->policy) : NULL};
    trial->arms[LIVE_TRIAL_LIVE] = (struct ab_arm){.name = memory_copy("live"),
                                                   .kind = AB_ARM_POLICY,
                                                   .role = AB_ROLE_CANDIDATE,
                                                   .policy = memory_copy(session->policy)};
    trial->metrics = memory_allocate(1, sizeof *trial->metrics);
    trial->metric_count = 1;
    ab_metric_wall(&trial->metrics[0]);
}

/* After the seed is known. */
static void fill_running(struct live_session *session)
{
    struct ab_live_options *options = &session->options;
    char *value = ab_live_variable(&options->plan, session->experiment.arm_count);

    session->variable = memory_format("CUDAPOLICY_LIVE=%s", value);
    free(value);
    ab_live_options_add_variable(options, session->variable);
    session->running.library = session->library;
    session->running.folder = session->folder;
    session->running.hook_time_limit = options->time_limit;
    session->running.prepare = options->prepare;
    session->running.cleanup = options->cleanup;
    session->running.check = options->check;
    session->running.variables = options->variables;
    session->running.variable_count = options->variable_count;
    /* What is printed is looked at after the run, too. */
    session->running.keep_output =
        options->keep_output || !session->folder_is_ours || options->plan.metric != NULL;
    session->running.keep_reports = true;
    session->running.show_output = options->show_output;
}

static bool make_same_output(struct live_session *session)
{
    const struct ab_live_options *options = &session->options;
    char error[512] = "";

    if (options->same_output == NULL) {
        return true;
    }
    session->running.same_output = ab_same_output_new(options->same_output, options->relative,
                                                      options->absolute, error, sizeof error);
    if (session->running.same_output == NULL) {
        command_usage_error(options->command, "--same-output: %s", error);
    }
    return session->running.same_output != NULL;
}

static void open_gpus(struct live_session *session)
{
    char error[256] = "";

    session->running.gpu = gpu_state_open(error, sizeof error);
    if (session->running.gpu != NULL) {
        session->experiment.gpus = gpu_state_describe(session->running.gpu);
    }
}

/* Claimed before anything runs: a mistyped name must not cost hours. */
static bool open_exports(struct live_session *session)
{
    const struct ab_live_options *options = &session->options;

    session->exports = memory_allocate(options->export_count + 1, sizeof *session->exports);
    for (size_t i = 0; i < options->export_count; i++) {
        if (!output_file_open(&session->exports[i], options->exports[i], options->force)) {
            return false;
        }
        session->exports_open++;
    }
    return true;
}

/* With which the runs are made, for the journal. */
static json_t *options_json(const struct live_session *session)
{
    const struct ab_live_options *given = &session->options;
    const struct ab_options options = {.prepare = given->prepare,
                                       .cleanup = given->cleanup,
                                       .check = given->check,
                                       .same_output = given->same_output,
                                       .relative = given->relative,
                                       .absolute = given->absolute,
                                       .time_limit = given->time_limit,
                                       .no_time_limit = given->no_time_limit,
                                       .variables = given->variables,
                                       .variable_count = given->variable_count};

    return run_options_json(&options, session->library);
}

/* The folder with what the runs need; false with a message. */
static bool make_place(struct live_session *session, const char *policy)
{
    session->library = library_path_find(session->options.library);
    if (session->library == NULL || !make_folder(session)) {
        return false;
    }
    session->policy = memory_format("%s/live.ini", session->folder);
    session->runs = memory_allocate((size_t)session->options.runs, sizeof *session->runs);
    session->places = memory_allocate((size_t)session->options.runs, sizeof *session->places);
    fill_trial(session);
    open_gpus(session); /* the journal's first line names them */
    session->experiment.options = options_json(session);
    return open_exports(session) && live_begin_journal(session) && write_policy(session, policy);
}

/* -1: the runs can begin. */
static int prepare(struct live_session *session)
{
    char error[1024] = "";
    char *text;
    int status = add_arms(session);
    bool ready;

    if (status != -1) {
        return status;
    }
    if (!make_same_output(session)) {
        return COMMAND_USAGE;
    }
    text = ab_live_policy(&session->experiment, error, sizeof error);
    if (text == NULL) {
        command_error("%s", error);
        return COMMAND_RUN_FAILED;
    }
    fill_experiment(session);
    ready = make_place(session, text);
    free(text);
    if (!ready) {
        return COMMAND_RUN_FAILED;
    }
    session->options.plan.seed = session->experiment.plan.seed;
    fill_running(session);
    return -1;
}

static void print_start(const struct live_session *session)
{
    const struct ab_experiment *experiment = &session->experiment;

    if (session->options.quiet) {
        return;
    }
    if (experiment->gpus != NULL) {
        fprintf(stderr, "%s\n", experiment->gpus);
    }
    command_error("%zu arms, slices of %" PRIu32 " steps, %lld run%s, seed %" PRIu64 ", in %s",
                  experiment->arm_count, session->design.slice, (long long)session->options.runs,
                  session->options.runs == 1 ? "" : "s", experiment->plan.seed, session->folder);
    if (session->options.resume != NULL) {
        command_error("%zu runs are there already", session->run_count);
    }
}

/* ---- Afterwards --------------------------------------------------------------------------------
 */

/* What a GPU did is judged by all runs together. */
static void take_gpus(struct live_session *session)
{
    gpu_state_mark_clocks(&session->trial);
    for (size_t i = 0; i < session->run_count; i++) {
        session->runs[i].gpu = session->trial.runs[session->places[i]].gpu;
    }
}

static json_t *as_json(const struct live_session *session,
                       const struct ab_live_comparison *comparisons)
{
    return ab_live_json(comparisons, &session->experiment, session->runs, session->run_count,
                        &session->options.plan);
}

static void print_result(const struct live_session *session,
                         const struct ab_live_comparison *comparisons)
{
    const struct ab_live_options *options = &session->options;

    if (options->json) {
        json_output_print(as_json(session, comparisons), stdout);
    } else if (options->quiet) {
        struct ab_live_view view;
        char *answer;

        ab_live_view_make(&view, comparisons, &session->experiment, session->runs,
                          session->run_count, &options->plan, AB_LIVE_SHOWN);
        answer = ab_answer(&view.experiment, &view.analysis);
        puts(answer);
        free(answer);
        ab_live_view_release(&view);
    } else {
        ab_live_print(comparisons, &session->experiment, session->runs, session->run_count,
                      &options->plan, options->wide, stdout);
    }
}

static void export(const struct live_session *session, const struct ab_live_comparison *comparisons,
                   enum ab_format format, FILE *stream)
{
    /* A table has every slice; on a page they have to be told apart. */
    const size_t most = format == AB_FORMAT_HTML ? AB_LIVE_SHOWN : 0;
    struct ab_live_view view;

    if (format == AB_FORMAT_JSON) {
        json_output_print(as_json(session, comparisons), stream);
        return;
    }
    ab_live_view_make(&view, comparisons, &session->experiment, session->runs, session->run_count,
                      &session->options.plan, most);
    ab_export(&view.experiment, &view.analysis, format, stream);
    ab_live_view_release(&view);
}

static bool write_exports(struct live_session *session,
                          const struct ab_live_comparison *comparisons)
{
    bool written = true;

    for (size_t i = 0; i < session->exports_open; i++) {
        struct output_file *file = &session->exports[i];
        enum ab_format format;

        ab_format_of(file->path, &format);
        output_file_begin(file);
        export(session, comparisons, format, file->stream);
        written = output_file_close(file) && written;
    }
    session->exports_open = 0;
    return written;
}

/* The status to end with. */
static int conclude(struct live_session *session)
{
    struct ab_live_comparison *comparisons;
    int status;

    if (session->run_count == 0) {
        command_error("ended before the first run was over");
        return AB_RESULT_INCONCLUSIVE;
    }
    comparisons = memory_allocate(session->experiment.arm_count, sizeof *comparisons);
    take_gpus(session);
    ab_live_compare(comparisons, &session->experiment, session->runs, session->run_count,
                    &session->options.plan);
    print_result(session, comparisons);
    status = ab_live_status(comparisons, &session->experiment);
    if (!write_exports(session, comparisons)) {
        status = COMMAND_RUN_FAILED;
    }
    free(comparisons);
    return command_finish(status) == status ? status : COMMAND_RUN_FAILED;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    remove(path);
    return 0;
}

/* A folder that the user named stays, and one in which there is something to look at. */
static void leave_folder(const struct live_session *session, bool made)
{
    const struct ab_live_options *options = &session->options;

    if (!session->folder_is_ours) {
        return;
    }
    if (made && !session->experiment.interrupted && !options->keep_output &&
        !options->keep_reports) {
        nftw(session->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    } else if (made && session->experiment.interrupted) {
        command_error("--resume %s goes on with this experiment", session->folder);
    } else {
        command_error("the runs are in %s", session->folder);
    }
}

static void release(struct live_session *session)
{
    for (size_t i = 0; i < session->exports_open; i++) {
        output_file_abandon(&session->exports[i]);
    }
    if (session->running.gpu != NULL) {
        gpu_state_close(session->running.gpu);
    }
    if (session->running.same_output != NULL) {
        ab_same_output_free(session->running.same_output);
    }
    for (size_t i = 0; i < session->run_count; i++) {
        ab_live_run_release(&session->runs[i]);
    }
    free(session->runs);
    free(session->places);
    free(session->exports);
    free(session->variable);
    session->trial.command = NULL; /* of argv */
    ab_experiment_release(&session->trial);
    ab_experiment_release(&session->experiment);
    free(session->library);
    free(session->folder);
    free(session->policy);
    free(session->journal);
    ab_live_options_release(&session->options);
}

int ab_live_main(const struct command *command, int argc, char **argv)
{
    struct live_session session = {0};
    enum live_end end = LIVE_FAILED;
    int status = ab_live_options_parse(&session.options, command, argc, argv);
    bool begun = false;

    if (status == -1) {
        memory_failure_status = COMMAND_RUN_FAILED;
        status = prepare(&session);
        begun = status == -1;
    }
    if (begun) {
        print_start(&session);
        end = live_make_runs(&session);
        status = end == LIVE_MADE     ? conclude(&session)
                 : end == LIVE_BROKEN ? (int)AB_RESULT_BROKEN
                                      : COMMAND_RUN_FAILED;
    }
    leave_folder(&session, !begun || end == LIVE_MADE);
    release(&session);
    return status;
}
