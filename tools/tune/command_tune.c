/* SPDX-License-Identifier: Apache-2.0 */

/* cudapolicy tune: which settings of a policy help, and do they really? */

#include "command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export.h"
#include "gpu_state.h"
#include "json_output.h"
#include "library_path.h"
#include "memory.h"
#include "output_file.h"
#include "policy/policy.h"
#include "run_options.h"
#include "schedule.h"
#include "search.h"
#include "space.h"
#include "suggest_rules.h"
#include "tune_export.h"
#include "tune_folder.h"
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
        "Options: what is tried\n"
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
        "      --live[=WHEN]     search with candidates that alternate by step inside each run, "
        "as\n"
        "                        'ab --live' does: yes; no; or auto, the default: where step time\n"
        "                        decides and all settings can alternate\n"
        "      --live-runs N     runs of COMMAND for each 15 candidates, live (5)\n"
        "      --slice N, --drop N, --warm-up-steps N\n"
        "                        live: steps of a slice (20), first ones of it that do not count\n"
        "                        (5), and steps before the first slice (40)\n"
        "  -o, --output FILE     write the winning policy there, with its evidence in comments\n"
        "  -f, --force           overwrite FILE if it is there\n"
        "      --json            print the result as JSON\n\n"
        "How runs are made and measured: the options of 'cudapolicy ab --help' for metrics,\n"
        "blocks and looks (of the confirmation), seed, margin, time limits, checks, environment,\n"
        "folder, --resume and --export. COMMAND may have {arm} in it.\n\n"
        "      --suggest RECORD  run nothing: print a policy with a [tune] section that has the\n"
        "                        settings worth a try for the program of this record (a file of\n"
        "                        'cudapolicy record --json' or 'run --report', or a folder)\n"
        "  -h, --help            print this help\n\n"
        "Exit status: 0 when a winner was confirmed, 1 when nothing beats the baseline (or there\n"
        "is nothing to suggest), 2 when there were too few runs to say, 3 when all candidates or\n"
        "the favourite are broken, 64 when the command line is wrong, 125 when the search could\n"
        "not be made: the baseline does not work, a policy is wrong, a file cannot be written.\n\n"
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
    struct tune_folder folder;
    char *library;
    struct gpu_state *gpu;
    char *gpus; /* as it describes them */
    bool keep_folder, can_go_on;
    struct output_file output;
    struct output_file *exports;
    size_t exports_open;
};

/* ---- the base policy ------------------------------------------------------------------------ */

