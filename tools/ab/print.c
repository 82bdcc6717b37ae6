/* SPDX-License-Identifier: Apache-2.0 */
#include "print.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "printable.h"
#include "table.h"
#include "wording.h"

/* The level of all intervals, of the primary metric or of the others; NaN when they differ. */
static double common_level(const struct ab_analysis *analysis, bool primary)
{
    double level = NAN;

    for (size_t i = 0; i < analysis->comparison_count; i++) {
        const struct ab_comparison *comparison = &analysis->comparisons[i];

        if ((comparison->metric == 0) != primary || !isfinite(comparison->low)) {
            continue;
        }
        if (isfinite(level) && fabs(level - comparison->level) > 1e-9) {
            return NAN;
        }
        level = comparison->level;
    }
    return level;
}

static void add_interval_column(struct table *table, double level)
{
    struct ab_text percent, heading;

    if (isfinite(level)) {
        snprintf(heading.text, sizeof heading.text, "%.40s interval", ab_percent(&percent, level));
    }
    table_column(table, isfinite(level) ? heading.text : "interval", TABLE_LEFT, false);
}

/* Ratio and interval of an arm: two cells. */
static void add_comparison(struct table *table, const struct ab_comparison *comparison,
                           double level)
{
    struct ab_text ratio, interval, percent;
    int decimals;

    if (comparison == NULL) {
        table_cell(table, "1");
        table_cell(table, "%s", "");
        return;
    }
    decimals = ab_ratio_decimals(comparison->ratio, comparison->low, comparison->high, 3);
    table_cell(table, "%s", ab_ratio(&ratio, comparison->ratio, decimals));
    ab_interval(&interval, comparison->low, comparison->high, decimals);
    if (!isfinite(comparison->low) || !isfinite(comparison->high)) {
        table_cell(table, "-");
    } else if (isfinite(level)) {
        table_cell(table, "%s", interval.text);
    } else {
        table_cell(table, "%s (%s)", interval.text, ab_percent(&percent, comparison->level));
    }
}

static void add_failures(struct table *table, const struct ab_arm_summary *arm)
{
    char *failures = ab_failures(arm);

    table_cell(table, "%s", failures[0] == '\0' ? "0" : failures);
    free(failures);
}

static void print_primary(const struct ab_experiment *experiment,
                          const struct ab_analysis *analysis, bool wide, FILE *stream)
{
    struct ab_scale scale = ab_scale_of_arms(experiment, 0);
    char *heading = ab_metric_heading(&experiment->metrics[0], &scale);
    double level = common_level(analysis, true);
    struct table *table = table_new();
    struct ab_text number;

    table_column(table, "arm", TABLE_LEFT, true);
    table_column(table, experiment->live != NULL ? "slices" : "runs", TABLE_RIGHT, false);
    if (experiment->live == NULL) {
        table_column(table, "failed", TABLE_LEFT, true);
    }
    table_column(table, heading, TABLE_RIGHT, false);
    table_column(table, "sd", TABLE_RIGHT, false);
    table_column(table, "median", TABLE_RIGHT, false);
    table_column(table, "ratio", TABLE_RIGHT, false);
    add_interval_column(table, level);
    if (wide) {
        table_column(table, "p (Holm)", TABLE_RIGHT, false);
    }
    table_column(table, "verdict", TABLE_LEFT, false);
    for (size_t i = 0; i < experiment->arm_count; i++) {
        const struct ab_arm_summary *arm = &analysis->arms[i];
        const struct ab_comparison *comparison = ab_analysis_comparison(analysis, i, 0);
        char *verdict = ab_verdict_words(experiment, comparison);

        table_cell(table, "%s", experiment->arms[i].name);
        table_count(table, (int64_t)arm->runs);
        if (experiment->live == NULL) { /* runs have no arm that they could fail in */
            add_failures(table, arm);
        }
        table_cell(table, "%s", ab_number(&number, &scale, arm->mean));
        table_cell(table, "%s", ab_number(&number, &scale, arm->deviation));
        table_cell(table, "%s", ab_number(&number, &scale, arm->median));
        add_comparison(table, comparison, level);
        if (wide) {
            table_cell(table, "%s",
                       comparison == NULL ? "" : ab_probability(&number, comparison->p_adjusted));
        }
        table_cell(table, "%s", verdict);
        free(verdict);
    }
    table_print(table, stream, wide, "  ");
    table_free(table);
    free(heading);
}

