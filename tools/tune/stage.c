/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "arm.h"
#include "command.h"
#include "memory.h"

/* SplitMix64. */
uint64_t stage_seed(uint64_t seed, uint64_t stage)
{
    uint64_t mixed = seed + 0x9e3779b97f4a7c15ULL * (stage + 1);

    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
    mixed ^= mixed >> 31;
    return mixed != 0 ? mixed : 1;
}

/* ---- a stage's experiment ------------------------------------------------------------------- */

static char *started_now(void)
{
    time_t now = time(NULL);
    struct tm parts;
    char text[32];

    gmtime_r(&now, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return memory_copy(text);
}

static char *own_host(void)
{
    char host[256] = "";

    gethostname(host, sizeof host - 1);
    return memory_copy(host);
}

static void copy_command(struct ab_experiment *experiment, char *const *command)
{
    size_t count = 0;

    while (command[count] != NULL) {
        count++;
    }
    experiment->command = memory_allocate(count + 1, sizeof *experiment->command);
    for (size_t i = 0; i < count; i++) {
        experiment->command[i] = memory_copy(command[i]);
    }
}

static void copy_metrics(struct ab_experiment *experiment, const struct search *search)
{
    experiment->metric_count = search->metric_count;
    experiment->metrics = memory_allocate(search->metric_count, sizeof *experiment->metrics);
    for (size_t i = 0; i < search->metric_count; i++) {
        struct ab_metric *metric = &experiment->metrics[i];

        *metric = search->metrics[i];
        metric->name = memory_copy(metric->name);
        metric->unit = metric->unit != NULL ? memory_copy(metric->unit) : NULL;
        metric->definition = metric->definition != NULL ? memory_copy(metric->definition) : NULL;
    }
}

static char *baseline_word(const struct search *search)
{
    switch (search->baseline) {
    case SEARCH_AGAINST_NONE:
        return memory_copy("none");
    case SEARCH_AGAINST_OBSERVE:
        return memory_copy("observe");
    default:
        return memory_format("base=%s", search->files[0]);
    }
}

void stage_fill_experiment(const struct search *search, struct ab_experiment *experiment)
{
    copy_command(experiment, search->command);
    copy_metrics(experiment, search);
    experiment->started = started_now();
    experiment->host = own_host();
    experiment->gpus = search->gpus != NULL ? memory_copy(search->gpus) : NULL;
    experiment->options = json_incref(search->options);
}

bool stage_make_experiment(const struct search *search, const struct stage *stage,
                           struct ab_experiment *experiment)
{
    char **words = memory_allocate(stage->count + 1, sizeof *words);
    struct arm_request request = {
        .words = words, .count = stage->count + 1, .no_repeat = stage->no_repeat};
    char error[512] = "";
    enum arm_result added;

    *experiment = (struct ab_experiment){.plan = stage->plan};
    stage_fill_experiment(search, experiment);
    words[0] = baseline_word(search);
    for (size_t i = 0; i < stage->count; i++) {
        size_t candidate = stage->candidates[i];

        words[1 + i] = memory_format("%s=%s", search->space->candidates[candidate].arm,
                                     search->files[candidate]);
    }
    added = arm_add_all(experiment, &request, error, sizeof error);
    if (added == ARM_MISUSED) {
        command_error("%s: %s", stage->name, error);
    }
    for (size_t i = 0; i <= stage->count; i++) {
        free(words[i]);
    }
    free(words);
    return added == ARM_FINE;
}

char *stage_make_folder(const struct search *search, const char *name)
{
    char *folder = memory_format("%s/%s", search->execution->trial.folder, name);

    if (mkdir(folder, 0777) != 0 && (errno != EEXIST || !search->resume)) {
        command_error("cannot make the folder '%s': %s", folder, strerror(errno));
        free(folder);
        return NULL;
    }
    return folder;
}

static bool begin_journal(const struct search *search, struct ab_experiment *experiment,
                          const char *journal)
{
    return search->resume && access(journal, F_OK) == 0 ? ab_journal_resume(experiment, journal)
                                                        : ab_journal_begin(experiment, journal);
}

static bool execute_stage(const struct search *search, const struct stage *stage,
                          struct ab_experiment *experiment)
{
    struct ab_execution execution = *search->execution;
    char *folder = stage_make_folder(search, stage->name), *journal;
    char error[512];
    bool ready = true;

    if (folder == NULL) {
        return false;
    }
    journal = memory_format("%s/journal.jsonl", folder);
    execution.trial.folder = folder;
    execution.trial.reference_taken = false;
    execution.label = stage->label;
    execution.journal = journal;
    if (search->same_output != NULL) {
        execution.trial.same_output = ab_same_output_new(search->same_output, search->relative,
                                                         search->absolute, error, sizeof error);
        ready = execution.trial.same_output != NULL;
        if (!ready) {
            command_error("--same-output: %s", error);
        }
    }
    ready =
        ready && begin_journal(search, experiment, journal) && ab_execute(experiment, &execution);
    if (execution.trial.same_output != NULL) {
        ab_same_output_free(execution.trial.same_output);
    }
    free(journal);
    free(folder);
    return ready;
}

bool stage_run(const struct search *search, const struct stage *stage,
               struct ab_experiment *experiment, struct ab_analysis *analysis)
{
    bool went;

    *analysis = (struct ab_analysis){.winner = SIZE_MAX};
    if (!stage_make_experiment(search, stage, experiment)) {
        return false;
    }
    went = execute_stage(search, stage, experiment);
    ab_analyse(experiment, analysis);
    return went;
}
