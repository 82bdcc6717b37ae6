/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_LIVE_H
#define CUDAPOLICY_TOOLS_AB_LIVE_H

/*
 * ab --live: arms that alternate inside one running job, by step. What differs from process to
 * process (the mode a process happens to be in) is then the same for all arms.
 *
 * All arms are in one policy: each rule has its arm as a selector and its arm's name before its
 * own. The library alternates them by a schedule that depends on the seed alone
 * (src/decide/live.h), and notes when each step began; here the steps of all ranks become times of
 * slices, and those, over blocks in which every arm has one slice, ratios to the baseline.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "analysis.h"
#include "command.h"
#include "experiment.h"
#include "statistics.h"

struct results;

struct ab_live_plan {
    uint64_t seed;
    uint32_t slice, drop, warm_up; /* steps */
    const char *step_kernel;       /* name glob; NULL: graph launches */
    enum ab_across across;
    double alpha, margin;
    const struct ab_metric *metric; /* what the run prints or writes once a step; NULL: the time
                                       from step to step */
};

/* The policy in which every arm's rules are, as text to be freed; NULL with a message in
 * error[size] that has file and line where something in it cannot change while a program runs. */
char *ab_live_policy(const struct ab_experiment *experiment, char *error, size_t size);

/* Whether a rule of that policy, by its name, is of the arm with this number. */
bool ab_live_rule_is_of(const char *rule, const struct ab_arm *arm, size_t number);

/* The value of CUDAPOLICY_LIVE; to be freed. */
char *ab_live_variable(const struct ab_live_plan *plan, size_t arms);

/* A slice that all ranks made. */
struct ab_live_slice {
    uint32_t part;   /* of the run, see live_ranks.h */
    uint32_t number; /* in the part */
    uint32_t arm;
    double seconds; /* a step; or the mean of a metric's values */
};

/* Where a block is: the number decides the order of the arms in it. */
struct ab_live_place {
    uint32_t part, block;
};

/* What one run of the command showed. */
struct ab_live_run {
    size_t ranks;              /* processes that made steps side by side, where they were most */
    size_t parts;              /* sequences of steps, one after the other: live_ranks.h */
    size_t shared_rank;        /* processes that do not count: another one has their rank */
    size_t too_short;          /* and those that made less than a block beside others */
    int64_t steps, steps_most; /* of the rank with the fewest, and with the most; over all parts */
    int64_t not_entered;       /* steps of all ranks for which their counters had no room */
    size_t slice_count, slice_capacity;
    struct ab_live_slice *slices; /* ascending; complete ones only */
    size_t block_count;
    double *blocks;                 /* blocks of all arms: as in slices, by block, then by arm */
    struct ab_live_place *places;   /* by block; NULL: not known */
    struct ab_run_policy *policies; /* by arm, what its rules did; NULL: not read */
    struct ab_run_gpu gpu;          /* what the GPUs did meanwhile */
};

/* From the reports of a run, with their documents. False with the reason in error[size], where no
 * block is complete. */
bool ab_live_read(struct ab_live_run *run, const struct results *results,
                  const struct ab_live_plan *plan, size_t arms, char *error, size_t size);
void ab_live_run_release(struct ab_live_run *run);

/* Puts the values of plan->metric in place of the times: there has to be one for each step, so that
 * each is of the arm of its step. After ab_live_read; false with the reason in error[size]. */
struct ab_run_files;
bool ab_live_read_values(struct ab_live_run *run, const struct ab_run_files *files,
                         const struct ab_live_plan *plan, size_t arms, char *error, size_t size);

/* What the rules of each arm did, from the same reports; after ab_live_read. */
void ab_live_read_rules(struct ab_live_run *run, const struct results *results,
                        const struct ab_experiment *experiment);

enum ab_live_verdict {
    AB_LIVE_BETTER,
    AB_LIVE_WORSE,
    AB_LIVE_NO_DIFFERENCE,
    AB_LIVE_NOT_ENOUGH,
    AB_LIVE_NOT_APPLIED, /* as AB_VERDICT_NOT_APPLIED */
};
extern const char *const ab_live_verdict_names[];

/* An arm against the baseline; of the baseline itself only the first three. */
struct ab_live_comparison {
    size_t blocks;
    double mean, deviation; /* seconds a step, over slices; NaN */
    struct ab_nested nested;
    double margin_low, margin_high; /* at level 1 - 2 alpha; NaN */
    double p_adjusted;              /* after Holm over the candidates; NaN */
    enum ab_live_verdict verdict;
};

/* Into the summary, what the rules of the arm did over all runs: rules_never_applied and
 * rules_unmatched. */
void ab_live_summarise_rules(struct ab_arm_summary *summary, const struct ab_live_run *runs,
                             size_t run_count, size_t arm);

/* comparisons[experiment->arm_count]. */
void ab_live_compare(struct ab_live_comparison *comparisons, const struct ab_experiment *experiment,
                     const struct ab_live_run *runs, size_t run_count,
                     const struct ab_live_plan *plan);

/* What the exit status says of the experiment's claim: 0 shown, 1 the opposite is shown, 2 neither.
 */
int ab_live_status(const struct ab_live_comparison *comparisons,
                   const struct ab_experiment *experiment);

/* live_json.c. What a run showed, and back; false where it is none. */
json_t *ab_live_run_json(const struct ab_live_run *run, size_t arms);
bool ab_live_run_from_json(struct ab_live_run *run, const json_t *document, size_t arms);

/* live_print.c, live_json.c */
void ab_live_print(const struct ab_live_comparison *comparisons,
                   const struct ab_experiment *experiment, const struct ab_live_run *runs,
                   size_t run_count, const struct ab_live_plan *plan, bool wide, FILE *stream);
json_t *ab_live_json(const struct ab_live_comparison *comparisons,
                     const struct ab_experiment *experiment, const struct ab_live_run *runs,
                     size_t run_count, const struct ab_live_plan *plan);

/* live_option.c: whether --live is among the options. live_command.c: the command then. */
bool ab_live_asked(int argc, char **argv);
int ab_live_main(const struct command *command, int argc, char **argv);

#endif
