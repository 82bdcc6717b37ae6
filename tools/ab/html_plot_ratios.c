/* SPDX-License-Identifier: Apache-2.0 */
#include "html_plot.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>

#include "html_axis.h"
#include "html_style.h"
#include "html_text.h"
#include "memory.h"
#include "wording.h"

void html_plot_key(const struct ab_experiment *experiment, size_t arm, FILE *stream)
{
    struct html_mark mark = html_style_mark(experiment, arm);

    html_markup(stream,
                "<svg class=\"key\" aria-hidden=\"true\"><use class=\"%s\" href=\"#k%c\" x=\"7\" "
                "y=\"7\"/></svg>",
                mark.colour, mark.shape);
}

/* ---- Rows: an arm each, its label beside or above its part of the plot ---- */

static void begin_label(const struct ab_experiment *experiment, size_t arm, FILE *stream)
{
    html_markup(stream, "<div class=\"row\"><div class=\"label\">");
    html_plot_key(experiment, arm, stream);
    html_text(stream, experiment->arms[arm].name);
    html_markup(stream, "<span>");
}

/* The SVG of a row with what is behind its marks. what: its title, with the arm's name. */
static void begin_row(const struct ab_experiment *experiment, size_t arm,
                      const struct html_axis *axis, const char *what, FILE *stream)
{
    html_markup(stream, "</span></div><svg role=\"img\"><title>");
    html_format(stream, "%s of %s", what, experiment->arms[arm].name);
    html_markup(stream, "</title>\n");
    for (size_t i = 0; i < axis->tick_count; i++) {
        double x = html_axis_percent(axis, axis->ticks[i].at);

        html_markup(stream,
                    "<line class=\"grid\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"100%%\"/>", x,
                    x);
    }
    html_markup(stream, "<line class=\"one\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"100%%\"/>\n",
                html_axis_percent(axis, 1), html_axis_percent(axis, 1));
}

static void end_row(FILE *stream)
{
    html_markup(stream, "</svg></div>\n");
}

static void draw_axis(const struct ab_experiment *experiment, const struct html_axis *axis,
                      FILE *stream)
{
    bool less = experiment->metrics[0].direction == AB_LESS_IS_BETTER;

    html_markup(stream, "<div class=\"row\"><div class=\"label\"><span>");
    html_format(stream, "ratio to %s", experiment->arms[0].name);
    html_markup(stream, "</span></div><svg role=\"img\" class=\"axis\"><title>Axis</title>");
    for (size_t i = 0; i < axis->tick_count; i++) {
        html_markup(stream, "<text class=\"mid\" x=\"%.2f%%\" y=\"14\">%s</text>",
                    html_axis_percent(axis, axis->ticks[i].at), axis->ticks[i].label);
    }
    html_markup(stream,
                "<text x=\"0\" y=\"33\">\u2190 %s</text>"
                "<text class=\"end\" x=\"100%%\" y=\"33\">%s \u2192</text></svg></div>\n",
                less ? "better" : "worse", less ? "worse" : "better");
}

/* ---- Block by block ---- */

/* Ratios of the arms to the baseline in the primary metric: [arm * blocks + block], NaN where
 * either has no value. */
struct block_ratios {
    size_t blocks;
    double *ratios;
};

static void gather_ratios(const struct ab_experiment *experiment, struct block_ratios *ratios)
{
    size_t cells;

    /* A block has a run at least, so that there are no more of them than runs. */
    ratios->blocks = 0;
    for (size_t i = 0; i < experiment->run_count; i++) {
        const struct ab_run *run = &experiment->runs[i];

        if (!run->warm_up && run->block < experiment->run_count && run->block >= ratios->blocks) {
            ratios->blocks = run->block + 1;
        }
    }
    cells = ratios->blocks * experiment->arm_count;
    ratios->ratios = memory_allocate(cells + 1, sizeof *ratios->ratios);
    for (size_t i = 0; i < cells; i++) {
        ratios->ratios[i] = NAN;
    }
    for (size_t i = 0; i < experiment->run_count; i++) {
        const struct ab_run *run = &experiment->runs[i];

        if (!run->warm_up && run->block < ratios->blocks && run->outcome == AB_OK &&
            run->values[0].value > 0) {
            ratios->ratios[run->arm * ratios->blocks + run->block] = run->values[0].value;
        }
    }
    /* The baseline last: it is what the others are divided by. */
    for (size_t i = cells; i-- > 0;) {
        ratios->ratios[i] /= ratios->ratios[i % ratios->blocks];
    }
}

