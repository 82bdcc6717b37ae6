/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_POLICY_SITE_H
#define CUDAPOLICY_POLICY_SITE_H

/*
 * A site's file: what the people who run a cluster say of every job. It is a policy with sections
 * of its own, and found at a path that was fixed when this was built. Not for the launch path.
 *
 * It is advice and no barrier: users own their environment, and what they do not preload does not
 * read it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/diagnostics.h"
#include "policy/policy.h"

/* What [site] says. */
struct policy_site {
    const char *path;   /* as given, or the label of text that came from no file */
    uint8_t sha256[32]; /* of the file's bytes */
    bool mode_given;
    enum policy_mode mode;         /* of jobs that say none */
    enum policy_mode mode_ceiling; /* the highest there can be */
    const char *reports;           /* template of a path; NULL: none */
    struct policy_globs exclude;   /* base names of executables that are left alone */
    bool exclude_defaults;         /* and those of the list that is built in */
    struct policy_place mode_place, mode_ceiling_place, reports_place, exclude_defaults_place;
    const struct policy_place *exclude_places; /* of each pattern */
};

/* What holds where [site] says nothing. */
#define POLICY_SITE_DEFAULTS                                                                       \
    ((struct policy_site){.mode = POLICY_MODE_ENFORCE,                                             \
                          .mode_ceiling = POLICY_MODE_ENFORCE,                                     \
                          .exclude_defaults = true})

enum {
    POLICY_SITE_FILE_LIMIT = 1024 * 1024,   /* bytes */
    POLICY_SITE_VARIABLE_LIMIT = 64 * 1024, /* of CUDAPOLICY_SITE: Linux takes twice as much */
};

/* Where the site's file is, and who may own it and the folders on the way, root aside. */
struct policy_site_place {
    const char *path; /* absolute; "": there is no site layer */
    uid_t owner;
};

/* As this was built (site_place.c). Tests link another one. */
struct policy_site_place policy_site_place(void);

/*
 * The text of the file at a place, to be freed. It is read only where nobody but root and the
 * owner could have put it: each folder, symbolic link and file on the way is theirs; folders that
 * others may write to have the sticky bit; others may not write to the file, which is a regular
 * one. What is checked is what was opened, so nothing can be exchanged in between. NULL with
 * *absent when there is no file, NULL with an error in diagnostics when it is refused. Keeps errno.
 */
char *policy_site_read(const struct policy_site_place *place, size_t *length, bool *absent,
                       struct policy_diagnostics *diagnostics);

/*
 * The site's file, read and checked; where there is none, the text in variable, which is the value
 * of CUDAPOLICY_SITE or NULL: in a container /etc is the image's, so the host's file comes that
 * way. NULL with *absent when there is neither, NULL with errors in diagnostics when there is
 * something wrong. Lines of diagnostics begin with "site". Keeps errno.
 */
struct policy *policy_site_load(const struct policy_site_place *place, const char *variable,
                                bool *absent, struct policy_diagnostics *diagnostics);

/* policy_parse for the text of a site's file; policy_load, without a look at its owner. */
struct policy *policy_site_parse(const char *text, size_t length, const char *label,
                                 struct policy_diagnostics *diagnostics);
struct policy *policy_site_load_file(const char *path, struct policy_diagnostics *diagnostics);

/* Text as a value of CUDAPOLICY_SITE: one line, with % and control characters as %XX. To be freed;
 * NULL when memory runs out. And back: NULL after an error in diagnostics. */
char *policy_site_encode(const char *text, size_t length);
char *policy_site_decode(const char *variable, size_t *length,
                         struct policy_diagnostics *diagnostics);

/* The pattern for which an executable of this base name is left alone, NULL when it is not. place:
 * of the pattern in the site's file, line 0 of one that is built in; may be NULL. */
const char *policy_site_excludes(const struct policy_site *site, const char *executable,
                                 struct policy_place *place);

/* The patterns that are built in, of shells and common tools. */
const char *const *policy_site_default_excludes(size_t *count);

/* Whether a process without a policy of its own has something to do for the site: rules, or a
 * report. */
bool policy_site_asks(const struct policy *site);

#endif
