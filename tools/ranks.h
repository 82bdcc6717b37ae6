/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_RANKS_H
#define CUDAPOLICY_TOOLS_RANKS_H

/*
 * The ranks of one launch of a job, side by side: what each of them did by rule and by kernel, and
 * where one is not like the others. Processes without a rank are left out.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "rank_set.h"
#include "results.h"

/* What one process of a rank did under a rule, or of a kernel. */
struct rank_count {
    int64_t rank, launches, applied;
};

struct rank_counts {
    size_t count, capacity;
    struct rank_count *items;
};

struct rank_process {
    int64_t rank;
    size_t process;        /* of the results */
    const char *ancestors; /* "PID@TICKS PID@TICKS ..."; NULL: not told */
};

/* A value that all ranks should agree on. */
struct rank_fact {
    const char *key, *value;
    int64_t rank;
};

struct ranks {
    size_t process_count, process_capacity;
    struct rank_process *processes;
    size_t rule_count, rule_capacity; /* by their places in the results, as the kernels */
    struct rank_counts *rules;
    size_t kernel_count, kernel_capacity;
    struct rank_counts *kernels;
    size_t fact_count, fact_capacity;
    struct rank_fact *facts;
    int64_t world_size; /* the largest that a process was told; -1: none was */
};

/* Notes the process that was added to the results last, whose report the document is. */
void ranks_add(struct ranks *ranks, struct results *results, const json_t *document);

void ranks_release(struct ranks *ranks);

/* ---- rank_compare.c: what comes of it ---- */

/* A rule or kernel over the ranks that had it. */
struct rank_row {
    const struct results_rule *rule; /* or NULL: a kernel's */
    const struct results_kernel *kernel;
    struct rank_set ranks;
    int64_t least, median, most; /* launches of a rank */
    int64_t applied_least, applied_most;
};

enum rank_finding_kind {
    RANK_FINDING_DUPLICATE,   /* two processes with one rank */
    RANK_FINDING_WORLD_SIZE,  /* ranks were told different numbers of ranks */
    RANK_FINDING_FACT,        /* policy, driver, libraries, settings differ */
    RANK_FINDING_RULE_SOME,   /* a rule that matched on some ranks only */
    RANK_FINDING_RULE_FAR,    /* counts far from the others' */
    RANK_FINDING_KERNEL_SOME, /* the same for kernels */
    RANK_FINDING_KERNEL_FAR,
    RANK_FINDING_KINDS
};

struct rank_finding {
    enum rank_finding_kind kind;
    char *text;
    struct rank_set ranks; /* that are not like the others */
};

struct rank_comparison {
    struct rank_set reported;   /* ranks of which there is a report */
    struct rank_set missing;    /* of which there is none, as far as their number is known */
    struct rank_set incomplete; /* with a process that did not end in good order */
    size_t hosts;
    size_t row_count, row_capacity;
    struct rank_row *rows; /* rules first */
    size_t finding_count, finding_capacity;
    struct rank_finding *findings; /* in the order of their kinds */
};

/* Sorts what the ranks hold, too. The results are those of ranks_add. */
void ranks_compare(struct ranks *ranks, const struct results *results,
                   struct rank_comparison *comparison);
void rank_comparison_release(struct rank_comparison *comparison);

/* rank_duplicate.c. Processes of one rank that ran at the same time, and neither of which descends
 * from the other or from a third one of the rank; for ranks_compare. */
void ranks_find_duplicates(const struct ranks *ranks, const struct results *results,
                           struct rank_comparison *comparison);

/* Adds a finding; the text becomes the comparison's. */
struct rank_finding *rank_comparison_find(struct rank_comparison *comparison,
                                          enum rank_finding_kind kind, char *text);

/* rank_print.c. As lines and tables, or as JSON. kernels: the table of them too. */
void rank_comparison_print(const struct rank_comparison *comparison, int64_t world_size,
                           bool kernels, bool wide, FILE *stream);
void rank_comparison_print_findings(const struct rank_comparison *comparison, bool wide,
                                    FILE *stream);
json_t *rank_comparison_json(const struct rank_comparison *comparison, int64_t world_size);

#endif
