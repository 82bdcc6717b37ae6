/* SPDX-License-Identifier: Apache-2.0 */

/* cudapolicy tune: which settings of a policy help, and do they really? */

#include "command.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_state.h"
#include "json_output.h"
#include "library_path.h"
#include "memory.h"
#include "output_file.h"
#include "policy/policy.h"
#include "schedule.h"
#include "search.h"
#include "space.h"
#include "suggest_rules.h"
#include "tune_option.h"
#include "tune_print.h"
#include "varied.h"
#include "winner.h"

static int tune_main(const struct command *command, int argc, char **argv);

const struct command command_tune = {
    .name = "tune",
    .summary = "find settings of a policy that help a program, and confirm them",
    .usage = "-p POLICY [OPTION]... -- COMMAND [ARGUMENT]...\n"
             "       cudapolicy tune --suggest RECORD [-o FILE] [--force]",
    .help =
        "Tries the values that the policy's [tune] section and --vary name, in all combinations:\n"
        "first a search, which compares all candidates with the baseline in few runs; then the\n"
        "best of them against the baseline in new runs, since the best of many always looks\n"
        "better than it is. Only what the new runs confirm is called a winner.\n\n"
        "What is tried:\n"
        "  -p, --policy FILE     the policy to begin with\n"
        "      --vary NAME.KEY=A,B,...\n"
        "                        values for a key of a rule or a partition, beside those of\n"
        "                        [tune]; may be given several times\n"
        "      --each            vary one key at a time instead of all combinations\n"
        "      --limit N         at most so many candidates (64)\n"
        "      --baseline WHAT   base, the policy as it stands (the default, if it has rules);\n"
        "                        none, without the preload; or observe\n"
        "      --search-blocks N runs of each candidate in the search (10)\n"
        "      --halving         drop the worse half of the candidates again and again, so that\n"
        "                        the better ones get most of the runs\n"
        "  -o, --output FILE     write the winning policy there, with its evidence in comments\n"
        "  -f, --force           overwrite FILE if it is there\n"
        "      --json            print the result as JSON\n\n"
        "How runs are made and measured: the options of 'cudapolicy ab --help' for metrics,\n"
        "blocks and looks (of the confirmation), seed, margin, time limits, checks, environment\n"
        "and folder. COMMAND may have {arm} in it.\n\n"
        "      --suggest RECORD  run nothing: print a policy with a [tune] section that has the\n"
        "                        settings worth a try for the program of this record (a file of\n"
        "                        'cudapolicy record --json' or 'run --report', or a folder)\n"
        "  -h, --help            print this help\n\n"
        "Exit status: 0 when a winner was confirmed, 1 when nothing beats the baseline (or there\n"
        "is nothing to suggest), 2 when there were too few runs to say, 3 when the baseline or "
        "all\n"
        "candidates are broken, 64 when the command line is wrong, 125 when something else is.\n\n"
        "Examples:\n"
        "  cudapolicy record --json -o app.json -- ./app\n"
        "  cudapolicy tune --suggest app.json -o try.ini\n"
        "  cudapolicy tune --each -p try.ini -o best.ini -- ./app\n"
        "  cudapolicy tune -p p.ini --vary nccl.mem_sync_domain=default,remote \\\n"
        "      --metric 'step[ms]=step: ([0-9.]+) ms' -- mpirun -n 2 ./app\n",
    .main = tune_main,
};

/* Things of which somebody may want to see what they left. */
static bool any_failed(const struct ab_experiment *experiment)
{
    for (size_t i = 0; i < experiment->run_count; i++) {
        if (experiment->runs[i].outcome != AB_OK) {
            return true;
        }
    }
    return false;
}

/* What one search needs from its beginning to its end. */
struct tune {
    const struct tune_options *options;
    char *text; /* of the base policy */
    size_t length;
    struct policy *base;
    struct varied varied;
    struct space space;
    char *folder;
    bool folder_is_ours;
    char **files; /* of the candidates */
    char *library;
    struct gpu_state *gpu;
    bool keep_folder;
    struct output_file output;
};

/* ---- the base policy ------------------------------------------------------------------------ */

