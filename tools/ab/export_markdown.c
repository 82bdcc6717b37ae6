/* SPDX-License-Identifier: Apache-2.0 */
#include "export_formats.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "print.h"
#include "printable.h"
#include "wording.h"

/* Text as it is: what Markdown or the HTML in it would read as markup has a backslash in front or
 * is an entity. */
static void write_text(FILE *stream, const char *text)
{
    char *copy = printable_copy(text);

    for (const char *byte = copy; *byte != '\0'; byte++) {
        if (*byte == '<') {
            fputs("&lt;", stream);
        } else if (*byte == '>') {
            fputs("&gt;", stream);
        } else if (*byte == '&') {
            fputs("&amp;", stream);
        } else {
            if (strchr("\\`*_[]|~#@", *byte) != NULL) {
                fputc('\\', stream);
            }
            fputc(*byte, stream);
        }
    }
    free(copy);
}

static void write_cell(FILE *stream, const char *text)
{
    fputs(" ", stream);
    write_text(stream, text);
    fputs(" |", stream);
}

/* Text in which nothing is markup, not even a backslash: between more backquotes than it has. */
static void write_code(FILE *stream, const char *text)
{
    char *copy = printable_copy(text);
    size_t longest = 0, here = 0;

    for (const char *byte = copy; *byte != '\0'; byte++) {
        here = *byte == '`' ? here + 1 : 0;
        longest = here > longest ? here : longest;
    }
    for (size_t i = 0; i <= longest; i++) {
        fputc('`', stream);
    }
    fprintf(stream, " %s ", copy);
    for (size_t i = 0; i <= longest; i++) {
        fputc('`', stream);
    }
    free(copy);
}

static void write_comparison(FILE *stream, const struct ab_comparison *comparison)
{
    struct ab_text ratio, interval, level, cell;
    int decimals;

    if (comparison == NULL) {
        fputs(" 1 | |", stream);
        return;
    }
    decimals = ab_ratio_decimals(comparison->ratio, comparison->low, comparison->high, 3);
    write_cell(stream, ab_ratio(&ratio, comparison->ratio, decimals));
    if (isfinite(comparison->low) && isfinite(comparison->high)) {
        snprintf(cell.text, sizeof cell.text, "%.60s (%.20s)",
                 ab_interval(&interval, comparison->low, comparison->high, decimals),
                 ab_percent(&level, comparison->level));
        write_cell(stream, cell.text);
    } else {
        write_cell(stream, "-");
    }
}

static void write_primary(const struct ab_experiment *experiment,
                          const struct ab_analysis *analysis, FILE *stream)
{
    struct ab_scale scale = ab_scale_of_arms(experiment, 0);
    char *heading = ab_metric_heading(&experiment->metrics[0], &scale);

    fprintf(stream, "| arm | role | %ss | failed |", ab_unit_word(experiment));
    write_cell(stream, heading);
    fputs(" sd | median | ratio | interval | verdict |\n"
          "|---|---|--:|---|--:|--:|--:|--:|---|---|\n",
          stream);
    for (size_t i = 0; i < experiment->arm_count; i++) {
        const struct ab_arm_summary *arm = &analysis->arms[i];
        const struct ab_comparison *comparison = ab_analysis_comparison(analysis, i, 0);
        char *verdict = ab_verdict_words(experiment, comparison), *failures = ab_failures(arm);
        struct ab_text number;

        fputs("|", stream);
        write_cell(stream, experiment->arms[i].name);
        write_cell(stream, ab_role_words[experiment->arms[i].role]);
        fprintf(stream, " %zu |", arm->runs);
        write_cell(stream, failures[0] == '\0' ? "0" : failures);
        write_cell(stream, ab_number(&number, &scale, arm->mean));
        write_cell(stream, ab_number(&number, &scale, arm->deviation));
        write_cell(stream, ab_number(&number, &scale, arm->median));
        write_comparison(stream, comparison);
        write_cell(stream, comparison == NULL ? "" : verdict);
        fputs("\n", stream);
        free(verdict);
        free(failures);
    }
    free(heading);
}

static void write_exploratory(const struct ab_experiment *experiment,
                              const struct ab_analysis *analysis, FILE *stream)
{
    if (experiment->metric_count < 2) {
        return;
    }
    fputs("\nExploratory: measured beside the primary metric, nothing was decided by these.\n\n"
          "| metric | arm | runs | mean | sd | ratio | interval |\n"
          "|---|---|--:|--:|--:|--:|---|\n",
          stream);
    for (size_t metric = 1; metric < experiment->metric_count; metric++) {
        struct ab_scale scale = ab_scale_of_arms(experiment, metric);
        char *heading = ab_metric_heading(&experiment->metrics[metric], &scale);

        for (size_t arm = 0; arm < experiment->arm_count; arm++) {
            struct ab_text number;
            size_t count;
            double *values = ab_arm_values(experiment, arm, metric, &count);
            double mean = count > 0 ? gsl_stats_mean(values, 1, count) : NAN;
            double deviation = count > 1 ? gsl_stats_sd(values, 1, count) : NAN;

            fputs("|", stream);
            write_cell(stream, heading);
            write_cell(stream, experiment->arms[arm].name);
            fprintf(stream, " %zu |", count);
            write_cell(stream, ab_number(&number, &scale, mean));
            write_cell(stream, ab_number(&number, &scale, deviation));
            write_comparison(stream, ab_analysis_comparison(analysis, arm, metric));
            fputs("\n", stream);
            free(values);
        }
        free(heading);
    }
}

static void write_item(FILE *stream, char *text)
{
    if (text != NULL) {
        fputs("- ", stream);
        write_text(stream, text);
        fputs("\n", stream);
        free(text);
    }
}

static void write_warnings(const struct ab_experiment *experiment,
                           const struct ab_analysis *analysis, FILE *stream)
{
    if (analysis->warning_count > 0) {
        fputs("\nWarnings:\n\n", stream);
    }
    for (size_t i = 0; i < analysis->warning_count; i++) {
        const struct ab_warning *warning = &analysis->warnings[i];

        write_item(stream,
                   memory_format("%s: %s", experiment->arms[warning->arm].name, warning->text));
    }
}

void ab_export_markdown(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                        FILE *stream)
{
    char *answer = ab_answer(experiment, analysis), *method = ab_method(experiment, analysis);
    char *lacking;
    size_t arm = 0;
    struct ab_facts facts;

    fputs("**", stream);
    write_text(stream, answer);
    fputs(".**\n\n", stream);
    write_primary(experiment, analysis, stream);
    fputs("\n", stream);
    write_item(stream, ab_ratio_legend(experiment));
    write_item(stream, ab_noise_floor(experiment, analysis));
    write_item(stream, ab_cost(experiment, analysis));
    while ((lacking = ab_what_is_lacking(experiment, analysis, &arm)) != NULL) {
        write_item(stream, lacking);
    }
    write_exploratory(experiment, analysis, stream);
    write_warnings(experiment, analysis, stream);
    fputs("\n", stream);
    write_text(stream, method);
    fputs("\n\n", stream);
    ab_facts_gather(&facts, experiment, analysis);
    for (size_t i = 0; i < facts.count; i++) {
        fprintf(stream, "- %s: ", facts.items[i].label);
        write_code(stream, facts.items[i].value);
        fputs("\n", stream);
    }
    ab_facts_release(&facts);
    free(answer);
    free(method);
}
