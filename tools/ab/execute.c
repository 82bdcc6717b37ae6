/* SPDX-License-Identifier: Apache-2.0 */
#include "execute.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arm_copy.h"
#include "command.h"
#include "gpu_state.h"
#include "memory.h"
#include "metric.h"
#include "printable.h"
#include "progress.h"
#include "reach.h"
#include "schedule.h"

enum {
    MEDIAN_RUNS = 3,    /* of the baseline, before its median bounds other runs */
    MESSAGE_LINES = 10, /* of a run's output, in messages */
};
/* Seconds: commands that take less are not hung just because they took three times as long. */
static const double least_time_limit = 10;

struct state {
    struct ab_experiment *experiment;
    const struct ab_execution *execution;
    struct ab_trial_options trial;
    struct progress progress;
    uint32_t *order;
    bool *told; /* by arm: a message about a run that failed */
};

enum step { STEP_GO_ON, STEP_INTERRUPTED, STEP_FAILED };

/* ---- The time limit ---- */

/* From the baseline's runs so far: a factor times their median, or times the longest while they are
 * few. 0: none yet. */
static double time_limit(const struct state *state)
{
    const struct ab_experiment *experiment = state->experiment;
    double *seconds, typical, factor = state->execution->time_limit_factor;
    size_t count = 0;

    if (state->execution->trial.time_limit > 0 || factor <= 0) {
        return state->execution->trial.time_limit;
    }
    seconds = memory_allocate(experiment->run_count, sizeof *seconds);
    for (size_t i = 0; i < experiment->run_count; i++) {
        const struct ab_run *run = &experiment->runs[i];

        if (run->outcome == AB_OK && experiment->arms[run->arm].role <= AB_ROLE_REPEAT) {
            seconds[count++] = run->seconds;
        }
    }
    gsl_sort(seconds, 1, count);
    typical = count == 0             ? 0
              : count >= MEDIAN_RUNS ? gsl_stats_median_from_sorted_data(seconds, 1, count)
                                     : seconds[count - 1];
    free(seconds);
    return count == 0 ? 0 : fmax(typical * factor, least_time_limit);
}

/* ---- Messages ---- */

static void print_lines(const char *path, const char *name)
{
    char *lines = ab_last_lines(path, MESSAGE_LINES);

    if (lines[0] != '\0') {
        fprintf(stderr, "the last lines of its %s (%s):\n", name, path);
        for (char *line = lines, *end; line != NULL && *line != '\0'; line = end) {
            end = strchr(line, '\n');
            if (end != NULL) {
                *end++ = '\0';
            }
            fprintf(stderr, "  %s\n", line);
        }
    } else {
        fprintf(stderr, "its %s is empty\n", name);
    }
    free(lines);
}

static void print_output(const struct state *state, const struct ab_run *run)
{
    static const char *const names[] = {"standard output", "standard error"};
    static const char *const files[] = {"stdout", "stderr"};
    char *folder = ab_trial_folder(state->experiment, &state->trial, run);

    for (int i = 0; i < 2; i++) {
        char *path = memory_format("%s/%s", folder, files[i]);

        print_lines(path, names[i]);
        free(path);
    }
    free(folder);
}

static char *message_of(const struct ab_run *run)
{
    return run->message != NULL ? printable_copy(run->message)
                                : memory_copy(ab_outcome_names[run->outcome]);
}

static void say_why_not_attached(const struct state *state, const struct ab_run *run)
{
    const char *program = state->experiment->command[0];
    char *reason;

    if (run->outcome == AB_NOT_ATTACHED) {
        reason = reach_explain(program, NULL);
        command_error("no kernel launch of '%s' was seen: %s", program, reason);
        free(reason);
    }
}

/* The first failure of an arm is told when it happens: whoever waits for hours wants to know. */
static void tell_failure(struct state *state, const struct ab_run *run)
{
    const struct ab_arm *arm = &state->experiment->arms[run->arm];
    char *message, *folder;

    if (run->outcome == AB_OK || state->told[run->arm] || state->execution->quiet) {
        return;
    }
    state->told[run->arm] = true;
    progress_clear(&state->progress);
    message = message_of(run);
    folder = ab_trial_folder(state->experiment, &state->trial, run);
    command_error("a run of %s failed: %s (its output: %s)", arm->name, message, folder);
    say_why_not_attached(state, run);
    free(message);
    free(folder);
}

/* ---- The first run of the baseline ---- */

static bool is_first_of_baseline(const struct state *state, const struct ab_run *run)
{
    const struct ab_experiment *experiment = state->experiment;

    for (size_t i = 0; i + 1 < experiment->run_count; i++) {
        if (experiment->runs[i].arm == 0) {
            return false;
        }
    }
    return run->arm == 0;
}

/* The first metric that the run lacks, NULL: none. Step times need the preload. */
static const struct ab_metric *lacks(const struct ab_experiment *experiment,
                                     const struct ab_run *run)
{
    bool preloaded = experiment->arms[run->arm].kind != AB_ARM_NONE;

    for (size_t i = 0; i < experiment->metric_count; i++) {
        if (isnan(run->values[i].value) &&
            (preloaded || experiment->metrics[i].source != AB_METRIC_STEP)) {
            return &experiment->metrics[i];
        }
    }
    return NULL;
}

