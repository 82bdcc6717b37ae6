/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_TEMPLATE_H
#define CUDAPOLICY_REPORT_TEMPLATE_H

/* Paths that differ by process: CUDAPOLICY_REPORT and CUDAPOLICY_LOG_FILE. */

#include <stdbool.h>
#include <stddef.h>

struct report_template_values {
    const char *host; /* %h; NULL: gethostname's */
    long pid;         /* %p; 0: the calling process's */
    const char *job;  /* %j; NULL or "": "nojob" */
    const char *rank; /* %r; NULL or "": "norank" */
};

/*
 * Expands %h, %p, %j, %r and %% of a template into out[size]. A value is one part of a path's
 * component: what is not a letter, a digit or one of "-_.+@:" in it becomes '_', and so does a
 * first
 * '.', so that no environment variable can lead to another folder. False with a message in
 * error[error_size], and out empty, when the template is empty, has another % or does not fit.
 * Allocates nothing, takes no lock; not for the launch path.
 */
bool report_expand_template(const char *text, const struct report_template_values *values,
                            char *out, size_t size, char *error, size_t error_size);

#endif
