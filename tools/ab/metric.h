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
 *   pattern  NAME=REGEX: PCRE2, the first match of a line, on standard output, and where there is
 *            no value there, on standard error. The group called "value", else the first group,
 * else the whole match, is a number: with a point, an exponent, or commas between groups of three
 * digits (1,234.5); nan and inf are none; a unit behind it has to be outside the group. A group
 * called "rank" tells ranks apart. Carriage returns end lines too, escape sequences are left out,
 * lines are cut at 16 KiB, and the first million values is read json     NAME=[FILE:]PATH: PATH as
 * in json_path.h; a path with a colon in it needs a FILE, or one before it, ":a:b". Without FILE
 * the whole of standard output, or else the last object or array in it that has its lines for
 * itself; documents of at most 64 MiB. An array of numbers is many values, an array of such arrays
 * is ranks A suffix in NAME gives the unit, "time[ms]"; a '+' before it says that more is better:
 * "+throughput[img/s]".
 */
bool ab_metric_pattern(struct ab_metric *metric, const char *text, char *error, size_t size);
bool ab_metric_json(struct ab_metric *metric, const char *text, char *error, size_t size);
void ab_metric_wall(struct ab_metric *metric);
/* kernel: a name glob, or NULL for graph launches. Seconds a step: all the time from the end of the
 * warm-up to the last step by the steps in it. */
void ab_metric_step(struct ab_metric *metric, const char *kernel);
/* With texts of its own. */
struct ab_metric ab_metric_copy(const struct ab_metric *metric);
void ab_metric_release(struct ab_metric *metric);

bool ab_across_parse(const char *text, enum ab_across *across);

/* Reads the metric of a run. False when there is no value, with the reason in error[size]. */
bool ab_metric_read(const struct ab_metric *metric, const struct ab_run_files *files,
                    struct ab_run_value *value, char *error, size_t size);

/* How many of the first values are warm-up: the shortest head without which the rest looks
 * stationary (MSER-5, and the shortest that is within 10 % of the best; with fewer than 50 values
 * single ones instead of batches of five); at most half, and none of fewer than 10. */
size_t ab_warm_up_find(const double *values, size_t count);

/* The last lines of a file, at most so many, without empty ones, each shortened and printable, a
 * newline between them; "" when there are none or no such file. For messages; to be freed. */
char *ab_last_lines(const char *path, size_t lines);

#endif
