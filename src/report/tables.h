/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_TABLES_H
#define CUDAPOLICY_REPORT_TABLES_H

/* What the image's tables hold; the functions that enter rows are in report.h. */

#include <stdbool.h>

/* Makes the image, if there is none, with the names that report_start gave, kernel 0 "(others)" and
 * cell 0. False when there can be none. Called between report_lock and report_unlock. */
bool report_tables_make(void);

/* In the child after fork, after the image was exchanged. */
void report_tables_after_fork(void);

#endif
