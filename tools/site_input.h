/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_SITE_INPUT_H
#define CUDAPOLICY_TOOLS_SITE_INPUT_H

/* The site's file as programs on this machine get it, for the commands that say what becomes of
 * them. Messages go to stderr. */

#include <stdbool.h>

#include "policy/policy.h"

/*
 * The site's file of this machine, or the one that CUDAPOLICY_SITE carries; with a file given, that
 * one, whoever may write to it. NULL where there is none, and after errors, which are printed:
 * *failed then, which may be NULL. Programs go on without a site's file that is refused.
 */
struct policy *site_input_load(const char *given, bool *failed);

/* The job's policy with the site's around it. Both are freed with it, and when it is NULL: after
 * errors. site NULL: the job's alone. warnings: printed too. */
struct policy *site_input_combine(struct policy *site, struct policy *job, bool warnings);

/* The two together, with this machine's file. */
struct policy *site_input_around(struct policy *job, bool warnings);

/* Both for later looks, after one that said what is wrong: print nothing. The job's policy alone
 * where the site's file is refused. */
struct policy *site_input_load_quietly(void);
struct policy *site_input_around_quietly(struct policy *job);

/* Checks one site's file: policy_site_load_file, and what can be said of it beyond its text. Where
 * it is the one that programs on this machine read, it is looked at as they do. */
struct policy *site_input_check(const char *file, struct policy_diagnostics *diagnostics);

/* Where the site's file of this machine is; "": this was built without. */
const char *site_input_path(void);

/* Why nothing is seen of a program, by what this machine's site says: it is left alone, or no mode
 * but off is allowed. NULL: the site is not the reason. To be freed. */
char *site_input_unseen(const char *program);

/* Why a program of this name, found as argv[0] in PATH, is left alone by the site; NULL: it is not.
 * To be freed. */
char *site_input_excludes(const struct policy *policy, const char *program);

#endif
