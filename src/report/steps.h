/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_STEPS_H
#define CUDAPOLICY_REPORT_STEPS_H

/* The steps of a live comparison; the functions that enter them are in report.h. */

#include <stddef.h>

#include "report/layout.h"

/* In the child after fork, after the image was exchanged: it counts its own. */
void report_steps_after_fork(void);

/* Consecutive steps of one slice. */
struct report_slice {
    uint32_t number;
    uint8_t arm;
    uint64_t first; /* step */
    uint64_t steps;
    double seconds; /* from the step `drop` of the slice to the first of the next one; NaN where the
                       slice is not complete */
};

/* The slices of a table of steps; to be freed. NULL and 0 when there is none or memory is short. */
struct report_slice *report_slices(const struct report_live *live,
                                   const struct report_step_row *rows, size_t row_count,
                                   size_t *count);

#endif