static struct html_axis range_of_blocks(const struct ab_experiment *experiment,
                                        const struct block_ratios *ratios)
{
    double *sorted = memory_allocate(ratios->blocks + 1, sizeof *sorted);
    double low = NAN, high = NAN;

    for (size_t arm = 1; arm < experiment->arm_count; arm++) {
        size_t count = 0;

        for (size_t block = 0; block < ratios->blocks; block++) {
            double ratio = ratios->ratios[arm * ratios->blocks + block];

            if (isfinite(ratio)) {
                sorted[count++] = ratio;
            }
        }
        gsl_sort(sorted, 1, count);
        html_axis_widen(&low, &high, sorted, count);
    }
    free(sorted);
    return html_axis_ratios(low, high);
}

/* Dots from top to bottom in the order of the blocks, so that a drift is a slope. Returns how many
 * there are outside. */
static size_t draw_strip(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                         const struct block_ratios *ratios, const struct html_axis *axis,
                         size_t arm, FILE *stream)
{
    const struct ab_comparison *comparison = ab_analysis_comparison(analysis, arm, 0);
    double ratio = comparison == NULL ? NAN : comparison->ratio;
    struct html_mark mark = html_style_mark(experiment, arm);
    struct ab_text text;
    size_t count = 0, outside = 0;

    begin_label(experiment, arm, stream);
    html_format(stream, "mean %s, %zu block%s", ab_ratio(&text, ratio, 3),
                comparison == NULL ? 0 : comparison->pairs,
                comparison != NULL && comparison->pairs == 1 ? "" : "s");
    begin_row(experiment, arm, axis, "Ratios block by block", stream);
    for (size_t block = 0; block < ratios->blocks; block++) {
        double here = ratios->ratios[arm * ratios->blocks + block];

        if (!isfinite(here)) {
            continue;
        }
        count++;
        outside += !html_axis_holds(axis, here);
        html_markup(stream,
                    "<use class=\"point %s\" href=\"#s%c\" x=\"%.2f%%\" y=\"%.1f%%\"><title>",
                    mark.colour, mark.shape, html_axis_percent(axis, here),
                    8 + 84 * ((double)block + 0.5) / (double)ratios->blocks);
        html_format(stream, "block %zu: %s", block + 1, ab_ratio(&text, here, 4));
        html_markup(stream, "</title></use>\n");
    }
    if (isfinite(ratio) && count > 0) {
        double x = html_axis_percent(axis, ratio);

        html_markup(stream,
                    "<line class=\"mean\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"100%%\"/>", x,
                    x);
    }
    end_row(stream);
    return outside;
}

void html_plot_blocks(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                      FILE *stream)
{
    struct block_ratios ratios;
    struct html_axis axis;
    size_t outside = 0;

    gather_ratios(experiment, &ratios);
    axis = range_of_blocks(experiment, &ratios);
    html_markup(stream, "<figure id=\"blocks\"><figcaption>One mark ");
    if (experiment->live != NULL && experiment->live->together > 1) {
        html_markup(stream, "for up to %zu neighbouring blocks", experiment->live->together);
    } else {
        html_markup(stream, "a block");
    }
    html_markup(stream, ", the first on top; the upright bar is the mean.</figcaption>\n");
    for (size_t arm = 1; arm < experiment->arm_count; arm++) {
        outside += draw_strip(experiment, analysis, &ratios, &axis, arm, stream);
    }
    draw_axis(experiment, &axis, stream);
    if (outside > 0) {
        html_markup(stream, "<p class=\"note\">%zu ratio%s far outside %s drawn at the edge.</p>\n",
                    outside, outside == 1 ? "" : "s", outside == 1 ? "is" : "are");
    }
    html_markup(stream, "</figure>\n");
    free(ratios.ratios);
}

/* ---- Intervals ---- */

static void widen(double *low, double *high, double value)
{
    if (isfinite(value) && value > 0) {
        *low = isfinite(*low) ? fmin(*low, value) : value;
        *high = isfinite(*high) ? fmax(*high, value) : value;
    }
}

