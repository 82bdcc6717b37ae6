/* SPDX-License-Identifier: Apache-2.0 */

/* The runs of ab --live, one after the other, each in the journal when it is over. */

#include "live_session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "execute.h"
#include "memory.h"
#include "metric.h"
#include "progress.h"
#include "report/report.h"
#include "results.h"
#include "schedule.h"

/* Seconds: commands that take less are not hung just because they took three times as long. */
static const double least_time_limit = 10, time_limit_factor = 3;

/* ---- The journal ---- */

static void keep_run(struct live_session *session, const struct ab_live_run *run, size_t place)
{
    session->runs[session->run_count] = *run;
    session->places[session->run_count++] = place;
}

/* A line of the journal: a run of the trial, and what it showed where it went well. */
static bool read_line(void *context, const json_t *document, char *error, size_t size)
{
    struct live_session *session = context;
    const struct ab_run *run;
    struct ab_live_run live;

    if (!ab_run_from_json(&session->trial, document, error, size)) {
        return false;
    }
    run = &session->trial.runs[session->trial.run_count - 1];
    if (run->arm != LIVE_TRIAL_LIVE) {
        snprintf(error, size, "\"arm\" is not that of a live comparison");
        return false;
    }
    if (run->outcome != AB_OK) {
        session->design.runs_failed++;
        return true;
    }
    if ((int64_t)session->run_count == session->options.runs ||
        !ab_live_run_from_json(&live, json_object_get(document, "live"),
                               session->experiment.arm_count)) {
        snprintf(error, size, "it is no run of this comparison");
        return false;
    }
    keep_run(session, &live, session->trial.run_count - 1);
    return true;
}

bool live_begin_journal(struct live_session *session)
{
    struct ab_experiment *experiment = &session->experiment;

    session->journal = memory_format("%s/journal.jsonl", session->folder);
    if (session->options.resume != NULL) {
        return ab_journal_resume_by(experiment, session->journal, read_line, session);
    }
    if (experiment->plan.seed == 0) {
        experiment->plan.seed = ab_schedule_seed();
    }
    return ab_journal_begin(experiment, session->journal);
}

/* live: NULL where the run showed nothing. */
static bool note_run(const struct live_session *session, const struct ab_run *run,
                     const struct ab_live_run *live)
{
    json_t *document = ab_run_json(&session->trial, run);

    if (live != NULL) {
        json_object_set_new(document, "live",
                            ab_live_run_json(live, session->experiment.arm_count));
    }
    return ab_journal_add_line(document, session->journal);
}

/* ---- What is said of a run ---- */

static void say_notes(const struct live_session *session, const struct results *results)
{
    for (size_t i = 0; i < results->note_count && !session->options.quiet; i++) {
        const struct results_note *note = &results->notes[i];

        if (strncmp(note->text, "live: ", 6) == 0 && strcmp(note->severity, "info") != 0) {
            command_error("warning: %s (%lld times)", note->text + 6, (long long)note->count);
        }
    }
}

/* An arm that is named in no rule that matched does nothing; better known after the first run. */
static void say_unmatched(const struct live_session *session, const struct results *results)
{
    for (size_t i = 0; i < results->rule_count && !session->options.quiet; i++) {
        const struct results_rule *rule = &results->rules[i];

        if (rule->launches.total == 0 && strcmp(rule->section, "kernel") == 0) {
            command_error("warning: [kernel %s] matched no launch", rule->name);
        }
    }
}

static void say_ranks(const struct live_session *session, const struct ab_live_run *run)
{
    if (session->options.quiet) {
        return;
    }
    if (run->steps != run->steps_most) {
        command_error("warning: ranks made from %lld to %lld steps: only slices that all of "
                      "them made count",
                      (long long)run->steps, (long long)run->steps_most);
    }
    if (run->not_entered > 0) {
        command_error("warning: %lld steps do not count: there was no room for them in the "
                      "counters, which hold %d of a process, or less on a full disk",
                      (long long)run->not_entered, (int)REPORT_STEP_LIMIT);
    }
    if (run->shared_rank > 0) {
        command_error("warning: steps of %zu process%s do not count: another process, that made "
                      "more of them at the same time, has the same rank",
                      run->shared_rank, run->shared_rank == 1 ? "" : "es");
    }
    if (run->too_short > 0) {
        command_error("warning: steps of %zu process%s do not count: they are fewer than a block "
                      "has, while others made more at the same time",
                      run->too_short, run->too_short == 1 ? "" : "es");
    }
}

