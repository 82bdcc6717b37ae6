/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_POLICY_COMBINE_H
#define CUDAPOLICY_POLICY_COMBINE_H

/* A site's file and a job's policy as one policy, and which of their modes holds. Not for the
 * launch path. */

#include <stdbool.h>
#include <stddef.h>

#include "policy/policy.h"
#include "policy/site.h"

/*
 * One list of rules: the site's locked ones, the job's, the site's defaults; so the first that
 * matches wins, and `final` ends the search, over all of them. The partitions of both share the
 * devices; a locality domain that both name without a name is one partition. Names stay those of
 * the files: a rule finds the stream rules and partitions of its own file. Path, hash and [tune]
 * are the job's.
 *
 * Rules of the job that can never apply, since locked ones take all that they match, are warned of.
 * The result owns both policies. NULL with errors in diagnostics, which is the job's, when their
 * partitions cannot be on one device, or when there are too many; both stay the caller's then.
 */
struct policy *policy_combine(struct policy *site, struct policy *job,
                              struct policy_diagnostics *diagnostics);

enum policy_mode_source {
    POLICY_MODE_FROM_ENVIRONMENT, /* CUDAPOLICY_MODE, or what an option put there */
    POLICY_MODE_FROM_JOB,
    POLICY_MODE_FROM_SITE,
    POLICY_MODE_BUILT_IN,
};

struct policy_mode_choice {
    enum policy_mode mode;   /* that holds */
    enum policy_mode wanted; /* before the site's ceiling */
    enum policy_mode_source source;
};

/* The precedence: the environment (NULL: it says nothing), the job's policy, the site's default,
 * enforce; then the site's ceiling lowers it. policy: combined, or a job's alone. */
struct policy_mode_choice policy_mode_choose(const enum policy_mode *environment,
                                             const struct policy *policy);

#endif
