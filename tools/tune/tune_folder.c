/* SPDX-License-Identifier: Apache-2.0 */
#include "tune_folder.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "json_output.h"
#include "memory.h"
#include "run_options.h"
#include "stage.h"

static const char format_name[] = "cudapolicy tune plan";
enum { SCHEMA = 1 };

/* ---- the folder ----------------------------------------------------------------------------- */

bool tune_folder_make(struct tune_folder *folder, const char *given, bool resume)
{
    const char *temporary = getenv("TMPDIR");

    *folder = (struct tune_folder){0};
    if (given == NULL) {
        folder->path = memory_format("%s/cudapolicy-tune-XXXXXX",
                                     temporary != NULL && temporary[0] == '/' ? temporary : "/tmp");
        folder->ours = mkdtemp(folder->path) != NULL;
        if (!folder->ours) {
            command_error("cannot make the folder '%s': %s", folder->path, strerror(errno));
        }
        return folder->ours;
    }
    if (!resume && mkdir(given, 0777) != 0 && errno != EEXIST) {
        command_error("cannot make the folder '%s': %s", given, strerror(errno));
        return false;
    }
    folder->path = realpath(given, NULL);
    if (folder->path == NULL) {
        command_error("cannot find the folder '%s': %s", given, strerror(errno));
    }
    return folder->path != NULL;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

void tune_folder_remove(const struct tune_folder *folder)
{
    nftw(folder->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void tune_folder_release(struct tune_folder *folder)
{
    for (size_t i = 0; i < folder->count; i++) {
        free(folder->files[i]);
    }
    free(folder->files);
    free(folder->path);
    *folder = (struct tune_folder){0};
}

/* ---- policies ------------------------------------------------------------------------------- */

static bool write_text(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "wxe");
    bool written = file != NULL && fwrite(text, 1, length, file) == length;

    if (file != NULL) {
        written = fclose(file) == 0 && written;
    }
    if (!written) {
        command_error("cannot write '%s': %s", path, strerror(errno));
    }
    return written;
}

static bool has_text(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "re");
    char *found = memory_allocate(length + 1, 1);
    bool same = file != NULL && fread(found, 1, length + 1, file) == length &&
                memcmp(found, text, length) == 0;

    if (file != NULL) {
        fclose(file);
    }
    free(found);
    if (!same) {
        command_error("'%s' is not what the policy and the values to try make now: a search goes "
                      "on with those that it began with",
                      path);
    }
    return same;
}

bool tune_folder_fill(struct tune_folder *folder, const char *text, size_t length,
                      const struct space *space, bool resume)
{
    bool (*take)(const char *path, const char *text, size_t length) =
        resume ? has_text : write_text;
    char *candidates = memory_format("%s/candidates", folder->path);
    char *policy = memory_format("%s/policy.ini", folder->path);
    bool taken = resume || mkdir(candidates, 0777) == 0;

    if (!taken) {
        command_error("cannot make the folder '%s': %s%s", candidates, strerror(errno),
                      errno == EEXIST ? "; give a folder that no search used yet, or --resume"
                                      : "");
    }
    taken = taken && take(policy, text, length);
    folder->files = memory_allocate(space->candidate_count, sizeof *folder->files);
    for (size_t i = 0; i < space->candidate_count && taken; i++) {
        const struct space_candidate *candidate = &space->candidates[i];

        folder->files[folder->count++] = memory_format("%s/%s.ini", candidates, candidate->arm);
        taken = take(folder->files[i], candidate->text, candidate->length);
    }
    free(policy);
    free(candidates);
    return taken;
}

/* ---- the plan ------------------------------------------------------------------------------- */

static const struct {
    const char *key, *text;
} differences[] = {
    {"command", "it is about another command"},
    {"policy_sha256", "the policy is another one, or was changed since"},
    {"baseline", "it has another baseline"},
    {"candidates", "other values are tried"},
    {"metrics", "it has other metrics"},
    {"plan", "it has another seed or plan (blocks or looks, warm-up, alpha, margin): a plan that "
             "is changed with results at hand proves nothing"},
    {"search", "its search is another one (--search-blocks, --halving, --live, --live-runs, "
               "--slice, --drop, --warm-up-steps, steps, --no-repeat)"},
};

static json_t *candidates_json(const struct search *search)
{
    json_t *names = json_array();

    for (size_t i = search->with_base ? 0 : 1; i < search->space->candidate_count; i++) {
        json_array_append_new(names, json_output_string(search->space->candidates[i].name));
    }
    return names;
}

static json_t *search_json(const struct search *search)
{
    const struct ab_live_plan *live = &search->live_plan;

    return json_pack("{s:I, s:b, s:i, s:I, s:I, s:I, s:I, s:i, s:b, s:s?, s:b}", "blocks",
                     (json_int_t)search->blocks, "halving", search->halving, "live",
                     (int)search->live, "live_runs", (json_int_t)search->live_runs, "slice",
                     (json_int_t)live->slice, "drop", (json_int_t)live->drop, "warm_up_steps",
                     (json_int_t)live->warm_up, "across", (int)live->across, "steps",
                     search->execution->trial.watch_steps, "step_kernel",
                     search->execution->trial.step_kernel, "no_repeat", search->no_repeat);
}

static json_t *plan_json(const struct search *search)
{
    struct ab_experiment experiment = {.plan = search->plan};
    json_t *parts, *document;

    stage_fill_experiment(search, &experiment);
    parts = ab_experiment_json(&experiment);
    document = json_pack("{s:s, s:i, s:s, s:s, s:s, s:i, s:o, s:O, s:O, s:O, s:o, s:O}", "format",
                         format_name, "schema", SCHEMA, "version", CUDAPOLICY_VERSION, "started",
                         experiment.started, "policy_sha256", search->policy_sha256, "baseline",
                         (int)search->baseline, "candidates", candidates_json(search), "command",
                         json_object_get(parts, "command"), "metrics",
                         json_object_get(parts, "metrics"), "plan", json_object_get(parts, "plan"),
                         "search", search_json(search), "options", search->options);
    json_decref(parts);
    ab_experiment_release(&experiment);
    return document;
}

static bool refuse(const char *path, const char *what)
{
    command_error("'%s' cannot be continued: %s", path, what);
    return false;
}

/* Whether the runs that follow are made as those that are there. */
static bool options_agree(const char *path, const json_t *found, const struct search *search)
{
    const json_t *before = json_object_get(found, "options");
    char *different =
        json_is_object(before) ? run_options_difference(search->options, before) : NULL;

    if (different == NULL) {
        return true; /* where they are not known, the journals of the stages warn */
    }
    command_error("'%s' cannot be continued: its runs were made with other options: %s", path,
                  different);
    free(different);
    return false;
}

static uint64_t seed_of(const json_t *document)
{
    const json_t *seed = json_object_get(json_object_get(document, "plan"), "seed");

    return json_is_string(seed) ? strtoull(json_string_value(seed), NULL, 10)
                                : (uint64_t)json_integer_value(seed);
}

static bool compare_plan(const char *path, const json_t *found, struct search *search)
{
    const char *format = json_string_value(json_object_get(found, "format"));
    json_t *wanted;
    const char *fault = NULL;

    if (format == NULL || strcmp(format, format_name) != 0 ||
        json_integer_value(json_object_get(found, "schema")) != SCHEMA) {
        return refuse(path, "it is no plan of a search, or one of another version of cudapolicy");
    }
    if (search->plan.seed == 0) {
        search->plan.seed = seed_of(found);
    }
    wanted = plan_json(search);
    for (size_t i = 0; i < sizeof differences / sizeof differences[0] && fault == NULL; i++) {
        if (!json_equal(json_object_get(wanted, differences[i].key),
                        json_object_get(found, differences[i].key))) {
            fault = differences[i].text;
        }
    }
    json_decref(wanted);
    return fault == NULL ? options_agree(path, found, search) : refuse(path, fault);
}

static bool write_plan(const char *path, json_t *document)
{
    bool written = json_dump_file(document, path, JSON_INDENT(2)) == 0;

    json_decref(document);
    if (!written) {
        command_error("cannot write '%s': %s", path, strerror(errno));
    }
    return written;
}

bool tune_folder_plan(const struct tune_folder *folder, struct search *search)
{
    char *path = memory_format("%s/tune.json", folder->path);
    bool taken;

    if (search->resume) {
        json_error_t error;
        json_t *found = json_load_file(path, 0, &error);

        if (found == NULL) {
            command_error("'%s' cannot be continued: %s", path, error.text);
        }
        taken = found != NULL && compare_plan(path, found, search);
        json_decref(found);
    } else {
        taken = write_plan(path, plan_json(search));
    }
    free(path);
    return taken;
}
