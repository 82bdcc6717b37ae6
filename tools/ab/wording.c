/* SPDX-License-Identifier: Apache-2.0 */
#include "wording.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "memory.h"

const char *const ab_outcome_words[AB_OUTCOME_COUNT] = {
    [AB_OK] = "ok",
    [AB_EXITED] = "exited with an error",
    [AB_SIGNALLED] = "ended by a signal",
    [AB_TIMED_OUT] = "timed out",
    [AB_CHECK_FAILED] = "check failed",
    [AB_OUTPUT_DIFFERS] = "other output",
    [AB_METRIC_MISSING] = "metric missing",
    [AB_NOT_ATTACHED] = "not attached",
    [AB_INTERRUPTED] = "interrupted",
};

const char *const ab_role_words[] = {
    [AB_ROLE_BASELINE] = "baseline",
    [AB_ROLE_REPEAT] = "baseline again",
    [AB_ROLE_COST] = "preload alone",
    [AB_ROLE_CANDIDATE] = "candidate",
};

void ab_append(char **text, const char *format, ...)
{
    char *more, *longer;
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(&more, format, arguments) < 0) {
        more = memory_copy("");
    }
    va_end(arguments);
    longer = memory_format("%s%s", *text == NULL ? "" : *text, more);
    free(more);
    free(*text);
    *text = longer;
}

/* ---- Values ---- */

static const struct {
    const char *name;
    double seconds;
} time_units[] = {
    {"s", 1},
    {"sec", 1},
    {"seconds", 1},
    {"ms", 1e-3},
    {"us", 1e-6},
    {"\u00b5s", 1e-6},
    /* micro sign */ {"\u03bcs", 1e-6},
    /* Greek mu */ {"ns", 1e-9},
};

/* Seconds in the metric's unit; 0 when it is not one of time. */
static double seconds_in_unit(const struct ab_metric *metric)
{
    for (size_t i = 0; i < sizeof time_units / sizeof *time_units; i++) {
        if (metric->unit != NULL && strcmp(metric->unit, time_units[i].name) == 0) {
            return time_units[i].seconds;
        }
    }
    return 0;
}

