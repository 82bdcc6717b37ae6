/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_ENTRY_POINTS_H
#define CUDAPOLICY_TOOLS_ENTRY_POINTS_H

/* The functions of CUDA that the library wraps, and those about the same things that it does not,
 * as tables on standard output and as JSON. */

#include <jansson.h>
#include <stdbool.h>

void entry_points_print(bool wide);
json_t *entry_points_json(void);

void exceptions_print(bool wide);
json_t *exceptions_json(void);

#endif