static struct html_axis range_of_intervals(const struct ab_experiment *experiment,
                                           const struct ab_analysis *analysis)
{
    double low = NAN, high = NAN, margin = 1 + experiment->plan.margin;

    widen(&low, &high, pow(margin, 1.5));
    widen(&low, &high, pow(margin, -1.5));
    for (size_t i = 0; i < analysis->comparison_count; i++) {
        const struct ab_comparison *comparison = &analysis->comparisons[i];

        if (comparison->metric == 0) {
            widen(&low, &high, comparison->ratio);
            widen(&low, &high, comparison->low);
            widen(&low, &high, comparison->high);
        }
    }
    return html_axis_ratios(low, high);
}

static void draw_line(const struct html_axis *axis, const char *class, double low, double high,
                      FILE *stream)
{
    if (isfinite(low) && isfinite(high)) {
        html_markup(stream,
                    "<line class=\"%s\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"50%%\" y2=\"50%%\"/>\n",
                    class, html_axis_percent(axis, low), html_axis_percent(axis, high));
    }
}

static void label_interval(const struct ab_experiment *experiment,
                           const struct ab_comparison *comparison, FILE *stream)
{
    int decimals = ab_ratio_decimals(comparison->ratio, comparison->low, comparison->high, 3);
    struct ab_text ratio, interval, level;
    char *verdict = ab_verdict_words(experiment, comparison);

    html_text(stream, ab_ratio(&ratio, comparison->ratio, decimals));
    if (isfinite(comparison->low) && isfinite(comparison->high)) {
        html_format(stream, " (%s: %s)", ab_percent(&level, comparison->level),
                    ab_interval(&interval, comparison->low, comparison->high, decimals));
    } else {
        html_text(stream, ", too few blocks for an interval");
    }
    html_markup(stream, "</span><span>");
    html_text(stream, verdict);
    free(verdict);
}

static void draw_interval(const struct ab_experiment *experiment,
                          const struct ab_analysis *analysis, const struct html_axis *axis,
                          size_t arm, FILE *stream)
{
    const struct ab_comparison *comparison = ab_analysis_comparison(analysis, arm, 0);
    struct html_mark mark = html_style_mark(experiment, arm);
    double margin = 1 + experiment->plan.margin;
    double from = html_axis_percent(axis, 1 / margin), to = html_axis_percent(axis, margin);

    if (comparison == NULL) {
        return;
    }
    begin_label(experiment, arm, stream);
    label_interval(experiment, comparison, stream);
    begin_row(experiment, arm, axis, "Interval", stream);
    html_markup(stream,
                "<rect class=\"margin\" x=\"%.2f%%\" y=\"0\" width=\"%.2f%%\" height=\"100%%\"/>\n"
                "<g class=\"%s\">\n",
                from, to - from, mark.colour);
    draw_line(axis, "wide", comparison->low, comparison->high, stream);
    draw_line(axis, "inner", comparison->margin_low, comparison->margin_high, stream);
    html_markup(stream, "</g>");
    if (isfinite(comparison->ratio)) {
        html_markup(stream, "<use class=\"estimate %s\" href=\"#k%c\" x=\"%.2f%%\" y=\"50%%\"/>\n",
                    mark.colour, mark.shape, html_axis_percent(axis, comparison->ratio));
    }
    end_row(stream);
}

void html_plot_intervals(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
                         FILE *stream)
{
    struct html_axis axis = range_of_intervals(experiment, analysis);
    struct ab_text margin;

    html_markup(stream, "<figure id=\"intervals\"><figcaption>");
    html_format(stream,
                "The mark is the ratio, the thin line the interval that goes with the verdict, the "
                "thick one the interval that has to lie in the grey band, the margin of %s, for "
                "\u201cno difference\u201d.",
                ab_percent(&margin, experiment->plan.margin));
    html_markup(stream, "</figcaption>\n");
    for (size_t arm = 1; arm < experiment->arm_count; arm++) {
        draw_interval(experiment, analysis, &axis, arm, stream);
    }
    draw_axis(experiment, &axis, stream);
    html_markup(stream, "</figure>\n");
}
