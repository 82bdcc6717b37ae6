/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_TUNE_SPACE_H
#define CUDAPOLICY_TOOLS_TUNE_SPACE_H

/* All the policies that a choice of values makes of one. */

#include <stdbool.h>
#include <stddef.h>

#include "policy/policy.h"

struct space_candidate {
    char *name; /* "base", else the choices: "small.mem_sync_domain=remote, side.sm_count=16" */
    char *arm;  /* the same in letters, digits and . _ + -, short, unlike any other */
    char *text;
    size_t length;
};

/* A combination that is not tried. */
struct space_left_out {
    char *name, *reason;
};

struct space {
    size_t candidate_count, candidate_capacity;
    struct space_candidate *candidates; /* the first is the base, as it stands */
    size_t left_out_count, left_out_capacity;
    struct space_left_out *left_out;
};

/*
 * All combinations of the values of these variations, or with each, all policies that differ from
 * the base in one of them. The base is always there; a combination that says the same as an earlier
 * one, or contradicts itself, is left out. base: the policy that text states. False with a message
 * in error[size]: more combinations than limit, or none that is a policy.
 */
bool space_make(struct space *space, const char *text, size_t length, const struct policy *base,
                const struct policy_variation *variations, size_t count, bool each, size_t limit,
                char *error, size_t size);

void space_release(struct space *space);

#endif
