/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_STEPS_H
#define CUDAPOLICY_TOOLS_AB_STEPS_H

/*
 * The time of a step of a program that says nothing about it: the counters of its processes'
 * reports are read while it runs, and how fast the count of step kernels (or of graph launches)
 * rises is the time of a step. A process that ended in good order put its report in the place of
 * its counters; its file is kept open, so that the last counts are read all the same.
 *
 * A launch of a step kernel counts when it is eager or replayed in a graph; one that is captured is
 * none yet. Graph launches are calls of cuGraphLaunch.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ab_step_sample {
    int64_t time;  /* nanoseconds, CLOCK_MONOTONIC, of the reading */
    int64_t count; /* launches of step kernels by then */
};

struct report_watch;

struct ab_step_process {
    char *counters; /* name of the file */
    long pid;
    size_t sample_count, sample_capacity;
    struct ab_step_sample *samples; /* one where the count was another one than before */
    /* of steps.c: */
    struct report_watch *watch; /* NULL: nothing more is read */
    uint64_t device, inode;
    bool removed;
    size_t stride, age; /* changes between two samples, and since the last one but one */
};

struct ab_steps {
    char *folder; /* with the reports of the run */
    char *kernel; /* name glob as in a policy; NULL: graph launches */
    size_t process_count, process_capacity;
    struct ab_step_process *processes;
    uint64_t readings;
    char problem[256]; /* with a file that could not be read as counters; "": none */
};

/* kernel: as a policy's `name`; one that begins with _Z is matched with the mangled name. */
void ab_steps_start(struct ab_steps *steps, const char *folder, const char *kernel);

/* Reads all counters in the folder once; to be called every interval milliseconds while the run
 * goes on. Memory and time are bounded however long it does: of a process with very many samples,
 * every other one is dropped. */
enum { AB_STEPS_INTERVAL = 5 };
void ab_steps_sample(struct ab_steps *steps);

/* Seconds a step of a process, at most one value between two samples: values, to be freed, NULL and
 * 0 where there are none. Each stands for as many steps as weights says. */
double *ab_steps_values(const struct ab_step_process *process, size_t *count, int64_t **weights);

void ab_steps_release(struct ab_steps *steps);

#endif
