/* SPDX-License-Identifier: Apache-2.0 */
#include "winner.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "printable.h"
#include "results.h"

enum {
    COMMAND_LIMIT = 2000, /* a line of a policy has a limit, too */
    TEXT_LIMIT = 1000,
};

/* ---- hardware ------------------------------------------------------------------------------- */

/* Adds "name (uuid)", unless it is there. */
static void add_gpu(char **gpus, const json_t *facts)
{
    const char *name = results_text(facts, "name"), *uuid = results_text(facts, "uuid");
    char *gpu, *more;

    if (name[0] == '\0') {
        return;
    }
    gpu = uuid[0] != '\0' ? memory_format("%s (%s)", name, uuid) : memory_copy(name);
    if (*gpus != NULL && strstr(*gpus, gpu) != NULL) {
        free(gpu);
        return;
    }
    more = *gpus != NULL ? memory_format("%s, %s", *gpus, gpu) : memory_copy(gpu);
    free(gpu);
    free(*gpus);
    *gpus = more;
}

static void read_facts(struct winner_hardware *hardware, json_t *facts)
{
    const char *driver = results_text(json_object_get(facts, "driver"), "version"), *key;
    json_t *section;

    if (driver[0] != '\0' && hardware->driver == NULL) {
        hardware->driver = memory_copy(driver);
    }
    json_object_foreach(facts, key, section)
    {
        if (strncmp(key, "device.", strlen("device.")) == 0) {
            add_gpu(&hardware->gpus, section);
        }
    }
}

void winner_read_hardware(struct winner_hardware *hardware, const char *reports)
{
    struct results results = {.keep_documents = true};

    *hardware = (struct winner_hardware){0};
    if (access(reports, R_OK) == 0 && results_load(&results, reports)) {
        for (size_t i = 0; i < results.process_count; i++) {
            read_facts(hardware, json_object_get(results.processes[i].document, "facts"));
        }
    }
    results_release(&results);
}

void winner_release_hardware(struct winner_hardware *hardware)
{
    free(hardware->gpus);
    free(hardware->driver);
    *hardware = (struct winner_hardware){0};
}

/* ---- writing -------------------------------------------------------------------------------- */

char *winner_command_line(char *const *command, size_t limit)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-/=:,@%{}";
    char *text = NULL, *line;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    for (size_t i = 0; command[i] != NULL; i++) {
        const char *word = command[i];
        bool quoted = word[0] == '\0' || strspn(word, plain) != strlen(word);

        fputs(i > 0 ? " " : "", stream);
        fputs(quoted ? "'" : "", stream);
        for (; *word != '\0'; word++) {
            if (*word == '\'') {
                fputs("'\\''", stream);
            } else {
                fputc(*word, stream);
            }
        }
        fputs(quoted ? "'" : "", stream);
    }
    fclose(stream);
    line = printable_copy(text);
    free(text);
    if (printable_width(line) > limit) {
        text = printable_shorten(line, limit);
        free(line);
        line = text;
    }
    return line;
}

/* Where a comment goes, and how its line ends. */
struct comments {
    FILE *stream;
    const char *newline;
};

