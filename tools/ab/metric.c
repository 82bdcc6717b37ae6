/* SPDX-License-Identifier: Apache-2.0 */
#include "metric.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expression.h"
#include "memory.h"
#include "metric_parts.h"

enum {
    UNIT_LENGTH = 32,
    NAME_LENGTH = 64,
    QUOTE_WIDTH = 80,
    /* Warm-up is looked for among so many values at least. */
    WARM_UP_LEAST = 10,
    /* MSER-5: batches of five values, where there are enough of them. */
    BATCH = 5,
    BATCHES_LEAST = 10,
    MARGINAL_TOLERANCE = 10, /* percent */
    /* A step time needs so many readings between which the count rose. */
    STEP_CHANGES = 3,
};

/* ---- Options -------------------------------------------------------------------------------- */

static const char name_bytes[] = "abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789_.-";

static void set(struct ab_metric *metric, enum ab_metric_source source, char *name, char *unit,
                bool more, const char *definition)
{
    *metric = (struct ab_metric){
        .name = name,
        .unit = unit,
        .direction = more ? AB_MORE_IS_BETTER : AB_LESS_IS_BETTER,
        .source = source,
        .definition = memory_copy(definition),
        /* The slowest rank is what the job waits for. */
        .across = more ? AB_ACROSS_MIN : AB_ACROSS_MAX,
        .skip = -1,
    };
}

static bool refuse(char *error, size_t size, const char *text, const char *reason)
{
    char *quoted = ab_quote(text, strlen(text), QUOTE_WIDTH);

    snprintf(error, size, "'%s': %s", quoted, reason);
    free(quoted);
    return false;
}

/* The length of the unit in brackets at text, brackets included; 0 when it is not one. */
static size_t unit_length(const char *text)
{
    size_t length = strcspn(text, "]");

    if (text[0] != '[' || text[length] != ']' || length < 2 || length - 1 > UNIT_LENGTH) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f) {
            return 0;
        }
    }
    return length + 1;
}

/* "[+]NAME[UNIT]=…": fills in *metric; returns what stands behind the '='. NULL with a message. */
static const char *parse_head(struct ab_metric *metric, enum ab_metric_source source,
                              const char *text, char *error, size_t size)
{
    bool more = text[0] == '+';
    const char *name = text + more;
    size_t length = strspn(name, name_bytes), unit = 0;

    if (length == 0 || length > NAME_LENGTH) {
        refuse(error, size, text,
               "a metric is NAME=…, the name of letters, digits, '_', '.' and '-', at most 64");
        return NULL;
    }
    if (name[length] == '[') {
        unit = unit_length(name + length);
        if (unit == 0) {
            refuse(error, size, name + length, "a unit is 1 to 32 characters in brackets, [ms]");
            return NULL;
        }
    }
    if (name[length + unit] != '=') {
        char reason[96];

        snprintf(reason, sizeof reason, "'=' is expected behind the metric's name, at offset %zu",
                 (size_t)(name - text) + length + unit);
        refuse(error, size, text, reason);
        return NULL;
    }
    set(metric, source, memory_format("%.*s", (int)length, name),
        unit == 0 ? memory_copy("") : memory_format("%.*s", (int)unit - 2, name + length + 1), more,
        name + length + unit + 1);
    return metric->definition;
}

bool ab_metric_pattern(struct ab_metric *metric, const char *text, char *error, size_t size)
{
    struct ab_expression expression;
    const char *pattern = parse_head(metric, AB_METRIC_PATTERN, text, error, size);

    if (pattern == NULL) {
        return false;
    }
    if (!ab_expression_compile(&expression, pattern, error, size)) {
        ab_metric_release(metric);
        return false;
    }
    ab_expression_free(&expression);
    return true;
}

bool ab_metric_json(struct ab_metric *metric, const char *text, char *error, size_t size)
{
    const char *definition = parse_head(metric, AB_METRIC_JSON, text, error, size);

    if (definition == NULL) {
        return false;
    }
    if (!ab_json_check(definition, error, size)) {
        ab_metric_release(metric);
        return false;
    }
    return true;
}

void ab_metric_wall(struct ab_metric *metric)
{
    set(metric, AB_METRIC_WALL, memory_copy("wall"), memory_copy("s"), false, "");
    metric->skip = 0;
}

void ab_metric_step(struct ab_metric *metric, const char *kernel)
{
    set(metric, AB_METRIC_STEP, memory_copy("step"), memory_copy("s"), false,
        kernel == NULL ? "" : kernel);
}

