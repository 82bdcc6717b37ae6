/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The page: one file that needs no other, no network and no script. Its policy for content forbids
 * browsers to load anything, should a name have slipped through as markup after all.
 */

#include "export.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

#include "html_plot.h"
#include "html_style.h"
#include "html_text.h"
#include "memory.h"
#include "print.h"
#include "wording.h"

enum {
    HTML_FAILURES_SHOWN = 100, /* of the runs that failed */
    HTML_MESSAGE_SHOWN = 2000, /* of what each of them said */
};

static void element(FILE *stream, const char *begin, const char *text, const char *end)
{
    fputs(begin, stream);
    html_text(stream, text);
    fputs(end, stream);
}

/* A sentence of wording.h, if there is one. */
static void sentence(FILE *stream, const char *begin, char *text, const char *end)
{
    if (text != NULL) {
        element(stream, begin, text, end);
        free(text);
    }
}

static void write_head(const struct ab_experiment *experiment, FILE *stream)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
          "'unsafe-inline'; img-src data:\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n<title>",
          stream);
    html_format(stream, "%s against %s", experiment->metrics[0].name, experiment->arms[0].name);
    fputs(": cudapolicy ab</title>\n<style>\n", stream);
    fputs(html_style_sheet, stream);
    fputs("</style>\n</head>\n<body>\n", stream);
    html_style_marks(stream, experiment->run_count);
}

static void write_answer(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                         FILE *stream)
{
    char *answer = ab_answer(experiment, analysis);
    const char *class = analysis->result == AB_RESULT_BROKEN ? " broken"
                        : analysis->winner != SIZE_MAX       ? " shown"
                                                             : "";

    fprintf(stream, "<header>\n<h1>cudapolicy ab%s: ", experiment->live != NULL ? " --live" : "");
    html_format(stream, "%s, %zu arms, %zu blocks", experiment->metrics[0].name,
                experiment->arm_count, analysis->blocks);
    fprintf(stream, "</h1>\n<p class=\"answer%s\">", class);
    element(stream, "", answer, ".</p>\n</header>\n<main>\n");
    free(answer);
}

static void write_warnings(const struct ab_experiment *experiment,
                           const struct ab_analysis *analysis, FILE *stream)
{
    if (analysis->warning_count == 0) {
        return;
    }
    fputs("<section class=\"warnings\" aria-labelledby=\"warnings\">"
          "<h2 id=\"warnings\">Warnings</h2><ul>\n",
          stream);
    for (size_t i = 0; i < analysis->warning_count; i++) {
        const struct ab_warning *warning = &analysis->warnings[i];

        element(stream, "<li><strong>", experiment->arms[warning->arm].name, "</strong>: ");
        element(stream, "", warning->text, "</li>\n");
    }
    fputs("</ul></section>\n", stream);
}

/* ---- Tables ---- */

/* On a phone rows are shown as cards: then a browser no longer takes them for rows, hence the
 * roles, and each cell says its column. */
static void begin_table(FILE *stream, const char *label, const char *const *columns, size_t count)
{
    element(stream, "<table role=\"table\" aria-label=\"", label,
            "\">\n<thead role=\"rowgroup\"><tr role=\"row\">");
    for (size_t i = 0; i < count; i++) {
        /* A column of numbers begins with '>'. */
        bool number = columns[i][0] == '>';

        fprintf(stream, "<th role=\"columnheader\" scope=\"col\"%s>", number ? " class=\"n\"" : "");
        element(stream, "", columns[i] + number, "</th>");
    }
    fputs("</tr></thead>\n<tbody role=\"rowgroup\">\n", stream);
}

static void cell(FILE *stream, const char *column, const char *class, const char *text)
{
    bool number = column[0] == '>';

    element(stream, "<td role=\"cell\" data-label=\"", column + number, "\"");
    if (number || class != NULL) {
        fprintf(stream, " class=\"%s\"", number ? "n" : class);
    }
    element(stream, ">", text, "</td>");
}

