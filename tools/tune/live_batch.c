/* SPDX-License-Identifier: Apache-2.0 */
#include "live_batch.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "execute.h"
#include "memory.h"
#include "metric.h"
#include "printable.h"
#include "results.h"
#include "trial.h"

/* Seconds, of a run after the first: as ab bounds its runs. */
static const double least_time_limit = 10;

/* What a batch needs while it runs. */
struct maker {
    struct live_batch *batch;
    const struct search *search;
    char *folder, *journal, *variable;
    char **variables;
    struct ab_trial_options options;
    size_t number, batches;
};

/* ---- before the first run ------------------------------------------------------------------- */

static bool write_policy(struct maker *maker, char **reason)
{
    struct live_batch *batch = maker->batch;
    char error[1024] = "";
    char *text = ab_live_policy(&batch->experiment, error, sizeof error);
    char *path = memory_format("%s/live.ini", maker->folder);
    FILE *file = text != NULL ? fopen(path, "we") : NULL;
    bool written = file != NULL && fputs(text, file) >= 0;

    written = file != NULL && fclose(file) == 0 && written;
    if (text == NULL) {
        *reason = memory_copy(error);
    } else if (!written) {
        *reason = memory_format("cannot write '%s': %s", path, strerror(errno));
    }
    free(text);
    batch->trial.arms = memory_allocate(1, sizeof *batch->trial.arms);
    batch->trial.arm_count = 1;
    batch->trial.arms[0] = (struct ab_arm){.name = memory_copy("live"),
                                           .kind = AB_ARM_POLICY,
                                           .role = AB_ROLE_BASELINE,
                                           .policy = path};
    return written;
}

/* One arm, whose wall time is not looked at: the reports have the steps. */
static void fill_trial(struct maker *maker)
{
    struct ab_experiment *trial = &maker->batch->trial;

    stage_fill_experiment(maker->search, trial);
    for (size_t i = 0; i < trial->metric_count; i++) {
        ab_metric_release(&trial->metrics[i]);
    }
    trial->metric_count = 1;
    ab_metric_wall(&trial->metrics[0]);
    trial->metrics[0].primary = true;
    trial->plan = maker->batch->experiment.plan;
    trial->plan.look_count = 1;
    trial->plan.looks[0] = maker->search->live_runs;
}

static void fill_options(struct maker *maker)
{
    const struct ab_trial_options *asked = &maker->search->execution->trial;
    char *value = ab_live_variable(&maker->batch->plan, maker->batch->experiment.arm_count);

    maker->variable = memory_format("CUDAPOLICY_LIVE=%s", value);
    free(value);
    maker->variables = memory_allocate(asked->variable_count + 1, sizeof *maker->variables);
    for (size_t i = 0; i < asked->variable_count; i++) {
        maker->variables[i] = asked->variables[i];
    }
    maker->variables[asked->variable_count] = maker->variable;
    maker->options = *asked;
    maker->options.folder = maker->folder;
    maker->options.variables = maker->variables;
    maker->options.variable_count = asked->variable_count + 1;
    maker->options.keep_reports = true;
    maker->options.watch_steps = false;
    /* Of a run as a whole, and so of no candidate. */
    maker->options.check = NULL;
    maker->options.same_output = NULL;
}

/* ---- a run ---------------------------------------------------------------------------------- */

