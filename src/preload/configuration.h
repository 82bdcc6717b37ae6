/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PRELOAD_CONFIGURATION_H
#define CUDAPOLICY_PRELOAD_CONFIGURATION_H

/* What the environment asks for: the CUDAPOLICY_… variables, read once. Not for the launch path. */

#include <limits.h>
#include <stdbool.h>

#include "decide/live.h"
#include "policy/policy.h"
#include "policy/site.h"
#include "preload/rank.h"
#include "report/log.h"

struct preload_configuration {
    const char *policy_path;     /* CUDAPOLICY_FILE; NULL: none */
    char reload_path[PATH_MAX];  /* the same, absolute: programs change their folder; "": none */
    bool mode_given;             /* CUDAPOLICY_MODE */
    enum policy_mode asked_mode; /* by it */
    enum policy_mode mode;       /* that holds: process.c decides, of this and the policies */
    bool strict;                 /* CUDAPOLICY_STRICT=1 */
    bool has_errors;
    unsigned fake_domains;           /* CUDAPOLICY_FAKE_LOCALITY_DOMAINS; 0: none */
    struct decide_live_options live; /* CUDAPOLICY_LIVE; no arms: none */
    enum report_log_level log_level;
    char log_path[PATH_MAX];         /* CUDAPOLICY_LOG_FILE, expanded; "": stderr */
    char report_path[PATH_MAX];      /* CUDAPOLICY_REPORT, expanded; "": none */
    const char *site_reports;        /* the site's template; NULL: none */
    char site_report_path[PATH_MAX]; /* the same, expanded; "": none */
    char host[256];
    struct preload_rank rank;
    /* What was wrong with a variable, said once the log has started; "" where nothing was. */
    char complaints[8][512];
    unsigned complaint_count;
};

/* Reads the environment with secure_getenv: a set-user-ID program sees none of it. A value that
 * means nothing is a complaint, and the default holds. */
void preload_configuration_read(struct preload_configuration *configuration);

/* Takes from the site's file what it says of reports. The strings stay the site's. */
void preload_configuration_use_site(struct preload_configuration *configuration,
                                    const struct policy_site *site);

/* Logs what was wrong. */
void preload_configuration_complain(const struct preload_configuration *configuration);

/* In the child after fork: rank, host and paths anew. */
void preload_configuration_in_child(struct preload_configuration *configuration);

/* Enters what is known without CUDA in the report: policy, rank, job, environment. */
void preload_configuration_facts(const struct preload_configuration *configuration,
                                 const struct policy *policy);

/* Those of them that are about the policy. */
void preload_configuration_policy_facts(const struct preload_configuration *configuration,
                                        const struct policy *policy);

/* The facts that need CUDA are to be gathered again (facts.c): after fork. */
void preload_facts_again(void);

#endif