static void row_header(const struct ab_experiment *experiment, size_t arm, FILE *stream)
{
    fputs("<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">", stream);
    html_plot_key(experiment, arm, stream);
    element(stream, "", experiment->arms[arm].name, "</th>");
}

static void end_table(FILE *stream)
{
    fputs("</tbody></table>\n", stream);
}

static void comparison_cells(const struct ab_comparison *comparison, const char *const *columns,
                             FILE *stream)
{
    struct ab_text ratio, interval, level, text;
    int decimals;

    if (comparison == NULL) {
        cell(stream, columns[0], NULL, "1");
        cell(stream, columns[1], NULL, "");
        return;
    }
    decimals = ab_ratio_decimals(comparison->ratio, comparison->low, comparison->high, 3);
    cell(stream, columns[0], NULL, ab_ratio(&ratio, comparison->ratio, decimals));
    if (isfinite(comparison->low) && isfinite(comparison->high)) {
        snprintf(text.text, sizeof text.text, "%.60s (%.20s)",
                 ab_interval(&interval, comparison->low, comparison->high, decimals),
                 ab_percent(&level, comparison->level));
        cell(stream, columns[1], NULL, text.text);
    } else {
        cell(stream, columns[1], NULL, "-");
    }
}

static void verdict_cell(const struct ab_experiment *experiment,
                         const struct ab_comparison *comparison, FILE *stream)
{
    static const char *const classes[AB_VERDICT_COUNT] = {
        "v better", "v worse", "v no-difference", "v not-enough", "v broken", "v not-enough"};
    static const char *const signs[AB_VERDICT_COUNT] = {"\u2713 ", "\u2717 ", "= ",
                                                        "? ",      "! ",      "? "};
    char *verdict, *text;

    if (comparison == NULL) {
        cell(stream, "verdict", NULL, "");
        return;
    }
    verdict = ab_verdict_words(experiment, comparison);
    text = memory_format("%s%s", signs[comparison->verdict], verdict);
    cell(stream, "verdict", classes[comparison->verdict], text);
    free(text);
    free(verdict);
}

static void write_primary(const struct ab_experiment *experiment,
                          const struct ab_analysis *analysis, FILE *stream)
{
    struct ab_scale scale = ab_scale_of_arms(experiment, 0);
    char *heading = ab_metric_heading(&experiment->metrics[0], &scale);
    char *mean = memory_format(">%s", heading);
    const char *units = experiment->live != NULL ? ">slices" : ">runs";
    const char *const columns[] = {"arm",     "role",   units,       "failed",    mean,     ">sd",
                                   ">median", ">ratio", ">interval", ">p (Holm)", "verdict"};

    begin_table(stream, "Arms", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < experiment->arm_count; i++) {
        const struct ab_arm_summary *arm = &analysis->arms[i];
        const struct ab_comparison *comparison = ab_analysis_comparison(analysis, i, 0);
        char *failures = ab_failures(arm), *runs = memory_format("%zu", arm->runs);
        struct ab_text number;

        row_header(experiment, i, stream);
        cell(stream, columns[1], NULL, ab_role_words[experiment->arms[i].role]);
        cell(stream, columns[2], NULL, runs);
        cell(stream, columns[3], NULL, failures[0] == '\0' ? "0" : failures);
        cell(stream, columns[4], NULL, ab_number(&number, &scale, arm->mean));
        cell(stream, columns[5], NULL, ab_number(&number, &scale, arm->deviation));
        cell(stream, columns[6], NULL, ab_number(&number, &scale, arm->median));
        comparison_cells(comparison, &columns[7], stream);
        cell(stream, columns[9], NULL,
             comparison == NULL ? "" : ab_probability(&number, comparison->p_adjusted));
        verdict_cell(experiment, comparison, stream);
        fputs("</tr>\n", stream);
        free(failures);
        free(runs);
    }
    end_table(stream);
    free(mean);
    free(heading);
}

static void write_exploratory(const struct ab_experiment *experiment,
                              const struct ab_analysis *analysis, FILE *stream)
{
    static const char *const columns[] = {"arm", "metric", ">runs",    ">mean",
                                          ">sd", ">ratio", ">interval"};

    if (experiment->metric_count < 2) {
        return;
    }
    fputs("<section aria-labelledby=\"exploratory\"><h2 id=\"exploratory\">Exploratory metrics"
          "</h2>\n<p class=\"note\">Measured beside the primary metric; nothing was decided by "
          "these.</p>\n",
          stream);
    begin_table(stream, "Exploratory metrics", columns, sizeof columns / sizeof *columns);
    for (size_t metric = 1; metric < experiment->metric_count; metric++) {
        struct ab_scale scale = ab_scale_of_arms(experiment, metric);
        char *heading = ab_metric_heading(&experiment->metrics[metric], &scale);

        for (size_t arm = 0; arm < experiment->arm_count; arm++) {
            struct ab_text number;
            size_t count;
            double *values = ab_arm_values(experiment, arm, metric, &count);
            char *runs = memory_format("%zu", count);

            row_header(experiment, arm, stream);
            cell(stream, columns[1], NULL, heading);
            cell(stream, columns[2], NULL, runs);
            cell(stream, columns[3], NULL,
                 ab_number(&number, &scale, count > 0 ? gsl_stats_mean(values, 1, count) : NAN));
            cell(stream, columns[4], NULL,
                 ab_number(&number, &scale, count > 1 ? gsl_stats_sd(values, 1, count) : NAN));
            comparison_cells(ab_analysis_comparison(analysis, arm, metric), &columns[5], stream);
            fputs("</tr>\n", stream);
            free(values);
            free(runs);
        }
        free(heading);
    }
    end_table(stream);
    fputs("</section>\n", stream);
}

static void write_arms(const struct ab_experiment *experiment, FILE *stream)
{
    static const char *const columns[] = {"arm", "what it is", "policy", "SHA-256 of the policy"};
    static const char *const kinds[] = {
        [AB_ARM_NONE] = "without the preload",
        [AB_ARM_OBSERVE] = "the preload with a policy that only observes",
        [AB_ARM_POLICY] = "the preload with a policy",
    };
    const char *const none = "the preload without a rule"; /* where arms alternate inside runs */

    begin_table(stream, "What the arms are", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < experiment->arm_count; i++) {
        const struct ab_arm *arm = &experiment->arms[i];

        row_header(experiment, i, stream);
        cell(stream, columns[1], NULL,
             experiment->live != NULL && arm->kind != AB_ARM_POLICY ? none : kinds[arm->kind]);
        cell(stream, columns[2], "long", arm->policy == NULL ? "" : arm->policy);
        cell(stream, columns[3], "long", arm->policy_sha256 == NULL ? "" : arm->policy_sha256);
        fputs("</tr>\n", stream);
    }
    end_table(stream);
}

static void write_failures(const struct ab_experiment *experiment, FILE *stream)
{
    static const char *const columns[] = {"arm", ">run", ">block", "what happened", "message"};
    size_t failed = 0;

    for (size_t i = 0; i < experiment->run_count; i++) {
        const struct ab_run *run = &experiment->runs[i];
        char *number, *block;

        if (run->outcome == AB_OK || failed++ >= HTML_FAILURES_SHOWN) {
            continue;
        }
        if (failed == 1) {
            fputs("<section aria-labelledby=\"failures\"><h2 id=\"failures\">Runs that do not "
                  "count</h2>\n",
                  stream);
            begin_table(stream, "Runs that do not count", columns,
                        sizeof columns / sizeof *columns);
        }
        number = memory_format("%zu", i + 1);
        block = memory_format("%s%u", run->warm_up ? "warm-up " : "", run->block + 1);
        row_header(experiment, run->arm, stream);
        cell(stream, columns[1], NULL, number);
        cell(stream, columns[2], NULL, block);
        cell(stream, columns[3], NULL, ab_outcome_words[run->outcome]);
        fputs("<td role=\"cell\" data-label=\"message\" class=\"long lines\">", stream);
        html_message(stream, run->message == NULL ? "" : run->message, HTML_MESSAGE_SHOWN);
        fputs("</td></tr>\n", stream);
        free(number);
        free(block);
    }
    if (failed > 0) {
        end_table(stream);
        if (failed > HTML_FAILURES_SHOWN) {
            fprintf(stream, "<p class=\"note\">And %zu more.</p>\n", failed - HTML_FAILURES_SHOWN);
        }
        fputs("</section>\n", stream);
    }
}

/* ---- The whole ---- */

static void write_legend(const struct ab_experiment *experiment, FILE *stream)
{
    fputs("<ul class=\"legend\">\n", stream);
    for (size_t i = 0; i < experiment->arm_count; i++) {
        fputs("<li>", stream);
        html_plot_key(experiment, i, stream);
        element(stream, "", experiment->arms[i].name, " <span>");
        element(stream, "", ab_role_words[experiment->arms[i].role], "</span></li>\n");
    }
    if (experiment->live == NULL) {
        fputs("<li><svg class=\"key\" aria-hidden=\"true\"><use class=\"cross a0\" href=\"#kx\" "
              "x=\"7\" y=\"7\"/></svg>failed</li>\n",
              stream);
    }
    fputs("<li><svg class=\"key\" aria-hidden=\"true\"><use class=\"ring\" href=\"#ko\" x=\"7\" "
          "y=\"7\"/></svg>flagged: the GPU was slowed down or shared</li>\n</ul>\n",
          stream);
}

static void write_facts(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                        FILE *stream)
{
    struct ab_facts facts;

    ab_facts_gather(&facts, experiment, analysis);
    fputs("<dl>\n", stream);
    for (size_t i = 0; i < facts.count; i++) {
        element(stream, "<dt>", facts.items[i].label, "</dt>");
        element(stream, i == 0 ? "<dd><code>" : "<dd>", facts.items[i].value,
                i == 0 ? "</code></dd>\n" : "</dd>\n");
    }
    fputs("</dl>\n", stream);
    ab_facts_release(&facts);
}

void ab_export_html(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                    FILE *stream)
{
    char *lacking;
    size_t arm = 0;

    write_head(experiment, stream);
    write_answer(experiment, analysis, stream);
    write_warnings(experiment, analysis, stream);
    write_primary(experiment, analysis, stream);
    sentence(stream, "<p class=\"note\">", ab_ratio_legend(experiment), "</p>\n");
    sentence(stream, "<p>", ab_noise_floor(experiment, analysis), "</p>\n");
    sentence(stream, "<p>", ab_cost(experiment, analysis), "</p>\n");
    while ((lacking = ab_what_is_lacking(experiment, analysis, &arm)) != NULL) {
        sentence(stream, "<p>", lacking, "</p>\n");
    }
    fputs("<section aria-labelledby=\"h-intervals\"><h2 id=\"h-intervals\">Intervals</h2>\n",
          stream);
    html_plot_intervals(experiment, analysis, stream);
    fputs("</section>\n<section aria-labelledby=\"h-blocks\"><h2 id=\"h-blocks\">Differences to "
          "the baseline, block by block</h2>\n",
          stream);
    html_plot_blocks(experiment, analysis, stream);
    fprintf(stream,
            "</section>\n<section aria-labelledby=\"h-runs\"><h2 id=\"h-runs\">%s in order</h2>\n",
            experiment->live != NULL ? "Slices" : "Runs");
    write_legend(experiment, stream);
    html_plot_runs(experiment, stream);
    fputs("</section>\n", stream);
    write_exploratory(experiment, analysis, stream);
    write_failures(experiment, stream);
    fputs("<section aria-labelledby=\"h-how\"><h2 id=\"h-how\">How it was decided</h2>\n", stream);
    sentence(stream, "<p>", ab_method(experiment, analysis), "</p>\n");
    write_arms(experiment, stream);
    write_facts(experiment, analysis, stream);
    fputs("</section>\n</main>\n</body>\n</html>\n", stream);
}