/* Without a baseline that works and is measured there is nothing to compare with. */
static bool first_is_fit(struct state *state, const struct ab_run *run)
{
    const char *name = state->experiment->arms[0].name;
    const struct ab_metric *metric = NULL;
    char *message;

    if (run->outcome == AB_OK || run->outcome == AB_METRIC_MISSING) {
        metric = lacks(state->experiment, run);
    }
    if (run->outcome == AB_OK && metric == NULL && run->values[0].value > 0) {
        return true;
    }
    progress_clear(&state->progress);
    message = message_of(run);
    if (metric != NULL) {
        command_error("the metric '%s' (%s) cannot be read from the first run of the baseline, "
                      "%s: %s",
                      metric->name, metric->definition != NULL ? metric->definition : "", name,
                      message);
    } else if (run->outcome == AB_OK) {
        command_error("the metric '%s' is %g in the first run of the baseline, %s: arms are "
                      "compared by ratios, which need values above 0",
                      state->experiment->metrics[0].name, run->values[0].value, name);
    } else {
        command_error("the first run of the baseline, %s, failed: %s", name, message);
        say_why_not_attached(state, run);
    }
    free(message);
    if (run->message != NULL) { /* else nothing is kept */
        print_output(state, run);
    }
    return false;
}

/* ---- Runs ---- */

/* A policy that was edited meanwhile would be two arms under one name. */
static bool policy_is_unchanged(struct state *state, const struct ab_arm *arm)
{
    const char *path = arm->policy_copy != NULL ? arm->policy_copy : arm->policy;

    if (arm->kind != AB_ARM_POLICY || arm->policy_sha256 == NULL ||
        arm_copy_is(path, arm->policy_sha256)) {
        return true;
    }
    progress_clear(&state->progress);
    command_error("the policy '%s' of %s was changed since the experiment began", path, arm->name);
    return false;
}

static bool reference_is_taken(const struct state *state, size_t since)
{
    for (size_t i = since; i < state->experiment->run_count; i++) {
        const struct ab_run *run = &state->experiment->runs[i];

        if (run->arm == 0 && run->outcome == AB_OK) {
            return true;
        }
    }
    return false;
}

/* One run, made again where it was suspended. */
static enum step make_run(struct state *state, uint32_t block, uint32_t position, uint32_t arm,
                          bool warm_up)
{
    struct ab_experiment *experiment = state->experiment;
    struct ab_run *run;
    bool made;

    if (!policy_is_unchanged(state, &experiment->arms[arm])) {
        return STEP_FAILED;
    }
    for (;;) {
        state->trial.time_limit = time_limit(state);
        run = ab_experiment_add_run(experiment);
        run->block = block;
        run->position = position;
        run->arm = arm;
        run->warm_up = warm_up;
        progress_run(&state->progress, experiment, run);
        made = ab_trial_run(experiment, &state->trial, run);
        if (made && run->outcome != AB_INTERRUPTED) {
            break;
        }
        ab_experiment_drop_run(experiment);
        if (!made || ab_trial_interrupted()) {
            progress_clear(&state->progress);
            return made ? STEP_INTERRUPTED : STEP_FAILED;
        }
        progress_clear(&state->progress);
        command_error("the run was suspended; it is made again");
    }
    if (is_first_of_baseline(state, run) && !first_is_fit(state, run)) {
        return STEP_FAILED;
    }
    progress_made(&state->progress, run);
    tell_failure(state, run);
    state->trial.reference_taken =
        state->trial.reference_taken || (arm == 0 && run->outcome == AB_OK);
    if (state->execution->journal != NULL &&
        !ab_journal_add(experiment, run, state->execution->journal)) {
        return STEP_FAILED;
    }
    return ab_trial_interrupted() ? STEP_INTERRUPTED : STEP_GO_ON;
}

static bool was_made(const struct ab_experiment *experiment, bool warm_up, uint32_t block,
                     uint32_t position)
{
    for (size_t i = 0; i < experiment->run_count; i++) {
        const struct ab_run *run = &experiment->runs[i];

        if (run->warm_up == warm_up && run->block == block && run->position == position) {
            return true;
        }
    }
    return false;
}

/* What is not reached in its first run, with nothing else amiss, is not going to be: hours of such
 * runs would show nothing. */
static bool arms_are_attached(struct state *state)
{
    const struct ab_experiment *experiment = state->experiment;
    bool *seen = memory_allocate(experiment->arm_count, sizeof *seen), attached = true;

    for (size_t i = 0; i < experiment->run_count && !state->execution->allow_unattached; i++) {
        const struct ab_run *run = &experiment->runs[i];

        if (!seen[run->arm] && run->outcome == AB_NOT_ATTACHED) {
            progress_clear(&state->progress);
            command_error("the library did not reach the first run of %s: its policy would not "
                          "be measured (--allow-unattached goes on)",
                          experiment->arms[run->arm].name);
            if (attached) {
                say_why_not_attached(state, run);
            }
            attached = false;
        }
        seen[run->arm] = true;
    }
    free(seen);
    return attached;
}

