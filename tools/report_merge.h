/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_REPORT_MERGE_H
#define CUDAPOLICY_TOOLS_REPORT_MERGE_H

/*
 * Many reports made one file, or one a host: the document of a job, written report by report, so
 * that memory holds few of them at a time. What was merged can be merged again.
 */

#include <stdbool.h>
#include <stddef.h>

struct report_merge {
    const char *file; /* where all reports go; NULL: those of each host into folder/HOST.json */
    const char *folder;
    bool remove; /* the files that were merged, and folders among the paths that are empty
                    then; not those of processes that still run */
};

/* Reads what results_load reads. A name that is taken gets a suffix, .1 and so on, and a line on
 * standard error says so. False after messages there; then nothing is removed, and what could be
 * read is merged all the same. *reports: how many there were. */
bool report_merge(const struct report_merge *merge, char *const *paths, size_t count,
                  size_t *reports);

#endif
