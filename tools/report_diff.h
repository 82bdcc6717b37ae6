/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_REPORT_DIFF_H
#define CUDAPOLICY_TOOLS_REPORT_DIFF_H

/*
 * Two runs compared: which kernels are gone or new, which rules no longer do what they did. Numbers
 * of launches differ from run to run and are no difference by themselves; what is one:
 *
 * - a kernel that only one of the runs launched, or another library launched;
 * - a rule that only one of the policies has, or that matched in one run only;
 * - an outcome, or a reason of refusal, that a rule had in one run only, or on a share of its
 *   launches that is off by DIFF_SHARE per cent of them;
 * - a kernel of both runs that a rule decided on in one of them only.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "nearest_kernel.h"
#include "policy/policy.h"
#include "results.h"

enum {
    DIFF_SHARE = 10,
};

/* One run. */
struct diff_side {
    struct results results;
    json_t *facts; /* driver, libraries, policy, mode: key to an object whose keys are the values */
};

struct diff_vanished {
    const struct results_kernel *kernel;
    size_t nearest_count;
    struct nearest_kernel nearest[NEAREST_KERNELS]; /* of the new run */
};

struct diff_moved {
    const struct results_kernel *kernel, *other; /* the same one, of another library */
};

enum diff_change {
    DIFF_SAME,
    DIFF_STOPPED, /* matched before, and nothing now */
    DIFF_BEGAN,
    DIFF_REMOVED, /* the new run's policy does not have it */
    DIFF_ADDED,
    DIFF_CHANGED, /* outcomes, reasons or kernels */
};

struct diff_names {
    size_t count, capacity;
    const struct results_kernel **kernels;
};

struct diff_rule {
    const struct results_rule *old, *new; /* NULL: that run's policy has none */
    enum diff_change change;
    size_t line_count, line_capacity;
    char **lines;                   /* what changed of outcomes and reasons */
    struct diff_names lost, gained; /* kernels of both runs */
    struct diff_names missing;      /* kernels that are gone */
    char *suggestion;               /* a rule, or lines of one, to paste; NULL: none */
};

struct diff_fact {
    const char *key;
    char *old, *new;
};

struct report_diff {
    bool same;
    struct diff_names appeared;
    size_t vanished_count, vanished_capacity;
    struct diff_vanished *vanished;
    size_t moved_count, moved_capacity;
    struct diff_moved *moved;
    size_t rule_count, rule_capacity;
    struct diff_rule *rules; /* those that are not the same */
    size_t fact_count, fact_capacity;
    struct diff_fact *facts; /* no differences by themselves: they may explain some */
};

/* Adds the reports of a file or folder; as results_load. */
bool report_diff_load(struct diff_side *side, const char *path);
void report_diff_release_side(struct diff_side *side);

/* policy: of the new run, or the old one's, for the text of rules; NULL when neither is at hand.
 * The sides must outlive the comparison. */
void report_diff_make(const struct diff_side *old, const struct diff_side *new,
                      const struct policy *policy, struct report_diff *diff);
void report_diff_release(struct report_diff *diff);

/* report_diff_rule.c. */
void report_diff_rules(const struct results *old, const struct results *new,
                       struct report_diff *diff);
/* To have the rule match again what took the place of kernels that are gone: what to put into the
 * policy. NULL when nothing would help. To be freed. */
char *report_diff_suggest(const struct diff_rule *rule, const struct report_diff *diff,
                          const struct results *new, const struct policy *policy);
void report_diff_add_name(struct diff_names *names, const struct results_kernel *kernel);

/* report_diff_print.c. */
void report_diff_print(const struct report_diff *diff, bool wide, FILE *stream);
json_t *report_diff_json(const struct report_diff *diff);

#endif
