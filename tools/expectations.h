/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_EXPECTATIONS_H
#define CUDAPOLICY_TOOLS_EXPECTATIONS_H

/*
 * What a policy expects ([expect]), judged for a whole job. Each process that launched a kernel is
 * asked by itself, unless the rule's rank, local_rank, world_size or host leave it out; where no
 * process is asked, 0 was counted.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "policy/policy.h"
#include "results.h"

/* An expectation, and the processes in which it was not so. */
struct expectation_result {
    const struct policy_expectation *expectation;
    size_t asked; /* processes */
    bool held;
    size_t broken_count, broken_capacity;
    struct expectation_broken {
        const struct results_process *process;
        int64_t count;
    } * broken;
};

struct expectations {
    const struct policy *policy;
    size_t count;
    struct expectation_result *results; /* in the order of the policy */
    size_t broken;                      /* how many did not hold */
    size_t ranks, silent_ranks;         /* of the job, and those of them without a report here */
    size_t unsure; /* processes whose counts are not all there: lost, or still going on */
};

/* results has to have been read with keep_documents. What is pointed to stays the caller's. */
void expectations_judge(struct expectations *expectations, const struct policy *policy,
                        const struct results *results);

/* A line for each that did not hold; where all did, one that says so unless only_broken. wide: all
 * processes are named. Nothing where nothing is expected. */
void expectations_print(const struct expectations *expectations, bool only_broken, bool wide,
                        FILE *stream);

/* The member "expectations" of a summary. */
json_t *expectations_json(const struct expectations *expectations);

void expectations_release(struct expectations *expectations);

#endif