static bool read_text(const char *path, char **text, size_t *length)
{
    FILE *file = fopen(path, "re");
    size_t capacity = 0;

    if (file == NULL) {
        command_error("cannot read '%s': %s", path, strerror(errno));
        return false;
    }
    do {
        *text = memory_grow(*text, *length, &capacity, 1);
        *length += fread(*text + *length, 1, capacity - *length, file);
    } while (!feof(file) && !ferror(file) && *length <= POLICY_FILE_LIMIT);
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

    if (!read_text(path, &tune->text, &tune->length)) {
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

static char *hexadecimal(const struct policy *policy)
{
    char *text = memory_allocate(2 * sizeof policy->sha256 + 1, 1);

    for (size_t i = 0; i < sizeof policy->sha256; i++) {
        snprintf(text + 2 * i, 3, "%02x", policy->sha256[i]);
    }
    return text;
}

/* Claimed before anything runs: a mistyped name must not cost hours. */
static bool open_exports(struct tune *tune)
{
    const struct ab_options *ab = &tune->options->ab;

    tune->exports = memory_allocate(ab->export_count, sizeof *tune->exports);
    for (size_t i = 0; i < ab->export_count; i++) {
        if (!output_file_open(&tune->exports[i], ab->exports[i], ab->force)) {
            return false;
        }
        tune->exports_open++;
    }
    return true;
}

static bool write_exports(struct tune *tune, const struct search *search,
                          const struct search_result *result)
{
    bool written = true;

    for (size_t i = 0; i < tune->exports_open; i++) {
        struct output_file *file = &tune->exports[i];
        enum ab_format format;

        ab_format_of(file->path, &format);
        if (!tune_export_has(result, format)) {
            command_error("'%s' is not written: no runs were made that it could show", file->path);
            output_file_abandon(file);
            continue;
        }
        output_file_begin(file);
        tune_export(search, result, format, file->stream);
        written = output_file_close(file) && written;
    }
    tune->exports_open = 0;
    return written;
}

/* Of files that are claimed, and not to be written. */
static void abandon_files(struct tune *tune)
{
    if (tune->output.stream != NULL) {
        output_file_abandon(&tune->output);
    }
    for (size_t i = 0; i < tune->exports_open; i++) {
        output_file_abandon(&tune->exports[i]);
    }
    tune->exports_open = 0;
}

/* Whether the policy's file is what it was; else what is to be said. What was run does not depend
 * on it, but whoever reads the result next to the file would think so. */
static char *how_policy_changed(const struct tune *tune)
{
    char *text = NULL, *change = NULL;
    size_t length = 0;
    const char *path = tune->options->policy;

    if (access(path, F_OK) != 0) {
        change = memory_format("'%s' is no longer there", path);
    } else if (!read_text(path, &text, &length)) {
        change = memory_format("'%s' cannot be read any more", path);
    } else if (length != tune->length || memcmp(text, tune->text, length) != 0) {
        change = memory_format("'%s' was changed meanwhile", path);
    }
    free(text);
    return change;
}

/* What the confirmation's reports say of GPUs and driver. */
static void read_hardware(const struct tune *tune, const struct search_result *result,
                          struct winner_hardware *hardware)
{
    const struct ab_experiment *experiment = &result->confirmation;
    char *folder = memory_format("%s/confirmation", tune->folder.path);
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
                  .folder = tune->folder.path,
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
        [SEARCH_NO_BASELINE] = COMMAND_RUN_FAILED,      [SEARCH_FAILED] = COMMAND_RUN_FAILED,
    };

    return statuses[end];
}

/* The step's metric says how the times of ranks become one, live too. */
static struct ab_live_plan live_plan_of(const struct tune_options *options)
{
    struct ab_live_plan plan = options->live_plan;

    plan.step_kernel = options->ab.step_kernel;
    plan.across = AB_ACROSS_MAX;
    for (size_t i = 0; i < options->ab.metric_count; i++) {
        if (options->ab.metrics[i].source == AB_METRIC_STEP) {
            plan.across = options->ab.metrics[i].across;
        }
    }
    return plan;
}

static void fill_search(const struct tune *tune, const struct ab_execution *execution,
                        const char *sha256, struct search *search)
{
    const struct ab_options *ab = &tune->options->ab;

    *search = (struct search){.policy = tune->options->policy,
                              .policy_sha256 = sha256,
                              .space = &tune->space,
                              .files = tune->folder.files,
                              .baseline = baseline_of(tune),
                              .command = ab->command,
                              .metrics = ab->metrics,
                              .metric_count = ab->metric_count,
                              .execution = execution,
                              .same_output = ab->same_output,
                              .relative = ab->relative,
                              .absolute = ab->absolute,
                              .gpus = tune->gpus,
                              .options = run_options_json(ab, tune->library),
                              .resume = ab->resume != NULL,
                              .live = tune->options->live,
                              .live_runs = tune->options->live_runs,
                              .live_plan = live_plan_of(tune->options),
                              .no_repeat = ab->no_repeat,
                              .blocks = tune->options->blocks,
                              .halving = tune->options->halving,
                              .plan = ab->plan,
                              .quiet = ab->quiet,
                              .wide = ab->wide};
    search->with_base = search->baseline != SEARCH_AGAINST_BASE && tune->base->rule_count > 0;
    if (search->plan.seed == 0 && !search->resume) {
        search->plan.seed = ab_schedule_seed();
    }
}

static void print_result(const struct tune *tune, const struct search *search,
                         const struct search_result *result, bool written)
{
    const struct tune_options *options = tune->options;

    if (options->ab.json) {
        json_output_print(tune_result_json(search, result), stdout);
        return;
    }
    tune_print_result(search, result, stdout);
    if (result->end == SEARCH_CONFIRMED && options->output != NULL && written) {
        printf("  written to %s\n", options->output);
    }
}

static int finish_search(struct tune *tune, const struct search *search,
                         struct search_result *result)
{
    const struct ab_options *ab = &tune->options->ab;
    int status = status_of(result->end);
    bool written;

    result->policy_changed = how_policy_changed(tune);
    written = write_winner(tune, search, result);
    if (!write_exports(tune, search, result) || !written) {
        status = COMMAND_RUN_FAILED;
    }
    print_result(tune, search, result, written);
    tune->can_go_on =
        result->interrupted || (result->confirmed && result->confirmation.interrupted);
    tune->keep_folder = ab->keep_output || ab->keep_reports || any_failed(&result->search) ||
                        any_failed(&result->confirmation) || tune->can_go_on;
    return status;
}

static int run_search(struct tune *tune)
{
    struct ab_execution execution = execution_of(tune);
    struct search search;
    struct search_result result;
    char *sha256 = hexadecimal(tune->base);
    int status = COMMAND_RUN_FAILED;

    fill_search(tune, &execution, sha256, &search);
    if (tune_folder_plan(&tune->folder, &search)) {
        if (!search.quiet) {
            tune_print_space(&search, stderr);
        }
        search_run(&search, &result);
        status = finish_search(tune, &search, &result);
        search_release(&result);
    }
    json_decref(search.options);
    free(sha256);
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

static void leave_folder(const struct tune *tune)
{
    if (tune->can_go_on) {
        command_error("--resume %s goes on with this search", tune->folder.path);
    } else if (tune->folder.ours && tune->keep_folder) {
        command_error("the runs are in %s", tune->folder.path);
    } else if (tune->folder.ours) {
        tune_folder_remove(&tune->folder);
    }
}

static int tune_run(struct tune *tune)
{
    const struct tune_options *options = tune->options;
    const bool resume = options->ab.resume != NULL;
    char reason[256];
    int status = COMMAND_RUN_FAILED;

    tune->library = library_path_find(options->ab.library);
    if (tune->library == NULL || !metric_fits(tune) || !open_exports(tune) ||
        (options->output != NULL &&
         !output_file_open(&tune->output, options->output, options->ab.force))) {
        abandon_files(tune);
        return COMMAND_RUN_FAILED;
    }
    if (tune_folder_make(&tune->folder, resume ? options->ab.resume : options->ab.folder, resume) &&
        tune_folder_fill(&tune->folder, tune->text, tune->length, &tune->space, resume)) {
        tune->gpu = gpu_state_open(reason, sizeof reason);
        tune->gpus = tune->gpu != NULL ? gpu_state_describe(tune->gpu) : NULL;
        status = run_search(tune);
        if (tune->gpu != NULL) {
            gpu_state_close(tune->gpu);
        }
    }
    abandon_files(tune);
    leave_folder(tune);
    return status;
}

static void tune_release(struct tune *tune)
{
    tune_folder_release(&tune->folder);
    space_release(&tune->space);
    varied_release(&tune->varied);
    policy_free(tune->base);
    free(tune->text);
    free(tune->library);
    free(tune->gpus);
    free(tune->exports);
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
            status = suggest_command(&options);
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