static void say_made(const struct live_session *session, double seconds)
{
    const struct ab_live_run *run = &session->runs[session->run_count - 1];
    const double left = (double)(session->options.runs - (int64_t)session->run_count) * seconds;
    char *duration = progress_duration(left), *parts = NULL;

    if (!session->options.quiet) {
        parts = run->parts > 1
                    ? memory_format(", %zu sequences of steps one after the other", run->parts)
                    : memory_copy("");
        command_error("run %zu of %lld: %lld steps, %zu blocks, %zu rank%s%s%s%s%s",
                      session->run_count, (long long)session->options.runs, (long long)run->steps,
                      run->block_count, run->ranks, run->ranks == 1 ? "" : "s", parts,
                      left > 0 ? "; about " : "", left > 0 ? duration : "",
                      left > 0 ? " left" : "");
    }
    free(parts);
    free(duration);
}

/* ---- Runs ---- */

static double time_limit(const struct live_session *session)
{
    double longest = 0;

    if (session->options.time_limit > 0 || session->options.no_time_limit) {
        return session->options.time_limit;
    }
    for (size_t i = 0; i < session->trial.run_count; i++) {
        const struct ab_run *run = &session->trial.runs[i];

        longest = run->outcome == AB_OK ? fmax(longest, run->seconds) : longest;
    }
    return longest > 0 ? fmax(longest * time_limit_factor, least_time_limit) : 0;
}

/* Runs of the arms that alternate, those that failed too: their numbers name folders. */
static uint32_t next_number(const struct live_session *session)
{
    uint32_t number = 0;

    for (size_t i = 0; i < session->trial.run_count; i++) {
        const struct ab_run *run = &session->trial.runs[i];

        if (run->arm == LIVE_TRIAL_LIVE && run->block >= number) {
            number = run->block + 1;
        }
    }
    return number;
}

/* One run, made again where it was suspended. NULL: none was made, as the user ended it
 * (*interrupted) or after a message. */
static struct ab_run *try_run(struct live_session *session, uint32_t arm, bool *interrupted)
{
    struct ab_trial_options options = session->running;
    const uint32_t number = arm == LIVE_TRIAL_LIVE ? next_number(session) : 0;

    *interrupted = false;
    options.time_limit = time_limit(session);
    /* The last variable is that by which arms alternate. */
    options.variable_count -= arm == LIVE_TRIAL_BASELINE;
    for (;;) {
        struct ab_run *run = ab_experiment_add_run(&session->trial);
        bool made;

        run->arm = arm;
        run->block = number;
        run->warm_up = arm == LIVE_TRIAL_BASELINE;
        made = ab_trial_run(&session->trial, &options, run);
        if (made && run->outcome != AB_INTERRUPTED) {
            return run;
        }
        ab_experiment_drop_run(&session->trial);
        *interrupted = made && ab_trial_interrupted();
        if (!made || *interrupted) {
            return NULL;
        }
        command_error("the run was suspended; it is made again");
    }
}

static enum live_end say_failure(struct live_session *session, const struct ab_run *run,
                                 const char *which)
{
    const bool broken = run->outcome == AB_CHECK_FAILED || run->outcome == AB_OUTPUT_DIFFERS;
    char *folder = ab_trial_folder(&session->trial, &session->running, run);

    if (broken) {
        command_error("%s is broken: %s; its files are in %s%s", which, run->message, folder,
                      run->arm == LIVE_TRIAL_BASELINE
                          ? ""
                          : ". An arm may change results: which one cannot be told where all are "
                            "in one run, ab without --live tells");
    } else {
        command_error("%s failed: %s; what it printed is in %s", which,
                      run->message != NULL ? run->message : ab_outcome_names[run->outcome], folder);
    }
    free(folder);
    return broken ? LIVE_BROKEN : LIVE_FAILED;
}