bool ab_metric_is_time(const struct ab_metric *metric)
{
    static const char *const words[] = {"time", "seconds", "latency", "duration"};

    if (metric->direction != AB_LESS_IS_BETTER) {
        return false;
    }
    if (metric->source == AB_METRIC_WALL || metric->source == AB_METRIC_STEP ||
        seconds_in_unit(metric) > 0) {
        return true;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if ((metric->unit == NULL || metric->unit[0] == '\0') &&
            strcasestr(metric->name, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Decimals so that this many figures of value are seen. */
static int decimals_for(double value, int figures)
{
    int decimals;

    if (!isfinite(value) || value == 0) {
        return 2;
    }
    decimals = figures - 1 - (int)floor(log10(fabs(value)));
    return decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
}

struct ab_scale ab_scale_of(const struct ab_metric *metric, double value, double deviation)
{
    static const struct {
        double from, factor;
        const char *unit;
    } scales[] = {{1, 1, "s"}, {1e-3, 1e3, "ms"}, {1e-6, 1e6, "\u00b5s"}, {0, 1e9, "ns"}};
    struct ab_scale scale = {.factor = 1};
    double unit = seconds_in_unit(metric);
    int more;

    snprintf(scale.unit, sizeof scale.unit, "%s", metric->unit == NULL ? "" : metric->unit);
    if (unit > 0 && isfinite(value) && value != 0) {
        size_t i = 0;

        while (fabs(value) * unit < scales[i].from) {
            i++;
        }
        scale.factor = unit * scales[i].factor;
        snprintf(scale.unit, sizeof scale.unit, "%s", scales[i].unit);
    }
    scale.decimals = decimals_for(value * scale.factor, 4);
    if (isfinite(deviation) && deviation > 0) {
        /* Two figures of the deviation, within reason: six of the value are enough. */
        more = decimals_for(deviation * scale.factor, 2);
        if (more > scale.decimals) {
            int most = decimals_for(value * scale.factor, 6);

            scale.decimals = more < most ? more : most;
        }
    }
    return scale;
}

double *ab_arm_values(const struct ab_experiment *experiment, size_t arm, size_t metric,
                      size_t *count)
{
    double *values = memory_allocate(experiment->run_count + 1, sizeof *values);

    *count = 0;
    for (size_t i = 0; i < experiment->run_count; i++) {
        const struct ab_run *run = &experiment->runs[i];

        if (run->arm == arm && !run->warm_up && run->outcome == AB_OK &&
            isfinite(run->values[metric].value)) {
            values[(*count)++] = run->values[metric].value;
        }
    }
    gsl_sort(values, 1, *count);
    return values;
}

struct ab_scale ab_scale_of_arms(const struct ab_experiment *experiment, size_t metric)
{
    double value = NAN, deviation = NAN;

    /* The baseline, or the first arm that has anything. */
    for (size_t arm = 0; arm < experiment->arm_count && !isfinite(value); arm++) {
        size_t count;
        double *values = ab_arm_values(experiment, arm, metric, &count);

        if (count > 0) {
            value = gsl_stats_median_from_sorted_data(values, 1, count);
            deviation = count > 1 ? gsl_stats_sd(values, 1, count) : NAN;
        }
        free(values);
    }
    return ab_scale_of(&experiment->metrics[metric], value, deviation);
}

const char *ab_number(struct ab_text *text, const struct ab_scale *scale, double value)
{
    if (!isfinite(value)) {
        return "-";
    }
    snprintf(text->text, sizeof text->text, "%.*f", scale->decimals, value * scale->factor);
    if (strlen(text->text) > 20) {
        snprintf(text->text, sizeof text->text, "%.6g", value * scale->factor);
    }
    return text->text;
}

const char *ab_quantity(struct ab_text *text, const struct ab_scale *scale, double value)
{
    size_t length;

    if (!isfinite(value)) {
        return "-";
    }
    ab_number(text, scale, value);
    length = strlen(text->text);
    if (scale->unit[0] != '\0') {
        snprintf(text->text + length, sizeof text->text - length, " %s", scale->unit);
    }
    return text->text;
}

char *ab_metric_heading(const struct ab_metric *metric, const struct ab_scale *scale)
{
    return scale->unit[0] == '\0' ? memory_copy(metric->name)
                                  : memory_format("%s [%s]", metric->name, scale->unit);
}

/* ---- Ratios ---- */

/* Whether a number reads as 1 with so many decimals, though it is another one. */
static bool hides_difference(double number, int decimals)
{
    double step = pow(10, -decimals);

    return isfinite(number) && number != 1 && fabs(number - 1) < step / 2;
}

int ab_ratio_decimals(double ratio, double low, double high, int least)
{
    int decimals = least;
    double width = high - low;

    if (isfinite(width) && width > 0) {
        int figures = 1 - (int)floor(log10(2 * width));

        decimals = figures > decimals ? figures : decimals;
    }
    if (isfinite(ratio) && ratio > 0) {
        int figures = least - (int)floor(log10(ratio));

        decimals = ratio < 1 && figures - 1 > decimals ? figures - 1 : decimals;
    }
    while (decimals < 5 && (hides_difference(low, decimals) || hides_difference(high, decimals))) {
        decimals++;
    }
    return decimals > 5 ? 5 : decimals;
}

const char *ab_ratio(struct ab_text *text, double ratio, int decimals)
{
    if (!isfinite(ratio)) {
        return "-";
    }
    snprintf(text->text, sizeof text->text, "%.*f", ratio >= 100 ? 0 : decimals, ratio);
    return text->text;
}

const char *ab_interval(struct ab_text *text, double low, double high, int decimals)
{
    struct ab_text from, to;

    if (!isfinite(low) || !isfinite(high)) {
        return "-";
    }
    snprintf(text->text, sizeof text->text, "%.40s .. %.40s", ab_ratio(&from, low, decimals),
             ab_ratio(&to, high, decimals));
    return text->text;
}

const char *ab_percent(struct ab_text *text, double share)
{
    if (!isfinite(share)) {
        return "-";
    }
    snprintf(text->text, sizeof text->text, "%.4g %%", share * 100);
    return text->text;
}

const char *ab_probability(struct ab_text *text, double p)
{
    if (!isfinite(p)) {
        return "-";
    }
    if (p < 1e-4) {
        return "< 0.0001";
    }
    snprintf(text->text, sizeof text->text, "%.*f", p < 0.01 ? 4 : 3, p);
    return text->text;
}

/* ---- Arms ---- */

size_t ab_failed(const struct ab_arm_summary *arm)
{
    size_t failed = 0;

    for (size_t i = 0; i < AB_OUTCOME_COUNT; i++) {
        failed += i == AB_OK || i == AB_INTERRUPTED ? 0 : arm->outcomes[i];
    }
    return failed;
}

char *ab_failures(const struct ab_arm_summary *arm)
{
    char *text = memory_copy("");

    for (size_t i = 0; i < AB_OUTCOME_COUNT; i++) {
        if (i != AB_OK && i != AB_INTERRUPTED && arm->outcomes[i] > 0) {
            ab_append(&text, "%s%zu %s", text[0] == '\0' ? "" : ", ", arm->outcomes[i],
                      ab_outcome_words[i]);
        }
    }
    return text;
}

char *ab_verdict_words(const struct ab_experiment *experiment,
                       const struct ab_comparison *comparison)
{
    struct ab_text margin;

    if (comparison == NULL) {
        return memory_copy("baseline");
    }
    if (comparison->verdict == AB_VERDICT_NO_DIFFERENCE) {
        return memory_format("no difference over %s", ab_percent(&margin, experiment->plan.margin));
    }
    if (comparison->verdict == AB_VERDICT_NOT_ENOUGH && experiment->live != NULL) {
        return memory_copy("not enough");
    }
    return memory_copy(ab_verdict_names[comparison->verdict]);
}

const char *ab_unit_word(const struct ab_experiment *experiment)
{
    return experiment->live != NULL ? "slice" : "run";
}

char *ab_flag_words(unsigned flags)
{
    static const struct {
        unsigned flag;
        const char *words;
    } names[] = {
        {AB_GPU_THROTTLED_THERMAL, "slowed down by heat"},
        {AB_GPU_THROTTLED_POWER, "slowed down by the power limit"},
        {AB_GPU_THROTTLED_OTHER, "slowed down by the hardware"},
        {AB_GPU_OTHER_PROCESSES, "other processes on the GPU"},
        {AB_GPU_CLOCKS_CHANGED, "clocks far from the other runs'"},
    };
    char *text = memory_copy("");

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if ((flags & names[i].flag) != 0) {
            ab_append(&text, "%s%s", text[0] == '\0' ? "" : ", ", names[i].words);
        }
    }
    return text;
}

size_t ab_arm_of_role(const struct ab_experiment *experiment, enum ab_arm_role role)
{
    for (size_t i = 0; i < experiment->arm_count; i++) {
        if (experiment->arms[i].role == role) {
            return i;
        }
    }
    return SIZE_MAX;
}