struct ab_metric ab_metric_copy(const struct ab_metric *metric)
{
    struct ab_metric copy = *metric;

    copy.name = memory_copy(metric->name);
    copy.unit = memory_copy(metric->unit);
    copy.definition = memory_copy(metric->definition);
    return copy;
}

void ab_metric_release(struct ab_metric *metric)
{
    free(metric->name);
    free(metric->unit);
    free(metric->definition);
    *metric = (struct ab_metric){0};
}

bool ab_across_parse(const char *text, enum ab_across *across)
{
    static const char *const words[] = {
        [AB_ACROSS_MAX] = "max", [AB_ACROSS_MEAN] = "mean", [AB_ACROSS_MEDIAN] = "median",
        [AB_ACROSS_MIN] = "min", [AB_ACROSS_SUM] = "sum",
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text, words[i]) == 0) {
            *across = (enum ab_across)i;
            return true;
        }
    }
    return false;
}

/* ---- Values --------------------------------------------------------------------------------- */

size_t ab_values_add_rank(struct ab_values *values)
{
    values->ranks = memory_grow(values->ranks, values->rank_count, &values->rank_capacity,
                                sizeof *values->ranks);
    values->ranks[values->rank_count] = (struct ab_rank_values){0};
    return values->rank_count++;
}

void ab_values_add_to(struct ab_values *values, size_t rank, double value)
{
    struct ab_rank_values *to = &values->ranks[rank];

    if (values->count >= AB_VALUE_LIMIT) {
        return;
    }
    to->values = memory_grow(to->values, to->count, &to->capacity, sizeof *to->values);
    to->values[to->count++] = value;
    values->count++;
}

void ab_values_add(struct ab_values *values, const char *rank, double value)
{
    const json_t *number;
    size_t place;

    if (values->index == NULL) {
        values->index = json_object();
    }
    number = json_object_get(values->index, rank);
    if (number == NULL && values->rank_count >= AB_RANK_LIMIT) {
        return;
    }
    place = number != NULL ? (size_t)json_integer_value(number) : ab_values_add_rank(values);
    if (number == NULL) {
        json_object_set_new_nocheck(values->index, rank, json_integer((json_int_t)place));
    }
    ab_values_add_to(values, place, value);
}

void ab_values_release(struct ab_values *values)
{
    for (size_t i = 0; i < values->rank_count; i++) {
        free(values->ranks[i].values);
    }
    free(values->ranks);
    json_decref(values->index);
    *values = (struct ab_values){0};
}

/* ---- Warm-up -------------------------------------------------------------------------------- */

/* Means of batches of size values; what is left over at the end belongs to none. */
static double *batch_means(const double *values, size_t batches, size_t size)
{
    double *means = memory_allocate(batches, sizeof *means);

    for (size_t i = 0; i < batches; i++) {
        means[i] = gsl_stats_mean(values + i * size, 1, size);
    }
    return means;
}

/*
 * How many of the first values are best left out, at most so many: where the marginal standard
 * error of the rest's mean, sum of squares / n^2, is least (White 1997), or little more, with fewer
 * left out: of values that are stationary from the start, the least one lies anywhere.
 */
static size_t least_marginal_error(const double *values, size_t count, size_t most)
{
    double *marginal = memory_allocate(count, sizeof *marginal);
    double mean = 0, squares = 0, least = INFINITY, enough;
    size_t best = 0;

    /* From the end, so that each step adds one. */
    for (size_t first = count; first-- > 0;) {
        double number = (double)(count - first), difference = values[first] - mean;

        mean += difference / number;
        squares += difference * (values[first] - mean);
        marginal[first] = squares / (number * number);
        if (first <= most && marginal[first] < least) {
            least = marginal[first];
        }
    }
    /* Rounding alone is no reason to leave anything out. */
    enough = least * (1 + MARGINAL_TOLERANCE / 100.0) + mean * mean * 1e-28;
    while (marginal[best] > enough) {
        best++;
    }
    free(marginal);
    return best;
}

size_t ab_warm_up_find(const double *values, size_t count)
{
    size_t size = count >= (size_t)BATCH * BATCHES_LEAST ? BATCH : 1;
    size_t batches = count / size, cut;
    double *means;

    if (count < WARM_UP_LEAST) {
        return 0;
    }
    means = batch_means(values, batches, size);
    cut = least_marginal_error(means, batches, batches / 2) * size;
    free(means);
    return cut;
}

/* ---- Summaries ------------------------------------------------------------------------------ */