/* The arms of a block. In the first one that does not count the baseline comes first, so that a
 * command that does not work is told at once, and other runs have a time limit from it. */
static void order_block(const struct state *state, uint32_t block, bool warm_up)
{
    size_t count = state->experiment->arm_count, place = 0;

    ab_schedule_block(state->experiment->plan.seed, block, warm_up, count, state->order);
    if (warm_up && block == 0) {
        while (state->order[place] != 0) {
            place++;
        }
        memmove(state->order + 1, state->order, place * sizeof *state->order);
        state->order[0] = 0;
    }
}

static enum step make_block(struct state *state, uint32_t block, bool warm_up)
{
    struct ab_experiment *experiment = state->experiment;
    enum step step = STEP_GO_ON;
    bool any = false;

    order_block(state, block, warm_up);
    for (uint32_t position = 0; position < experiment->arm_count && step == STEP_GO_ON;
         position++) {
        if (!was_made(experiment, warm_up, block, position)) {
            step = make_run(state, block, position, state->order[position], warm_up);
            any = true;
        }
    }
    if (step == STEP_GO_ON && any) {
        progress_block(&state->progress, experiment, &experiment->runs[experiment->run_count - 1]);
    }
    if (step == STEP_GO_ON && any && !arms_are_attached(state)) {
        step = STEP_FAILED;
    }
    return step;
}

/* Blocks that do not count, and where outputs are compared a run of the baseline to compare with:
 * an experiment that is resumed has no longer what an earlier one printed. */
static enum step warm_up(struct state *state)
{
    const struct ab_experiment *experiment = state->experiment;
    size_t before = experiment->run_count;
    enum step step = STEP_GO_ON;

    for (uint32_t block = 0; block < experiment->plan.warm_up_blocks && step == STEP_GO_ON;
         block++) {
        step = make_block(state, block, true);
    }
    if (step == STEP_GO_ON && state->trial.same_output != NULL &&
        !reference_is_taken(state, before)) {
        step = make_run(state, experiment->plan.warm_up_blocks, 0, 0, true);
        if (step == STEP_GO_ON && !reference_is_taken(state, before)) {
            progress_clear(&state->progress);
            command_error("--same-output: no run of the baseline went well, there is nothing to "
                          "compare with");
            step = STEP_FAILED;
        }
    }
    return step;
}

/* Whether the analysis at a look says that nothing more is to be learned. */
static bool is_decided(struct ab_experiment *experiment)
{
    struct ab_analysis analysis;
    bool done;

    gpu_state_mark_clocks(experiment);
    ab_analyse(experiment, &analysis);
    done = analysis.done;
    ab_analysis_release(&analysis);
    return done;
}

static enum step measure(struct state *state)
{
    const struct ab_plan *plan = &state->experiment->plan;
    enum step step = STEP_GO_ON;
    uint32_t block = 0;

    for (size_t look = 0; look < plan->look_count && step == STEP_GO_ON; look++) {
        for (; block < plan->looks[look] && step == STEP_GO_ON; block++) {
            step = make_block(state, block, false);
        }
        if (step == STEP_GO_ON && look + 1 < plan->look_count && is_decided(state->experiment)) {
            break;
        }
    }
    return step;
}

/* Of an experiment that was continued after its end. */
static bool nothing_is_missing(struct ab_experiment *experiment)
{
    const struct ab_plan *plan = &experiment->plan;
    uint32_t block = 0;

    for (size_t look = 0; look < plan->look_count; look++) {
        for (; block < plan->looks[look]; block++) {
            for (uint32_t position = 0; position < experiment->arm_count; position++) {
                if (!was_made(experiment, false, block, position)) {
                    return false;
                }
            }
        }
        if (is_decided(experiment)) {
            break;
        }
    }
    return true;
}

bool ab_execute(struct ab_experiment *experiment, const struct ab_execution *execution)
{
    struct state state = {
        .experiment = experiment,
        .execution = execution,
        .trial = execution->trial,
        .order = memory_allocate(experiment->arm_count, sizeof *state.order),
        .told = memory_allocate(experiment->arm_count, sizeof *state.told),
    };
    enum step step = STEP_FAILED;

    experiment->interrupted = false;
    progress_start(&state.progress, execution->label != NULL ? execution->label : "",
                   execution->quiet);
    if (nothing_is_missing(experiment)) {
        step = STEP_GO_ON;
    } else if (ab_trial_make_folders(&state.trial)) {
        step = arms_are_attached(&state) ? warm_up(&state) : STEP_FAILED;
        if (step == STEP_GO_ON) {
            step = measure(&state);
        }
    }
    progress_clear(&state.progress);
    /* For the analysis that follows: what it says depends on all runs. */
    gpu_state_mark_clocks(experiment);
    experiment->interrupted = step == STEP_INTERRUPTED;
    free(state.order);
    free(state.told);
    return step != STEP_FAILED;
}