/* Other metrics: nothing is decided by them, so that they have no verdict. */
static void print_exploratory(const struct ab_experiment *experiment,
                              const struct ab_analysis *analysis, bool wide, FILE *stream)
{
    double level = common_level(analysis, false);
    struct table *table;

    if (experiment->metric_count < 2) {
        return;
    }
    fputs("\nExploratory: measured beside the primary metric, nothing was decided by these.\n",
          stream);
    table = table_new();
    table_column(table, "metric", TABLE_LEFT, true);
    table_column(table, "arm", TABLE_LEFT, true);
    table_column(table, "runs", TABLE_RIGHT, false);
    table_column(table, "mean", TABLE_RIGHT, false);
    table_column(table, "sd", TABLE_RIGHT, false);
    table_column(table, "median", TABLE_RIGHT, false);
    table_column(table, "ratio", TABLE_RIGHT, false);
    add_interval_column(table, level);
    for (size_t metric = 1; metric < experiment->metric_count; metric++) {
        struct ab_scale scale = ab_scale_of_arms(experiment, metric);
        char *heading = ab_metric_heading(&experiment->metrics[metric], &scale);

        for (size_t arm = 0; arm < experiment->arm_count; arm++) {
            struct ab_text number;
            size_t count;
            double *values = ab_arm_values(experiment, arm, metric, &count);

            table_cell(table, "%s", heading);
            table_cell(table, "%s", experiment->arms[arm].name);
            table_count(table, (int64_t)count);
            table_cell(
                table, "%s",
                ab_number(&number, &scale, count > 0 ? gsl_stats_mean(values, 1, count) : NAN));
            table_cell(
                table, "%s",
                ab_number(&number, &scale, count > 1 ? gsl_stats_sd(values, 1, count) : NAN));
            table_cell(
                table, "%s",
                ab_number(&number, &scale,
                          count > 0 ? gsl_stats_median_from_sorted_data(values, 1, count) : NAN));
            add_comparison(table, ab_analysis_comparison(analysis, arm, metric), level);
            free(values);
        }
        free(heading);
    }
    table_print(table, stream, wide, "  ");
    table_free(table);
}

/* One line of text that comes from anywhere; with its first letter a capital one when it begins a
 * sentence. */
static void print_text(FILE *stream, const char *before, const char *text, const char *after)
{
    char *copy = printable_copy(text);

    fprintf(stream, "%s%s%s", before, copy, after);
    free(copy);
}

static void print_sentence(FILE *stream, const char *indent, char *sentence)
{
    if (sentence != NULL) {
        print_text(stream, indent, sentence, "\n");
        free(sentence);
    }
}

static void print_warnings(const struct ab_experiment *experiment,
                           const struct ab_analysis *analysis, FILE *stream)
{
    if (analysis->warning_count > 0) {
        fputs("\nWarnings\n", stream);
    }
    for (size_t i = 0; i < analysis->warning_count; i++) {
        const struct ab_warning *warning = &analysis->warnings[i];

        print_text(stream, "  ", experiment->arms[warning->arm].name, ": ");
        print_text(stream, "", warning->text, "\n");
    }
}

static void print_facts(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                        FILE *stream)
{
    struct ab_facts facts;

    ab_facts_gather(&facts, experiment, analysis);
    fputc('\n', stream);
    for (size_t i = 0; i < facts.count; i++) {
        fprintf(stream, "  %-9s", facts.items[i].label);
        print_text(stream, "", facts.items[i].value, "\n");
    }
    ab_facts_release(&facts);
}

void ab_print(const struct ab_experiment *experiment, const struct ab_analysis *analysis, bool wide,
              FILE *stream)
{
    char *answer = ab_answer(experiment, analysis), *lacking;
    size_t arm = 0;

    print_primary(experiment, analysis, wide, stream);
    print_sentence(stream, "  ", ab_ratio_legend(experiment));
    fputc('\n', stream);
    print_sentence(stream, "  ", ab_noise_floor(experiment, analysis));
    print_sentence(stream, "  ", ab_cost(experiment, analysis));
    while ((lacking = ab_what_is_lacking(experiment, analysis, &arm)) != NULL) {
        print_sentence(stream, "  ", lacking);
    }
    print_exploratory(experiment, analysis, wide, stream);
    print_warnings(experiment, analysis, stream);
    print_facts(experiment, analysis, stream);
    print_text(stream, "\n", answer, ".\n");
    free(answer);
}