static double median(const double *values, size_t count)
{
    double *sorted = memory_allocate(count, sizeof *sorted);
    double middle;

    memcpy(sorted, values, count * sizeof *sorted);
    gsl_sort(sorted, 1, count);
    middle = gsl_stats_median_from_sorted_data(sorted, 1, count);
    free(sorted);
    return middle;
}

static double across_ranks(enum ab_across across, const double *values, size_t count)
{
    switch (across) {
    case AB_ACROSS_MAX:
        return gsl_stats_max(values, 1, count);
    case AB_ACROSS_MEAN:
        return gsl_stats_mean(values, 1, count);
    case AB_ACROSS_MEDIAN:
        return median(values, count);
    case AB_ACROSS_MIN:
        return gsl_stats_min(values, 1, count);
    case AB_ACROSS_SUM:
        break;
    }
    return gsl_stats_mean(values, 1, count) * (double)count;
}

/* NaN where there are too few values, or all are the same. */
static double autocorrelation(const double *values, size_t count)
{
    return count < 3 || gsl_stats_max(values, 1, count) == gsl_stats_min(values, 1, count)
               ? NAN
               : gsl_stats_lag1_autocorrelation(values, 1, count);
}

/* The means of ranks' autocorrelations, those aside that have none. */
struct mean {
    double sum;
    int64_t count;
};

static void mean_add(struct mean *mean, double value)
{
    if (!isnan(value)) {
        mean->sum += value;
        mean->count++;
    }
}

static double mean_value(const struct mean *mean)
{
    return mean->count == 0 ? NAN : mean->sum / (double)mean->count;
}

static size_t warm_up_of(const struct ab_metric *metric, const double *values, size_t count)
{
    return metric->skip < 0 ? ab_warm_up_find(values, count) : (size_t)metric->skip;
}

static bool say_all_warm_up(const struct ab_metric *metric, const char *what, double count,
                            char *error, size_t size)
{
    snprintf(error, size, "all %.0f %s of a rank are warm-up: %d are skipped", count, what,
             metric->skip);
    return false;
}

static bool summarise(const struct ab_metric *metric, const struct ab_values *values,
                      struct ab_run_value *value, char *error, size_t size)
{
    double *ranks = memory_allocate(values->rank_count, sizeof *ranks);
    struct mean correlation = {0};
    bool enough = true;

    for (size_t i = 0; i < values->rank_count && enough; i++) {
        const struct ab_rank_values *rank = &values->ranks[i];
        size_t cut = warm_up_of(metric, rank->values, rank->count);

        if (cut >= rank->count) {
            enough = say_all_warm_up(metric, "values", (double)rank->count, error, size);
            break;
        }
        ranks[i] = median(rank->values + cut, rank->count - cut);
        mean_add(&correlation, autocorrelation(rank->values + cut, rank->count - cut));
        value->warm_up += (int64_t)cut;
        value->count += (int64_t)(rank->count - cut);
    }
    if (enough) {
        value->value = across_ranks(metric->across, ranks, values->rank_count);
        value->autocorrelation = mean_value(&correlation);
    }
    free(ranks);
    return enough;
}

/* ---- Steps ---------------------------------------------------------------------------------- */

/* Seconds a step: all time by all steps, so that it does not matter how readings and steps fell
 * together. */
static double step_time(const struct ab_step_sample *first, const struct ab_step_sample *last)
{
    return (double)(last->time - first->time) / 1e9 / (double)(last->count - first->count);
}

/*
 * As ab_warm_up_find, with batches of readings: the time of all their steps by their number. A
 * reading or two of short steps says little: now there were two steps in it, now three.
 */
static size_t steps_warm_up(const struct ab_step_process *process)
{
    size_t count = process->sample_count - 1;
    size_t size = count >= (size_t)BATCH * BATCHES_LEAST ? BATCH : 1;
    size_t batches = count / size, cut;
    double *means;

    if (count < WARM_UP_LEAST) {
        return 0;
    }
    means = memory_allocate(batches, sizeof *means);
    for (size_t i = 0; i < batches; i++) {
        means[i] = step_time(&process->samples[i * size], &process->samples[(i + 1) * size]);
    }
    cut = least_marginal_error(means, batches, batches / 2) * size;
    free(means);
    return cut;
}

/* The sample from which on steps count. */
static size_t steps_begin(const struct ab_metric *metric, const struct ab_step_process *process)
{
    size_t begin = 0;

    if (metric->skip < 0) {
        return steps_warm_up(process);
    }
    while (begin < process->sample_count && process->samples[begin].count < metric->skip) {
        begin++;
    }
    return begin;
}

