/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_VIEW_H
#define CUDAPOLICY_REPORT_VIEW_H

/*
 * What a counters' file, or the image of this process, holds at one moment: tables copied, shards
 * summed up. A file may come from anywhere: numbers in its rows are checked where they are used, by
 * the functions below. Allocates; not for the launch path.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/layout.h"

struct report_view {
    struct report_header header; /* with counts cut to their tables' limits */
    char *strings;               /* counts.strings bytes and a NUL */
    struct report_rule_row *rules;
    struct report_kernel_row *kernels;
    struct report_cell_row *cells;
    struct report_stream_row *streams;
    struct report_fact_row *facts;
    struct report_note_row *notes;
    struct report_step_row *steps; /* header.steps of them, or as many as have room */
    size_t step_count;
    uint64_t (*launches)[REPORT_LAUNCH_KIND_COUNT]; /* by cell */
    uint64_t entry_calls[REPORT_ENTRY_LIMIT];
    bool partial;     /* pages of the file were missing, and their counts with them */
    bool truncated;   /* the file is shorter than its tables, or names more text than it holds */
    size_t text_left; /* bytes of text that report_view_text will still give */
};

/* Both fill in *view, to be freed by report_view_free; false with a message in error[size], and
 * nothing to free. The first reads the calling process's image, in any thread and without the lock:
 * counts go on while it reads. */
bool report_view_image(struct report_view *view, char *error, size_t size);
bool report_view_file(struct report_view *view, const char *path, char *error, size_t size);
void report_view_free(struct report_view *view);

/* The string at an offset; "" when there is none. Rows of a file that somebody made up may all name
 * one very long string: when far more text was asked for than the file can honestly stand for,
 * every further answer is "" and the view is marked truncated. */
const char *report_view_text(struct report_view *view, uint32_t offset);

/* All launches, of all kinds. */
uint64_t report_view_total(const struct report_view *view);

#endif
