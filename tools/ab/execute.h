/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_EXECUTE_H
#define CUDAPOLICY_TOOLS_AB_EXECUTE_H

/*
 * Makes the runs of an experiment, block by block, until the analysis says that nothing more is to
 * be learned, the plan ends or the user ends it. Shared by ab and tune.
 */

#include <stdbool.h>
#include <stdio.h>

#include "analysis.h"
#include "experiment.h"
#include "trial.h"

struct ab_execution {
    struct ab_trial_options trial;
    double time_limit_factor; /* of the baseline's median, when trial.time_limit is 0 (3) */
    const char *journal;      /* file to which every run is appended when it is over; NULL: none */
    bool allow_unattached;    /* go on with an arm whose first run is AB_NOT_ATTACHED */
    bool quiet;               /* no progress */
    const char *label;        /* before the progress, e.g. "search: "; "" */
};

/*
 * journal.c. The journal: the experiment on its first line, then a run a line, each on the disk
 * before the next one starts. A line cut short by a crash is dropped.
 *
 * Resume reads the runs of a journal into an experiment that has none; where its seed is 0, the
 * journal's is taken. False with a message on stderr: also when the journal is about another
 * command, other arms (their files' SHA-256), metrics, another plan or seed, or runs made with
 * other options; what differs is named.
 *
 * One journal at a time is open in a process, until one of these names another, and
 * locked: false when another process has it.
 */
bool ab_journal_begin(const struct ab_experiment *experiment, const char *path);
bool ab_journal_resume(struct ab_experiment *experiment, const char *path);
bool ab_journal_add(const struct ab_experiment *experiment, const struct ab_run *run,
                    const char *path);

/* The same for runs that are more than an ab_run: a line, which is released, and what reads one;
 * false with a message in error[size]. */
bool ab_journal_add_line(json_t *document, const char *path);
typedef bool (*ab_journal_reader)(void *context, const json_t *document, char *error, size_t size);
bool ab_journal_resume_by(struct ab_experiment *experiment, const char *path,
                          ab_journal_reader reader, void *context);

/* Makes the runs that are missing. False when the experiment cannot go on: the reason was printed
 * (the first run of the baseline failed or lacks a metric, no launch of an arm's first run was
 * seen, a policy was changed meanwhile, --prepare failed). What was run stays in the experiment
 * either way. */
bool ab_execute(struct ab_experiment *experiment, const struct ab_execution *execution);

#endif
