/* SPDX-License-Identifier: Apache-2.0 */
#include "html_plot.h"

#include <math.h>
#include <stdlib.h>

#include "html_axis.h"
#include "html_style.h"
#include "html_text.h"
#include "wording.h"

/* Down the plot, in pixels. */
enum {
    RUNS_TOP = 16,
    RUNS_BOTTOM = 260,
    RUNS_FAILED = 288, /* where failed runs lie */
    RUNS_AXIS = 324,
    RUNS_HEIGHT = 348,
};

enum {
    RUNS_MESSAGE_SHOWN = 200, /* of a failed run, on its mark: the table has more */
};

struct runs_plot {
    const struct ab_experiment *experiment;
    struct ab_scale scale;
    struct html_axis values, numbers;
    FILE *stream;
    size_t outside; /* runs drawn at an edge */
};

/* Where the run number index lies: in the middle of its place. */
static double across(const struct runs_plot *plot, double index)
{
    return 100 * (index + 0.5) / (double)plot->experiment->run_count;
}

static double down(const struct runs_plot *plot, double value)
{
    return RUNS_BOTTOM - (RUNS_BOTTOM - RUNS_TOP) * html_axis_percent(&plot->values, value) / 100;
}

/* Slices have bands by run: there are many blocks in each. */
static bool same_band(const struct runs_plot *plot, const struct ab_run *a, const struct ab_run *b)
{
    return plot->experiment->live != NULL ? a->live_run == b->live_run
                                          : a->block == b->block && a->warm_up == b->warm_up;
}

/* Every other block has a band behind it. */
static void draw_blocks(const struct runs_plot *plot)
{
    const struct ab_experiment *experiment = plot->experiment;
    double width = 100.0 / (double)experiment->run_count;
    size_t first = 0;
    bool band = false;

    for (size_t i = 1; i <= experiment->run_count; i++) {
        if (i < experiment->run_count &&
            same_band(plot, &experiment->runs[i], &experiment->runs[first])) {
            continue;
        }
        if (band) {
            html_markup(plot->stream,
                        "<rect class=\"block\" x=\"%.2f%%\" y=\"%d\" width=\"%.2f%%\" "
                        "height=\"%d\"/>\n",
                        width * (double)first, RUNS_TOP - 8, width * (double)(i - first),
                        RUNS_AXIS - 16 - (RUNS_TOP - 8));
        }
        band = !band;
        first = i;
    }
}

static void draw_axes(const struct runs_plot *plot)
{
    for (size_t i = 0; i < plot->values.tick_count; i++) {
        double y = down(plot, plot->values.ticks[i].at);

        html_markup(plot->stream,
                    "<line class=\"grid\" x1=\"0\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/>"
                    "<text class=\"end\" x=\"-8\" y=\"%.1f\">%s</text>\n",
                    y, y, y + 4, plot->values.ticks[i].label);
    }
    for (size_t i = 0; i < plot->numbers.tick_count; i++) {
        if (plot->numbers.ticks[i].at >= 1) {
            html_markup(plot->stream, "<text class=\"mid\" x=\"%.2f%%\" y=\"%d\">%s</text>\n",
                        across(plot, plot->numbers.ticks[i].at - 1), RUNS_AXIS,
                        plot->numbers.ticks[i].label);
        }
    }
    if (plot->experiment->live == NULL) {
        html_markup(plot->stream, "<text class=\"end\" x=\"-8\" y=\"%d\">failed</text>\n",
                    RUNS_FAILED + 4);
    }
    html_markup(plot->stream, "<text class=\"mid\" x=\"50%%\" y=\"%d\">%s</text>\n", RUNS_AXIS + 17,
                ab_unit_word(plot->experiment));
}