/* The arm of a rule, whose name begins with that of its arm; SIZE_MAX: none. */
static size_t arm_of_rule(const struct ab_experiment *experiment, const char *rule)
{
    const size_t length = strcspn(rule, "/");

    for (size_t i = 0; i < experiment->arm_count && rule[length] == '/'; i++) {
        if (strlen(experiment->arms[i].name) == length &&
            strncmp(experiment->arms[i].name, rule, length) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

static void note_changes(struct live_batch *batch, const struct results *results)
{
    for (size_t i = 0; i < results->rule_count; i++) {
        const struct results_rule *rule = &results->rules[i];
        const size_t arm = arm_of_rule(&batch->experiment, rule->name);

        if (arm != SIZE_MAX && rule->launch_outcomes.applied > 0) {
            batch->changed[arm] = true;
        }
    }
}

static void say_notes(const struct maker *maker, const struct results *results)
{
    for (size_t i = 0; i < results->note_count && !maker->search->quiet; i++) {
        const struct results_note *note = &results->notes[i];

        if (strncmp(note->text, "live: ", 6) == 0 && strcmp(note->severity, "info") != 0) {
            char *text = printable_copy(note->text + 6);

            command_error("warning: %s (%lld times)", text, (long long)note->count);
            free(text);
        }
    }
}

/* The steps of a run that went well. */
static bool read_run(struct maker *maker, const struct ab_run *run, char **reason)
{
    struct live_batch *batch = maker->batch;
    char *folder = ab_trial_folder(&batch->trial, &maker->options, run);
    char *reports = memory_format("%s/reports", folder);
    struct results results = {.keep_documents = true};
    char error[512] = "its reports cannot be read";
    bool read = results_load(&results, reports) &&
                ab_live_read(&batch->runs[batch->run_count], &results, &batch->plan,
                             batch->experiment.arm_count, error, sizeof error);

    if (read) {
        if (batch->run_count == 0) {
            say_notes(maker, &results);
        }
        batch->run_count++;
        note_changes(batch, &results);
        batch->flagged += run->gpu.known && run->gpu.flags != 0;
    } else {
        *reason = memory_copy(error);
    }
    results_release(&results);
    free(reports);
    free(folder);
    return read;
}

/* That a run takes far longer than those before is a hang. */
static double time_limit(const struct maker *maker)
{
    const struct ab_experiment *trial = &maker->batch->trial;
    const double factor = maker->search->execution->time_limit_factor;
    double longest = 0;

    if (maker->search->execution->trial.time_limit > 0 || factor <= 0) {
        return maker->search->execution->trial.time_limit;
    }
    for (size_t i = 0; i < trial->run_count; i++) {
        longest = fmax(longest, trial->runs[i].seconds);
    }
    return longest > 0 ? fmax(factor * longest, least_time_limit) : 0;
}

static void say_progress(const struct maker *maker)
{
    const struct ab_live_run *run = &maker->batch->runs[maker->batch->run_count - 1];

    if (maker->search->quiet) {
        return;
    }
    command_error("search, live: batch %zu of %zu, run %zu of %" PRIu32
                  ": %lld steps, %zu blocks, %zu rank%s",
                  maker->number + 1, maker->batches, maker->batch->run_count,
                  maker->search->live_runs, (long long)run->steps, run->block_count, run->ranks,
                  run->ranks == 1 ? "" : "s");
}

/* Makes the next run, again where it was suspended. */
static bool make_trial(struct maker *maker)
{
    struct ab_experiment *trial = &maker->batch->trial;

    maker->options.time_limit = time_limit(maker);
    for (;;) {
        struct ab_run *run = ab_experiment_add_run(trial);
        bool made;

        run->block = (uint32_t)trial->run_count - 1;
        made = ab_trial_run(trial, &maker->options, run);
        if (!made || run->outcome != AB_INTERRUPTED || ab_trial_interrupted()) {
            return made;
        }
        ab_experiment_drop_run(trial);
        command_error("the run was suspended; it is made again");
    }
}

static bool make_run(struct maker *maker, char **reason)
{
    struct ab_experiment *trial = &maker->batch->trial;
    const bool made = make_trial(maker);
    const struct ab_run *run = &trial->runs[trial->run_count - 1];

    maker->batch->interrupted = ab_trial_interrupted();
    if (!made || run->outcome != AB_OK) {
        if (!maker->batch->interrupted) {
            *reason = made ? memory_format("a run with all of them failed: %s",
                                           run->message != NULL ? run->message
                                                                : ab_outcome_names[run->outcome])
                           : memory_copy("its runs could not be made");
        }
        ab_experiment_drop_run(trial);
        return false;
    }
    if (!read_run(maker, run, reason) || !ab_journal_add(trial, run, maker->journal)) {
        *reason = *reason != NULL ? *reason : memory_copy("its journal cannot be written");
        return false;
    }
    say_progress(maker);
    return !maker->batch->interrupted;
}

/* Those of an earlier search that is continued, whose reports are still there. */
static bool begin_journal(struct maker *maker, char **reason)
{
    struct ab_experiment *trial = &maker->batch->trial;
    bool begun = true;

    if (maker->search->resume && access(maker->journal, F_OK) == 0) {
        begun = ab_journal_resume(trial, maker->journal);
        for (size_t i = 0; i < trial->run_count && begun; i++) {
            begun = read_run(maker, &trial->runs[i], reason);
        }
    } else {
        begun = ab_journal_begin(trial, maker->journal);
    }
    if (!begun && *reason == NULL) {
        *reason = memory_copy("its journal cannot be used");
    }
    return begun;
}

/* ---- the batch ------------------------------------------------------------------------------ */

static bool prepare(struct maker *maker, const struct stage *stage, char **reason)
{
    struct live_batch *batch = maker->batch;

    batch->plan = maker->search->live_plan;
    batch->plan.seed = stage->plan.seed;
    batch->plan.alpha = stage->plan.alpha;
    batch->plan.margin = stage->plan.margin;
    batch->runs = memory_allocate(maker->search->live_runs, sizeof *batch->runs);
    maker->folder = stage_make_folder(maker->search, stage->name);
    if (maker->folder == NULL || !stage_make_experiment(maker->search, stage, &batch->experiment)) {
        *reason = memory_copy("it could not be prepared");
        return false;
    }
    batch->changed = memory_allocate(batch->experiment.arm_count, sizeof *batch->changed);
    maker->journal = memory_format("%s/journal.jsonl", maker->folder);
    fill_trial(maker);
    fill_options(maker);
    if (!ab_trial_make_folders(&maker->options)) {
        *reason = memory_copy("it could not be prepared");
        return false;
    }
    return write_policy(maker, reason) && begin_journal(maker, reason);
}

bool live_batch_run(struct live_batch *batch, const struct search *search,
                    const struct stage *stage, size_t number, size_t batches, char **reason)
{
    struct maker maker = {.batch = batch, .search = search, .number = number, .batches = batches};
    bool going;

    *batch = (struct live_batch){0};
    going = prepare(&maker, stage, reason);
    while (going && batch->run_count < search->live_runs) {
        going = make_run(&maker, reason);
    }
    free(maker.variables);
    free(maker.variable);
    free(maker.journal);
    free(maker.folder);
    return going;
}

void live_batch_release(struct live_batch *batch)
{
    for (size_t i = 0; i < batch->run_count; i++) {
        ab_live_run_release(&batch->runs[i]);
    }
    free(batch->runs);
    free(batch->changed);
    ab_experiment_release(&batch->trial);
    ab_experiment_release(&batch->experiment);
    *batch = (struct live_batch){0};
}