static bool read_text(struct tune *tune, const char *path)
{
    FILE *file = fopen(path, "re");
    size_t capacity = 0;

    if (file == NULL) {
        command_error("cannot read '%s': %s", path, strerror(errno));
        return false;
    }
    do {
        tune->text = memory_grow(tune->text, tune->length, &capacity, 1);
        tune->length += fread(tune->text + tune->length, 1, capacity - tune->length, file);
    } while (!feof(file) && !ferror(file) && tune->length <= POLICY_FILE_LIMIT);
    if (ferror(file)) {
        command_error("cannot read '%s': %s", path, strerror(errno));
        fclose(file);
        return false;
    }
    fclose(file);
    return true;
}

static bool read_base(struct tune *tune)
{
    const char *path = tune->options->policy;
    struct policy_diagnostics diagnostics;

    if (!read_text(tune, path)) {
        return false;
    }
    policy_diagnostics_init(&diagnostics);
    diagnostics.errors_only = tune->options->ab.quiet;
    tune->base = policy_parse(tune->text, tune->length, path, &diagnostics);
    policy_diagnostics_print(&diagnostics, stderr);
    policy_diagnostics_release(&diagnostics);
    if (tune->base == NULL) {
        command_error("the policy is wrong; nothing was run");
        return false;
    }
    if (tune->base->mode != POLICY_MODE_ENFORCE) {
        command_error("'%s' has mode = observe: no candidate would change anything. Take the line "
                      "out, or say enforce",
                      path);
        return false;
    }
    return true;
}

static bool make_space(struct tune *tune)
{
    const struct tune_options *options = tune->options;
    char error[512];

    if (!varied_read(&tune->varied, tune->base, tune->text, tune->length, options->vary,
                     options->vary_count)) {
        return false;
    }
    if (tune->varied.count == 0) {
        command_error("there is nothing to vary: '%s' has no [tune] section, and there is no "
                      "--vary",
                      options->policy);
        return false;
    }
    if (!space_make(&tune->space, tune->text, tune->length, tune->base, tune->varied.variations,
                    tune->varied.count, options->each, options->limit, error, sizeof error)) {
        command_error("%s", error);
        return false;
    }
    return true;
}

/* ---- files ---------------------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static bool make_folder(struct tune *tune)
{
    const char *given = tune->options->ab.folder, *temporary = getenv("TMPDIR");
    char *made;

    if (given == NULL) {
        tune->folder = memory_format("%s/cudapolicy-tune-XXXXXX",
                                     temporary != NULL && temporary[0] == '/' ? temporary : "/tmp");
        tune->folder_is_ours = mkdtemp(tune->folder) != NULL;
        if (!tune->folder_is_ours) {
            command_error("cannot make the folder '%s': %s", tune->folder, strerror(errno));
        }
        return tune->folder_is_ours;
    }
    if (mkdir(given, 0777) != 0 && errno != EEXIST) {
        command_error("cannot make the folder '%s': %s", given, strerror(errno));
        return false;
    }
    made = realpath(given, NULL);
    if (made == NULL) {
        command_error("cannot use the folder '%s': %s", given, strerror(errno));
        return false;
    }
    tune->folder = made;
    return true;
}

static bool write_candidate(const char *path, const struct space_candidate *candidate)
{
    FILE *file = fopen(path, "wxe");
    bool written =
        file != NULL && fwrite(candidate->text, 1, candidate->length, file) == candidate->length;

    if (file != NULL) {
        written = fclose(file) == 0 && written;
    }
    if (!written) {
        command_error("cannot write '%s': %s", path, strerror(errno));
    }
    return written;
}

static bool write_candidates(struct tune *tune)
{
    char *folder = memory_format("%s/candidates", tune->folder);
    bool written = mkdir(folder, 0777) == 0;

    if (!written) {
        command_error("cannot make the folder '%s': %s%s", folder, strerror(errno),
                      errno == EEXIST ? "; give a folder that no search used yet" : "");
    }
    tune->files = memory_allocate(tune->space.candidate_count, sizeof *tune->files);
    for (size_t i = 0; i < tune->space.candidate_count && written; i++) {
        tune->files[i] = memory_format("%s/%s.ini", folder, tune->space.candidates[i].arm);
        written = write_candidate(tune->files[i], &tune->space.candidates[i]);
    }
    free(folder);
    return written;
}

/* What the confirmation's reports say of GPUs and driver. */
static void read_hardware(const struct tune *tune, const struct search_result *result,
                          struct winner_hardware *hardware)
{
    const struct ab_experiment *experiment = &result->confirmation;
    char *folder = memory_format("%s/confirmation", tune->folder);
    const struct ab_trial_options trial = {.folder = folder};

