/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_METRIC_H
#define CUDAPOLICY_TOOLS_AB_METRIC_H

/*
 * Metrics: what the user wants compared, and how a run's output becomes one number of it.
 *
 * A run may print many values (iterations, ranks). Warm-up is cut off, then the rest is summarised:
 * the median over a rank's iterations, then --across-ranks over ranks. Where ranks cannot be told
 * apart, all values are one sequence.
 */

#include <stdbool.h>
#include <stddef.h>

#include "experiment.h"
#include "steps.h"

/* What a run left behind. */
struct ab_run_files {
    double seconds;     /* wall time */
    const char *output; /* file with what it printed on standard output */
    const char *errors; /* on standard error */
    const char *folder; /* working folder of the command: relative JSON paths begin here */
    const char *arm;    /* replaces {arm} in JSON paths, as {block} and {position} */
    unsigned block, position;
    const struct ab_steps *steps; /* NULL: not watched */
};

/*
 * Metrics from options. Each fills in *metric and returns true, or false with a message in
 * error[size] that quotes the place that is wrong.
 *   pattern  NAME=REGEX: PCRE2, matched line by line on standard output, then standard error; the
 *            group called "value", else the first group, else the whole match, is a number
 *            (thousands separators and a unit behind it are the expression's business); a group
 *            called "rank" tells ranks apart
 *   json     NAME=[FILE:]PATH: PATH is a JSON pointer (RFC 6901) or dotted; without FILE the last
 *            line or the whole of standard output that is a JSON value; an array of numbers is many
 *            values
 * A suffix in NAME gives the unit, "time[ms]"; a '+' before it says that more is better:
 * "+throughput[img/s]".
 */
bool ab_metric_pattern(struct ab_metric *metric, const char *text, char *error, size_t size);
bool ab_metric_json(struct ab_metric *metric, const char *text, char *error, size_t size);
void ab_metric_wall(struct ab_metric *metric);
/* kernel: a name glob, or NULL for graph launches. */
void ab_metric_step(struct ab_metric *metric, const char *kernel);
void ab_metric_release(struct ab_metric *metric);

bool ab_across_parse(const char *text, enum ab_across *across);

/* Reads the metric of a run. False when there is no value, with the reason in error[size]. */
bool ab_metric_read(const struct ab_metric *metric, const struct ab_run_files *files,
                    struct ab_run_value *value, char *error, size_t size);

/* How many of the first values are warm-up: the shortest head without which the rest looks
 * stationary (MSER-5); at most half. */
size_t ab_warm_up_find(const double *values, size_t count);

/* The last lines of a file, at most lines many and size bytes, printable; for messages. */
char *ab_last_lines(const char *path, size_t lines);

#endif