static void draw_run(struct runs_plot *plot, size_t index)
{
    const struct ab_run *run = &plot->experiment->runs[index];
    struct html_mark mark = html_style_mark(plot->experiment, run->arm);
    double value = run->values[0].value, x = across(plot, (double)index);
    bool counts = run->outcome == AB_OK && isfinite(value);
    double y = counts ? down(plot, value * plot->scale.factor) : RUNS_FAILED;
    char *flags = ab_flag_words(run->gpu.known ? run->gpu.flags : 0);
    struct ab_text text;

    if (flags[0] != '\0') {
        html_markup(plot->stream, "<use class=\"ring\" href=\"#so\" x=\"%.2f%%\" y=\"%.1f\"/>", x,
                    y);
    }
    html_markup(plot->stream,
                "<use class=\"dot %s%s%s\" href=\"#s%c\" x=\"%.2f%%\" y=\"%.1f\"><title>",
                mark.colour, counts ? "" : " cross", run->warm_up ? " faint" : "",
                counts ? mark.shape : 'x', x, y);
    if (plot->experiment->live != NULL) {
        html_format(plot->stream, "run %u, block %u: %s, ", run->live_run + 1, run->block + 1,
                    plot->experiment->arms[run->arm].name);
    } else {
        html_format(plot->stream, "run %zu, %sblock %u: %s, ", index + 1,
                    run->warm_up ? "warm-up " : "", run->block + 1,
                    plot->experiment->arms[run->arm].name);
    }
    if (counts) {
        html_text(plot->stream, ab_quantity(&text, &plot->scale, value));
        plot->outside += !html_axis_holds(&plot->values, value * plot->scale.factor);
    } else {
        html_text(plot->stream,
                  run->outcome == AB_OK ? "no value" : ab_outcome_words[run->outcome]);
        if (run->message != NULL) {
            html_text(plot->stream, ": ");
            html_message(plot->stream, run->message, RUNS_MESSAGE_SHOWN);
        }
    }
    if (flags[0] != '\0') {
        html_format(plot->stream, "; %s", flags);
    }
    html_markup(plot->stream, "</title></use>\n");
    free(flags);
}

/* The axis of values: those of every arm are seen, whichever is the fastest. */
static void range_of_values(struct runs_plot *plot)
{
    double low = NAN, high = NAN;

    for (size_t arm = 0; arm < plot->experiment->arm_count; arm++) {
        size_t count;
        double *values = ab_arm_values(plot->experiment, arm, 0, &count);

        for (size_t i = 0; i < count; i++) {
            values[i] *= plot->scale.factor;
        }
        html_axis_widen(&low, &high, values, count);
        free(values);
    }
    plot->values = html_axis_numbers(low, high);
}

static void write_caption(const struct ab_experiment *experiment, FILE *stream)
{
    const struct ab_live_design *live = experiment->live;

    if (live == NULL) {
        html_markup(stream, " of each run. Bands are blocks; pale marks are warm-up.");
    } else if (live->together == 1) {
        html_markup(stream, " of each slice. Bands are runs.");
    } else {
        html_markup(stream,
                    " of slices: each mark is the mean of the arm's slices in up to %zu "
                    "neighbouring blocks. Bands are runs.",
                    live->together);
    }
}

void html_plot_runs(const struct ab_experiment *experiment, FILE *stream)
{
    struct runs_plot plot = {.experiment = experiment, .stream = stream};
    char *heading;

    if (experiment->run_count == 0) {
        html_markup(stream, "<p>No run was made.</p>\n");
        return;
    }
    plot.scale = ab_scale_of_arms(experiment, 0);
    plot.numbers = html_axis_counts(experiment->run_count);
    range_of_values(&plot);
    heading = ab_metric_heading(&experiment->metrics[0], &plot.scale);
    html_markup(stream, "<figure><figcaption>");
    html_text(stream, heading);
    write_caption(experiment, stream);
    html_markup(stream,
                "</figcaption>\n<div class=\"plot\"><svg role=\"img\" id=\"runs\" height=\"%d\" "
                "aria-labelledby=\"runs-title runs-desc\">"
                "<title id=\"runs-title\">%s in order</title>"
                "<desc id=\"runs-desc\">",
                RUNS_HEIGHT, experiment->live != NULL ? "Slices" : "Runs");
    html_format(stream, "%s of the %zu %ss in the order in which they were made.", heading,
                experiment->run_count, ab_unit_word(experiment));
    html_markup(stream, "</desc>\n");
    draw_blocks(&plot);
    draw_axes(&plot);
    for (size_t i = 0; i < experiment->run_count; i++) {
        draw_run(&plot, i);
    }
    html_markup(stream, "</svg></div>\n");
    if (plot.outside > 0) {
        html_markup(stream, "<p class=\"note\">%zu value%s far outside %s drawn at the edge.</p>\n",
                    plot.outside, plot.outside == 1 ? "" : "s", plot.outside == 1 ? "is" : "are");
    }
    html_markup(stream, "</figure>\n");
    free(heading);
}