    *hardware = (struct winner_hardware){0};
    for (size_t i = experiment->run_count; i-- > 0 && hardware->driver == NULL;) {
        char *run = ab_trial_folder(experiment, &trial, &experiment->runs[i]);
        char *reports = memory_format("%s/reports", run);

        winner_release_hardware(hardware);
        winner_read_hardware(hardware, reports);
        free(reports);
        free(run);
    }
    free(folder);
}

static bool write_winner(struct tune *tune, const struct search *search,
                         const struct search_result *result)
{
    struct winner_hardware hardware;

    if (tune->output.stream == NULL) {
        return true;
    }
    if (result->end != SEARCH_CONFIRMED) {
        output_file_abandon(&tune->output);
        return true;
    }
    read_hardware(tune, result, &hardware);
    output_file_begin(&tune->output);
    winner_write(search, result, &hardware, tune->output.stream);
    winner_release_hardware(&hardware);
    return output_file_close(&tune->output);
}

/* ---- the search ----------------------------------------------------------------------------- */

static enum search_baseline baseline_of(const struct tune *tune)
{
    const char *name = tune->options->baseline;

    if (name == NULL) {
        return tune->base->rule_count > 0 ? SEARCH_AGAINST_BASE : SEARCH_AGAINST_NONE;
    }
    return strcmp(name, "none") == 0      ? SEARCH_AGAINST_NONE
           : strcmp(name, "observe") == 0 ? SEARCH_AGAINST_OBSERVE
                                          : SEARCH_AGAINST_BASE;
}

static struct ab_execution execution_of(const struct tune *tune)
{
    const struct ab_options *ab = &tune->options->ab;

    return (struct ab_execution){
        .trial = {.library = tune->library,
                  .folder = tune->folder,
                  .time_limit = ab->time_limit,
                  .hook_time_limit = ab->time_limit,
                  .prepare = ab->prepare,
                  .cleanup = ab->cleanup,
                  .check = ab->check,
                  .step_kernel = ab->step_kernel,
                  .watch_steps = ab->watch_steps,
                  .variables = ab->variables,
                  .variable_count = ab->variable_count,
                  .keep_output = ab->keep_output,
                  .keep_reports = ab->keep_reports || tune->output.stream != NULL,
                  .show_output = ab->show_output,
                  .gpu = tune->gpu},
        .time_limit_factor = ab->no_time_limit ? 0 : 3,
        .allow_unattached = ab->allow_unattached,
        .quiet = ab->quiet,
        .label = "",
    };
}

static int status_of(enum search_end end)
{
    static const int statuses[] = {
        [SEARCH_CONFIRMED] = AB_RESULT_SHOWN,           [SEARCH_NOTHING] = AB_RESULT_NOT_SHOWN,
        [SEARCH_INCONCLUSIVE] = AB_RESULT_INCONCLUSIVE, [SEARCH_BROKEN] = AB_RESULT_BROKEN,
        [SEARCH_FAILED] = COMMAND_RUN_FAILED,
    };

    return statuses[end];
}

static int run_search(struct tune *tune)
{
    const struct ab_options *ab = &tune->options->ab;
    struct ab_execution execution = execution_of(tune);
    struct search search = {.space = &tune->space,
                            .files = tune->files,
                            .baseline = baseline_of(tune),
                            .command = ab->command,
                            .metrics = ab->metrics,
                            .metric_count = ab->metric_count,
                            .execution = &execution,
                            .same_output = ab->same_output,
                            .relative = ab->relative,
                            .absolute = ab->absolute,
                            .keep_journal = ab->folder != NULL,
                            .no_repeat = ab->no_repeat,
                            .blocks = tune->options->blocks,
                            .halving = tune->options->halving,
                            .plan = ab->plan,
                            .quiet = ab->quiet,
                            .wide = ab->wide};
    struct search_result result;
    int status;

    search.with_base = search.baseline != SEARCH_AGAINST_BASE && tune->base->rule_count > 0;
    if (search.plan.seed == 0) {
        search.plan.seed = ab_schedule_seed();
    }
    if (!ab->quiet) {
        tune_print_space(&search, stderr);
    }
    search_run(&search, &result);
    status = status_of(result.end);
    if (!write_winner(tune, &search, &result)) {
        status = COMMAND_RUN_FAILED;
    }
    if (ab->json) {
        json_output_print(tune_result_json(&search, &result), stdout);
    } else {
        tune_print_result(&search, &result, stdout);
        if (result.end == SEARCH_CONFIRMED && tune->options->output != NULL &&
            status != COMMAND_RUN_FAILED) {
            printf("  written to %s\n", tune->options->output);
        }
    }
    tune->keep_folder = ab->keep_output || ab->keep_reports || any_failed(&result.search) ||
                        any_failed(&result.confirmation);
    search_release(&result);
    return status;
}

