/* SPDX-License-Identifier: Apache-2.0 */
#include "tune_export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export_formats.h"
#include "json_output.h"
#include "memory.h"
#include "printable.h"
#include "tune_print.h"

/* A stage that the formats of ab can show. */
struct shown {
    const struct ab_experiment *experiment; /* NULL: none */
    const struct ab_analysis *analysis;
};

static bool any_counts(const struct ab_experiment *experiment)
{
    for (size_t i = 0; i < experiment->run_count; i++) {
        if (!experiment->runs[i].warm_up) {
            return true;
        }
    }
    return false;
}

static struct shown shown_stage(const struct search_result *result)
{
    if (result->confirmed && any_counts(&result->confirmation)) {
        return (struct shown){&result->confirmation, &result->confirmation_analysis};
    }
    if (any_counts(&result->search)) {
        return (struct shown){&result->search, &result->search_analysis};
    }
    return (struct shown){NULL, NULL};
}

bool tune_export_has(const struct search_result *result, enum ab_format format)
{
    return format == AB_FORMAT_JSON || format == AB_FORMAT_MARKDOWN ||
           shown_stage(result).experiment != NULL;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static json_t *stage_json(const struct ab_experiment *experiment,
                          const struct ab_analysis *analysis)
{
    return any_counts(experiment) ? ab_export_json(experiment, analysis) : json_null();
}

static void write_json(const struct search *search, const struct search_result *result,
                       FILE *stream)
{
    json_t *document = tune_result_json(search, result);

    json_object_set_new(
        document, "stages",
        json_pack("{s:o, s:o}", "search", stage_json(&result->search, &result->search_analysis),
                  "confirmation",
                  result->confirmed
                      ? stage_json(&result->confirmation, &result->confirmation_analysis)
                      : json_null()));
    json_output_print(document, stream);
}

/* ---- Markdown ------------------------------------------------------------------------------- */

/* Lines in which nothing is markup. */
static void write_block(const char *text, FILE *stream)
{
    size_t longest = 2, here = 0;

    for (const char *byte = text; *byte != '\0'; byte++) {
        here = *byte == '`' ? here + 1 : 0;
        longest = here > longest ? here : longest;
    }
    for (int end = 0; end < 2; end++) {
        for (size_t i = 0; i <= longest; i++) {
            fputc('`', stream);
        }
        fputs(end == 0 ? "text\n" : "\n", stream);
        fputs(end == 0 ? text : "", stream);
    }
}

static void write_answer(const struct search *search, const struct search_result *result,
                         FILE *stream)
{
    char *text = NULL;
    size_t length;
    FILE *answer = open_memstream(&text, &length);

    tune_print_result(search, result, answer);
    fclose(answer);
    write_block(text, stream);
    free(text);
}

static void write_candidate(const struct search *search, const struct search_result *result,
                            size_t candidate, FILE *stream)
{
    const struct search_score *score = &result->scores[candidate];
    char *name = printable_copy(search->space->candidates[candidate].name);

    fputs("| ", stream);
    for (const char *byte = name; *byte != '\0'; byte++) {
        fputs(strchr("\\`*_[]|~#@<>&", *byte) != NULL ? "\\" : "", stream);
        fputc(*byte, stream);
    }
    fprintf(stream, " | %zu | ", score->blocks);
    if (isnan(score->ratio)) {
        fputs("- | ", stream);
    } else {
        fprintf(stream, "%.4f | ", score->ratio);
    }
    if (isnan(score->low) || isnan(score->high)) {
        fputs("- | ", stream);
    } else {
        fprintf(stream, "%.4f .. %.4f | ", score->low, score->high);
    }
    fprintf(stream, "%s |\n", score->broken ? "broken" : score->idle ? "changes nothing" : "");
    free(name);
}

static void write_search(const struct search *search, const struct search_result *result,
                         FILE *stream)
{
    const size_t first = search->with_base ? 0 : 1;
    const size_t count = search->space->candidate_count - first;
    size_t *candidates = memory_allocate(count + 1, sizeof *candidates);

    for (size_t i = 0; i < count; i++) {
        candidates[i] = first + i;
    }
    search_sort(search, result, candidates, count);
    fprintf(stream,
            "\n## Search%s\n\n| candidate | blocks | ratio | interval | |\n"
            "|---|---:|---:|---|---|\n",
            result->live ? ", live" : "");
    for (size_t i = 0; i < count; i++) {
        write_candidate(search, result, candidates[i], stream);
    }
    free(candidates);
}

static void write_markdown(const struct search *search, const struct search_result *result,
                           FILE *stream)
{
    fputs("# cudapolicy tune\n\n", stream);
    write_answer(search, result, stream);
    write_search(search, result, stream);
    if (result->confirmed && any_counts(&result->confirmation)) {
        fputs("\n## Confirmation\n\n", stream);
        ab_export_markdown(&result->confirmation, &result->confirmation_analysis, stream);
    }
}

void tune_export(const struct search *search, const struct search_result *result,
                 enum ab_format format, FILE *stream)
{
    const struct shown shown = shown_stage(result);

    if (format == AB_FORMAT_JSON) {
        write_json(search, result, stream);
    } else if (format == AB_FORMAT_MARKDOWN) {
        write_markdown(search, result, stream);
    } else if (shown.experiment != NULL) {
        ab_export(shown.experiment, shown.analysis, format, stream);
    }
}
