/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PRELOAD_SITE_H
#define CUDAPOLICY_PRELOAD_SITE_H

/* The site's file as this process reads it, and the job's policy combined with it. Not for the
 * launch path. */

#include <stdbool.h>
#include <stddef.h>

#include "policy/policy.h"
#include "preload/configuration.h"

/*
 * Reads the site's file, or CUDAPOLICY_SITE where there is none. NULL where there is neither, and
 * after errors, which the log says; the first one is copied to error[size], which may be NULL.
 * before_log is called before something is said: a process that is left alone makes no log file.
 */
struct policy *preload_site_read(void (*before_log)(void), char *error, size_t size);

/* Whether the site wants this program to be left alone: by the base name of its executable. */
bool preload_site_leaves_alone(const struct policy *site, void (*before_log)(void));

/*
 * The policy by which the process decides: the job's, with the site's around it; the site's alone
 * where the job has none, or one with mistakes, which the log says. site may be NULL, and belongs
 * to the result. NULL when there is nothing to decide by; where the job's has mistakes the first is
 * in error[size].
 */
struct policy *preload_policy_start(const struct preload_configuration *configuration,
                                    struct policy *site, char *error, size_t size);

/* The same anew, from both files as they are now; NULL with the first mistake in error[size]. */
struct policy *preload_policy_again(const struct preload_configuration *configuration, char *error,
                                    size_t size);

/* Facts for the report: which site's file holds. */
void preload_site_facts(const struct policy *policy);

#endif