/* The values of the metric that was asked for. */
static bool read_values(const struct live_session *session, const struct ab_run *run,
                        const char *folder, struct ab_live_run *live, char *error, size_t size)
{
    char *output = memory_format("%s/stdout", folder), *errors = memory_format("%s/stderr", folder);
    const struct ab_run_files files = {.seconds = run->seconds,
                                       .output = output,
                                       .errors = errors,
                                       .folder = ".",
                                       .arm = session->trial.arms[run->arm].name,
                                       .block = run->block,
                                       .position = run->position};
    const bool read = ab_live_read_values(live, &files, &session->options.plan,
                                          session->experiment.arm_count, error, size);

    free(errors);
    free(output);
    return read;
}

static bool read_reports(struct live_session *session, const struct ab_run *run,
                         struct ab_live_run *live)
{
    struct results results = {.keep_documents = true};
    char *folder = ab_trial_folder(&session->trial, &session->running, run);
    char *reports = memory_format("%s/reports", folder), error[512] = "";
    const bool first = session->run_count == 0;
    bool read = results_load(&results, reports) &&
                ab_live_read(live, &results, &session->options.plan, session->experiment.arm_count,
                             error, sizeof error);

    if (read && session->options.plan.metric != NULL &&
        !read_values(session, run, folder, live, error, sizeof error)) {
        ab_live_run_release(live);
        read = false;
    }
    if (read) {
        ab_live_read_rules(live, &results, &session->experiment);
        say_ranks(session, live);
    }
    if (first || !read) {
        say_notes(session, &results);
    }
    if (read && first) {
        say_unmatched(session, &results);
    }
    if (!read) {
        command_error("%s; what the run left is in %s",
                      error[0] != '\0' ? error : "the reports of the run cannot be read", folder);
    }
    results_release(&results);
    free(reports);
    free(folder);
    return read;
}

/* The baseline alone: what it prints or writes is what every run has to. */
static enum live_end make_reference(struct live_session *session, bool *interrupted)
{
    const struct ab_run *run = try_run(session, LIVE_TRIAL_BASELINE, interrupted);

    if (run == NULL) {
        return *interrupted ? LIVE_MADE : LIVE_FAILED;
    }
    if (run->outcome != AB_OK) {
        say_failure(session, run, "the run of the baseline alone");
        return LIVE_FAILED;
    }
    session->running.reference_taken = true;
    if (!session->options.quiet) {
        command_error("a run of the baseline alone was made, with which outputs are compared");
    }
    return LIVE_MADE;
}

static enum live_end make_run(struct live_session *session, bool *interrupted)
{
    struct ab_run *run = try_run(session, LIVE_TRIAL_LIVE, interrupted);
    struct ab_live_run live;
    enum live_end end = LIVE_MADE;
    char *which;

    if (run == NULL) {
        return *interrupted ? LIVE_MADE : LIVE_FAILED;
    }
    which = memory_format("run %u", run->block + 1);
    if (run->outcome != AB_OK) {
        end = say_failure(session, run, which);
        note_run(session, run, NULL);
    } else if (!read_reports(session, run, &live)) {
        end = LIVE_FAILED;
    } else {
        keep_run(session, &live, session->trial.run_count - 1);
        say_made(session, run->seconds);
        end = note_run(session, run, &live) ? LIVE_MADE : LIVE_FAILED;
    }
    free(which);
    return end;
}

enum live_end live_make_runs(struct live_session *session)
{
    enum live_end end = LIVE_MADE;
    bool interrupted = false;

    for (size_t i = 0; i < session->trial.run_count; i++) {
        const struct ab_run *run = &session->trial.runs[i]; /* of the journal */

        if (run->outcome == AB_CHECK_FAILED || run->outcome == AB_OUTPUT_DIFFERS) {
            return say_failure(session, run, "a run that was made before");
        }
    }
    if ((int64_t)session->run_count == session->options.runs) {
        return LIVE_MADE;
    }
    if (!ab_trial_make_folders(&session->running)) {
        return LIVE_FAILED;
    }
    ab_trial_catch_signals();
    if (session->running.same_output != NULL) {
        end = make_reference(session, &interrupted);
    }
    while (end == LIVE_MADE && !interrupted &&
           (int64_t)session->run_count < session->options.runs) {
        end = make_run(session, &interrupted);
        interrupted |= ab_trial_interrupted();
    }
    session->experiment.interrupted =
        interrupted && (int64_t)session->run_count < session->options.runs;
    return end;
}