static double steps_correlation(const struct ab_step_process *process, size_t begin)
{
    size_t count;
    int64_t *weights;
    double *values = ab_steps_values(process, &count, &weights);
    double correlation = count > begin ? autocorrelation(values + begin, count - begin) : NAN;

    free(values);
    free(weights);
    return correlation;
}

static void say_no_steps(const struct ab_metric *metric, const struct ab_steps *steps, char *error,
                         size_t size)
{
    const char *what = metric->definition[0] == '\0' ? "graphs" : "kernels like ";
    char *kernel = ab_quote(metric->definition, strlen(metric->definition), QUOTE_WIDTH);
    int64_t most = 0;
    size_t changes = 0;

    for (size_t i = 0; i < steps->process_count; i++) {
        const struct ab_step_process *process = &steps->processes[i];

        if (process->sample_count > 0 && process->sample_count >= changes) {
            changes = process->sample_count;
            most = process->samples[changes - 1].count;
        }
    }
    if (changes == 0 && steps->problem[0] != '\0') {
        snprintf(error, size, "counters that cannot be read: %s", steps->problem);
    } else if (steps->process_count == 0) {
        snprintf(error, size,
                 "no counters were seen while the run was going on: no process launched a kernel, "
                 "or all ended within %d ms, between two readings",
                 AB_STEPS_INTERVAL);
    } else if (changes == 0) {
        snprintf(error, size, "none of the %zu processes with counters launched %s%s",
                 steps->process_count, what, kernel);
    } else {
        snprintf(error, size,
                 "too few steps for a time: %s%s were launched %" PRId64
                 " times, seen to rise at %zu readings, %d ms apart, of at least %d",
                 what, kernel, most, changes, AB_STEPS_INTERVAL, STEP_CHANGES);
    }
    free(kernel);
}

static bool read_steps(const struct ab_metric *metric, const struct ab_steps *steps,
                       struct ab_run_value *value, char *error, size_t size)
{
    double *ranks;
    size_t count = 0;
    struct mean correlation = {0};
    bool enough = true;

    if (steps == NULL) {
        snprintf(error, size, "steps were not watched in this run");
        return false;
    }
    ranks = memory_allocate(steps->process_count + 1, sizeof *ranks);
    for (size_t i = 0; i < steps->process_count && enough; i++) {
        const struct ab_step_process *process = &steps->processes[i];
        size_t begin;

        if (process->sample_count < STEP_CHANGES) {
            continue;
        }
        begin = steps_begin(metric, process);
        if (begin + 2 > process->sample_count) {
            enough = say_all_warm_up(metric, "steps",
                                     (double)process->samples[process->sample_count - 1].count,
                                     error, size);
            break;
        }
        ranks[count++] =
            step_time(&process->samples[begin], &process->samples[process->sample_count - 1]);
        mean_add(&correlation, steps_correlation(process, begin));
        value->warm_up += process->samples[begin].count;
        value->count +=
            process->samples[process->sample_count - 1].count - process->samples[begin].count;
    }
    if (enough && count > 0) {
        value->value = across_ranks(metric->across, ranks, count);
        value->autocorrelation = mean_value(&correlation);
    } else if (enough) {
        say_no_steps(metric, steps, error, size);
    }
    free(ranks);
    return enough && count > 0;
}

/* ---- Reading -------------------------------------------------------------------------------- */

static bool read_wall(const struct ab_run_files *files, struct ab_run_value *value)
{
    value->value = files->seconds;
    value->count = 1;
    return true;
}

static bool read_printed(const struct ab_metric *metric, const struct ab_run_files *files,
                         struct ab_run_value *value, char *error, size_t size)
{
    struct ab_values values = {0};
    bool read = metric->source == AB_METRIC_PATTERN
                    ? ab_pattern_values(metric, files, &values, error, size)
                    : ab_json_values(metric, files, &values, error, size);

    read = read && summarise(metric, &values, value, error, size);
    ab_values_release(&values);
    return read;
}

bool ab_metric_read(const struct ab_metric *metric, const struct ab_run_files *files,
                    struct ab_run_value *value, char *error, size_t size)
{
    static const struct ab_run_value none = {.value = NAN, .autocorrelation = NAN};
    bool read = false;

    *value = none;
    switch (metric->source) {
    case AB_METRIC_WALL:
        read = read_wall(files, value);
        break;
    case AB_METRIC_PATTERN:
    case AB_METRIC_JSON:
        read = read_printed(metric, files, value, error, size);
        break;
    case AB_METRIC_STEP:
        read = read_steps(metric, files->steps, value, error, size);
        break;
    }
    if (!read) {
        *value = none;
    }
    return read;
}