/* Step time is counted by the library. */
static bool metric_fits(const struct tune *tune)
{
    if (tune->options->ab.metrics[0].source != AB_METRIC_STEP ||
        baseline_of(tune) != SEARCH_AGAINST_NONE) {
        return true;
    }
    command_error("step time is counted by the library, which the baseline 'none' is without: give "
                  "--baseline observe, or another --primary");
    return false;
}

static int tune_run(struct tune *tune)
{
    const struct tune_options *options = tune->options;
    char reason[256];
    int status = COMMAND_RUN_FAILED;

    tune->library = library_path_find(options->ab.library);
    if (tune->library == NULL || !metric_fits(tune)) {
        return COMMAND_RUN_FAILED;
    }
    if (options->output != NULL &&
        !output_file_open(&tune->output, options->output, options->ab.force)) {
        return COMMAND_RUN_FAILED;
    }
    if (make_folder(tune) && write_candidates(tune)) {
        tune->gpu = gpu_state_open(reason, sizeof reason);
        status = run_search(tune);
        if (tune->gpu != NULL) {
            gpu_state_close(tune->gpu);
        }
    } else if (tune->output.stream != NULL) {
        output_file_abandon(&tune->output);
    }
    if (tune->folder_is_ours && tune->keep_folder) {
        command_error("the runs are in %s", tune->folder);
    } else if (tune->folder_is_ours) {
        nftw(tune->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    }
    return status;
}

static void tune_release(struct tune *tune)
{
    for (size_t i = 0; tune->files != NULL && i < tune->space.candidate_count; i++) {
        free(tune->files[i]);
    }
    free(tune->files);
    space_release(&tune->space);
    varied_release(&tune->varied);
    policy_free(tune->base);
    free(tune->text);
    free(tune->folder);
    free(tune->library);
}

/* ---- suggestions ---------------------------------------------------------------------------- */

static int suggest(const struct tune_options *options)
{
    struct output_file output = {.stream = stdout};
    struct results results = {0};
    int64_t processes = 0;
    char *reason = NULL;
    size_t count = 0;
    bool loaded = suggest_rules_load(&results, options->suggest, &processes);
    bool written = true;

    if (loaded && options->output != NULL &&
        !output_file_open(&output, options->output, options->ab.force)) {
        loaded = false;
    }
    if (loaded) {
        char *text = NULL;
        size_t length;
        FILE *stream = open_memstream(&text, &length);

        count = suggest_rules(&results, processes, stream, &reason);
        fclose(stream);
        if (options->output != NULL && count == 0) {
            output_file_abandon(&output);
        } else {
            output_file_begin(&output);
            fwrite(text, 1, length, output.stream);
            written = options->output == NULL || output_file_close(&output);
        }
        if (count == 0) {
            command_error("nothing to suggest: %s", reason);
        }
        free(text);
    }
    free(reason);
    results_release(&results);
    if (!loaded || !written) {
        return COMMAND_RUN_FAILED;
    }
    return command_finish(count > 0 ? COMMAND_SUCCESS : COMMAND_FAILURE);
}

static int tune_main(const struct command *command, int argc, char **argv)
{
    struct tune_options options;
    struct tune tune = {.options = &options};
    int status;

    command_hold_descriptors();
    status = tune_options_parse(command, argc, argv, &options);

    if (status == -1) {
        memory_failure_status = COMMAND_RUN_FAILED;
        if (options.suggest != NULL) {
            status = suggest(&options);
        } else if (read_base(&tune) && make_space(&tune)) {
            status = command_finish(tune_run(&tune));
        } else {
            status = COMMAND_RUN_FAILED;
        }
        tune_release(&tune);
    }
    tune_options_release(&options);
    return status;
}