static void comment(const struct comments *comments, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void comment(const struct comments *comments, const char *format, ...)
{
    char text[4 * COMMAND_LIMIT], *line;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    line = printable_copy(text);
    fprintf(comments->stream, "# %s%s", line, comments->newline);
    free(line);
}

static const char *baseline_text(const struct search *search)
{
    switch (search->baseline) {
    case SEARCH_AGAINST_NONE:
        return "the program without the preload";
    case SEARCH_AGAINST_OBSERVE:
        return "the preload with a policy that only observes";
    default:
        return "the policy as it was";
    }
}

static void write_ratios(const struct search *search, const struct search_result *result,
                         const struct comments *comments)
{
    const struct ab_metric *metric = &search->metrics[0];
    const struct search_score *score = &result->scores[result->best];
    const struct ab_comparison *confirmed = search_confirmation(result);
    size_t tried = 0;

    for (size_t i = 0; i < search->space->candidate_count; i++) {
        tried += result->scores[i].tried;
    }
    comment(comments, "baseline: %s", baseline_text(search));
    comment(comments, "metric: %s%s%s%s, %s is better", metric->name,
            metric->unit != NULL && metric->unit[0] != '\0' ? " [" : "",
            metric->unit != NULL ? metric->unit : "",
            metric->unit != NULL && metric->unit[0] != '\0' ? "]" : "",
            metric->direction == AB_LESS_IS_BETTER ? "less" : "more");
    comment(
        comments,
        "confirmed ratio to the baseline: %.4f (%.3g %% interval %.4f .. %.4f, %zu blocks, seed "
        "%" PRIu64 ")",
        confirmed->ratio, 100 * confirmed->level, confirmed->low, confirmed->high, confirmed->pairs,
        result->confirmation_seed);
    comment(comments,
            "ratio in the search%s%s: %.4f (%zu blocks, best of %zu candidates, seed "
            "%" PRIu64 ")",
            result->live ? ", live, in " : "",
            result->live ? search_metric(search, result)->name : "", score->ratio, score->blocks,
            tried, result->search_seed);
    if (search_takes_away(result)) {
        comment(comments, "note: %s", search_takes_away_text);
    }
    comment(comments, "seed of both: %" PRIu64, search->plan.seed);
}

/* A line of comment for each of the text. */
static void write_lines(const struct comments *comments, const char *label, const char *text)
{
    while (*text != '\0') {
        int length = (int)strcspn(text, "\n");

        comment(comments, "%s: %.*s", label, length < TEXT_LIMIT ? length : TEXT_LIMIT, text);
        text += length + (text[length] == '\n');
    }
}

static void write_evidence(const struct search *search, const struct search_result *result,
                           const struct winner_hardware *hardware, const struct comments *comments)
{
    char *command = winner_command_line(search->command, COMMAND_LIMIT);
    char *name = printable_shorten(search->space->candidates[result->best].name, TEXT_LIMIT);
    const struct ab_arm_summary *arms = result->confirmation_analysis.arms;
    const size_t flagged = arms[0].flagged + arms[1].flagged;

    comment(comments, "Found by cudapolicy tune, version %s: %s", CUDAPOLICY_VERSION, name);
    comment(comments, "policy: %.*s, SHA-256 %s", TEXT_LIMIT, search->policy,
            search->policy_sha256);
    if (result->policy_changed != NULL) {
        comment(comments, "note: %.*s; this is about it as it was at the start", TEXT_LIMIT,
                result->policy_changed);
    }
    comment(comments, "command: %s", command);
    write_ratios(search, result, comments);
    comment(comments, "date: %s; host: %s", result->confirmation.started,
            result->confirmation.host);
    if (hardware->gpus != NULL) {
        comment(comments, "GPUs: %.*s", TEXT_LIMIT, hardware->gpus);
    } else if (search->gpus != NULL) {
        write_lines(comments, "GPUs of the host", search->gpus);
    }
    if (flagged > 0) {
        comment(comments, "in %zu of the confirmation's runs a GPU was slowed down or shared",
                flagged);
    }
    if (hardware->driver != NULL) {
        comment(comments, "CUDA version of the driver: %s", hardware->driver);
    }
    comment(comments, "It holds for this command on this machine; elsewhere, measure again.");
    fputs(comments->newline, comments->stream);
    free(name);
    free(command);
}

void winner_write(const struct search *search, const struct search_result *result,
                  const struct winner_hardware *hardware, FILE *stream)
{
    static const char mark[] = "\xef\xbb\xbf";
    const struct space_candidate *candidate = &search->space->candidates[result->best];
    size_t skipped =
        candidate->length >= 3 && memcmp(candidate->text, mark, 3) == 0 ? strlen(mark) : 0;
    const char *end = memchr(candidate->text, '\n', candidate->length);
    bool carriage = end != NULL && end > candidate->text && end[-1] == '\r';
    const struct comments comments = {.stream = stream, .newline = carriage ? "\r\n" : "\n"};

    fwrite(candidate->text, 1, skipped, stream);
    write_evidence(search, result, hardware, &comments);
    fwrite(candidate->text + skipped, 1, candidate->length - skipped, stream);
}
